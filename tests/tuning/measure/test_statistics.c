/* SPDX-License-Identifier: Apache-2.0
 * test_statistics.c: medians, deviations and paired ratios on samples whose answers are known. */
#include "tests/support/check.h"

#include <math.h>

#include "tuning/measure/statistics.h"

#define NEAR(value, expected) assert_true(fabs((value) - (expected)) <= 1e-12 * fmax(1.0, fabs(expected)))

TEST(median) {
  const double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, outlier[] = {1, 1e9, 2, 3, -1e9};
  double copy[5];
  memcpy(copy, odd, sizeof odd);
  NEAR(at_median(copy, 5), 3.0);
  assert_memory_equal(copy, odd, sizeof odd); /* stays as it was */
  NEAR(at_median(even, 4), 2.5);
  NEAR(at_median(outlier, 5), 2.0);
  NEAR(at_median(odd, 1), 5.0);
  NEAR(at_median(odd, 0), 0.0);
}

TEST(median_of_the_most_samples) {
  double values[AT_MAX_SAMPLES];
  for (int i = 0; i < AT_MAX_SAMPLES; i++) values[(i * 37) % AT_MAX_SAMPLES] = i;
  NEAR(at_median(values, AT_MAX_SAMPLES), (AT_MAX_SAMPLES - 1) / 2.0);
}

TEST(deviation) {
  const double values[] = {10, 12, 11, 9, 8}, same[] = {7, 7, 7}, outlier[] = {10, 11, 9, 10, 1e12};
  NEAR(at_deviation(values, 5, 10.0), 1.4826);
  NEAR(at_deviation(same, 3, 7.0), 0.0);
  assert_true(at_deviation(outlier, 5, 10.0) < 2.0); /* one wild sample does not matter */
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-53;
}

static double normal(uint64_t *state) {
  double sum = -6.0;
  for (int i = 0; i < 12; i++) sum += uniform(state);
  return sum;
}

/* The deviation of normal samples is their standard deviation; the error of the median shrinks with the root of the
 * count. */
TEST(deviation_of_normal_samples) {
  uint64_t random = 1;
  double mean = 0.0, medians = 0.0, square = 0.0;
  enum { TRIALS = 2000, COUNT = 25 };
  for (int trial = 0; trial < TRIALS; trial++) {
    double values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = 100.0 + 3.0 * normal(&random);
    const double center = at_median(values, COUNT);
    mean += at_deviation(values, COUNT, center) / TRIALS;
    medians += center / TRIALS;
    square += center * center / TRIALS;
  }
  assert_true(fabs(mean - 3.0) < 0.3);
  const double spread = sqrt(square - medians * medians);
  assert_true(fabs(spread / at_median_error(3.0, COUNT) - 1.0) < 0.1);
}

TEST(median_error) {
  NEAR(at_median_error(2.0, 4), 1.2533);
  NEAR(at_median_error(2.0, 0), 0.0);
  NEAR(at_median_error(0.0, 9), 0.0);
}

/* What both share in a round (a clock that halves) cancels; the error is that of what they do not share. Each sample
 * has a placement of its own. */
TEST(paired_ratio) {
  double a[20], b[20], error = -1.0, spread = -1.0;
  unsigned char place[20];
  for (int i = 0; i < 20; i++) {
    const double clock = i % 3 == 0 ? 2.0 : i % 3 == 1 ? 1.0 : 0.7;
    a[i] = 120.0 * clock;
    b[i] = 100.0 * clock;
    place[i] = (unsigned char)i;
  }
  NEAR(at_placed_ratio(a, b, place, 20, &error, &spread), 1.2);
  assert_true(error >= 0.0 && error < 1e-12 && spread >= 0.0 && spread < 1e-12);
  NEAR(at_placed_ratio(b, a, place, 20, &error, &spread), 1.0 / 1.2);
  NEAR(at_paired_ratio(a, b, 20, &error), 1.2); /* the same without placements */
  assert_true(error >= 0.0 && error < 1e-12);
  b[0] *= 2.0; /* one round that was disturbed: the median stays */
  NEAR(at_paired_ratio(a, b, 20, &error), 1.2);
}

TEST(paired_ratio_sees_noise) {
  uint64_t random = 7;
  int beyond = 0;
  enum { TRIALS = 1000, COUNT = 31 };
  for (int trial = 0; trial < TRIALS; trial++) {
    double a[COUNT], b[COUNT], error = 0.0, spread = 0.0;
    unsigned char place[COUNT];
    for (int i = 0; i < COUNT; i++) {
      a[i] = 100.0 * (1.0 + 0.02 * normal(&random));
      b[i] = 100.0 * (1.0 + 0.02 * normal(&random));
      place[i] = (unsigned char)i;
    }
    const double ratio = at_placed_ratio(a, b, place, COUNT, &error, &spread);
    assert_true(error > 0.0 && error < 0.02);
    beyond += fabs(ratio - 1.0) > 3.0 * error;
  }
  assert_true(beyond < TRIALS / 50); /* three standard errors are rarely passed by chance */
}

