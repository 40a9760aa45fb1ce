/* SPDX-License-Identifier: Apache-2.0
 * turns.c: ways that take turns, and their medians. */
#include "bench/common/turns.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static void shuffle(int *order, int count, uint32_t *state) {
  for (int i = count - 1; i > 0; i--) {
    *state = *state * 1664525u + 1013904223u;
    const int j = (int)((*state >> 8) % (uint32_t)(i + 1)), other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
}

void bench_take_turns(bench_turns *out, int ways, int warmups, int rounds, bench_order order,
                      double (*sample)(void *arg, int way, int round), void *arg) {
  int drawn[BENCH_TURN_WAYS];
  uint32_t state = 1;
  out->ways = ways;
  out->rounds = rounds;
  for (int i = 0; i < ways; i++) drawn[i] = i;
  for (int round = -warmups; round < rounds; round++) {
    if (order == BENCH_DRAWN) shuffle(drawn, ways, &state);
    for (int i = 0; i < ways; i++) {
      const int way = order == BENCH_DRAWN ? drawn[i] : (i + round + warmups) % ways;
      const double ns = sample(arg, way, round);
      if (round >= 0) out->ns[way][round] = ns;
    }
  }
}

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double bench_median(double *values, int count) {
  if (count == 0) return 0.0;
  qsort(values, (size_t)count, sizeof *values, by_value);
  return count % 2 != 0 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static double away(double x, double y) {
  return fabs(x - y);
}
static double over(double x, double y) {
  return x / y;
}
static double above(double x, double y) {
  return x - y;
}

/* The median of f(time of the way, other): that of way `of` in the round, or where it is negative `fixed`; f NULL: of
 * the times. */
static double median_of(const bench_turns *t, double (*f)(double, double), int way, int of, double fixed) {
  double values[BENCH_TURN_ROUNDS];
  for (int r = 0; r < t->rounds; r++) values[r] = f ? f(t->ns[way][r], of < 0 ? fixed : t->ns[of][r]) : t->ns[way][r];
  return bench_median(values, t->rounds);
}

double bench_turns_median(const bench_turns *t, int way) {
  return median_of(t, NULL, way, -1, 0.0);
}

double bench_turns_least(const bench_turns *t, int way) {
  double least = t->ns[way][0];
  for (int r = 1; r < t->rounds; r++) least = fmin(least, t->ns[way][r]);
  return least;
}

double bench_turns_spread(const bench_turns *t, int way) {
  const double middle = bench_turns_median(t, way);
  return middle > 0.0 ? median_of(t, away, way, -1, middle) / middle : 0.0;
}

double bench_turns_ratio(const bench_turns *t, int way, int of) {
  return median_of(t, over, way, of, 0.0);
}

double bench_turns_above(const bench_turns *t, int way, int of) {
  return median_of(t, above, way, of, 0.0);
}
