/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_epilogue.c: epilogues through attune.h alone: what is refused and how, row-major callers, products of
 * nothing, plans, many threads. That each part computes what it should is the conformance tests' work. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>
#include <pthread.h>

enum { M = 20, N = 13, K = 9, MOST = 64 };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static float a[M * K], b[K * N], d[MOST * N], bias[MOST], other[MOST * N], written[MOST * N], sums[MOST];

static attune_gemm_problem problem(void) {
  return (attune_gemm_problem){.dtype = ATTUNE_F32, .m = M, .n = N, .k = K};
}
static attune_gemm_operands operands(void) {
  return (attune_gemm_operands){
      .alpha = 1.0, .a = a, .b = b, .d = d, .bias = bias, .residual = other, .aux = written, .bias_gradient = sums};
}

static attune_status run(const attune_gemm_problem *p, const attune_gemm_operands *o) {
  return attune_gemm(tuner, stream, p, o);
}

#define REFUSED(words)                                         \
  do {                                                         \
    FAILS_SAYING(run(&p, &o), ATTUNE_INVALID_ARGUMENT, words); \
    p = problem();                                             \
    o = operands();                                            \
  } while (0)

TEST(refused_problems) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.epilogue.bias = 3;
  REFUSED("problem.epilogue.bias is 3");
  p.epilogue.activation = 7;
  REFUSED("problem.epilogue.activation is 7");
  p.epilogue.aux = 3;
  REFUSED("problem.epilogue.aux is 3");
  p.epilogue.gradient = 2;
  REFUSED("problem.epilogue.gradient is 2");
  p.epilogue.bias_gradient = 5;
  REFUSED("problem.epilogue.bias_gradient is 5");
  p.epilogue.residual = 2;
  REFUSED("problem.epilogue.residual is 2");
  p.epilogue.clamp = 255;
  REFUSED("problem.epilogue.clamp is 255");
  p.scaling.reserved = 1;
  REFUSED("problem.scaling");
  p.scaling.scale_a = 1;
  REFUSED("problem.scaling is not 0 with f32 inputs; should be zeros but for scale_d");
  p.scaling.scale_d = 2;
  REFUSED("problem.scaling.scale_d is 2");
  p.scaling.scale_d = 1, p.dtype = ATTUNE_C64;
  REFUSED("problem.scaling is not 0 with c64 inputs; should be zeros: ");
  p.scaling.scale_d = 1, o.scale_d = bias, p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_N;
  REFUSED("bias_gradient is n (4), of D, with a scale_d");
  p.scaling.scale_d = 1;
  REFUSED("operands.scale_d is NULL");
  p.scaling.scale_d = 1, o.scale_d = (const float *)(const void *)((const char *)bias + 2);
  REFUSED("operands.scale_d is 0x");
  p.scaling.scale_d = 1, o.scale_d = d + 5;
  REFUSED("operands.scale_d overlaps operands.d");
  p.epilogue.bias = ATTUNE_BIAS_M, p.epilogue.bias_dtype = ATTUNE_F16;
  REFUSED("problem.epilogue.bias_dtype is f16 (3); should be 0 or f32");
  p.epilogue.bias = ATTUNE_BIAS_M, p.epilogue.bias_dtype = 200;
  REFUSED("problem.epilogue.bias_dtype");
  p.epilogue.aux = ATTUNE_AUX_RELU_MASK, p.epilogue.activation = ATTUNE_ACTIVATION_GELU;
  REFUSED("a relu mask (2), but the activation is gelu");
  p.epilogue.gradient = 1, p.epilogue.aux = ATTUNE_AUX_INPUT;
  REFUSED("activation is none");
  p.epilogue.gradient = 1, p.epilogue.activation = ATTUNE_ACTIVATION_SILU;
  REFUSED("aux is none");
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_M, p.batch = 2;
  REFUSED("bias_gradient is m (3), but problem.batch is 2; only one product");
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_N, p.epilogue.clamp = 1;
  REFUSED("with a clamp");
  p.epilogue.residual = 1, p.ld_residual = M - 1;
  REFUSED("problem.ld_residual is 19; should be at least 20");
  p.epilogue.aux = ATTUNE_AUX_INPUT, p.ld_aux = M - 1;
  REFUSED("problem.ld_aux is 19; should be at least 20");
  p.epilogue.activation = ATTUNE_ACTIVATION_RELU, p.epilogue.aux = ATTUNE_AUX_RELU_MASK, p.ld_aux = 30;
  REFUSED("multiple of 8 bits");
  p.epilogue.aux = ATTUNE_AUX_INPUT, p.batch = 2, p.stride_aux = ATTUNE_BROADCAST;
  REFUSED("problem.stride_aux is ATTUNE_BROADCAST");
  p.epilogue.residual = 1, p.batch = 2, p.stride_residual = INT64_MAX;
  REFUSED("problem.stride_residual is 9223372036854775807, so that the matrices are larger than 2^59 elements");
  p.epilogue.residual = 1, p.batch = 2, p.stride_residual = -2;
  REFUSED("problem.stride_residual is -2; should be at least 1");
  p.dtype = ATTUNE_C64, p.epilogue.bias = ATTUNE_BIAS_M;
  REFUSED("complex products have no epilogue");
  OK(run(&p, &o));
}

