/* SPDX-License-Identifier: Apache-2.0
 * test_tensor.c: the everyday calls of tensor.h on the host. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/host_tuner.h"

#include <math.h>

static attune_tensor of(void *data, attune_dtype dtype, int64_t count) {
  return tensor_of_shape(NULL, data, dtype, 1, &count);
}

TEST(copies) {
  double in[6] = {1.5, -2.9, 300, 4, 5e9, -0.0};
  float as_f32[6], turned[6];
  int32_t whole[6];
  uint8_t bytes[6];
  const attune_tensor from = of(in, ATTUNE_F64, 6);
  attune_tensor to = of(as_f32, ATTUNE_F32, 6);
  to.name = "of any name, even in"; /* of an output it is for messages */
  OK(attune_tensor_copy(tuner, stream, &to, &from));
  for (int i = 0; i < 6; i++) assert_true(as_f32[i] == (float)in[i] && !signbit(as_f32[i]) == !signbit(in[i]));
  to = of(whole, ATTUNE_I32, 4);
  const attune_tensor four = of(in, ATTUNE_F64, 4);
  OK(attune_tensor_copy(tuner, stream, &to, &four));
  for (int i = 0; i < 4; i++) assert_int_equal(whole[i], (int32_t)in[i]);
  to = of(bytes, ATTUNE_BOOL, 6);
  OK(attune_tensor_copy(tuner, stream, &to, &from));
  for (int i = 0; i < 6; i++) assert_int_equal(bytes[i], in[i] != 0.0);
  /* 2 x 3 to 3 x 2, and one element to all. */
  attune_tensor matrix = tensor_of_shape("x", as_f32, ATTUNE_F32, 2, CALL_SIZES(2, 3)), view;
  int64_t strides[2];
  OK(attune_tensor_permute(&view, strides, &matrix, (const int[]){1, 0}));
  to = tensor_of_shape(NULL, turned, ATTUNE_F32, 2, CALL_SIZES(3, 2));
  OK(attune_tensor_copy(tuner, stream, &to, &view));
  for (int i = 0; i < 6; i++) assert_true(turned[i] == as_f32[i % 2 * 3 + i / 2]);
  const attune_tensor one = of(in + 2, ATTUNE_F64, 1);
  OK(attune_tensor_copy(tuner, stream, &to, &one));
  for (int i = 0; i < 6; i++) assert_true(turned[i] == 300.0f);
  FAILS(attune_tensor_copy(tuner, stream, &to, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "in is NULL; should be a tensor");
  FAILS(attune_tensor_copy(tuner, stream, NULL, &one), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "out is NULL; should be a tensor");
  FAILS(attune_tensor_copy(NULL, stream, &to, &one), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_copy(tuner, NULL, &to, &one), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_copy(tuner, stream, &to, &from), ATTUNE_INVALID_ARGUMENT);
}

/* Every digit that the dtype can hold. */
TEST(fills) {
  double d[5];
  float f[5], complex_f[10];
  int64_t l[5];
  uint64_t u[5];
  int32_t i32[5];
  uint32_t u32[5];
  uint8_t b[5];
  uint16_t h[5];
  double z[10];
  attune_tensor t = of(d, ATTUNE_F64, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 0.1));
  for (int i = 0; i < 5; i++) assert_true(d[i] == 0.1);
  OK(attune_tensor_fill(tuner, stream, &t, 1e300));
  assert_true(d[4] == 1e300);
  OK(attune_tensor_fill(tuner, stream, &t, -INFINITY));
  assert_true(isinf(d[4]) && d[4] < 0);
  OK(attune_tensor_fill(tuner, stream, &t, -0.0));
  assert_true(d[4] == 0 && signbit(d[4]));
  t = of(f, ATTUNE_F32, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 0.1));
  assert_true(f[0] == 0.1f && f[4] == 0.1f);
  OK(attune_tensor_fill(tuner, stream, &t, (double)NAN));
  assert_true(isnan(f[4]));
  t = of(l, ATTUNE_I64, 5);
  OK(attune_tensor_fill(tuner, stream, &t, -9007199254740991.0));
  assert_true(l[4] == INT64_C(-9007199254740991));
  t = of(u, ATTUNE_U64, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 9007199254740991.0));
  assert_true(u[4] == UINT64_C(9007199254740991));
  t = of(i32, ATTUNE_I32, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 2147483647.0));
  assert_int_equal(i32[4], INT32_MAX);
  t = of(u32, ATTUNE_U32, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 4294967295.0));
  assert_true(u32[4] == UINT32_MAX);
  t = of(b, ATTUNE_BOOL, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 1e-300));
  assert_int_equal(b[4], 1);
  OK(attune_tensor_fill(tuner, stream, &t, 0));
  assert_int_equal(b[4], 0);
  t = of(h, ATTUNE_F16, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 1.5));
  assert_int_equal(h[4], 0x3e00);
  t = of(z, ATTUNE_C128, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 0.1));
  assert_true(z[8] == 0.1 && z[9] == 0);
  t = of(complex_f, ATTUNE_C64, 5);
  OK(attune_tensor_fill(tuner, stream, &t, 0.1));
  assert_true(complex_f[8] == 0.1f && complex_f[9] == 0);
  t = of(NULL, ATTUNE_F32, 0);
  OK(attune_tensor_fill(tuner, stream, &t, 1));
  t.sizes[0] = 1;
  FAILS(attune_tensor_fill(tuner, stream, &t, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_fill(tuner, stream, NULL, 1), ATTUNE_INVALID_ARGUMENT);
}

