/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_call.c: the public calls of GEMM: each bad argument has its status and a message that names it, and the
 * next call works; plans refuse operands they were not made for; row-major, pointers off alignment, explain. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/tools.h>
#include <complex.h>
#include <float.h>

#include "src/base/backend.h"
#include "tests/ops/gemm/gemm_oracle.h"

#define REFUSED(call, words) refused((call), (words), #call, __LINE__)

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static _Alignas(64) double a[64], b[64], c[64], d[64];

static void refused(attune_status status, const char *words, const char *call, int line) {
  if (status != ATTUNE_INVALID_ARGUMENT) fail_msg("line %d, %s: %s", line, call, attune_status_string(status));
  if (!strstr(attune_last_message(), words))
    fail_msg("line %d, %s: the message does not say \"%s\": %s", line, call, words, attune_last_message());
}

static attune_gemm_problem problem_of(int m, int n, int k) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

static attune_gemm_operands operands_of(void) {
  return (attune_gemm_operands){.alpha = 1.0, .a = a, .b = b, .beta = 0.0, .c = NULL, .d = d};
}

/* 2 x 2 by hand, so that a call after a refused one is seen to work. */
static void still_works(void) {
  static _Alignas(128) const float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8};
  static _Alignas(128) float z[4];
  const attune_gemm_problem p = problem_of(2, 2, 2);
  const attune_gemm_operands o = {.alpha = 1.0, .a = x, .b = y, .d = z};
  OK(attune_gemm(tuner, stream, &p, &o));
  assert_true(z[0] == 23.0f && z[1] == 34.0f && z[2] == 31.0f && z[3] == 46.0f);
}

TEST(null_arguments) {
  const attune_gemm_problem p = problem_of(2, 2, 2);
  const attune_gemm_operands o = operands_of();
  attune_plan *plan = NULL;
  REFUSED(attune_gemm(NULL, stream, &p, &o), "tuner is NULL");
  REFUSED(attune_gemm(tuner, NULL, &p, &o), "stream is NULL");
  REFUSED(attune_gemm(tuner, stream, NULL, &o), "problem is NULL");
  REFUSED(attune_gemm(tuner, stream, &p, NULL), "operands is NULL");
  REFUSED(attune_gemm_plan_create(NULL, tuner, stream, &p, &o), "out is NULL");
  REFUSED(attune_gemm_plan_create(&plan, NULL, stream, &p, &o), "tuner is NULL");
  REFUSED(attune_gemm_plan_create(&plan, tuner, NULL, &p, &o), "stream is NULL");
  REFUSED(attune_gemm_plan_create(&plan, tuner, stream, NULL, &o), "problem is NULL");
  REFUSED(attune_gemm_plan_create(&plan, tuner, stream, &p, NULL), "operands is NULL");
  assert_null(plan);
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  REFUSED(attune_gemm_plan_run(NULL, stream, &o), "plan is NULL");
  REFUSED(attune_gemm_plan_run(plan, NULL, &o), "stream is NULL");
  REFUSED(attune_gemm_plan_run(plan, stream, NULL), "operands is NULL");
  attune_plan_destroy(plan);
  attune_plan_destroy(NULL);
  still_works();
}

TEST(bad_operands) {
  const attune_gemm_problem p = problem_of(2, 2, 2);
  attune_gemm_operands o = operands_of();
  o.a = NULL;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.a is NULL");
  o = operands_of();
  o.b = NULL;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.b is NULL");
  o = operands_of();
  o.d = NULL;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.d is NULL");
  o = operands_of();
  o.beta = 1.0;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.c is NULL");
  o.beta = (double)NAN;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.c is NULL");
  o = operands_of();
  o.d = a;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.a");
  o.d = b;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "operands.b");
  still_works();
}

