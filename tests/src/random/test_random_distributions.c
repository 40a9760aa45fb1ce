/* SPDX-License-Identifier: Apache-2.0
 * test_random_distributions.c: what is drawn has the distribution that was asked for: chi-square over cells of known
 * probability, Kolmogorov-Smirnov for continuous types, for each distribution and type; fixed seeds, thresholds that
 * chance passes but once in a million. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>

#include "src/base/half.h"

#define COUNT ((size_t)1 << 20)

static attune_stream *stream;
static attune_generator *generator;
static void *raw;
static double *values;

static const attune_dtype floats[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16};
static const attune_dtype all[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_I32, ATTUNE_I64};

static double value_at(attune_dtype dtype, size_t i) {
  switch ((int)dtype) {
  case ATTUNE_F64: return ((const double *)raw)[i];
  case ATTUNE_F32: return ((const float *)raw)[i];
  case ATTUNE_F16: return at_f16_to_f32(((const uint16_t *)raw)[i]);
  case ATTUNE_BF16: return at_bf16_to_f32(((const uint16_t *)raw)[i]);
  case ATTUNE_I32: return ((const int32_t *)raw)[i];
  default: return (double)((const int64_t *)raw)[i];
  }
}

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* The values, sorted. */
static void sort_values(attune_dtype dtype) {
  for (size_t i = 0; i < COUNT; i++) values[i] = value_at(dtype, i);
  qsort(values, COUNT, sizeof *values, by_value);
}

/* The bound that chi-square with `freedom` degrees passes with probability 1e-6 (Wilson and Hilferty). */
static double chi_bound(double freedom) {
  const double t = 1.0 - 2.0 / (9.0 * freedom) + 4.7534 * sqrt(2.0 / (9.0 * freedom));
  return freedom * t * t * t;
}

typedef double (*distribution)(double x);

/* Cells bounded by quantiles that a type may not hit: each bound is put between two values of a type, where the
 * distribution of the rounded values is known: P(X rounded < bound) = F(the middle of the two values around the bound),
 * for rounding to nearest. So cells are made of values that occur. */
static double middle(attune_dtype dtype, double x) { /* of x and the next smaller value of the type */
  if (dtype == ATTUNE_F16) {
    const uint16_t h = at_f64_to_f16(x);
    const uint16_t before = x > 0 ? (uint16_t)(h - 1) : x < 0 ? (uint16_t)(h + 1) : (uint16_t)0x8001;
    return (x + (double)at_f16_to_f32(before)) / 2;
  }
  if (dtype == ATTUNE_BF16) {
    const uint16_t h = at_f64_to_bf16(x);
    const uint16_t before = x > 0 ? (uint16_t)(h - 1) : x < 0 ? (uint16_t)(h + 1) : (uint16_t)0x8001;
    return (x + (double)at_bf16_to_f32(before)) / 2;
  }
  return x;
}

/* Chi-square of the sorted values: cells of about 1024 samples each, bounded at values that occur. `truncated`: rounded
 * toward zero from above zero, so P(value < bound) = F(bound). */
static void check_chi_square(const char *what, attune_dtype dtype, distribution f, int truncated) {
  double chi = 0.0, last = 0.0;
  size_t start = 0, cells = 0;
  while (start < COUNT) {
    size_t end = start + 1024;
    while (end < COUNT && values[end] == values[end - 1]) end++;
    if (COUNT < end + 512) end = COUNT;
    const double up_to = end == COUNT ? 1.0 : f(truncated ? values[end] : middle(dtype, values[end]));
    const double expected = (up_to - last) * (double)COUNT, difference = (double)(end - start) - expected;
    if (dtype == ATTUNE_F16 || dtype == ATTUNE_BF16) chi += difference * difference / expected;
    last = up_to;
    start = end;
    cells++;
  }
  if (dtype != ATTUNE_F16 && dtype != ATTUNE_BF16) return;
  if (!(chi < chi_bound((double)cells)))
    fail_msg("%s, %s: chi-square %g over %zu cells", what, attune_dtype_name(dtype), chi, cells);
}

/* Kolmogorov-Smirnov for types fine enough to be taken as continuous; 1e-6: sqrt(ln(2 / 1e-6) / 2) = 2.694. */
static void check_ks(const char *what, attune_dtype dtype, distribution f) {
  double worst = 0.0;
  for (size_t i = 0; i < COUNT; i++) {
    const double p = f(values[i]), below = (double)i / (double)COUNT, above = (double)(i + 1) / (double)COUNT;
    worst = fmax(worst, fmax(p - below, above - p));
  }
  const double statistic = worst * sqrt((double)COUNT);
  if (!(statistic < 2.694)) fail_msg("%s, %s: Kolmogorov-Smirnov %g", what, attune_dtype_name(dtype), statistic);
}

