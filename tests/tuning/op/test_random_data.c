/* SPDX-License-Identifier: Apache-2.0
 * test_random_data.c: what measuring and verification fill buffers with: every dtype, within the range that is
 * asked. */
#include "tests/support/check.h"

#include <math.h>

#include "src/base/dtype.h"
#include "src/base/float8.h"
#include "src/base/half.h"
#include "tuning/op/random_data.h"

static const at_range USUAL = {0.0, 0.0};

/* An element; of a complex dtype part i: twice as many. */
static double element(const void *data, int dtype, size_t i) {
  switch ((attune_dtype)dtype) {
  case ATTUNE_F64: return ((const double *)data)[i];
  case ATTUNE_F32: return (double)((const float *)data)[i];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)data)[i]);
  case ATTUNE_BF16: return (double)at_bf16_to_f32(((const uint16_t *)data)[i]);
  case ATTUNE_I32: return (double)((const int32_t *)data)[i];
  case ATTUNE_I64: return (double)((const int64_t *)data)[i];
  case ATTUNE_I8: return (double)((const int8_t *)data)[i];
  case ATTUNE_I16: return (double)((const int16_t *)data)[i];
  case ATTUNE_BOOL:
  case ATTUNE_U8: return (double)((const uint8_t *)data)[i];
  case ATTUNE_U16: return (double)((const uint16_t *)data)[i];
  case ATTUNE_U32: return (double)((const uint32_t *)data)[i];
  case ATTUNE_U64: return (double)((const uint64_t *)data)[i];
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(((const uint8_t *)data)[i]);
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(((const uint8_t *)data)[i]);
  case ATTUNE_C64: return (double)((const float *)data)[i];
  case ATTUNE_C128: return ((const double *)data)[i];
  }
  return (double)NAN;
}

static size_t count_of(int dtype, size_t bytes) {
  const size_t elements = bytes / attune_dtype_size((attune_dtype)dtype);
  return at_dtype_kind_of((attune_dtype)dtype) == AT_KIND_COMPLEX ? 2 * elements : elements;
}

/* Expected ends and variance, and how many zeros among `count` are too many. */
static void usual(int dtype, double *low, double *high, double *variance, double *zeros) {
  const bool whole = at_dtype_whole((attune_dtype)dtype);
  *high = whole ? 100.0 : 1.0;
  *low = at_dtype_unsigned((attune_dtype)dtype) ? 0.0 : -*high;
  if (dtype == ATTUNE_BOOL) *high = 1.0;
  const double n = *high - *low + 1.0;
  *variance = whole ? (n * n - 1.0) / 12.0 : 1.0 / 3.0;
  *zeros = dtype == ATTUNE_BOOL ? 0.51 : whole ? 0.011 : dtype == ATTUNE_F8E4M3 ? 2e-3 : 1e-5;
}

/* Mean and variance of what is uniform over the range, few zeros, a number of elements that no row length divides; the
 * same for one seed, other data for another. */
TEST(each_dtype) {
  at_random *one = NULL, *same = NULL, *other = NULL;
  OK(at_random_create(&one, 1));
  OK(at_random_create(&same, 1));
  OK(at_random_create(&other, 2));
  for (int dtype = 1; dtype <= AT_DTYPE_LAST; dtype++) {
    const void *data = NULL, *again = NULL, *different = NULL;
    double low, high, variance, zero_part;
    size_t bytes = 0;
    usual(dtype, &low, &high, &variance, &zero_part);
    OK(at_random_data(one, (attune_dtype)dtype, USUAL, &data, &bytes));
    OK(at_random_data(same, (attune_dtype)dtype, USUAL, &again, &bytes));
    OK(at_random_data(other, (attune_dtype)dtype, USUAL, &different, &bytes));
    assert_memory_equal(data, again, 4096);
    assert_memory_not_equal(data, different, 4096);
    const size_t count = count_of(dtype, bytes), elements = bytes / attune_dtype_size((attune_dtype)dtype);
    const double middle = (low + high) / 2.0;
    double sum = 0.0, square = 0.0;
    size_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
      const double x = element(data, dtype, i);
      if (!(x >= low && x <= high)) fail_msg("%s: %g is outside", attune_dtype_name((attune_dtype)dtype), x);
      zeros += x == 0.0;
      sum += x - middle;
      square += (x - middle) * (x - middle);
    }
    assert_true(fabs(sum / (double)count) < 0.005 * (high - low));
    assert_true(fabs(square / (double)count / variance - 1.0) < 0.01);
    assert_true((double)zeros < zero_part * (double)count);
    assert_true(elements % 2 && elements % 3 && elements % 5 && elements % 7);
  }
  at_random_destroy(one);
  at_random_destroy(same);
  at_random_destroy(other);
}