/* Each pointer of each dtype off its element: refused; off 16 bytes but on the element: taken. */
TEST(misaligned_operands) {
  static const char *const names[] = {"operands.a", "operands.b", "operands.c", "operands.d"};
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_BF16; dtype++)
    for (int which = 0; which < 4; which++)
      for (int offset = 1; offset <= 8; offset++) {
        attune_gemm_problem p = problem_of(2, 2, 2);
        p.dtype = (attune_dtype)dtype;
        const void *pointers[] = {a, b, c, d};
        pointers[which] = (const char *)pointers[which] + offset;
        const attune_gemm_operands o = {.alpha = 1.0,
                                        .a = pointers[0],
                                        .b = pointers[1],
                                        .beta = 0.5,
                                        .c = pointers[2],
                                        .d = (void *)(uintptr_t)pointers[3]};
        if (offset % (int)attune_dtype_size(p.dtype))
          REFUSED(attune_gemm(tuner, stream, &p, &o), names[which]);
        else
          OK(attune_gemm(tuner, stream, &p, &o));
      }
  still_works();
}

/* One field of a good problem set wrong, and the words that must name it. */
TEST(bad_problems) {
  static const struct {
    size_t field;
    int64_t value;
    const char *words;
  } sizes[] = {
      {offsetof(attune_gemm_problem, m), -1, "problem.m"},
      {offsetof(attune_gemm_problem, n), -5, "problem.n"},
      {offsetof(attune_gemm_problem, k), INT64_MIN, "problem.k"},
      {offsetof(attune_gemm_problem, batch), -2, "problem.batch"},
      {offsetof(attune_gemm_problem, m), INT64_MAX, "matrix"},
      {offsetof(attune_gemm_problem, n), INT64_MAX / 2, "matrix"},
      {offsetof(attune_gemm_problem, k), (int64_t)1 << 61, "matrix"},
      {offsetof(attune_gemm_problem, batch), INT64_MAX, "matrix"},
      {offsetof(attune_gemm_problem, lda), 3, "problem.lda is 3"},
      {offsetof(attune_gemm_problem, ldb), 4, "problem.ldb is 4"},
      {offsetof(attune_gemm_problem, ldc), 3, "problem.ldc is 3"},
      {offsetof(attune_gemm_problem, ldd), 1, "problem.ldd is 1"},
      {offsetof(attune_gemm_problem, lda), -4, "problem.lda is -4"},
      {offsetof(attune_gemm_problem, ldd), INT64_MIN, "problem.ldd"},
      {offsetof(attune_gemm_problem, lda), INT64_MAX, "matrix a"},
      {offsetof(attune_gemm_problem, ldb), INT64_MAX / 2, "matrix b"},
      {offsetof(attune_gemm_problem, stride_a), -2, "problem.stride_a"},
      {offsetof(attune_gemm_problem, stride_b), INT64_MIN, "problem.stride_b"},
      {offsetof(attune_gemm_problem, stride_c), -7, "problem.stride_c"},
      {offsetof(attune_gemm_problem, stride_d), ATTUNE_BROADCAST, "problem.stride_d"},
      {offsetof(attune_gemm_problem, stride_d), 5, "overlap"},
      {offsetof(attune_gemm_problem, stride_a), INT64_MAX, "matrix a"},
      {offsetof(attune_gemm_problem, ldd), INT64_MAX / 2, "matrix d"},
      {offsetof(attune_gemm_problem, n), INT64_MAX / 3, "larger than"},
  };
  for (size_t i = 0; i < AT_COUNT(sizes); i++) {
    attune_gemm_problem p = problem_of(4, 3, 5);
    p.batch = 2;
    memcpy((char *)&p + sizes[i].field, &sizes[i].value, sizeof sizes[i].value);
    attune_gemm_operands o = operands_of();
    o.beta = 1.0;
    o.c = c;
    attune_plan *plan = NULL;
    char text[256];
    REFUSED(attune_gemm(tuner, stream, &p, &o), sizes[i].words);
    REFUSED(attune_gemm_plan_create(&plan, tuner, stream, &p, &o), sizes[i].words);
    REFUSED(attune_gemm_problem_format(text, sizeof text, &p, &o), sizes[i].words);
  }
  still_works();
}

