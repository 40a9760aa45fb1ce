/* SPDX-License-Identifier: Apache-2.0
 * change_points.c: where a series changed: E-divisive (Matteson and James, A nonparametric approach for multiple change
 * point analysis of multivariate data, Journal of the American Statistical Association 109, 2014), as continuous
 * integration uses it (Daly and others, The use of change point detection to identify software performance regressions
 * in a continuous integration system, ICPE 2020).
 *
 * The best place to cut a segment is where the energy distance between what is left and right of it is largest: mean
 * distance between the two sides, less that within each. It is a change if few shuffles of the segment have so large a
 * one. Then the two parts are looked at in the same way. */
#include "tools/compare/stats/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/splitmix64.h"
#include "tools/compare/message.h"

enum { LEAST_SEGMENT = 3, SHUFFLES_MOST = 1999, SHUFFLES_LEAST = 199 };

static void shuffle(double *values, size_t count, uint64_t *state) {
  for (size_t i = count; i > 1; i--) {
    const size_t k = (size_t)(at_splitmix64(state) % i);
    const double kept = values[i - 1];
    values[i - 1] = values[k];
    values[k] = kept;
  }
}

static double distances(const double *values, size_t from, size_t to, double value) {
  double sum = 0.0;
  for (size_t i = from; i < to; i++) sum += fabs(values[i] - value);
  return sum;
}

/* The largest energy distance over all cuts, scaled by the sizes; *at: the cut. The sums of distances are carried from
 * one cut to the next, so that all of them take count^2 steps. */
static double best_cut(const double *values, size_t count, size_t *at) {
  double left = 0.0, right = 0.0, across = 0.0, best = -1.0;
  for (size_t i = 0; i < count; i++) right += distances(values, i + 1, count, values[i]);
  for (size_t cut = 1; cut + LEAST_SEGMENT <= count; cut++) {
    const double moved = values[cut - 1]; /* from the right to the left */
    const double to_left = distances(values, 0, cut - 1, moved), to_right = distances(values, cut, count, moved);
    left += to_left;
    right -= to_right;
    across += to_right - to_left;
    if (cut < LEAST_SEGMENT) continue;
    const double m = (double)cut, n = (double)(count - cut);
    const double energy = 2.0 * across / (m * n) - left / (0.5 * m * (m - 1.0)) - right / (0.5 * n * (n - 1.0));
    const double scaled = energy * m * n / (m + n);
    if (scaled > best) {
      best = scaled;
      *at = cut;
    }
  }
  return best;
}

typedef struct search {
  const double *values;
  double *room; /* for shuffles */
  double alpha;
  uint64_t state;
  size_t *at;
  double *p;
  size_t found;
} search;

/* As many shuffles as it takes to tell that p is above alpha, or all. */
static double chance_of(search *s, size_t from, size_t count, double energy) {
  int shuffles = (int)fmin(SHUFFLES_MOST, fmax(SHUFFLES_LEAST, ceil(20.0 / s->alpha) - 1.0)), as_large = 0, done = 0;
  size_t unused = 0;
  memcpy(s->room, s->values + from, count * sizeof *s->room);
  while (done < shuffles && as_large <= s->alpha * (shuffles + 1)) {
    shuffle(s->room, count, &s->state);
    as_large += best_cut(s->room, count, &unused) >= energy;
    done++;
  }
  return (as_large + 1.0) / (done + 1.0);
}

/* The changes of a segment, its left part's first. */
static void split(search *s, size_t from, size_t count) {
  size_t at = 0;
  if (count < 2 * LEAST_SEGMENT) return;
  const double energy = best_cut(s->values + from, count, &at);
  if (!(energy > 0.0)) return;
  const double p = chance_of(s, from, count, energy);
  if (p > s->alpha) return;
  split(s, from, at);
  s->at[s->found] = from + at;
  s->p[s->found++] = p;
  split(s, from + at, count - at);
}

size_t gate_change_points(const double *values, size_t count, double alpha, uint64_t seed, size_t *at, double *p) {
  if (!(alpha > 0.0)) return 0;
  search s = {
      .values = values, .room = gate_alloc(count + 1, sizeof *s.room), .alpha = alpha, .state = seed, .at = at, .p = p};
  split(&s, 0, count);
  free(s.room);
  return s.found;
}
