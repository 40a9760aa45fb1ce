/* SPDX-License-Identifier: Apache-2.0
 * rank_shift.c: how large a difference is, as the tests of rank_test.c see it: the median of all means of two (Hodges
 * and Lehmann, Estimates of location based on rank tests, Annals of Mathematical Statistics 34, 1963), or of all
 * differences between two groups; and the values that the test at that level would not refuse. And where
 * the median of one group lies. */
#include "tools/compare/ranks/rank_test.h"

#include <math.h>
#include <stdlib.h>

#include "tools/compare/message.h"

static int most(int count) {
  return count < 0 ? 0 : count > GATE_MOST_VALUES ? GATE_MOST_VALUES : count;
}

/* How many of the sorted values lie outside at each end. */
static gate_estimate of_sorted(double *values, int count, int outside) {
  gate_estimate out = {gate_median(values, count), NAN, NAN};
  if (outside < 0 || 2 * outside >= count) return out;
  out.low = values[outside];
  out.high = values[count - 1 - outside];
  return out;
}

/* The most values outside, so that a sum of ranks of at most that is less likely than half of 1 - level; -1: none
 * is. */
static int outside_paired(int count, double level) {
  const int total = count * (count + 1) / 2;
  double *chance = gate_alloc((size_t)total + 1, sizeof *chance), below = 0.0;
  int sum = 0;
  chance[0] = 1.0;
  for (int rank = 1; rank <= count; rank++)
    for (int s = rank * (rank + 1) / 2; s >= 0; s--)
      chance[s] = 0.5 * (chance[s] + (s >= rank ? chance[s - rank] : 0.0));
  for (below = chance[0]; below <= 0.5 * (1.0 - level) && sum < total; below += chance[++sum]) continue;
  free(chance);
  return sum - 1;
}

gate_estimate gate_paired_shift(const double *differences, int count, double level) {
  const gate_estimate none = {0.0, NAN, NAN};
  count = most(count);
  if (!count) return none;
  double *means = gate_alloc((size_t)(count * (count + 1) / 2), sizeof *means);
  int pairs = 0;
  for (int i = 0; i < count; i++)
    for (int k = i; k < count; k++) means[pairs++] = 0.5 * (differences[i] + differences[k]);
  const gate_estimate out = of_sorted(means, pairs, outside_paired(count, level));
  free(means);
  return out;
}

/* As many values lie below the median of what they are drawn from as coins fall on one side. */
static int outside_median(int count, double level) {
  double below = 0.0;
  for (int k = 0; k < count; k++) {
    below += exp(lgamma(count + 1.0) - lgamma(k + 1.0) - lgamma(count - k + 1.0) - count * log(2.0));
    if (below > 0.5 * (1.0 - level)) return k - 1;
  }
  return -1;
}

gate_estimate gate_median_estimate(double *values, int count, double level) {
  return of_sorted(values, count, outside_median(count, level));
}

/* The normal quantile, by halving: far enough for an interval. */
static double quantile(double level) {
  double low = 0.0, high = 10.0;
  for (int i = 0; i < 60; i++) {
    const double middle = 0.5 * (low + high);
    if (erfc(middle * M_SQRT1_2) > 1.0 - level)
      low = middle;
    else
      high = middle;
  }
  return high;
}

gate_estimate gate_group_shift(const double *first, int first_count, const double *second, int second_count,
                               double level) {
  const gate_estimate none = {0.0, NAN, NAN};
  first_count = most(first_count);
  second_count = most(second_count);
  const int pairs = first_count * second_count;
  if (!pairs) return none;
  double *differences = gate_alloc((size_t)pairs, sizeof *differences);
  for (int i = 0, at = 0; i < first_count; i++)
    for (int k = 0; k < second_count; k++) differences[at++] = second[k] - first[i];
  const double deviation = sqrt((double)pairs * (first_count + second_count + 1) / 12.0);
  const double outside = floor(0.5 * pairs - 0.5 - quantile(level) * deviation);
  const gate_estimate out = of_sorted(differences, pairs, outside < 0.0 ? -1 : (int)outside);
  free(differences);
  return out;
}