TEST(bad_enums) {
  static const int values[] = {-1, 3, 5, 99, INT32_MIN, INT32_MAX};
  const attune_gemm_operands o = operands_of();
  for (size_t i = 0; i < AT_COUNT(values); i++) {
    attune_gemm_problem p = problem_of(2, 2, 2);
    p.layout = (attune_layout)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.layout");
    p = problem_of(2, 2, 2);
    p.trans_a = (attune_transpose)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.trans_a");
    p = problem_of(2, 2, 2);
    p.trans_b = (attune_transpose)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.trans_b");
    if (values[i] == 3) continue; /* a dtype */
    p = problem_of(2, 2, 2);
    p.dtype = (attune_dtype)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype");
    p = problem_of(2, 2, 2);
    p.dtype_out = (attune_dtype)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype_out");
    p = problem_of(2, 2, 2);
    p.contract.accuracy = (attune_accuracy)values[i];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.contract.accuracy");
  }
  attune_gemm_problem p = problem_of(2, 2, 2);
  p.dtype = (attune_dtype)0;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype");
  for (int dtype = ATTUNE_I32; dtype <= (int)ATTUNE_F8E5M2; dtype++) {
    p.dtype = (attune_dtype)dtype;
    if (dtype != ATTUNE_I8 && dtype < ATTUNE_F8E4M3) REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype");
    p.dtype = ATTUNE_F32;
    p.dtype_out = (attune_dtype)dtype;
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype_out");
    p.dtype_out = (attune_dtype)0;
  }
  static const attune_dtype mixed[][2] = {
      {ATTUNE_F64, ATTUNE_F32},  {ATTUNE_F32, ATTUNE_F64}, {ATTUNE_F32, ATTUNE_F16}, {ATTUNE_F16, ATTUNE_BF16},
      {ATTUNE_BF16, ATTUNE_F64}, {ATTUNE_F32, ATTUNE_C64}, {ATTUNE_C64, ATTUNE_F32}, {ATTUNE_C64, ATTUNE_C128}};
  for (size_t i = 0; i < AT_COUNT(mixed); i++) {
    p = problem_of(2, 2, 2);
    p.dtype = mixed[i][0];
    p.dtype_out = mixed[i][1];
    REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.dtype_out");
  }
  still_works();
}

/* A problem written as C programs do it, where what is not named is 0, asks for one product. */
TEST(zero_batch_is_one) {
  static _Alignas(128) const float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8};
  static _Alignas(128) float z[4];
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2}, back = {0};
  const attune_gemm_operands o = {.alpha = 1.0, .a = x, .b = y, .d = z};
  attune_plan *plan = NULL;
  char text[ATTUNE_PROBLEM_CHARS];
  OK(attune_gemm(tuner, stream, &p, &o));
  assert_true(z[0] == 23.0f && z[1] == 34.0f && z[2] == 31.0f && z[3] == 46.0f);
  memset(z, 0, sizeof z);
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  OK(attune_gemm_plan_run(plan, stream, &o));
  attune_plan_destroy(plan);
  assert_true(z[0] == 23.0f && z[3] == 46.0f);
  OK(attune_gemm_problem_format(text, sizeof text, &p, &o));
  assert_string_equal(text, "gemm f32 nn 2x2x2 strict");
  OK(attune_gemm_problem_parse(&back, "gemm f32 nn 2x2x2x0 strict"));
  assert_int_equal(back.batch, 1);
  p.batch = ATTUNE_EMPTY_BATCH;
  REFUSED(attune_gemm_problem_format(text, sizeof text, &p, NULL), "batch");
  REFUSED(attune_gemm_plan_create(&plan, tuner, stream, &p, &o), "1 or more");
  p.batch = -2;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "problem.batch is -2");
}

/* A problem with a batch of 0 and with one of 1 is one problem: found by the same key. */
TEST(zero_batch_has_the_key_of_one) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 5, .n = 3, .k = 2, .stride_a = 100, .stride_d = 1};
  const at_gemm_use use = {.c = AT_C_NONE, .alignment = AT_ALIGNMENT};
  at_gemm zero, one;
  bool swap = false;
  OK(at_gemm_normalise(&p, use, &zero, &swap));
  p.batch = 1;
  OK(at_gemm_normalise(&p, use, &one, &swap));
  assert_memory_equal(&zero, &one, sizeof one);
}

static void explained(attune_tuner *with, const char *problem, attune_decision *out) {
  OK(attune_explain(with, device, problem, out));
}

