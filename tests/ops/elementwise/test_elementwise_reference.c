/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_reference.c: what the reference of verification sees in elements that it does not draw for its
 * sample; and how far off an element may be. */
#include "tests/ops/op_test.h"
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>

#include "ops/elementwise/reference/reference.h"
#include "ops/elementwise/reference/tolerance.h"

enum { COUNT = 60000, FROM = 30000, PLACES = 12 };

static attune_device *host;

FIXTURE(open_all) {
  OK(attune_device_get(&host, "host"));
  return 0;
}

/* Input k of element i, as bits of a dtype. */
typedef void (*fill_fn)(void *to, int64_t i);

static void fill_f32(void *to, int64_t i) {
  const float x = 1.0f + (float)(i % 4093) / 4093.0f;
  memcpy(to, &x, sizeof x);
}
static void fill_f32_large(void *to, int64_t i) {
  const float x = i % 2 ? 3e38f : -3e38f;
  memcpy(to, &x, sizeof x);
}
static void fill_f64(void *to, int64_t i) {
  const double x = 1.0 + (double)(i % 4093) / 4093.0;
  memcpy(to, &x, sizeof x);
}
static void fill_f64_large(void *to, int64_t i) {
  const double x = i % 2 ? 1.7e308 : -1.7e308;
  memcpy(to, &x, sizeof x);
}
static void fill_c64_large(void *to, int64_t i) {
  const float x[2] = {i % 2 ? 3e38f : -3e38f, 1.0f};
  memcpy(to, x, sizeof x);
}
static void fill_i64(void *to, int64_t i) {
  const int64_t x = (INT64_C(1) << 60) + 3 * i;
  memcpy(to, &x, sizeof x);
}

/* How one element is spoiled. */
typedef void (*spoil_fn)(void *at);

static void spoil_f32(void *at) {
  float x;
  memcpy(&x, at, sizeof x);
  x += x * 0x1p-20f;
  memcpy(at, &x, sizeof x);
}
static void spoil_last_bit(void *at) {
  *(unsigned char *)at ^= 1;
}
static void spoil_f64(void *at) {
  double x;
  memcpy(&x, at, sizeof x);
  x += x * 0x1.8p-49;
  memcpy(at, &x, sizeof x);
}
static void spoil_to_1(void *at) {
  const float x = 1.0f;
  memcpy(at, &x, sizeof x);
}
static void spoil_sign(void *at) {
  ((unsigned char *)at)[3] ^= 0x80;
}
static void spoil_f64_to_1(void *at) {
  const double x = 1.0;
  memcpy(at, &x, sizeof x);
}

static const struct {
  const char *problem;
  fill_fn fill;
  spoil_fn spoil;
} cases[] = {
    {"elementwise 60000 strict out=f32 : f32 i0: i0 * 3.0", fill_f32, spoil_f32},
    {"elementwise 60000 strict out=f32 : f32 i0: exp(i0)", fill_f32, spoil_f32},
    {"elementwise 60000 strict out=f32 : f32 i0: i0", fill_f32, spoil_last_bit},
    {"elementwise 60000 strict out=f32 : f32 i0: i0 * 3.0", fill_f32_large, spoil_to_1},
    {"elementwise 60000 strict out=f32 : f32 i0: i0 * 3.0", fill_f32_large, spoil_sign},
    {"elementwise 60000 strict out=f64 : f64 i0: i0 * 3.0", fill_f64, spoil_f64},
    {"elementwise 60000 strict out=f64 : f64 i0: i0 * 3.0", fill_f64_large, spoil_f64_to_1},
    {"elementwise 60000 strict out=c64 : c64 i0: i0 + i0", fill_c64_large, spoil_sign},
    {"elementwise 60000 strict out=i64 : i64 i0: i0 + 1", fill_i64, spoil_last_bit},
    {"elementwise 60000 strict out=u64 : u64 i0: i0 + i0", fill_i64, spoil_last_bit},
};