TEST(sums) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {10, 20, 30}, out[6];
  const attune_tensor tx = tensor_of_shape(NULL, x, ATTUNE_F32, 2, CALL_SIZES(2, 3)), ty = of(y, ATTUNE_F32, 3);
  attune_tensor to = tensor_of_shape(NULL, out, ATTUNE_F32, 2, CALL_SIZES(2, 3));
  OK(attune_tensor_add(tuner, stream, &to, &tx, &ty));
  for (int i = 0; i < 6; i++) assert_true(out[i] == x[i] + y[i % 3]);
  OK(attune_tensor_add(tuner, stream, &to, &to, &to)); /* in place of both */
  for (int i = 0; i < 6; i++) assert_true(out[i] == 2 * (x[i] + y[i % 3]));
  FAILS(attune_tensor_add(tuner, stream, &to, NULL, &ty), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "a is NULL; should be a tensor");
  FAILS(attune_tensor_add(tuner, stream, &to, &tx, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "b is NULL; should be a tensor");
  OK(attune_tensor_axpby(tuner, stream, 2, &ty, -1, &to));
  for (int i = 0; i < 6; i++) assert_true(out[i] == 2 * y[i % 3] - 2 * (x[i] + y[i % 3]));
  out[3] = NAN;
  OK(attune_tensor_axpby(tuner, stream, 2, &ty, 0, &to)); /* y is read */
  assert_true(out[2] == 60 && isnan(out[3]));
  FAILS(attune_tensor_axpby(tuner, stream, 2, NULL, 0, &to), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_axpby(tuner, stream, 2, &ty, 0, NULL), ATTUNE_INVALID_ARGUMENT);
}

static double activated(attune_activation how, double x) {
  switch (how) {
  case ATTUNE_ACTIVATION_RELU: return x > 0 ? x : 0;
  case ATTUNE_ACTIVATION_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
  case ATTUNE_ACTIVATION_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case ATTUNE_ACTIVATION_SILU: return x / (1 + exp(-x));
  case ATTUNE_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
  case ATTUNE_ACTIVATION_TANH: return tanh(x);
  default: return x;
  }
}