/* Every number is inside after it was rounded to its dtype; integers reach both ends. */
TEST(ranges_hold) {
  static const struct {
    int dtype;
    at_range range;
    bool ends;
  } rows[] = {{ATTUNE_F64, {1e-3, 10.0}, false},
              {ATTUNE_F32, {1e-3, 10.0}, false},
              {ATTUNE_F16, {1e-3, 10.0}, false},
              {ATTUNE_BF16, {1e-3, 10.0}, false},
              {ATTUNE_BF16, {1.001, 1.02}, false},    /* holds two bf16 numbers, neither end is one */
              {ATTUNE_F32, {-4.0, -3.9999997}, true}, /* two neighbours */
              {ATTUNE_F64, {-1e308, 1e308}, false},
              {ATTUNE_F32, {0.5, 0.5}, true},
              {ATTUNE_I32, {-3.0, 4.0}, true},
              {ATTUNE_I64, {-3.0, 4.0}, true},
              {ATTUNE_I32, {7.0, 7.0}, true},
              {ATTUNE_I32, {-2147483648.0, 2147483647.0}, false},
              {ATTUNE_I64, {-0x1p63, 0x1.fffffffffffffp62}, false},
              {ATTUNE_I64, {0.0, 0x1p40}, false},
              {ATTUNE_I8, {-128.0, 127.0}, true},
              {ATTUNE_I16, {-32768.0, 32767.0}, false},
              {ATTUNE_U8, {0.0, 255.0}, true},
              {ATTUNE_U16, {65000.0, 65535.0}, true},
              {ATTUNE_U32, {1.0, 4294967295.0}, false},
              {ATTUNE_U64, {0.0, 0x1.fffffffffffffp63}, false},
              {ATTUNE_U64, {0x1p63, 0x1.8p63}, false},
              {ATTUNE_BOOL, {0.0, 1.0}, true},
              {ATTUNE_BOOL, {1.0, 1.0}, true},
              {ATTUNE_F8E4M3, {-448.0, 448.0}, false},
              {ATTUNE_F8E5M2, {1.0, 57344.0}, false},
              {ATTUNE_C64, {1e-3, 10.0}, false},
              {ATTUNE_C128, {-1e308, 1e308}, false}};
  at_random *random = NULL;
  OK(at_random_create(&random, 5));
  for (size_t r = 0; r < AT_COUNT(rows); r++) {
    const void *data = NULL;
    size_t bytes = 0;
    double least = (double)INFINITY, most = -(double)INFINITY;
    OK(at_random_data(random, (attune_dtype)rows[r].dtype, rows[r].range, &data, &bytes));
    const size_t count = count_of(rows[r].dtype, bytes);
    for (size_t i = 0; i < count; i++) {
      least = fmin(least, element(data, rows[r].dtype, i));
      most = fmax(most, element(data, rows[r].dtype, i));
    }
    const double low = rows[r].range.low, high = rows[r].range.high;
    if (!(least >= low && most <= high)) fail_msg("row %zu: %g to %g", r, least, most);
    if (rows[r].ends) assert_true(least - low < 2e-7 && high - most < 2e-7);
    assert_true(low == high || most - least >= 0.4 * (high - low) || rows[r].range.low == 1.001);
  }
  at_random_destroy(random);
}