static void check_case(size_t which) {
  _Alignas(8) char problem[AT_PROBLEM_BYTES];
  at_buffer buffers[AT_MAX_BUFFERS];
  void *pointers[AT_MAX_BUFFERS] = {NULL}, *reference = NULL;
  int count = 0;
  double error = 0;
  if (at_elementwise_parse(cases[which].problem, problem) != ATTUNE_OK)
    fail_msg("%s: %s", cases[which].problem, attune_last_message());
  OK(at_elementwise_buffers(at_elementwise_of(problem), buffers, &count));
  assert_int_equal(count, 2); /* the output, the input */
  for (int i = 0; i < count; i++) pointers[i] = aligned_alloc(64, (buffers[i].bytes + 63) / 64 * 64);
  const size_t in = attune_dtype_size(buffers[1].dtype), out = attune_dtype_size(buffers[0].dtype);
  for (int64_t i = 0; i < COUNT; i++) cases[which].fill((char *)pointers[1] + (size_t)i * in, i);
  OK(at_elementwise_reference_create(&reference, problem, host, attune_stream_default(host), pointers));
  at_elementwise_op_test.oracle(problem, pointers, NULL);
  const at_outputs outputs = {.bytes = {pointers[0]}};
  OK(at_elementwise_reference_compare(reference, NULL, &outputs, &error));
  if (!(error <= 1.0)) fail_msg("%s: what is right is refused", cases[which].problem);
  for (int k = 0; k < PLACES; k++) {
    char *at = (char *)pointers[0] + (size_t)(FROM + k) * out, kept[16];
    memcpy(kept, at, out);
    cases[which].spoil(at);
    OK(at_elementwise_reference_compare(reference, NULL, &outputs, &error));
    if (error <= 1.0) fail_msg("case %zu, %s: element %d is wrong and not seen", which, cases[which].problem, FROM + k);
    memcpy(at, kept, out);
  }
  at_elementwise_reference_destroy(reference);
  for (int i = 0; i < count; i++) free(pointers[i]);
}

TEST(one_wrong_element) {
  /* valgrind computes long double with 64 bits and the range of f64: only what is wrong in f32 can be seen there. */
  const bool narrow = getenv("AT_UNDER_VALGRIND") != NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!narrow || strstr(cases[i].problem, "out=f32")) check_case(i);
}

/* A function that is only seen as a half float may be rounded to either side of it, and no further; what a half float
 * was before and is again has no choice. */
static double error_of_bf16(const char *text, int units_off) {
  enum { AT = 77, MOST = 128 };
  _Alignas(8) char problem[AT_PROBLEM_BYTES];
  uint16_t in[MOST], out[MOST];
  void *pointers[AT_MAX_BUFFERS] = {out, in}, *reference = NULL;
  double error = -1;
  for (int i = 0; i < MOST; i++) in[i] = (uint16_t)(0x3f00 + i); /* 0.5 to 1 */
  OK(at_elementwise_parse(text, problem));
  OK(at_elementwise_reference_create(&reference, problem, host, attune_stream_default(host), pointers));
  at_elementwise_op_test.oracle(problem, pointers, NULL);
  out[AT] = (uint16_t)(out[AT] + units_off);
  OK(at_elementwise_reference_compare(reference, NULL, &(at_outputs){.bytes = {out}}, &error));
  at_elementwise_reference_destroy(reference);
  return error;
}

TEST(either_side_of_a_half_float) {
  static const char gelu[] = "elementwise 128 strict out=bf16 : bf16 i0: bf16(gelu(f32(i0)))",
                    copy[] = "elementwise 128 strict out=bf16 : bf16 i0: bf16(f32(i0))";
  for (int off = -1; off <= 1; off++) {
    assert_true(error_of_bf16(gelu, off) <= 1.0);
    assert_true((error_of_bf16(copy, off) <= 1.0) == (off == 0));
  }
  assert_true(error_of_bf16(gelu, 3) > 1.0);
  assert_true(error_of_bf16(gelu, -3) > 1.0);
}

/* ---- one element ---- */

static double error_of_i64(int64_t got, int64_t wanted, double bound) {
  return at_tolerance_error(&got, ATTUNE_I64, ATTUNE_I64, (at_wide_value){.integer = wanted}, bound);
}

TEST(integers_beyond_53_bits) {
  const int64_t large = INT64_C(1) << 61;
  assert_true(error_of_i64(large, large, 0.0) == 0.0);
  assert_true(error_of_i64(large + 1, large, 0.0) > 1.0);
  assert_true(error_of_i64(-large, -large - 1, 0.0) > 1.0);
  assert_true(error_of_i64(large + 1, large, 2.0) <= 1.0);
  assert_true(error_of_i64(INT64_MIN, INT64_MAX, 0.0) > 1.0);
  assert_true(error_of_i64(INT64_MAX, INT64_MAX, 4.0) == 0.0); /* moved over the end: it wraps */
  const uint64_t got = UINT64_MAX;
  assert_true(at_tolerance_error(&got, ATTUNE_U64, ATTUNE_U64, (at_wide_value){.integer = -2}, 0.0) > 1.0);
}

/* Where anything may come out, it is still a truth value. */
TEST(neither_true_nor_false) {
  const unsigned char seven = 7, yes = 1;
  const at_wide_value no = {.integer = 0};
  assert_true(at_tolerance_error(&seven, ATTUNE_BOOL, ATTUNE_BOOL, no, (double)INFINITY) > 1.0);
  assert_true(at_tolerance_error(&yes, ATTUNE_BOOL, ATTUNE_BOOL, no, (double)INFINITY) == 0.0);
  assert_true(at_tolerance_error(&yes, ATTUNE_BOOL, ATTUNE_BOOL, no, 0.0) > 1.0);
}

int main(void) {
  return RUN_TESTS(open_all, NULL);
}
