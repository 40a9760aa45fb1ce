/* SPDX-License-Identifier: Apache-2.0
 * schedule_yardstick.c: attune's own cases whose names begin with GATE_YARDSTICK are not judged: they tell what a
 * device can do at best, in the head's first and last planned round; of a pair with a short bound of time in the last
 * one alone. The one called copy tells of memory, the others of their dtype. */
#include "tools/compare/run/schedule_parts.h"

#include "tools/compare/stats/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8 };

static bool same(const gate_case *a, const gate_case *b) {
  return strcmp(a->name, b->name) == 0 && strcmp(a->device, b->device) == 0;
}

bool gate_yardstick_note(gate_rounds *r, int side, size_t source, size_t index, gate_case *c) {
  if (!r->sides[side].sources[source]->yardsticks || strncmp(c->name, GATE_YARDSTICK, sizeof GATE_YARDSTICK - 1) != 0)
    return false;
  if (side != GATE_HEAD) return true;
  gate_yardstick *y = NULL;
  for (size_t i = 0; !y && i < r->yardstick_count; i++)
    if (same(&r->yardsticks[i].is, c)) y = &r->yardsticks[i];
  if (!y) {
    r->yardsticks = gate_grow(r->yardsticks, r->yardstick_count + 1, sizeof *r->yardsticks);
    y = &r->yardsticks[r->yardstick_count++];
    *y = (gate_yardstick){.is = *c};
    *c = (gate_case){0};
  }
  y->source = source;
  y->index = index;
  return true;
}

/* What cannot be timed tells nothing, and is no failure. */
static void take(gate_rounds *r, gate_yardstick *y) {
  gate_source *s = r->sides[GATE_HEAD].sources[y->source];
  gate_sample samples[SAMPLES];
  gate_visit visit = {.samples = samples};
  int calls = 1;
  if (!s->alive) return;
  char *why = s->kind->open(s, y->index, r->schedule.sample_ns, 1, &calls);
  if (!why) why = s->kind->sample(s, &visit, SAMPLES);
  if (!why) why = s->kind->close(s);
  for (int i = 0; !why && i < visit.sample_count; i++)
    if (!(y->best_ns > 0) || samples[i].ns < y->best_ns) y->best_ns = samples[i].ns;
  free(why);
}

void gate_yardsticks_take(gate_rounds *r) {
  for (size_t i = 0; i < r->yardstick_count && !gate_interrupted(&r->schedule.limits); i++) take(r, &r->yardsticks[i]);
}

/* --- roofs --- */

static bool is_of_memory(const gate_case *c) {
  return strcmp(c->name, GATE_YARDSTICK "copy") == 0;
}

static gate_roof *roof_of(gate_run *run, const gate_case *c) {
  const char *dtype = is_of_memory(c) ? "-" : c->dtype;
  for (size_t i = 0; i < run->roof_count; i++)
    if (strcmp(run->roofs[i].device, c->device) == 0 && strcmp(run->roofs[i].dtype, dtype) == 0) return &run->roofs[i];
  run->roofs = gate_grow(run->roofs, run->roof_count + 1, sizeof *run->roofs);
  gate_roof *roof = &run->roofs[run->roof_count++];
  *roof = (gate_roof){0};
  snprintf(roof->device, sizeof roof->device, "%s", c->device);
  snprintf(roof->dtype, sizeof roof->dtype, "%s", dtype);
  return roof;
}

/* What a case reached can be reached. Not so for memory: a case may work in a cache. */
static void raise_roof(gate_run *run, const gate_case *c) {
  double ns, spread;
  if (!(c->flops > 0) || !c->visit_count) return;
  gate_case_summary(c, &ns, &spread);
  for (size_t i = 0; i < run->roof_count; i++) {
    gate_roof *roof = &run->roofs[i];
    if (strcmp(roof->device, c->device) == 0 && strcmp(roof->dtype, c->dtype) == 0 &&
        1e9 * c->flops / ns > roof->flops_s)
      roof->flops_s = 1e9 * c->flops / ns;
  }
}

static void fill(const gate_rounds *r, gate_run *run) {
  for (size_t i = 0; i < r->yardstick_count; i++) {
    const gate_yardstick *y = &r->yardsticks[i];
    if (!(y->best_ns > 0)) continue;
    gate_roof *roof = roof_of(run, &y->is);
    if (is_of_memory(&y->is))
      roof->bytes_s = 1e9 * y->is.bytes / y->best_ns;
    else
      roof->flops_s = 1e9 * y->is.flops / y->best_ns;
  }
  for (size_t i = 0; i < run->case_count; i++) raise_roof(run, &run->cases[i]);
  for (size_t i = 0; i < run->roof_count; i++) /* a dtype's memory is the device's */
    for (size_t j = 0; j < run->roof_count; j++)
      if (strcmp(run->roofs[i].device, run->roofs[j].device) == 0 && run->roofs[j].bytes_s > run->roofs[i].bytes_s)
        run->roofs[i].bytes_s = run->roofs[j].bytes_s;
}

char *gate_yardsticks_keep(gate_rounds *r) {
  char *error = NULL;
  for (int side = 0; side < r->side_count; side++) {
    gate_run *run = r->sides[side].run;
    fill(r, run);
    for (size_t i = 0; r->schedule.file && !error && i < run->roof_count; i++)
      error = gate_file_roof(r->schedule.file, run->id, &run->roofs[i]);
  }
  return error;
}

void gate_yardsticks_free(gate_rounds *r) {
  gate_case *cases = gate_alloc(r->yardstick_count, sizeof *cases);
  for (size_t i = 0; i < r->yardstick_count; i++) cases[i] = r->yardsticks[i].is;
  gate_cases_free(cases, r->yardstick_count);
  free(r->yardsticks);
}