TEST(refused_operands) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.epilogue.bias = ATTUNE_BIAS_N, o.bias = NULL;
  REFUSED("operands.bias is NULL");
  p.epilogue.residual = 1, o.residual = NULL;
  REFUSED("operands.residual is NULL");
  p.epilogue.aux = ATTUNE_AUX_INPUT, o.aux = NULL;
  REFUSED("operands.aux is NULL");
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_A, o.bias_gradient = NULL;
  REFUSED("operands.bias_gradient is NULL");
  p.epilogue.bias = ATTUNE_BIAS_M, o.bias = (const char *)bias + 1;
  REFUSED("operands.bias is 0x");
  p.epilogue.clamp = 1, o.clamp_min = 1.0, o.clamp_max = 0.5;
  REFUSED("operands.clamp_min is 1");
  p.epilogue.clamp = 1, o.clamp_max = (double)NAN;
  REFUSED("clamp_max nan");
  p.epilogue.residual = 1, o.residual = d;
  REFUSED("operands.residual overlaps operands.d");
  p.epilogue.bias = ATTUNE_BIAS_M, o.bias = d + 3;
  REFUSED("operands.bias overlaps operands.d");
  p.epilogue.aux = ATTUNE_AUX_INPUT, o.aux = (float *)(uintptr_t)b;
  REFUSED("operands.aux overlaps operands.");
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_B, p.epilogue.bias = ATTUNE_BIAS_N, o.bias_gradient = bias + 2;
  REFUSED("operands.bias_gradient overlaps operands.bias");
}

/* z of a row- or column-major problem, without C. */
static double input(int layout, int i, int j, int which_bias) {
  double z = which_bias == ATTUNE_BIAS_M ? (double)bias[i] : which_bias == ATTUNE_BIAS_N ? (double)bias[j] : 0.0;
  for (int k = 0; k < K; k++)
    z += layout ? (double)a[i * K + k] * (double)b[k * N + j] : (double)a[i + k * M] * (double)b[k + j * K];
  return z;
}

TEST(both_layouts) {
  for (int layout = 0; layout < 2; layout++)
    for (int which = 1; which <= 2; which++) {
      attune_gemm_problem p = problem();
      attune_gemm_operands o = operands();
      p.layout = (attune_layout)layout;
      p.epilogue = (attune_gemm_epilogue){
          .bias = (uint8_t)which, .activation = ATTUNE_ACTIVATION_SILU, .aux = ATTUNE_AUX_INPUT, .residual = 1};
      for (int turn = 0; turn < 3; turn++) { /* decided, remembered, guessed */
        memset(d, 0xff, sizeof d);
        OK(run(&p, &o));
        for (int i = 0; i < M; i++)
          for (int j = 0; j < N; j++) {
            const int at = layout ? i * N + j : i + j * M;
            const double z = input(layout, i, j, which), y = z / (1.0 + exp(-z)) + (double)other[at];
            assert_true(fabs((double)d[at] - y) < 1e-5 && fabs((double)written[at] - z) < 1e-5);
          }
      }
    }
}