/* Chi-square over 1024 cells of equal probability by f: uniformity of f(value). */
static void check_cells(const char *what, attune_dtype dtype, distribution f) {
  enum { CELLS = 1024 };
  size_t counts[CELLS] = {0};
  for (size_t i = 0; i < COUNT; i++) {
    const int cell = (int)(f(values[i]) * CELLS);
    counts[cell < CELLS ? cell : CELLS - 1]++;
  }
  double chi = 0.0;
  for (int i = 0; i < CELLS; i++) chi += pow((double)counts[i] - (double)COUNT / CELLS, 2) / ((double)COUNT / CELLS);
  if (!(chi < chi_bound(CELLS - 1))) fail_msg("%s, %s: chi-square %g", what, attune_dtype_name(dtype), chi);
}

static void check(const char *what, attune_dtype dtype, distribution f, int truncated) {
  sort_values(dtype);
  if (dtype == ATTUNE_F64 || dtype == ATTUNE_F32) {
    check_ks(what, dtype, f);
    check_cells(what, dtype, f);
  } else {
    check_chi_square(what, dtype, f, truncated);
  }
}

static double uniform_f(double x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}
static double uniform_wide_f(double x) {
  return uniform_f((x + 3.0) / 8.0);
}
static double normal_f(double x) {
  return 0.5 * erfc(-x / sqrt(2.0));
}
static double normal_wide_f(double x) {
  return normal_f((x - 3.0) / 0.5);
}
static double log_normal_f(double x) {
  return x <= 0 ? 0 : normal_f((log(x) - 0.25) / 0.75);
}
static double exponential_f(double x) {
  return x <= 0 ? 0 : -expm1(-2.0 * x);
}

TEST(uniform_is_uniform) {
  for (int d = 0; d < 4; d++) {
    OK(attune_random_uniform(generator, stream, raw, floats[d], COUNT, 0, 1));
    check("uniform", floats[d], uniform_f, 1);
    assert_true(values[0] >= 0.0 && values[COUNT - 1] < 1.0);
    if (d >= 2) continue;
    OK(attune_random_uniform(generator, stream, raw, floats[d], COUNT, -3, 5));
    check("uniform from -3 to 5", floats[d], uniform_wide_f, 0);
    assert_true(values[0] >= -3.0 && values[COUNT - 1] < 5.0);
  }
}

TEST(halves_stay_within_their_bounds) {
  const double bounds[][2] = {{-2, -1}, {-1, 0}, {-1, 1}, {1, 1.015625}, {1000, 1024}, {-0.25, 3}};
  for (int d = 2; d < 4; d++)
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
      OK(attune_random_uniform(generator, stream, raw, floats[d], COUNT, bounds[b][0], bounds[b][1]));
      sort_values(floats[d]);
      assert_true(values[0] >= bounds[b][0] && values[COUNT - 1] < bounds[b][1]);
      double sum = 0;
      for (size_t i = 0; i < COUNT; i++) sum += values[i];
      const double step =
          floats[d] == ATTUNE_F16 ? 0x1p-10 : 0x1p-7; /* the mean is off by at most a rounding of the largest */
      const double off = sum / (double)COUNT - (bounds[b][0] + bounds[b][1]) / 2;
      assert_true(fabs(off) <
                  0.01 * (bounds[b][1] - bounds[b][0]) + step * fmax(fabs(bounds[b][0]), fabs(bounds[b][1])));
    }
}

TEST(normal_is_normal) {
  for (int d = 0; d < 4; d++) {
    OK(attune_random_normal(generator, stream, raw, floats[d], COUNT, 0, 1));
    check("normal", floats[d], normal_f, 0);
    assert_true(values[0] < -4.2 && values[0] > -6.6 && values[COUNT - 1] > 4.2 && values[COUNT - 1] < 6.6);
    OK(attune_random_normal(generator, stream, raw, floats[d], COUNT, 3, 0.5));
    check("normal of mean 3", floats[d], normal_wide_f, 0);
  }
}

/* The two samples of a pair are independent: so are signs, and sizes. */
TEST(pairs_are_independent) {
  for (int d = 0; d < 4; d++) {
    OK(attune_random_normal(generator, stream, raw, floats[d], COUNT, 0, 1));
    double quadrants[4] = {0}, product = 0, squares = 0;
    for (size_t i = 0; i < COUNT; i += 2) {
      const double x = value_at(floats[d], i), y = value_at(floats[d], i + 1);
      quadrants[(x > 0) + 2 * (y > 0)]++;
      product += x * y;
      squares += (x * x - 1) * (y * y - 1);
    }
    const double pairs = (double)COUNT / 2;
    for (int q = 0; q < 4; q++) assert_true(fabs(quadrants[q] - pairs / 4) < 5.0 * sqrt(pairs * 3 / 16));
    assert_true(fabs(product) < 5.0 * sqrt(pairs));
    assert_true(fabs(squares) < 5.0 * 2.0 * sqrt(pairs));
  }
}

TEST(log_normal_is_log_normal) {
  for (int d = 0; d < 4; d++) {
    OK(attune_random_log_normal(generator, stream, raw, floats[d], COUNT, 0.25, 0.75));
    check("log-normal", floats[d], log_normal_f, 0);
  }
}