TEST(impossible_ranges_are_told) {
  static const struct {
    int dtype;
    at_range range;
    const char *words;
  } rows[] = {{0, {0.0, 0.0}, "dtype 0"},
              {AT_DTYPE_LAST + 1, {0.0, 0.0}, "dtype 18"},
              {ATTUNE_F32, {2.0, 1.0}, "f32 has no number from 2 to 1"},
              {ATTUNE_BF16, {1.001, 1.003}, "bf16 has no number"},
              {ATTUNE_F64, {(double)NAN, 1.0}, "f64 has no number"},
              {ATTUNE_F16, {1e6, 2e6}, "f16 has no number"},
              {ATTUNE_I32, {0.25, 0.75}, "i32 has no number"},
              {ATTUNE_I32, {0.0, 0x1p31}, "i32 has no number"},
              {ATTUNE_I64, {0.0, 0x1p63}, "i64 has no number"},
              {ATTUNE_I64, {(double)NAN, (double)NAN}, "i64 has no number"},
              {ATTUNE_U8, {-1.0, 5.0}, "u8 has no number"},
              {ATTUNE_U64, {0.0, 0x1p64}, "u64 has no number"},
              {ATTUNE_BOOL, {0.0, 2.0}, "bool has no number"},
              {ATTUNE_F8E4M3, {449.0, 500.0}, "f8e4m3 has no number"},
              {ATTUNE_C64, {2.0, 1.0}, "c64 has no number"}};
  at_random *random = NULL;
  OK(at_random_create(&random, 5));
  for (size_t r = 0; r < AT_COUNT(rows); r++) {
    const void *data = NULL;
    size_t bytes = 0;
    FAILS(at_random_data(random, (attune_dtype)rows[r].dtype, rows[r].range, &data, &bytes), ATTUNE_INTERNAL);
    if (!strstr(attune_last_message(), rows[r].words)) fail_msg("row %zu: %s", r, attune_last_message());
  }
  at_random_destroy(random);
}

/* More ranges than are kept: those of a set of buffers stay, older ones are made again and are the same. */
TEST(ranges_come_and_go) {
  const void *data = NULL, *stays = NULL, *again = NULL;
  size_t bytes = 0;
  int64_t first[64];
  at_random *random = NULL;
  OK(at_random_create(&random, 9));
  OK(at_random_data(random, ATTUNE_I64, (at_range){0.0, 1000.0}, &data, &bytes));
  memcpy(first, data, sizeof first);
  for (int i = 1; i < AT_RANDOM_POOLS; i++) {
    OK(at_random_data(random, ATTUNE_I64, (at_range){0.0, 1000.0 + i}, &stays, &bytes));
    OK(at_random_data(random, ATTUNE_I64, (at_range){0.0, 1000.0}, &again, &bytes));
    assert_ptr_equal(data, again);
  }
  for (int i = 0; i < AT_RANDOM_POOLS; i++)
    OK(at_random_data(random, ATTUNE_I32, (at_range){0.0, 5.0 + i}, &stays, &bytes));
  OK(at_random_data(random, ATTUNE_I64, (at_range){0.0, 1000.0}, &again, &bytes));
  assert_memory_equal(first, again, sizeof first);
  at_random_destroy(random);
}

/* Scalars: within the range, in steps that few bits hold, not all the same. */
TEST(scalars) {
  const at_range range = {-64.0, 64.0};
  at_random *random = NULL;
  OK(at_random_create(&random, 11));
  int different = 0;
  for (int i = 0; i < 100; i++) {
    const double x = at_random_number(random, i, range);
    assert_true(x >= -64.0 && x <= 64.0 && fmod(x, 2.0) == 0.0);
    assert_true(x == at_random_number(random, i, range));
    different += x != at_random_number(random, i + 1, range);
  }
  assert_true(different > 90);
  assert_true(at_random_number(random, 3, (at_range){1.5, 1.5}) == 1.5);
  at_random_destroy(random);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