/* Tiny products of which nothing is known run attune's own loops, also as 20,000 of a batch, where the CPU has the
 * kernels that the rule was measured with. Mode off, larger ones and those with C run the vendor's; so does a
 * search's first candidate. */
TEST(tiny_and_untuned) {
  enum { MANY = 1000 };
  static float x[36 * MANY] __attribute__((aligned(128))), y[36 * MANY] __attribute__((aligned(128))),
      z[36 * MANY] __attribute__((aligned(128)));
  static const char *const tiny[] = {"gemm f32 nn 6x6x6x20000 strict", "gemm f64 tt 2x8x16 strict",
                                     "gemm f32 nt 8x2x1x3 strict deterministic", "gemm f32 nn 4x4x4 strict align=4"};
  static const char *const others[] = {"gemm f32 nn 1x6x6 strict", "gemm f32 nn 9x6x6 strict",
                                       "gemm f32 nn 6x6x17 strict", "gemm f32 nn 6x6x6 strict beta",
                                       "gemm bf16 nn 6x6x6 strict"};
  attune_device_properties properties = {0};
  attune_tuner *off = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_decision decision, vendor;
  OK(attune_device_get_properties(device, &properties));
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  OK(attune_tuner_create(&off, &options));
  const bool holds = strstr(properties.features, "avx2") && strstr(properties.features, "fma");
  for (size_t i = 0; i < AT_COUNT(tiny); i++) {
    explained(off, tiny[i], &vendor);
    assert_int_equal(vendor.source, ATTUNE_SOURCE_DEFAULT);
    explained(tuner, tiny[i], &decision);
    assert_string_equal(decision.implementation, holds ? "host_small" : vendor.implementation);
    assert_int_equal(decision.source, holds ? ATTUNE_SOURCE_NEIGHBOUR : ATTUNE_SOURCE_DEFAULT);
  }
  for (size_t i = 0; i < AT_COUNT(others); i++) {
    explained(off, others[i], &vendor);
    explained(tuner, others[i], &decision);
    assert_string_equal(decision.implementation, vendor.implementation);
    assert_string_equal(decision.configuration, vendor.configuration);
    assert_int_equal(decision.source, ATTUNE_SOURCE_DEFAULT);
  }
  attune_tuner_destroy(off);
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 6, .n = 6, .k = 6, .batch = MANY};
  const attune_gemm_operands o = {.alpha = 2.0, .a = x, .b = y, .d = z};
  for (int i = 0; i < 36 * MANY; i++) x[i] = (float)(i % 11), y[i] = (float)(i % 13);
  OK(attune_gemm(tuner, stream, &p, &o));
  for (int at = 0; at < 36 * MANY; at++) {
    const int from = at / 36 * 36, i = at % 6, j = at % 36 / 6;
    float sum = 0.0f;
    for (int k = 0; k < 6; k++) sum += x[from + i + 6 * k] * y[from + k + 6 * j];
    assert_true(z[at] == 2.0f * sum);
  }
}

/* Sizes of nothing are checked too, and touch nothing, not even NULL. */
TEST(nothing_to_do) {
  const attune_gemm_operands none = {.alpha = 1.0, .beta = 1.0};
  for (int which = 0; which < 3; which++) {
    attune_gemm_problem p = problem_of(which == 0 ? 0 : 4, which == 1 ? 0 : 3, 5);
    if (which == 2) p.batch = ATTUNE_EMPTY_BATCH;
    OK(attune_gemm(tuner, stream, &p, &none));
    p.k = -1;
    REFUSED(attune_gemm(tuner, stream, &p, &none), "problem.k");
    p.k = 5;
    p.dtype = (attune_dtype)9;
    REFUSED(attune_gemm(tuner, stream, &p, &none), "problem.dtype");
  }
  attune_plan *plan = NULL;
  attune_gemm_operands o = operands_of();
  attune_gemm_problem p = problem_of(4, 3, 0);
  REFUSED(attune_gemm_plan_create(&plan, tuner, stream, &p, &o), "1 or more");
  p.k = 2;
  o.alpha = 0.0;
  REFUSED(attune_gemm_plan_create(&plan, tuner, stream, &p, &o), "alpha");
  still_works();
}

