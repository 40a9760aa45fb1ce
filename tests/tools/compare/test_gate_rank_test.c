/* SPDX-License-Identifier: Apache-2.0
 * Rank tests against counting every outcome, and intervals against how often they hold the truth. */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/ranks/rank_test.h"

/* By all 2^count signs: how often the sum of the mean ranks is as far from the middle. */
static double signed_rank_by_counting(const double *d, int count) {
  double rank[12], sum = 0.0, total = 0.0;
  int kept = 0, as_far = 0;
  for (int i = 0; i < count; i++) {
    if (d[i] == 0.0) continue;
    double mine = 0.5;
    for (int k = 0; k < count; k++)
      if (d[k] != 0.0) mine += fabs(d[k]) < fabs(d[i]) ? 1.0 : fabs(d[k]) == fabs(d[i]) ? 0.5 : 0.0;
    rank[kept++] = mine;
  }
  for (int i = 0, k = 0; i < count; i++) {
    if (d[i] == 0.0) continue;
    const double cap = ceil(0.6 * kept);
    rank[k] = rank[k] < cap ? rank[k] : cap;
    total += rank[k];
    sum += d[i] > 0.0 ? rank[k] : 0.0;
    k++;
  }
  for (int signs = 0; signs < 1 << kept; signs++) {
    double other = 0.0;
    for (int i = 0; i < kept; i++) other += signs >> i & 1 ? rank[i] : 0.0;
    as_far += fabs(other - 0.5 * total) >= fabs(sum - 0.5 * total) - 1e-9;
  }
  return (double)as_far / (1 << kept);
}

TEST(signed_ranks_are_exact) {
  const double ten[] = {1, 2, 3, 4, 5, 6, -1.5, -2.5, 7, 8}, all[] = {1, 2, 3, 4, 5};
  assert_true(fabs(gate_signed_rank(all, 5) - 2.0 / 32) < 1e-12);
  assert_true(fabs(gate_signed_rank(ten, 10) - signed_rank_by_counting(ten, 10)) < 1e-12);
  assert_true(gate_signed_rank(all, 0) == 1.0);
  noise_state = 3;
  for (int run = 0; run < 300; run++) {
    double d[9];
    for (int i = 0; i < 9; i++) d[i] = floor(noise_uniform() * 9.0) - 3.0; /* with ties and zeros */
    const double p = gate_signed_rank(d, 9), counted = signed_rank_by_counting(d, 9);
    if (fabs(p - counted) > 1e-12) fail_msg("p %.12f; by counting %.12f", p, counted);
  }
}

/* By all ways to choose. */
static double rank_sum_by_counting(const double *a, int m, const double *b, int n) {
  double all[12], rank[12], sum = 0.0;
  int ways = 0, as_far = 0;
  memcpy(all, a, (size_t)m * sizeof *a);
  memcpy(all + m, b, (size_t)n * sizeof *b);
  for (int i = 0; i < m + n; i++) {
    rank[i] = 0.5;
    for (int k = 0; k < m + n; k++) rank[i] += all[k] < all[i] ? 1.0 : all[k] == all[i] ? 0.5 : 0.0;
    sum += i < m ? rank[i] : 0.0;
  }
  const double middle = 0.5 * m * (m + n + 1);
  for (int set = 0; set < 1 << (m + n); set++) {
    if (__builtin_popcount((unsigned)set) != m) continue;
    double other = 0.0;
    for (int i = 0; i < m + n; i++) other += set >> i & 1 ? rank[i] : 0.0;
    ways++;
    as_far += fabs(other - middle) >= fabs(sum - middle) - 1e-9;
  }
  return (double)as_far / ways;
}

TEST(rank_sums_are_exact) {
  noise_state = 5;
  for (int run = 0; run < 300; run++) {
    double a[6], b[6];
    const int m = 1 + run % 6, n = 1 + run / 6 % 6;
    for (int i = 0; i < 6; i++) a[i] = floor(noise_uniform() * 12.0), b[i] = floor(noise_uniform() * 12.0) + run % 4;
    const double p = gate_rank_sum(a, m, b, n), counted = rank_sum_by_counting(a, m, b, n);
    if (fabs(p - counted) > 1e-12) fail_msg("%d and %d: p %.12f; by counting %.12f", m, n, p, counted);
  }
  const double low[] = {1, 2, 3, 4}, high[] = {5, 6, 7, 8, 9};
  assert_true(fabs(gate_rank_sum(low, 4, high, 5) - gate_rank_sum_least(4, 5)) < 1e-12);
  assert_true(gate_rank_sum(low, 0, high, 5) == 1.0);
}