TEST(exponential_is_exponential) {
  for (int d = 0; d < 4; d++) {
    OK(attune_random_exponential(generator, stream, raw, floats[d], COUNT, 2));
    check("exponential", floats[d], exponential_f, 0);
    assert_true(values[0] > 0.0);
  }
}

TEST(bernoulli_has_its_probability) {
  const double ps[] = {0.0, 1e-4, 0.1, 0.5, 0.875, 1.0};
  for (int d = 0; d < 6; d++)
    for (size_t k = 0; k < sizeof ps / sizeof *ps; k++) {
      OK(attune_random_bernoulli(generator, stream, raw, all[d], COUNT, ps[k]));
      double ones = 0;
      for (size_t i = 0; i < COUNT; i++) {
        const double x = value_at(all[d], i);
        assert_true(x == 0.0 || x == 1.0);
        ones += x;
      }
      assert_true(fabs(ones - ps[k] * (double)COUNT) <= 5.0 * sqrt(ps[k] * (1 - ps[k]) * (double)COUNT));
    }
}

TEST(integers_are_uniform) {
  for (int d = 0; d < 6; d++) {
    const int64_t from = -37, to = all[d] == ATTUNE_BF16 ? 200 : 963;
    size_t counts[1000] = {0};
    OK(attune_random_integers(generator, stream, raw, all[d], COUNT, from, to));
    for (size_t i = 0; i < COUNT; i++) {
      const double x = value_at(all[d], i);
      assert_true(x >= (double)from && x < (double)to && x == floor(x));
      counts[(int)x - (int)from]++;
    }
    double chi = 0, expected = (double)COUNT / (double)(to - from);
    for (int i = 0; i < to - from; i++) chi += pow((double)counts[i] - expected, 2) / expected;
    assert_true(chi < chi_bound((double)(to - from - 1)));
  }
}

/* All of a type's range, and its ends. */
TEST(integers_reach_their_ends) {
  OK(attune_random_integers(generator, stream, raw, ATTUNE_I64, COUNT, INT64_MIN, INT64_MAX));
  for (size_t i = 0; i < COUNT; i++) values[i] = ((double)((const int64_t *)raw)[i] + 0x1p63) * 0x1p-64;
  qsort(values, COUNT, sizeof *values, by_value);
  check_ks("all of i64", ATTUNE_F64, uniform_f);
  OK(attune_random_integers(generator, stream, raw, ATTUNE_I32, COUNT, INT32_MIN, (int64_t)INT32_MAX + 1));
  for (size_t i = 0; i < COUNT; i++) values[i] = ((double)((const int32_t *)raw)[i] + 0x1p31) * 0x1p-32;
  qsort(values, COUNT, sizeof *values, by_value);
  check_ks("all of i32", ATTUNE_F64, uniform_f);
  OK(attune_random_integers(generator, stream, raw, ATTUNE_I64, COUNT, INT64_MAX - 1, INT64_MAX));
  for (size_t i = 0; i < COUNT; i++) assert_true(((const int64_t *)raw)[i] == INT64_MAX - 1);
}

/* Small permutations: all 24 orders of 4; large: each place gets each number about as often. */
TEST(permutations_are_even) {
  enum { TRIES = 24000 };
  int64_t p[4];
  size_t orders[256] = {0};
  for (int t = 0; t < TRIES; t++) {
    OK(attune_random_permutation(generator, stream, p, ATTUNE_I64, 4));
    orders[p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6]++;
  }
  double chi = 0;
  for (int i = 0; i < 256; i++) chi += orders[i] ? pow((double)orders[i] - TRIES / 24.0, 2) / (TRIES / 24.0) : 0;
  assert_true(chi < chi_bound(23));
  enum { SIZE = 1500, CELLS = 30, MANY = 2000 };
  static size_t places[CELLS][CELLS];
  static int32_t q[SIZE];
  for (int t = 0; t < MANY; t++) {
    OK(attune_random_permutation(generator, stream, q, ATTUNE_I32, SIZE));
    for (int i = 0; i < SIZE; i++) places[i * CELLS / SIZE][q[i] * CELLS / SIZE]++;
  }
  chi = 0;
  const double expected = (double)SIZE * MANY / (CELLS * CELLS);
  for (int i = 0; i < CELLS * CELLS; i++) chi += pow((double)places[i / CELLS][i % CELLS] - expected, 2) / expected;
  assert_true(chi < chi_bound((CELLS - 1) * (CELLS - 1)));
}

int main(void) {
  attune_device *host = NULL;
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  OK(attune_generator_create(&generator, 20261121));
  raw = malloc(COUNT * 8);
  values = malloc(COUNT * sizeof *values);
  const int failed = RUN_TESTS(NULL, NULL);
  free(raw);
  free(values);
  attune_generator_destroy(generator);
  return failed;
}
