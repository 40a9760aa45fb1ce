/* SPDX-License-Identifier: Apache-2.0
 * rank_test.c: Wilcoxon's two tests (Individual comparisons by ranking methods, Biometrics Bulletin 1, 1945). Both are
 * exact: the distribution of the sum of ranks is counted, given the ranks that are there, so that ties need no
 * correction. Only for two large groups the normal distribution stands in. */
#include "tools/compare/ranks/rank_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"

#define EXACT_GROUPS 64 /* values of both groups that are counted exactly */

static int by_value(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

void gate_sort(double *values, int count) {
  if (count > 1) qsort(values, (size_t)count, sizeof *values, by_value);
}

double gate_median(double *values, int count) {
  if (count < 1) return 0.0;
  gate_sort(values, count);
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static int most(int count) {
  return count < 0 ? 0 : count > GATE_MOST_VALUES ? GATE_MOST_VALUES : count;
}

/* Twice the rank of each of sorted[count], so that the mean rank of a tie is an integer too. */
static void double_ranks(const double *sorted, int count, int *ranks) {
  for (int i = 0; i < count;) {
    int next = i + 1;
    while (next < count && sorted[next] == sorted[i]) next++;
    for (int k = i; k < next; k++) ranks[k] = i + 1 + next;
    i = next;
  }
}

static int rank_of(double value, const double *sorted, const int *ranks, int count) {
  const double *at = bsearch(&value, sorted, (size_t)count, sizeof *sorted, by_value);
  return at ? ranks[at - sorted] : 0;
}

/* Each rank counts or does not, by a fair coin: the chance of a sum of at most `least`. */
static double chance_of_signs(const int *ranks, int count, int total, int least) {
  double *chance = gate_alloc((size_t)total + 1, sizeof *chance);
  chance[0] = 1.0;
  int reached = 0;
  for (int i = 0; i < count; i++) {
    reached += ranks[i];
    for (int sum = reached; sum >= 0; sum--)
      chance[sum] = 0.5 * (chance[sum] + (sum >= ranks[i] ? chance[sum - ranks[i]] : 0.0));
  }
  double below = 0.0;
  for (int sum = 0; sum <= least; sum++) below += chance[sum];
  free(chance);
  return below;
}

/* Each rank above three fifths of the largest counts as that one. A large difference is more often a disturbed round
 * than a large change: it would outweigh many quiet ones. With tails as timings have them fewer rounds show the same
 * change, with normal noise about as many; the error is exact either way, for the signs are as random. A difference of
 * zero says nothing of the direction and is left out, as Wilcoxon did. */
double gate_signed_rank(const double *differences, int count) {
  double sizes[GATE_MOST_VALUES];
  int ranks[GATE_MOST_VALUES], kept = 0, negative = 0, total = 0;
  count = most(count);
  for (int i = 0; i < count; i++)
    if (differences[i] != 0.0) sizes[kept++] = fabs(differences[i]);
  if (!kept) return 1.0;
  gate_sort(sizes, kept);
  double_ranks(sizes, kept, ranks);
  const int cap = ((2 * kept * 3 + 4) / 5 + 1) / 2 * 2;
  for (int i = 0; i < kept; i++) total += ranks[i] = ranks[i] < cap ? ranks[i] : cap;
  for (int i = 0; i < count; i++)
    if (differences[i] < 0.0) negative += rank_of(-differences[i], sizes, ranks, kept);
  const int least = negative < total - negative ? negative : total - negative;
  const double p = 2.0 * chance_of_signs(ranks, kept, total, least);
  return p < 1.0 ? p : 1.0;
}

double gate_signed_rank_least(int count) {
  return count < 1 ? 1.0 : ldexp(2.0, -most(count));
}

/* `chosen` of the ranks are drawn: the chance of a sum of at most `least`. ways[k][s]: of k drawn of the first ones. */
static double chance_of_draws(const int *ranks, int count, int chosen, int least) {
  const size_t width = (size_t)least + 1;
  double *ways = gate_alloc(((size_t)chosen + 1) * width, sizeof *ways);
  ways[0] = 1.0;
  for (int i = 0; i < count; i++)
    for (int k = i < chosen ? i : chosen - 1; k >= 0; k--) {
      const double *from = ways + (size_t)k * width;
      double *to = ways + ((size_t)k + 1) * width + ranks[i];
      for (int sum = 0; sum + ranks[i] <= least; sum++) to[sum] += from[sum];
    }
  double below = 0.0, all = 1.0;
  for (int sum = 0; sum <= least; sum++) below += ways[(size_t)chosen * width + (size_t)sum];
  for (int k = 1; k <= chosen; k++) all *= (double)(count - chosen + k) / k;
  free(ways);
  return below / all;
}

/* To either side: with ties the distribution is not symmetric, so the far end is counted too, by mirrored ranks. */
static double chance_of_groups(int *ranks, int count, int chosen, int least) {
  const double below = chance_of_draws(ranks, count, chosen, least);
  for (int i = 0; i < count; i++) ranks[i] = 2 * (count + 1) - ranks[i];
  return below + chance_of_draws(ranks, count, chosen, least);
}

/* With half a rank of continuity; the ties make the variance smaller. */
static double chance_by_normal(const int *ranks, int count, int chosen, double sum) {
  double square = 0.0;
  for (int i = 0; i < count; i++) {
    const double from_mean = 0.5 * ranks[i] - 0.5 * (count + 1);
    square += from_mean * from_mean;
  }
  const double others = count - chosen, mean = 0.5 * chosen * (count + 1);
  const double deviation = sqrt(square * chosen * others / ((double)count * (count - 1)));
  return deviation > 0.0 ? 0.5 * erfc((mean - sum - 0.5) / deviation * M_SQRT1_2) : 1.0;
}

double gate_rank_sum(const double *first, int first_count, const double *second, int second_count) {
  double all[2 * GATE_MOST_VALUES];
  int ranks[2 * GATE_MOST_VALUES], sum = 0, total = 0;
  first_count = most(first_count);
  second_count = most(second_count);
  const int count = first_count + second_count;
  if (!first_count || !second_count) return 1.0;
  memcpy(all, first, (size_t)first_count * sizeof *all);
  memcpy(all + first_count, second, (size_t)second_count * sizeof *all);
  gate_sort(all, count);
  double_ranks(all, count, ranks);
  const bool first_is_less = first_count <= second_count;
  const double *less = first_is_less ? first : second;
  const int chosen = first_is_less ? first_count : second_count;
  for (int i = 0; i < chosen; i++) sum += rank_of(less[i], all, ranks, count);
  total = chosen * (count + 1) * 2; /* of twice the ranks: the sum and its mirror image */
  const int least = sum < total - sum ? sum : total - sum;
  const double p = count <= EXACT_GROUPS ? chance_of_groups(ranks, count, chosen, least)
                                         : 2.0 * chance_by_normal(ranks, count, chosen, 0.5 * least);
  return p < 1.0 ? p : 1.0;
}

double gate_rank_sum_least(int first_count, int second_count) {
  double ways = 1.0;
  if (first_count < 1 || second_count < 1) return 1.0;
  for (int k = 1; k <= first_count; k++) ways *= (double)(second_count + k) / k;
  return 2.0 / ways < 1.0 ? 2.0 / ways : 1.0;
}