/* How many of n x m pairs are the wrong way round: the chance of at most `most`, without ties. */
static double chance_of_pairs(int m, int n, int most) {
  double ways[34][256] = {{1.0}}, below = 0.0, all = 1.0;
  for (int k = 1; k <= m; k++) all *= (double)(n + k) / k;
  for (int value = 0; value <= n; value++) { /* each of m has a number of pairs, 0 to n, in any order */
    for (int k = 1; k <= m; k++)
      for (int sum = value; sum <= most; sum++) ways[k][sum] += ways[k - 1][sum - value];
  }
  for (int sum = 0; sum <= most; sum++) below += ways[m][sum];
  return below / all;
}

/* Beyond 64 values the normal distribution takes over; close enough where verdicts are made, and rather too careful. */
TEST(large_groups_are_close) {
  enum { N = 33 };
  double a[N], b[N];
  const double low = gate_rank_sum((double[]){1, 2, 3, 6}, 4, (double[]){4, 5, 7, 8, 9}, 5);
  assert_true(fabs(low - 2.0 * chance_of_pairs(4, 5, 2)) < 1e-12);
  for (int i = 0; i < N; i++) a[i] = i, b[i] = i + 14.5;
  const double normal = gate_rank_sum(a, N, b, N), exact = 2.0 * chance_of_pairs(N, N, 171);
  if (normal < exact || normal > 20.0 * exact || exact > 1e-4) fail_msg("%g; exact is %g", normal, exact);
}

/* Also where the values lean to one side, which the interval of paired differences is not for. */
TEST(a_median_has_an_interval) {
  enum { RUNS = 2000, VALUES = 24 };
  int held = 0;
  noise_state = 5;
  for (int run = 0; run < RUNS; run++) {
    double values[VALUES];
    for (int i = 0; i < VALUES; i++) values[i] = exp(3.0 * noise_normal());
    const gate_estimate e = gate_median_estimate(values, VALUES, 0.95);
    held += e.low <= 1.0 && e.high >= 1.0;
    assert_true(e.shift == 0.5 * (values[11] + values[12]) && e.low == values[6] && e.high == values[17]);
  }
  if (held < 0.95 * RUNS || held > 0.99 * RUNS) fail_msg("%d of %d intervals hold the median", held, RUNS);
  for (int count = 0; count <= 6; count++) {
    double values[] = {4, 2, 6, 1, 3, 5};
    const gate_estimate e = gate_median_estimate(values, count, 0.95);
    assert_true(count == 6 ? e.low == 1 && e.high == 6 && e.shift == 3.5 : isnan(e.low) && isnan(e.high));
  }
}

TEST(intervals_hold_the_truth) {
  enum { RUNS = 2000, VALUES = 14 };
  int paired = 0, grouped = 0;
  noise_state = 7;
  for (int run = 0; run < RUNS; run++) {
    double d[VALUES], a[VALUES], b[VALUES];
    for (int i = 0; i < VALUES; i++) {
      d[i] = 1.0 + noise_normal() * (1.0 + 5.0 * (noise_uniform() < 0.1));
      a[i] = exp(noise_normal());
      b[i] = exp(noise_normal()) + 1.0;
    }
    const gate_estimate p = gate_paired_shift(d, VALUES, 0.95), g = gate_group_shift(a, VALUES, b, VALUES, 0.95);
    paired += p.low <= 1.0 && p.high >= 1.0;
    grouped += g.low <= 1.0 && g.high >= 1.0;
    assert_true(p.low <= p.shift && p.shift <= p.high && g.low <= g.shift && g.shift <= g.high);
  }
  if (paired < RUNS * 94 / 100 || paired > RUNS * 97 / 100) fail_msg("paired: %d of %d intervals hold 1", paired, RUNS);
  if (grouped < RUNS * 94 / 100 || grouped > RUNS * 97 / 100) fail_msg("groups: %d of %d hold 1", grouped, RUNS);
}

TEST(too_few_values_have_no_interval) {
  const double d[] = {1, 2, 3, 4, 5, 6};
  assert_true(isnan(gate_paired_shift(d, 5, 0.95).low) && isnan(gate_paired_shift(d, 5, 0.95).high));
  assert_true(gate_paired_shift(d, 6, 0.95).low == 1.0 && gate_paired_shift(d, 6, 0.95).high == 6.0);
  assert_true(gate_paired_shift(d, 1, 0.95).shift == 1.0 && gate_paired_shift(d, 0, 0.95).shift == 0.0);
  assert_true(isnan(gate_group_shift(d, 2, d, 2, 0.95).low) && gate_group_shift(d, 0, d, 2, 0.95).shift == 0.0);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
