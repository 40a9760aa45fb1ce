/* SPDX-License-Identifier: Apache-2.0
 * schedule_visit.c: one case in one round: opened on its sides, sampled in turns, closed. */
#include "tools/compare/run/schedule_parts.h"

#include "tools/compare/run/machine.h"

#include <stdlib.h>

typedef struct visiting {
  gate_rounds *rounds;
  gate_entry *entry;
  int order[GATE_SIDES], order_count; /* the sides that it is open on; the one that begins comes first */
  bool open[GATE_SIDES];
  gate_visit visits[GATE_SIDES];
  char *error; /* the file's */
} visiting;

static gate_source *source_of(const visiting *v, int side) {
  return v->rounds->sides[side].sources[v->entry->source[side]];
}

/* Takes `why`. Another process takes the place of one that is of no more use. */
static void fail(visiting *v, int side, char *why) {
  v->open[side] = false;
  char *error = gate_entry_fail(v->rounds, v->entry, side, why);
  if (!error && !source_of(v, side)->alive && !gate_interrupted(&v->rounds->schedule.limits))
    error = gate_rounds_start_or_fail(v->rounds, side, v->entry->source[side]);
  if (error && v->error)
    free(error);
  else if (error)
    v->error = error;
}

static void open_sides(visiting *v, int round) {
  gate_rounds *r = v->rounds;
  uint64_t of_group =
      r->round_draw +
      v->entry->group * 0x9e3779b97f4a7c15u; /* peers have the same: their processor too is drawn by it */
  const uint64_t seed = gate_random(&of_group);
  const double load = gate_load_now();
  for (int i = 0; i < v->order_count && !v->error; i++) {
    const int side = v->order[i];
    gate_source *s = source_of(v, side);
    int calls = 1;
    char *why = s->kind->open(s, v->entry->index[side], r->schedule.sample_ns, seed, &calls);
    v->visits[side] = (gate_visit){.round = round, .calls = calls, .load = load};
    v->open[side] = !why;
    v->entry->opened[side]++;
    if (why) fail(v, side, why);
  }
}

/* Before its first samples a case is planned by what opening it told, if that did. */
static void foresee(visiting *v) {
  gate_entry *e = v->entry;
  double sum_ns = 0, longest_ns = 0;
  for (int side = 0; side < GATE_SIDES; side++) {
    const double ns = v->open[side] ? source_of(v, side)->opened_ns : 0;
    sum_ns += ns;
    if (ns > longest_ns) longest_ns = ns;
  }
  if (e->round_s > 0 || !(sum_ns > 0)) return;
  e->round_s = 1e-9 * sum_ns;
  e->samples = 1;
  e->sample_ns = longest_ns;
}

static void take(visiting *v, int side, int count) {
  gate_source *s = source_of(v, side);
  gate_visit *visit = &v->visits[side];
  if (!v->open[side] || v->error) return;
  visit->samples = gate_grow(visit->samples, (size_t)(visit->sample_count + count), sizeof *visit->samples);
  char *why = s->kind->sample(s, visit, count);
  if (why) fail(v, side, why);
}

/* A B, B A, A B ...: what changes slowly meets both alike. One side alone gives all of its samples at once. */
static void sample_sides(visiting *v, int samples) {
  if (v->order_count == 1) {
    take(v, v->order[0], samples);
    return;
  }
  for (int i = 0; i < samples && !v->error && !gate_interrupted(&v->rounds->schedule.limits); i++) {
    take(v, v->order[i % 2], 1);
    take(v, v->order[1 - i % 2], 1);
  }
}

static void close_sides(visiting *v) {
  for (int i = 0; i < v->order_count; i++) {
    const int side = v->order[i];
    gate_source *s = source_of(v, side);
    if (!v->open[side] || v->error) continue;
    char *why = s->kind->close(s);
    if (why) fail(v, side, why);
  }
}

/* What an interrupted visit has is thrown away: its sides would not be alike. */
static void keep(visiting *v, int samples) {
  for (int side = 0; side < GATE_SIDES; side++) {
    gate_visit *visit = &v->visits[side];
    gate_case *c = gate_entry_case(v->rounds, v->entry, side);
    const bool whole =
        c && visit->sample_count == samples && !v->error && !gate_interrupted(&v->rounds->schedule.limits);
    if (whole && v->rounds->schedule.file)
      v->error = gate_file_add(v->rounds->schedule.file, v->rounds->sides[side].run->id, c, visit);
    if (!whole || v->error) {
      free(visit->samples);
      continue;
    }
    c->visits = gate_grow(c->visits, (size_t)c->visit_count + 1, sizeof *c->visits);
    c->visits[c->visit_count++] = *visit;
  }
}

/* Of a sample, on the side that takes longer; 0: there is none. */
static double length_ns(const visiting *v) {
  double longest = 0;
  for (int side = 0; side < GATE_SIDES; side++) {
    const gate_visit *visit = &v->visits[side];
    if (!visit->sample_count) continue;
    const double ns = visit->samples[visit->sample_count / 2].ns * visit->calls;
    if (ns > longest) longest = ns;
  }
  return longest;
}

char *gate_rounds_visit(gate_rounds *r, gate_entry *e, int round) {
  visiting v = {.rounds = r, .entry = e};
  const int first = r->side_count == 2 ? (int)(gate_random(&r->random) & 1) : 0;
  const int64_t start_ns = gate_now_ns();
  for (int i = 0; i < r->side_count; i++) {
    const int side = (first + i) % r->side_count;
    if (gate_entry_open(e, side)) v.order[v.order_count++] = side;
  }
  open_sides(&v, round);
  foresee(&v);
  const int samples = gate_entry_samples(r, e, v.order_count ? v.visits[v.order[0]].calls : 1);
  sample_sides(&v, samples);
  close_sides(&v);
  e->round_s = 1e-9 * (double)(gate_now_ns() - start_ns);
  e->samples = samples;
  e->sample_ns = length_ns(&v);
  keep(&v, samples);
  return v.error;
}