TEST(in_place_needs_one_shape) {
  attune_gemm_problem p = problem_of(4, 3, 2);
  attune_gemm_operands o = operands_of();
  o.beta = 1.0;
  o.c = d;
  OK(attune_gemm(tuner, stream, &p, &o));
  p.ldd = 6;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "ldc differs from ldd");
  p.ldc = 6;
  OK(attune_gemm(tuner, stream, &p, &o));
  p.batch = 2;
  p.stride_d = 30;
  REFUSED(attune_gemm(tuner, stream, &p, &o), "stride_c differs from stride_d");
  still_works();
}

/* The same product asked in both layouts has the same bits: D row-major is its transpose column-major. */
TEST(row_major_is_column_major_turned) {
  float x[5 * 7], y[7 * 3], row[5 * 3], column[3 * 5];
  for (int i = 0; i < 35; i++) x[i] = (float)(i * 7 % 11) * 0.37f - 1.0f;
  for (int i = 0; i < 21; i++) y[i] = (float)(i * 5 % 13) * 0.21f - 1.0f;
  attune_gemm_problem p = problem_of(5, 3, 7), q = problem_of(3, 5, 7);
  p.layout = ATTUNE_ROW_MAJOR;
  attune_gemm_operands o = {.alpha = -1.5, .a = x, .b = y, .d = row}, r = {.alpha = -1.5, .a = y, .b = x, .d = column};
  OK(attune_gemm(tuner, stream, &p, &o));
  OK(attune_gemm(tuner, stream, &q, &r));
  assert_memory_equal(row, column, sizeof row);
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 3; j++) {
      double sum = 0.0;
      for (int k = 0; k < 7; k++) sum += (double)x[i * 7 + k] * (double)y[k * 3 + j];
      assert_true(fabs((double)row[i * 3 + j] + 1.5 * sum) < 1e-5);
    }
}

TEST(plan_runs_cases) {
  for (int index = 0; index < at_gemm_case_count(); index += 5) {
    at_gemm_case one;
    at_gemm_case_at(index, &one);
    const attune_gemm_problem *p = &one.problem;
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch < 0 || (one.alpha == 0.0 && one.alpha_imag == 0.0)) continue;
    if (one.beta == 0.0 && one.beta_imag == 0.0) one.c = AT_C_NONE;
    oracle o;
    oracle_open(&o, &one);
    const attune_gemm_operands operands = oracle_operands(&o);
    attune_plan *plan = NULL;
    OK(attune_gemm_plan_create(&plan, tuner, stream, p, &operands));
    for (int again = 0; again < 2; again++) {
      oracle_reset(&o);
      OK(attune_gemm_plan_run(plan, stream, &operands));
      oracle_check(&o, "attune_gemm_plan_run");
    }
    attune_plan_destroy(plan);
    oracle_close(&o);
  }
}

static double complex complex_of(double re, double im) {
  return re + im * I;
}

