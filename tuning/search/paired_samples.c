/* SPDX-License-Identifier: Apache-2.0
 * paired_samples.c: see race.h. A sample during which others had the CPUs is not compared with one that was left
 * alone: a default whose team waits for a busy CPU is no evidence for a winner of one thread. */
#include "tuning/search/race.h"

#include <stdlib.h>

/* Others disturbed so much of the samples that they decide nothing, and kept so many CPUs busy. */
static const double SHAKEN = 0.25, OTHERS = 0.1;

static float taken_of(const at_candidate *a, const at_candidate *b, int i) {
  return a->taken[i] > b->taken[i] ? a->taken[i] : b->taken[i];
}

static int by_size(const void *left, const void *right) {
  const float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

/* How much others may have taken of a pair, so that there are enough pairs. */
static float enough_taken(const at_candidate *a, const at_candidate *b) {
  float taken[AT_MAX_SAMPLES];
  const int count = b->count;
  for (int i = 0; i < count; i++) taken[i] = taken_of(a, b, i);
  qsort(taken, (size_t)count, sizeof *taken, by_size);
  return count == 0 ? 0.0f : taken[count < AT_PAIRED_SAMPLES_LEAST ? count - 1 : AT_PAIRED_SAMPLES_LEAST - 1];
}

/* The pairs with a sample that others disturbed. */
static int rough_pairs(const at_candidate *a, const at_candidate *b) {
  int rough = 0;
  for (int i = 0; i < b->count; i++) rough += a->rough[i] || b->rough[i];
  return rough;
}

void at_paired_samples_make(at_paired_samples *out, const at_candidate *a, const at_candidate *b) {
  const bool few = b->count - rough_pairs(a, b) < AT_PAIRED_SAMPLES_LEAST;
  const float most = few ? enough_taken(a, b) : 0.0f;
  out->count = 0;
  for (int i = 0; i < b->count; i++) {
    if (few ? taken_of(a, b, i) > most : a->rough[i] || b->rough[i]) continue;
    out->a[out->count] = a->samples[i];
    out->b[out->count] = b->samples[i];
    out->place[out->count++] = b->place[i];
  }
}

double at_race_time(const at_candidate *candidate, double *spread) {
  at_paired_samples own;
  at_paired_samples_make(&own, candidate, candidate);
  const double ns = at_median(own.a, own.count);
  if (spread) *spread = ns > 0.0 ? at_deviation(own.a, own.count, ns) / ns : 0.0;
  return ns;
}

/* Were so many of the dropped ones dropped for what others did to them? */
static bool hidden_losers(const at_race *race) {
  int dropped = 0, hidden = 0;
  for (int i = 1; i < race->count; i++) {
    const at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_SLOWER || candidate->count > 0) continue;
    dropped++;
    hidden += candidate->hidden;
  }
  return hidden > SHAKEN * dropped;
}

bool at_race_shaken(const at_race *race, const at_candidate *candidate) {
  const at_sampler *sampler = race->sampler;
  const bool theirs = rough_pairs(race->candidates[0], candidate) > SHAKEN * candidate->count,
             all = sampler && sampler->rough > SHAKEN * sampler->sampled;
  if (!theirs && !all && !hidden_losers(race)) return false;
  const double others =
      sampler ? at_sampler_others(sampler) : -1.0; /* none: its own threads were in each other's way */
  return others < 0.0 || others >= OTHERS;
}