/* Another epilogue at the address of a remembered problem is another problem; so is none. */
TEST(one_address_many_problems) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  o.clamp_min = -0.25, o.clamp_max = 0.25;
  for (int turn = 0; turn < 40; turn++) {
    p.epilogue.activation = turn % 3 ? ATTUNE_ACTIVATION_RELU : ATTUNE_ACTIVATION_NONE;
    p.epilogue.clamp = turn % 4 == 1;
    OK(run(&p, &o));
    double z = input(0, 3, 5, 0);
    if (turn % 3 && z < 0.0) z = 0.0;
    if (turn % 4 == 1) z = fmin(fmax(z, -0.25), 0.25);
    assert_true(fabs((double)d[3 + 5 * M] - z) < 1e-5);
  }
}

/* The scale of D comes last; NaN, infinities, zero and negative numbers are as others. */
TEST(scale_of_d) {
  static const float scales[] = {-2.5f, 0.0f, 1e-3f, INFINITY, NAN};
  for (int way = 0; way < 10; way++) {
    attune_gemm_problem p = problem();
    attune_gemm_operands o = operands();
    const float scale = scales[way % 5];
    p.layout = (attune_layout)(way / 5), p.scaling.scale_d = 1, o.scale_d = &scale;
    p.epilogue = (attune_gemm_epilogue){.activation = ATTUNE_ACTIVATION_TANH, .residual = 1, .clamp = 1};
    o.clamp_min = -0.5, o.clamp_max = 0.25;
    memset(d, 0xff, sizeof d);
    OK(run(&p, &o));
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        const int at = way / 5 ? i * N + j : i + j * M;
        const double y = fmin(fmax(tanh(input(way / 5, i, j, 0)) + (double)other[at], -0.5), 0.25) * (double)scale;
        assert_true(isnan(y) ? isnan(d[at]) : (double)d[at] == y || fabs((double)d[at] - y) < 1e-5);
      }
  }
  attune_gemm_problem p = problem(); /* nothing else; and nothing at all is multiplied */
  attune_gemm_operands o = operands();
  p.scaling.scale_d = 1, o.scale_d = &scales[0];
  OK(run(&p, &o));
  assert_true(fabs((double)d[3 + 5 * M] + 2.5 * input(0, 3, 5, 0)) < 1e-5);
  p.epilogue.bias = ATTUNE_BIAS_M, o.alpha = 0.0;
  OK(run(&p, &o));
  assert_true(fabs((double)d[3 + 5 * M] + 2.5 * (double)bias[3]) < 1e-6);
  char text[ATTUNE_PROBLEM_CHARS];
  OK(attune_gemm_problem_format(text, sizeof text, &p, NULL));
  assert_string_equal(text, "gemm f32 nn 20x13x9 strict scale_d bias=m");
  OK(attune_gemm_problem_parse(&p, text));
  assert_true(p.scaling.scale_d == 1 && p.epilogue.bias == ATTUNE_BIAS_M);
}

/* Without a product z is beta C + bias. */
TEST(products_of_nothing) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.epilogue = (attune_gemm_epilogue){.bias = ATTUNE_BIAS_M, .activation = ATTUNE_ACTIVATION_RELU};
  for (int turn = 0; turn < 2; turn++) {
    if (turn) p.k = 0;
    o.alpha = turn ? 1.0 : 0.0, o.beta = 2.0, o.c = other, o.a = o.b = NULL;
    OK(run(&p, &o));
    for (int at = 0; at < M * N; at++) {
      const double z = 2.0 * (double)other[at] + (double)bias[at % M];
      assert_true(fabs((double)d[at] - fmax(z, 0.0)) < 1e-5);
    }
  }
  /* a bias gradient of A is asked for whatever alpha is */
  p = problem(), o = operands();
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_A;
  o.alpha = 0.0;
  OK(run(&p, &o));
  for (int i = 0; i < M; i++) {
    double sum = 0.0;
    for (int k = 0; k < K; k++) sum += (double)a[i + k * M];
    assert_true(fabs((double)sums[i] - sum) < 1e-5 && d[i] == 0.0f);
  }
  o.a = NULL;
  FAILS_SAYING(run(&p, &o), ATTUNE_INVALID_ARGUMENT, "operands.a is NULL");
}