/* Few rounds, looked at after each until they seem to be enough: three errors still hold the truth. */
TEST(few_rounds_know_their_error) {
  uint64_t random = 11;
  enum { TRIALS = 2000, FIRST = 5, COUNT = 9 };
  static const double noises[] = {0.005, 0.02, 0.05};
  for (size_t k = 0; k < 3; k++) {
    int beyond = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
      double a[COUNT], b[COUNT], ratio = 0.0, error = 0.0;
      for (int i = 0; i < COUNT; i++) {
        a[i] = 130.0 * (1.0 + noises[k] * normal(&random));
        b[i] = 100.0;
      }
      for (int count = FIRST; count <= COUNT; count++) {
        ratio = at_paired_ratio(a, b, count, &error);
        if (error < 0.008 * ratio) break;
      }
      beyond += fabs(ratio - 1.3) > 3.0 * error;
    }
    if (beyond >= TRIALS / 100) fail_msg("%d of %d are beyond three errors, noise %g", beyond, TRIALS, noises[k]);
  }
}

/* Who is as fast is ahead by three errors by chance, whatever the count, in few cases. */
TEST(equals_seldom_win) {
  uint64_t random = 13;
  enum { TRIALS = 4000 };
  for (int count = 4; count <= 12; count++) {
    int wins = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
      double a[12], b[12], error = 0.0, spread = 0.0;
      unsigned char place[12];
      for (int i = 0; i < count; i++) {
        a[i] = 100.0 * (1.0 + 0.02 * normal(&random));
        b[i] = 100.0 * (1.0 + 0.02 * normal(&random));
        place[i] = (unsigned char)i;
      }
      wins += at_placed_ratio(a, b, place, count, &error, &spread) - 1.0 > 3.0 * error;
    }
    if (wins >= TRIALS / 50) fail_msg("%d of %d win after %d rounds", wins, TRIALS, count);
  }
}

/* Each placement has one vote, however often it was measured; where each repeats itself, all that differs is the
 * placements'. */
TEST(placements_vote) {
  const double a[] = {100, 100, 120, 120, 140, 140, 140, 140}, b[] = {100, 100, 100, 100, 100, 100, 100, 100};
  const unsigned char place[] = {0, 0, 9, 9, 4, 4, 4, 4};
  double error = -1.0, spread = -1.0;
  NEAR(at_placed_ratio(a, b, place, 8, &error, &spread), 1.2);
  NEAR(spread, 1.4826 * 0.2);
  NEAR(error, 4.0 * at_median_error(1.4826 * 0.2, 3));         /* three placements: widened fourfold */
  const double c[] = {100, 100, 120, 120, 200, 200, 200, 200}; /* their mean deviation is larger */
  NEAR(at_placed_ratio(c, b, place, 8, &error, &spread), 1.2);
  NEAR(error, 4.0 * at_median_error(1.2533 * 1.0 / 3.0, 3));
  int where = -1;
  NEAR(at_placed_least(a, b, place, 8, &where), 1.0);
  assert_int_equal(where, 0);
  NEAR(at_placed_least(b, a, place, 8, &where), 100.0 / 140.0);
  assert_int_equal(where, 4);
  NEAR(at_placed_spread(a, place, 8), 1.4826 * 20.0 / 120.0);
}

/* Noise alone makes the least of some placements smaller than what is true of it, and moves them apart. */
TEST(noise_is_not_the_placements) {
  const double a[] = {90, 110, 90, 110, 90, 110}, b[] = {100, 100, 100, 100, 100, 100};
  const unsigned char place[] = {0, 0, 1, 1, 2, 2};
  double error = -1.0, spread = -1.0;
  NEAR(at_placed_ratio(a, b, place, 6, &error, &spread), 1.0);
  NEAR(spread, 0.0);
  assert_true(at_placed_least(a, b, place, 6, NULL) > 1.0);
}

TEST(paired_ratio_of_nothing) {
  const double zero[] = {0, 0}, one[] = {1, 1};
  const unsigned char place[] = {0, 1};
  double error = -1.0, spread = -1.0;
  NEAR(at_placed_ratio(one, zero, place, 2, &error, &spread), 1.0); /* no time was measured: no claim */
  NEAR(error, 0.0);
  NEAR(at_placed_least(one, zero, place, 2, NULL), 1.0);
  (void)at_placed_ratio(one, one, place, 0, &error, &spread);
  NEAR(error, 0.0);
  int where = 0;
  NEAR(at_placed_least(one, one, place, 0, &where), 1.0);
  assert_int_equal(where, -1);
  NEAR(at_placed_spread(one, place, 0), 0.0);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