/* Calls from one place whose scalars' parts come and go, by the call and by a plan. */
TEST(complex_scalars_change) {
  enum { M = 3, N = 2, K = 4 };
  static const double scalars[][4] = {{1, 0, 0, 0}, {1, 0, 0, 2},  {1, 0, 0, 0},     {0, 1, 0, 0},
                                      {0, 0, 0, 0}, {0, -2, 3, 0}, {0, 0, 0, 1},     {2, -1, 1, -1},
                                      {1, 0, 1, 0}, {0, 0, 2, 0},  {1e-320, 0, 0, 0}};
  double complex za[M * K], zb[K * N], zc[M * N], zd[M * N];
  for (int i = 0; i < M * K; i++) za[i] = complex_of(i % 5 - 2.0, i % 3 - 1.0);
  for (int i = 0; i < K * N; i++) zb[i] = complex_of(i % 4 - 1.0, 2.0 - i % 7);
  for (int i = 0; i < M * N; i++) zc[i] = complex_of(i, 1.0 - i);
  attune_gemm_problem p = {.dtype = ATTUNE_C128, .m = M, .n = N, .k = K, .trans_b = ATTUNE_C};
  attune_gemm_operands o = {.a = za, .b = zb, .c = zc, .d = zd};
  attune_plan *plan = NULL;
  for (size_t round = 0; round < 3 * AT_COUNT(scalars); round++) {
    const double *s = scalars[round % AT_COUNT(scalars)];
    o.alpha = s[0], o.alpha_imag = s[1], o.beta = s[2], o.beta_imag = s[3];
    for (int by_plan = 0; by_plan < 2; by_plan++) {
      for (int i = 0; i < M * N; i++) zd[i] = NAN;
      if (by_plan && (s[2] != 0.0 || s[3] != 0.0)) { /* the plan was made without C */
        if (plan)
          REFUSED(attune_gemm_plan_run(plan, stream, &o), s[2] != 0.0 ? "operands.beta is" : "operands.beta_imag is");
        continue;
      }
      if (by_plan && !plan) {
        if (s[0] == 0.0 && s[1] == 0.0) continue;
        OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
      }
      OK(by_plan ? attune_gemm_plan_run(plan, stream, &o) : attune_gemm(tuner, stream, &p, &o));
      OK(attune_stream_synchronize(stream));
      for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
          double complex sum = 0.0;
          for (int k = 0; k < K; k++) sum += za[i + k * M] * conj(zb[j + k * N]);
          const double complex right = complex_of(s[0], s[1]) * sum + complex_of(s[2], s[3]) * zc[i + j * M];
          assert_true(cabs(zd[i + j * M] - right) < 1e-12);
        }
    }
  }
  attune_plan_destroy(plan);
}

TEST(plan_refuses_other_operands) {
  const attune_gemm_problem p = problem_of(2, 2, 2);
  attune_gemm_operands o = operands_of(), with_c = operands_of(), in_place = operands_of();
  with_c.beta = in_place.beta = 0.5;
  with_c.c = c;
  in_place.c = d;
  attune_plan *plain = NULL, *adding = NULL, *updating = NULL;
  OK(attune_gemm_plan_create(&plain, tuner, stream, &p, &o));
  OK(attune_gemm_plan_create(&adding, tuner, stream, &p, &with_c));
  OK(attune_gemm_plan_create(&updating, tuner, stream, &p, &in_place));
  REFUSED(attune_gemm_plan_run(plain, stream, &with_c), "operands.beta");
  REFUSED(attune_gemm_plan_run(adding, stream, &in_place), "operands.c and operands.d");
  REFUSED(attune_gemm_plan_run(updating, stream, &with_c), "operands.c and operands.d");
  const attune_gemm_operands good = o;
  o.a = (const char *)a + 4; /* the plan was made for 16 bytes */
  REFUSED(attune_gemm_plan_run(plain, stream, &o), "operands.a is aligned to 4 bytes; should be aligned to ");
  o = good;
  o.d = (char *)d + 8;
  REFUSED(attune_gemm_plan_run(plain, stream, &o), "operands.d is aligned to 8 bytes; should be aligned to ");
  o = good;
  o.b = NULL;
  REFUSED(attune_gemm_plan_run(plain, stream, &o), "operands.b is NULL");
  with_c.c = NULL;
  REFUSED(attune_gemm_plan_run(adding, stream, &with_c), "operands.c");
  OK(attune_gemm_plan_run(plain, stream, &good));
  with_c.c = c;
  OK(attune_gemm_plan_run(adding, stream, &with_c));
  OK(attune_gemm_plan_run(updating, stream, &in_place));
  with_c.a = (const char *)a + 4; /* a plan made with less alignment takes better */
  attune_plan *loose = NULL;
  OK(attune_gemm_plan_create(&loose, tuner, stream, &p, &with_c));
  with_c.a = a;
  OK(attune_gemm_plan_run(loose, stream, &with_c));
  attune_plan_destroy(loose);
  attune_plan_destroy(plain);
  attune_plan_destroy(adding);
  attune_plan_destroy(updating);
  still_works();
}