TEST(plans) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  attune_plan *plan = NULL;
  p.layout = ATTUNE_ROW_MAJOR;
  p.epilogue = (attune_gemm_epilogue){.bias = ATTUNE_BIAS_N, .activation = ATTUNE_ACTIVATION_RELU, .clamp = 1};
  o.clamp_max = 0.5;
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  memset(d, 0xff, sizeof d);
  OK(attune_gemm_plan_run(plan, stream, &o));
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      assert_true(fabs((double)d[i * N + j] - fmin(fmax(input(1, i, j, ATTUNE_BIAS_N), 0.0), 0.5)) < 1e-5);
  o.bias = NULL;
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT, "operands.bias is NULL");
  o.bias = d;
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT, "overlaps");
  o.bias = bias, o.alpha = 0.0;
  OK(attune_gemm_plan_run(plan, stream, &o));
  assert_true(fabs((double)d[1] - fmin(fmax((double)bias[1], 0.0), 0.5)) < 1e-6);
  attune_plan_destroy(plan);
}

/* A relu's bits, and its gradient by them: elements of D that were not positive are 0. */
TEST(forward_and_back) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  unsigned char bits[16 * N];
  memset(bits, 0xff, sizeof bits);
  p.epilogue = (attune_gemm_epilogue){.activation = ATTUNE_ACTIVATION_RELU, .aux = ATTUNE_AUX_RELU_MASK};
  o.aux = bits;
  OK(run(&p, &o));
  for (int j = 0; j < N; j++)
    for (int i = 0; i < M; i++) assert_int_equal(bits[16 * j + i / 8] >> i % 8 & 1, input(0, i, j, 0) > 0.0);
  p.epilogue.gradient = 1, p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_N;
  OK(run(&p, &o));
  for (int j = 0; j < N; j++) {
    double sum = 0.0;
    for (int i = 0; i < M; i++) {
      const double z = input(0, i, j, 0);
      assert_true(fabs((double)d[i + j * M] - fmax(z, 0.0)) < 1e-5);
      sum += fmax(z, 0.0);
    }
    assert_true(fabs((double)sums[j] - sum) < 1e-4);
  }
}

/* D of one column of `count` numbers: z, and aux or the mask, go through the gradient. */
static void gradient_of(attune_activation activation, int count, const float *z, void *aux, attune_aux kind) {
  const float one = 1.0f;
  const attune_gemm_problem p = {.dtype = ATTUNE_F32,
                                 .m = count,
                                 .n = 1,
                                 .k = 1,
                                 .epilogue = {.activation = (uint8_t)activation, .aux = (uint8_t)kind, .gradient = 1}};
  const attune_gemm_operands o = {.alpha = 1.0, .a = z, .b = &one, .d = d, .aux = aux};
  OK(run(&p, &o));
}

/* Relu's selects; the mask of a NaN is 0. */
TEST(relu_gradient_of_special_values) {
  const float z[] = {NAN, NAN, INFINITY, INFINITY, 3.0f, 3.0f, NAN, -2.0f};
  float aux[] = {-1.0f, 1.0f, -1.0f, 1.0f, NAN, 0.0f, -0.0f, INFINITY};
  unsigned char mask = 0x0a;
  gradient_of(ATTUNE_ACTIVATION_RELU, 8, z, aux, ATTUNE_AUX_INPUT);
  assert_true(d[0] == 0.0f && isnan(d[1]) && d[2] == 0.0f && d[3] == INFINITY);
  assert_true(d[4] == 3.0f && d[5] == 0.0f && d[6] == 0.0f && d[7] == -2.0f);
  gradient_of(ATTUNE_ACTIVATION_RELU, 8, z, &mask, ATTUNE_AUX_RELU_MASK);
  assert_true(d[0] == 0.0f && isnan(d[1]) && d[2] == 0.0f && d[3] == INFINITY);
  for (int i = 4; i < 8; i++) assert_true(d[i] == 0.0f);
  const float one = 1.0f;
  const attune_gemm_problem p = {.dtype = ATTUNE_F32,
                                 .m = 8,
                                 .n = 1,
                                 .k = 1,
                                 .epilogue = {.activation = ATTUNE_ACTIVATION_RELU, .aux = ATTUNE_AUX_RELU_MASK}};
  const attune_gemm_operands o = {.alpha = 1.0, .a = z, .b = &one, .d = d, .aux = &mask};
  OK(run(&p, &o));
  assert_int_equal(mask, 0x3c);
  assert_true(isnan(d[0]) && isnan(d[6]) && d[7] == 0.0f);
}

