/* SPDX-License-Identifier: Apache-2.0
 * export.c: which formats there are, what they share, and the two that hold a number a case: Bencher Metric Format
 * (bencher.dev/docs/reference/bencher-metric-format) and github-action-benchmark's customSmallerIsBetter. */
#include "tools/compare/report/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"
#include "tools/compare/report/report_json.h"
#include "tools/compare/results/import.h"
#include "tools/compare/stats/per_process_values.h"
#include "tools/compare/stats/summary.h"

static const char *const names[] = {
    [GATE_BMF] = "bmf", [GATE_GITHUB] = "github", [GATE_GOOGLE] = "google", [GATE_OTAVA] = "otava"};
const char gate_format_names[] = "bmf, github, google or otava";

bool gate_format_of(const char *name, size_t length, gate_format *out) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
      *out = (gate_format)i;
      return true;
    }
  return false;
}

bool gate_export_has(const gate_exported *what, const gate_case *c) {
  return !what->filter || strstr(c->name, what->filter);
}

char *gate_export_name(const gate_case *c) {
  const char *mode = strcmp(c->mode, "hot") == 0 ? "" : c->mode, *device = strcmp(c->device, "-") == 0 ? "" : c->device;
  const bool more = *mode || *device;
  char *name =
      gate_say("%s%s%s%s%s%s", c->name, more ? " [" : "", mode, *mode && *device ? " " : "", device, more ? "]" : "");
  json_t *clean = gate_json_string(name);
  free(name);
  name = gate_copy(json_string_value(clean));
  json_decref(clean);
  return name;
}

/* Of the median of the visits, in ns, its interval of 95 %; NAN: too few visits. */
static void interval_of(const gate_case *c, double *low, double *high) {
  double *values = gate_alloc((size_t)c->visit_count + 1, sizeof *values);
  int count = 0;
  for (int i = 0; i < c->visit_count; i++)
    if (c->visits[i].sample_count > 0) values[count++] = gate_visit_value(&c->visits[i]);
  const gate_estimate middle = gate_median_estimate(values, count, 0.95);
  *low = middle.low;
  *high = middle.high;
  free(values);
}

static bool is_timed(const gate_case *c) {
  return c->state == GATE_CASE_OK && c->visit_count > 0;
}

size_t gate_export_lost(const gate_exported *what) {
  size_t lost = 0;
  for (size_t i = 0; i < what->run->case_count; i++)
    lost += gate_export_has(what, &what->run->cases[i]) && !is_timed(&what->run->cases[i]);
  return lost;
}

/* --- a number a case --- */

static json_t *bmf_case(const gate_case *c) {
  double ns, low, high;
  gate_case_summary(c, &ns, NULL);
  interval_of(c, &low, &high);
  json_t *value = json_pack("{s:o}", "value", gate_json_number(ns));
  if (isfinite(low) && isfinite(high)) {
    json_object_set_new(value, "lower_value", gate_json_number(low));
    json_object_set_new(value, "upper_value", gate_json_number(high));
  }
  return json_pack("{s:o}", "latency", value);
}

static json_t *github_case(const gate_case *c, const char *name, const gate_run *run) {
  double ns, spread, low, high;
  char range[64];
  gate_case_summary(c, &ns, &spread);
  interval_of(c, &low, &high);
  json_t *object =
      json_pack("{s:o, s:s, s:o}", "name", gate_json_string(name), "unit", "ns", "value", gate_json_number(ns));
  if (isfinite(low) && isfinite(high)) {
    snprintf(range, sizeof range, "\u00b1 %.4g", fmax(ns - low, high - ns));
    json_object_set_new(object, "range", json_string(range));
  }
  char *extra = gate_say("%s: %d\nspread between them: %.2f %%%s%s", gate_import_counted(run), c->visit_count,
                         100 * spread, *run->label ? "\nlabel: " : "", run->label);
  json_object_set_new(object, "extra", gate_json_string(extra));
  free(extra);
  return object;
}

static json_t *numbers(const gate_exported *what) {
  json_t *all = what->format == GATE_BMF ? json_object() : json_array();
  for (size_t i = 0; i < what->run->case_count; i++) {
    const gate_case *c = &what->run->cases[i];
    if (!gate_export_has(what, c) || !is_timed(c)) continue;
    char *name = gate_export_name(c);
    if (what->format == GATE_BMF)
      json_object_set_new(all, name, bmf_case(c));
    else
      json_array_append_new(all, github_case(c, name, what->run));
    free(name);
  }
  return all;
}

bool gate_export(FILE *out, const gate_exported *what, char **error) {
  if (error) *error = NULL;
  if (what->format == GATE_OTAVA) return gate_export_otava(out, what, error);
  if (what->format == GATE_GOOGLE) return gate_export_google(out, what);
  json_t *json = numbers(what);
  const bool good = json && json_dumpf(json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) == 0;
  if (good) fputc('\n', out);
  json_decref(json);
  return gate_written(out) && good;
}