TEST(biases) {
  float x[24], bias[6], out[24], expected;
  for (int i = 0; i < 24; i++) x[i] = (float)(i - 12) / 4;
  for (int i = 0; i < 6; i++) bias[i] = (float)i / 8;
  const attune_tensor tx = tensor_of_shape(NULL, x, ATTUNE_F32, 2, CALL_SIZES(4, 6)), tb = of(bias, ATTUNE_F32, 6);
  attune_tensor to = tensor_of_shape(NULL, out, ATTUNE_F32, 2, CALL_SIZES(4, 6));
  for (int how = 0; how <= ATTUNE_ACTIVATION_TANH; how++) {
    OK(attune_tensor_bias_activation(tuner, stream, &to, &tx, &tb, (attune_activation)how));
    for (int i = 0; i < 24; i++) {
      expected = (float)activated((attune_activation)how, (double)x[i] + (double)bias[i % 6]);
      assert_true(fabsf(out[i] - expected) <= 4e-7f * (fabsf(expected) + 0.01f));
    }
  }
  OK(attune_tensor_bias_activation(tuner, stream, &tx, &tx, &tb, ATTUNE_ACTIVATION_RELU)); /* in place */
  for (int i = 0; i < 24; i++) assert_true(x[i] >= 0);
  FAILS(attune_tensor_bias_activation(tuner, stream, &to, &tx, &tb, (attune_activation)7), ATTUNE_INVALID_ARGUMENT);
  assert_non_null(strstr(attune_last_message(), "activation is 7"));
  FAILS(attune_tensor_bias_activation(tuner, stream, &to, &tx, &tb, (attune_activation)-1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_bias_activation(tuner, stream, &to, NULL, &tb, ATTUNE_ACTIVATION_NONE), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_bias_activation(tuner, stream, &to, &tx, NULL, ATTUNE_ACTIVATION_NONE), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_bias_activation(tuner, stream, NULL, &tx, &tb, ATTUNE_ACTIVATION_NONE), ATTUNE_INVALID_ARGUMENT);
}

TEST(drops) {
  enum { COUNT = 20001 };
  static float x[COUNT], out[COUNT], u[COUNT];
  attune_generator *generator = NULL;
  uint64_t offset = 0;
  OK(attune_generator_create(&generator, 5));
  for (int i = 0; i < COUNT; i++) x[i] = (float)(i + 1);
  const attune_tensor tx = of(x, ATTUNE_F32, COUNT), to = of(out, ATTUNE_F32, COUNT);
  for (int round = 0; round < 3; round++) {
    int kept = 0;
    OK(attune_generator_get_offset(generator, &offset));
    OK(attune_tensor_dropout(tuner, stream, &to, &tx, 0.25, generator));
    OK(attune_generator_set_offset(generator, offset));
    OK(attune_random_uniform(generator, stream, u, ATTUNE_F32, COUNT, 0, 1)); /* and on as far as the call did */
    for (int i = 0; i < COUNT; i++) {
      assert_true(out[i] == (u[i] < 0.75f ? x[i] * (float)(1 / 0.75) : 0));
      kept += out[i] != 0;
    }
    assert_in_range(kept, COUNT * 0.75 - 400, COUNT * 0.75 + 400);
  }
  OK(attune_tensor_dropout(tuner, stream, &to, &tx, 0, generator));
  assert_memory_equal(out, x, sizeof x);
  OK(attune_tensor_dropout(tuner, stream, &tx, &tx, 0.5, generator)); /* in place */
  static const double bad[] = {1, -0.1, 1.5, (double)NAN, (double)INFINITY};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(attune_tensor_dropout(tuner, stream, &to, &tx, bad[i], generator), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_tensor_dropout(tuner, stream, &to, &tx, 0.5, NULL), ATTUNE_INVALID_ARGUMENT, "generator is NULL");
  FAILS(attune_tensor_dropout(tuner, stream, &to, NULL, 0.5, generator), ATTUNE_INVALID_ARGUMENT);
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_TORCH));
  FAILS_SAYING(attune_tensor_dropout(tuner, stream, &to, &tx, 0.5, generator), ATTUNE_INVALID_ARGUMENT, "mode torch");
  attune_generator_destroy(generator);
}

TEST(permutes) {
  float x[2 * 3 * 4];
  attune_tensor t = tensor_of_shape("x", x, ATTUNE_F32, 3, CALL_SIZES(2, 3, 4)), view, twice;
  int64_t strides[ATTUNE_DIMS];
  OK(attune_tensor_permute(&view, strides, &t, (const int[]){2, 0, 1}));
  assert_true(view.sizes[0] == 4 && view.sizes[1] == 2 && view.sizes[2] == 3 && view.data == x &&
              view.strides == strides);
  assert_true(strides[0] == 1 && strides[1] == 12 && strides[2] == 4);
  twice = view;
  OK(attune_tensor_permute(&twice, strides, &twice, (const int[]){1, 2, 0})); /* in its own place: back again */
  assert_true(strides[0] == 12 && strides[1] == 4 && strides[2] == 1 && twice.sizes[0] == 2 && twice.sizes[2] == 4);
  t.dims = 0;
  OK(attune_tensor_permute(&view, strides, &t, (const int[]){9}));
  assert_int_equal(view.dims, 0);
  static const int bad[][3] = {{0, 0, 1}, {0, 1, 3}, {-1, 0, 1}, {2, 1, 1}, {INT32_MAX, 0, 1}, {INT32_MIN, 0, 1}};
  t.dims = 3;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    FAILS_SAYING(attune_tensor_permute(&view, strides, &t, bad[i]), ATTUNE_INVALID_ARGUMENT,
                 "should be each of 0 to 2 once");
  }
  static const int order[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  t.dims = 9;
  FAILS(attune_tensor_permute(&view, strides, &t, order), ATTUNE_INVALID_ARGUMENT);
  t.dims = -1;
  FAILS(attune_tensor_permute(&view, strides, &t, order), ATTUNE_INVALID_ARGUMENT);
  t = tensor_of_shape("x", x, ATTUNE_F32, 3, CALL_SIZES(2, INT64_MAX, INT64_MAX));
  FAILS_SAYING(attune_tensor_permute(&view, strides, &t, order), ATTUNE_INVALID_ARGUMENT, "2^63 elements");
  t = tensor_of_shape("x", x, ATTUNE_F32, 3, CALL_SIZES(2, -3, 4));
  FAILS_SAYING(attune_tensor_permute(&view, strides, &t, order), ATTUNE_INVALID_ARGUMENT, "size -3");
  FAILS(attune_tensor_permute(NULL, strides, &t, order), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_permute(&view, NULL, &t, order), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_permute(&view, strides, NULL, order), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tensor_permute(&view, strides, &t, NULL), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