/* A scalar of 0 at run time keeps BLAS semantics in a plan made with others. */
TEST(plan_with_zero_scalars) {
  _Alignas(16) float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, z[4] = {1, 1, 1, 1}, out[4];
  _Alignas(16) const float nans[4] = {NAN, NAN, NAN, NAN};
  const attune_gemm_problem p = problem_of(2, 2, 2);
  attune_gemm_operands o = {.alpha = 1.0, .a = x, .b = y, .beta = 2.0, .c = z, .d = out};
  attune_plan *plan = NULL;
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  OK(attune_gemm_plan_run(plan, stream, &o));
  assert_true(out[0] == 25.0f && out[3] == 48.0f);
  o.beta = 0.0;
  o.c = nans;
  OK(attune_gemm_plan_run(plan, stream, &o));
  assert_true(out[0] == 23.0f && out[3] == 46.0f);
  o.beta = 2.0;
  o.c = z;
  o.alpha = 0.0;
  o.a = o.b = nans;
  OK(attune_gemm_plan_run(plan, stream, &o));
  assert_true(out[0] == 2.0f && out[3] == 2.0f);
  /* Operands that are not read may be NULL or misaligned, as in attune_gemm; D and C may not. */
  const void *const unread[] = {NULL, (const char *)x + 1, out};
  for (size_t i = 0; i < sizeof unread / sizeof unread[0]; i++) {
    o.a = o.b = unread[i];
    z[0] = z[3] = (float)i + 3.0f;
    OK(attune_gemm(tuner, stream, &p, &o));
    assert_true(out[0] == 2 * z[0] && out[3] == 2 * z[3]);
    out[0] = out[3] = 0.0f;
    OK(attune_gemm_plan_run(plan, stream, &o));
    assert_true(out[0] == 2 * z[0] && out[3] == 2 * z[3]);
  }
  o.a = o.b = NULL;
  o.d = NULL;
  REFUSED(attune_gemm_plan_run(plan, stream, &o), "operands.d is NULL");
  o.d = out;
  o.c = NULL;
  REFUSED(attune_gemm_plan_run(plan, stream, &o), "operands.c");
  o.c = z;
  o.alpha = 1.0;
  REFUSED(attune_gemm_plan_run(plan, stream, &o), "operands.a is NULL");
  attune_plan_destroy(plan);
}

/* A scalar that is 0 in the accumulation type counts as 0: A and B, or C, are not read. In f64 it is not 0. */
TEST(scalars_that_become_zero) {
  static _Alignas(16) const float bad[4] = {NAN, NAN, NAN, NAN};
  _Alignas(16) float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, z[4] = {1, 1, 1, 1};
  const attune_gemm_problem p = problem_of(2, 2, 2);
  attune_gemm_operands o = {.alpha = 1e-310, .a = bad, .b = bad, .beta = 1.0, .c = z, .d = z};
  attune_plan *plan = NULL;
  for (int again = 0; again < 3; again++) {
    OK(attune_gemm(tuner, stream, &p, &o));
    for (int i = 0; i < 4; i++) assert_true(z[i] == 1.0f);
  }
  o = (attune_gemm_operands){.alpha = 1.0, .a = x, .b = y, .beta = 1.0, .c = z, .d = z};
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  o = (attune_gemm_operands){.alpha = -1e-310, .a = bad, .b = bad, .beta = 1.0, .c = z, .d = z};
  OK(attune_gemm_plan_run(plan, stream, &o));
  for (int i = 0; i < 4; i++) assert_true(z[i] == 1.0f);
  attune_plan_destroy(plan);
  for (int again = 0; again < 3; again++) {
    o = (attune_gemm_operands){.alpha = 1.0, .a = x, .b = y, .beta = 1e-310, .c = again ? bad : NULL, .d = z};
    OK(attune_gemm(tuner, stream, &p, &o));
    assert_true(z[0] == 23.0f && z[1] == 34.0f && z[2] == 31.0f && z[3] == 46.0f);
  }
  attune_gemm_problem wide = p;
  wide.dtype = ATTUNE_F64;
  a[0] = NAN;
  o = (attune_gemm_operands){.alpha = 1e-310, .a = a, .b = b, .beta = 0.0, .d = d};
  for (int i = 1; i < 4; i++) a[i] = 1.0;
  for (int i = 0; i < 4; i++) b[i] = 1.0;
  OK(attune_gemm(tuner, stream, &wide, &o));
  assert_true(isnan(d[0]));
  a[0] = 0.0;
}

