/* SPDX-License-Identifier: Apache-2.0
 * report_json_parts.c: numbers and text as JSON, a row with what was measured on its sides, a history. */
#include "tools/compare/report/report_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *gate_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *gate_json_string(const char *text) {
  if (!text) return json_null();
  char *valid = malloc(3 * strlen(text) + 1), *to = valid;
  if (!valid) return NULL;
  while (*text) {
    const char *from = text;
    bool hidden;
    const uint32_t character = gate_character(&text, &hidden);
    /* What is one byte long and not ASCII is no UTF-8. */
    const bool foreign = text - from == 1 && character > 0x7F;
    const size_t size = foreign ? 3 : (size_t)(text - from);
    memcpy(to, foreign ? "\xEF\xBF\xBD" : from, size);
    to += size;
  }
  json_t *json = json_stringn(valid, (size_t)(to - valid));
  free(valid);
  return json;
}

/* 0 or less, "not known", is null. */
static json_t *known(double value) {
  return value > 0 ? gate_json_number(value) : json_null();
}

typedef enum sample_field { SAMPLE_NS, SAMPLE_CPU_NS, SAMPLE_START } sample_field;

static json_t *samples_json(const gate_visit *visit, sample_field field) {
  json_t *samples = json_array();
  for (int i = 0; i < visit->sample_count; i++) {
    const gate_sample *sample = &visit->samples[i];
    json_t *value = field == SAMPLE_NS       ? gate_json_number(sample->ns)
                    : field == SAMPLE_CPU_NS ? known(sample->cpu_ns)
                                             : json_integer((json_int_t)sample->start);
    if (json_array_append_new(samples, value)) {
      json_decref(samples);
      return NULL;
    }
  }
  return samples;
}

static json_t *visit_json(const gate_visit *visit, bool whole) {
  if (!whole) return samples_json(visit, SAMPLE_NS);
  return json_pack("{s:i, s:i, s:o, s:b, s:o, s:o, s:o, s:o}", "round", visit->round, "calls", visit->calls,
                   "clock_mhz", known(visit->clock_mhz), "throttled", visit->throttled, "load",
                   visit->load >= 0 ? gate_json_number(visit->load) : json_null(), "ns", samples_json(visit, SAMPLE_NS),
                   "cpu_ns", samples_json(visit, SAMPLE_CPU_NS), "start", samples_json(visit, SAMPLE_START));
}

static json_t *visits_json(const gate_case *c, bool whole) {
  json_t *visits = json_array();
  for (int i = 0; i < c->visit_count; i++)
    if (json_array_append_new(visits, visit_json(&c->visits[i], whole))) {
      json_decref(visits);
      return NULL;
    }
  return visits;
}

static json_t *side_json(const gate_case *c, double ns, double spread, double clock, bool whole) {
  if (!c) return json_null();
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "state", c->state == GATE_CASE_OK ? "ok" : "failed", "message",
                   gate_json_string(c->message), "ns", known(ns), "spread", gate_json_number(spread), "clock_mhz",
                   known(clock), "visits", visits_json(c, whole));
}

json_t *gate_json_row(const gate_comparison *comparison, const gate_row *row, bool whole) {
  const gate_case *c = gate_row_case(row);
  const gate_judgement *judged = &row->judged;
  char *shown = gate_row_name(comparison, row);
  json_t *json = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "case",
      gate_json_string(c->name), "shown", gate_json_string(shown), "device", gate_json_string(c->device), "mode",
      gate_json_string(c->mode), "dtype", gate_json_string(c->dtype), "bytes", known(c->bytes), "flops",
      known(c->flops), "verdict", gate_verdict_name(judged->verdict), "ratio", known(judged->ratio), "low",
      known(judged->low), "high", known(judged->high), "p", gate_json_number(judged->p), "p_corrected",
      gate_json_number(judged->p_corrected), "paired", judged->paired, "regression", gate_row_regressed(row), "floor",
      gate_json_number(judged->floor), "why", gate_json_string(judged->why), "base",
      side_json(row->base, judged->base_ns, judged->base_spread, judged->base_clock, whole), "head",
      side_json(row->head, judged->head_ns, judged->head_spread, judged->head_clock, whole));
  free(shown);
  return json;
}

static json_t *points_json(const gate_history *history) {
  json_t *points = json_array();
  for (size_t i = 0; i < history->point_count; i++) {
    const gate_point *point = &history->points[i];
    json_t *json =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "run", (json_int_t)point->run, "started",
                  (json_int_t)point->started, "revision", gate_json_string(point->revision), "label",
                  gate_json_string(point->label), "ns", known(point->ns), "spread", gate_json_number(point->spread));
    if (json_array_append_new(points, json)) {
      json_decref(points);
      return NULL;
    }
  }
  return points;
}

static json_t *changes_json(const gate_history *history) {
  json_t *changes = json_array();
  for (size_t i = 0; i < history->change_count; i++) {
    const gate_change *change = &history->changes[i];
    json_t *json = json_pack("{s:I, s:o, s:o, s:o}", "at", (json_int_t)change->at, "before", known(change->before),
                             "after", known(change->after), "p", gate_json_number(change->p));
    if (json_array_append_new(changes, json)) {
      json_decref(changes);
      return NULL;
    }
  }
  return changes;
}

json_t *gate_json_history(const gate_history *history) {
  return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o}", "case", gate_json_string(history->name), "device",
                   gate_json_string(history->device), "mode", gate_json_string(history->mode), "bases",
                   (json_int_t)history->bases, "points", points_json(history), "changes", changes_json(history));
}

json_t *gate_json_roofs(const gate_roof *roofs, size_t count) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++) {
    const gate_roof *roof = &roofs[i];
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o}", "device", gate_json_string(roof->device), "dtype",
                  gate_json_string(roof->dtype), "bytes_s", known(roof->bytes_s), "flops_s", known(roof->flops_s));
    if (json_array_append_new(list, json)) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}