/* Of numbers whose cubes overflow the slope is 1 or 0. */
TEST(gradients_of_large_numbers) {
  static const double large[] = {1e10, 5e19, 3e38, 1e155, 1e308};
  for (int activation = ATTUNE_ACTIVATION_GELU; activation <= ATTUNE_ACTIVATION_SILU; activation++)
    for (int i = 0; i < 10; i++) {
      const double x = i < 5 ? large[i] : -large[i - 5], slope = x > 0.0 ? 1.0 : 0.0, one = 1.0;
      const float z = 1.0f;
      float narrow = (float)x;
      double wide = x, wide_d = -1.0;
      if (fabs(x) < 1e39) gradient_of((attune_activation)activation, 1, &z, &narrow, ATTUNE_AUX_INPUT);
      if (fabs(x) < 1e39 && (double)d[0] != slope)
        fail_msg("f32, activation %d at %g: %g", activation, x, (double)d[0]);
      const attune_gemm_problem p = {
          .dtype = ATTUNE_F64,
          .m = 1,
          .n = 1,
          .k = 1,
          .epilogue = {.activation = (uint8_t)activation, .aux = ATTUNE_AUX_INPUT, .gradient = 1}};
      const attune_gemm_operands o = {.alpha = 1.0, .a = &one, .b = &one, .d = &wide_d, .aux = &wide};
      OK(run(&p, &o));
      if (wide_d != slope) fail_msg("f64, activation %d at %g: %g", activation, x, wide_d);
    }
}

static void *call_often(void *arg) {
  (void)arg;
  float mine[M * N];
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.epilogue = (attune_gemm_epilogue){.bias = ATTUNE_BIAS_M, .activation = ATTUNE_ACTIVATION_GELU_TANH};
  o.d = mine;
  for (int turn = 0; turn < 200; turn++)
    if (run(&p, &o) != ATTUNE_OK || !isfinite(mine[M * N - 1])) return (void *)1;
  return NULL;
}

TEST(many_threads) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&all[i], NULL, call_often, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *failed = NULL;
    pthread_join(all[i], &failed);
    assert_null(failed);
  }
}

TEST(texts) {
  static const char *const good[] = {"gemm f16 nn 8x8x8 strict bias=m:f32 gelu",
                                     "gemm bf16 tn 8x8x8 strict silu residual",
                                     "gemm f32 nn 8x8x8 strict relu gradient aux=mask bias-gradient=n",
                                     "gemm f64 nt 8x8x8x2 strict beta tanh clamp ld_residual=9 residual"};
  static const char *const bad[] = {"gemm f32 nn 8x8x8 strict bias=k",         "gemm f32 nn 8x8x8 strict gelu_",
                                    "gemm f32 nn 8x8x8 strict aux=mask",       "gemm f32 nn 8x8x8 strict gradient",
                                    "gemm f64 nn 8x8x8 strict bias=m:f32",     "gemm c64 nn 8x8x8 strict relu",
                                    "gemm f32 nn 8x8x8 strict bias-gradient=c"};
  attune_gemm_problem p = {0};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) OK(attune_gemm_problem_parse(&p, good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(attune_gemm_problem_parse(&p, bad[i]), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  const attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  for (int i = 0; i < M * K; i++) a[i] = (float)((i * 37 + 11) % 41 - 20) / 20.0f;
  for (int i = 0; i < K * N; i++) b[i] = (float)((i * 29 + 5) % 37 - 18) / 18.0f;
  for (int i = 0; i < MOST; i++) bias[i] = (float)(i % 7 - 3) / 4.0f;
  for (int i = 0; i < MOST * N; i++) other[i] = (float)(i % 11 - 5) / 5.0f;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failures;
}