TEST(explain) {
  attune_decision decision;
  REFUSED(attune_explain(NULL, device, "gemm f32 nn 8x8x8 strict", &decision), "tuner is NULL");
  REFUSED(attune_explain(tuner, NULL, "gemm f32 nn 8x8x8 strict", &decision), "device is NULL");
  REFUSED(attune_explain(tuner, device, NULL, &decision), "problem is NULL");
  REFUSED(attune_explain(tuner, device, "gemm f32 nn 8x8x8 strict", NULL), "out is NULL");
  REFUSED(attune_explain(tuner, device, "", &decision), "should be one of: gemm");
  REFUSED(attune_explain(tuner, device, "gemv f32 nn 8x8x8 strict", &decision), "should be one of: gemm");
  REFUSED(attune_explain(tuner, device, "gemm f32 nn 8x8 strict", &decision), "8x8");
  OK(attune_explain(tuner, device, "gemm f32 nn 32x24x16 strict", &decision));
  assert_string_equal(decision.problem, "gemm f32 nn 32x24x16 strict");
  assert_string_equal(decision.device, "host");
  assert_int_equal(decision.source, ATTUNE_SOURCE_DEFAULT);
  assert_true(decision.implementation[0] && decision.implementation_version > 0 && decision.note[0]);
  assert_string_equal(decision.implementation, decision.default_implementation);
  assert_true(decision.time_ns == 0.0 && decision.tuned_at == 0);
}

static int count_implementations(void *user, const char *implementation, int version, int configurations) {
  assert_true(implementation[0] && version > 0 && configurations > 0);
  return ++*(int *)user == 2;
}

static int never_called(void *user, const char *implementation, int version, int configurations) {
  (void)user, (void)implementation, (void)version, (void)configurations;
  fail();
  return 1;
}

TEST(implementations) {
  int count = 0;
  OK(attune_tuner_implementations(tuner, device, "gemm f32 nn 64x64x64 strict", count_implementations, &count));
  assert_int_equal(count, 2); /* the walk ends where it was told to */
  REFUSED(attune_tuner_implementations(tuner, device, "gemm f33 nn 64x64x64 strict", never_called, NULL), "f33");
  REFUSED(attune_tuner_implementations(tuner, device, "gemm f32 nn 64x64x64 strict", NULL, NULL), "fn is NULL");
}

TEST(tuner_options) {
  attune_tuner *other = (attune_tuner *)(uintptr_t)1;
  attune_tuner_options o = ATTUNE_TUNER_OPTIONS_INIT;
  o.database = "";
  REFUSED(attune_tuner_create(NULL, &o), "out is NULL");
  o.mode = (attune_mode)5;
  REFUSED(attune_tuner_create(&other, &o), "options.mode");
  assert_null(other);
  o.mode = ATTUNE_MODE_CACHED;
  o.budget_ms = -1.0;
  REFUSED(attune_tuner_create(&other, &o), "options.budget_ms");
  o.budget_ms = (double)NAN;
  REFUSED(attune_tuner_create(&other, &o), "options.budget_ms");
  o.budget_ms = 1.0;
  o.total_budget_ms = DBL_MAX;
  REFUSED(attune_tuner_create(&other, &o), "options.total_budget_ms");
  o.total_budget_ms = 0.0;
  o.measure = (attune_measure)77;
  REFUSED(attune_tuner_create(&other, &o), "options.measure");
  REFUSED(attune_tuner_set_mode(NULL, ATTUNE_MODE_OFF), "tuner is NULL");
  REFUSED(attune_tuner_set_mode(tuner, (attune_mode)0), "mode is 0");
  REFUSED(attune_tuner_database_status(NULL), "tuner is NULL");
  assert_int_equal(attune_tuner_get_mode(NULL), 0);
  assert_int_equal(attune_tuner_get_mode(tuner), ATTUNE_MODE_CACHED);
  OK(attune_tuner_database_status(tuner));
  attune_tuner_destroy(NULL);
  still_works();
}

int main(void) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
