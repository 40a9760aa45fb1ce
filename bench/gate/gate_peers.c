/* SPDX-License-Identifier: Apache-2.0
 * gate_peers.c: three tools' rules, after their documentation and code:
 *
 * - Google Benchmark, tools/compare.py: Mann-Whitney's U test over the repetitions, p < 0.05, at least 9 repetitions
 * for a
 *   result that it calls reliable; any difference counts.
 * - asv (airspeed velocity), asv compare and continuous: the ratio of the medians above the factor 1.1, and
 * Mann-Whitney's U test
 *   at 0.002.
 * - Criterion.rs: a bootstrap of the t statistic of the means under no change, p < 0.05, and the whole 95 % bootstrap
 * interval
 *   of the relative change beyond the noise threshold of 1 %. 2,000 resamples here, 100,000 there. */
#include "bench/gate/gate_peers.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/splitmix64.h"
#include "tools/compare/ranks/rank_test.h"

enum { RESAMPLES = 2000, REPETITIONS_LEAST = 9 };

const char *const peer_names[PEERS] = {"Google Benchmark: U test at 0.05", "asv: factor 1.1, U test at 0.002",
                                       "Criterion.rs: bootstrap at 0.05, 1 %"};

typedef struct sides {
  double base[GATE_MOST_VALUES], head[GATE_MOST_VALUES];
  int base_count, head_count;
} sides;

static int repetitions(const gate_case *c, double *out) {
  int count = 0;
  for (int v = 0; v < c->visit_count && count < GATE_MOST_VALUES; v++) {
    double sum = 0.0;
    for (int i = 0; i < c->visits[v].sample_count; i++) sum += c->visits[v].samples[i].ns;
    if (c->visits[v].sample_count > 0 && sum > 0.0) out[count++] = sum / c->visits[v].sample_count;
  }
  return count;
}

static double mean(const double *values, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum / count;
}

static double median(const double *values, int count) {
  double sorted[GATE_MOST_VALUES];
  for (int i = 0; i < count; i++) sorted[i] = values[i];
  return gate_median(sorted, count);
}

static int direction(const sides *s) {
  const double base = median(s->base, s->base_count), head = median(s->head, s->head_count);
  return (head > base) - (head < base);
}

static int google_benchmark(const sides *s) {
  if (s->base_count < REPETITIONS_LEAST || s->head_count < REPETITIONS_LEAST) return 0;
  const double p = gate_rank_sum(s->base, s->base_count, s->head, s->head_count);
  return p < 0.05 ? direction(s) : 0;
}

static int asv(const sides *s) {
  const double ratio = median(s->head, s->head_count) / median(s->base, s->base_count);
  if (ratio < 1.1 && ratio > 1.0 / 1.1) return 0;
  return gate_rank_sum(s->base, s->base_count, s->head, s->head_count) < 0.002 ? direction(s) : 0;
}

/* --- Criterion --- */

static uint64_t draws = 1;

static int draw(int below) {
  return (int)(at_splitmix64(&draws) % (uint64_t)below);
}

static double variance(const double *values, int count, double around) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += (values[i] - around) * (values[i] - around);
  return count > 1 ? sum / (count - 1) : 0.0;
}

static double t_of(const double *a, int m, const double *b, int n) {
  const double one = mean(a, m), other = mean(b, n);
  const double error = sqrt(variance(a, m, one) / m + variance(b, n, other) / n);
  return error > 0.0 ? (other - one) / error : 0.0;
}

static void resample(const double *from, int of, double *to, int count) {
  for (int i = 0; i < count; i++) to[i] = from[draw(of)];
}

static double chance_of_t(const sides *s, double t) {
  double pool[2 * GATE_MOST_VALUES], a[GATE_MOST_VALUES], b[GATE_MOST_VALUES];
  const int m = s->base_count, n = s->head_count;
  int as_large = 0;
  for (int i = 0; i < m + n; i++) pool[i] = i < m ? s->base[i] : s->head[i - m];
  for (int r = 0; r < RESAMPLES; r++) {
    resample(pool, m + n, a, m);
    resample(pool, m + n, b, n);
    as_large += fabs(t_of(a, m, b, n)) >= fabs(t);
  }
  return (double)as_large / RESAMPLES;
}

static int criterion(const sides *s) {
  double a[GATE_MOST_VALUES], b[GATE_MOST_VALUES], changes[RESAMPLES];
  const int m = s->base_count, n = s->head_count;
  if (m < 2 || n < 2 || chance_of_t(s, t_of(s->base, m, s->head, n)) >= 0.05) return 0;
  for (int r = 0; r < RESAMPLES; r++) {
    resample(s->base, m, a, m);
    resample(s->head, n, b, n);
    changes[r] = mean(b, n) / mean(a, m) - 1.0;
  }
  gate_sort(changes, RESAMPLES);
  const double low = changes[RESAMPLES / 40], high = changes[RESAMPLES - 1 - RESAMPLES / 40];
  return low > 0.01 ? 1 : high < -0.01 ? -1 : 0;
}

int peer_verdict(peer which, const gate_case *base, const gate_case *head) {
  sides s;
  if (!base || !head) return 0;
  s.base_count = repetitions(base, s.base);
  s.head_count = repetitions(head, s.head);
  if (!s.base_count || !s.head_count) return 0;
  switch (which) {
  case PEER_GOOGLE_BENCHMARK: return google_benchmark(&s);
  case PEER_ASV: return asv(&s);
  default: return criterion(&s);
  }
}
