/* SPDX-License-Identifier: Apache-2.0
 * test_reference.c: the trusted result of verification: right for every dtype, and its tolerance neither too tight nor
 * too loose. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "tests/ops/gemm/gemm_oracle.h"

static attune_device *device;
static attune_stream *stream;

/* A problem as verification sees it: the scalars of problem.h. */
typedef struct fixture {
  oracle o;
  at_gemm g;
  void *reference;
  unsigned char *output; /* D's bytes, poisoned, with the oracle's results */
} fixture;

static at_gemm_case case_of(attune_dtype in, attune_dtype out, int m, int n, int k, int batch, at_gemm_c c,
                            attune_accuracy accuracy) {
  at_gemm_case result = {.name = "reference",
                         .problem = ATTUNE_GEMM_PROBLEM_INIT,
                         .alpha = 1.0,
                         .c = c,
                         .alignment = 16,
                         .data = AT_DATA_NORMAL,
                         .seed = 5};
  result.problem.dtype = in;
  result.problem.dtype_out = out;
  result.problem.m = m;
  result.problem.n = n;
  result.problem.k = k;
  result.problem.batch = batch;
  result.problem.contract.accuracy = accuracy;
  result.problem.ldd = m + 3;
  result.problem.ldc = c == AT_C_INPLACE ? m + 3 : 0;
  result.alpha = c == AT_C_NONE ? 1.0 : AT_GEMM_TEST_ALPHA;
  result.beta = c == AT_C_NONE ? 0.0 : AT_GEMM_TEST_BETA;
  return result;
}

static void setup(fixture *f, const at_gemm_case *c) {
  oracle_open(&f->o, c);
  bool swap = false;
  assert_int_equal(at_gemm_normalise(&c->problem, (at_gemm_use){.c = c->c, .alignment = 16}, &f->g, &swap), ATTUNE_OK);
  void *pointers[AT_MAX_BUFFERS] = {oracle_pointer(&f->o, ORACLE_A), oracle_pointer(&f->o, ORACLE_B),
                                    oracle_pointer(&f->o, ORACLE_D), oracle_pointer(&f->o, ORACLE_C)};
  if (at_gemm_reference_create(&f->reference, &f->g, device, stream, pointers) != ATTUNE_OK)
    fail_msg("%s", attune_last_message());
  f->output = oracle_pointer(&f->o, ORACLE_D);
}

static void teardown(fixture *f) {
  at_gemm_reference_destroy(f->reference);
  oracle_close(&f->o);
}

static size_t d_at(const fixture *f, int64_t b, int64_t i, int64_t j) {
  return oracle_at(&f->o.matrix[ORACLE_D], b, i, j);
}

static void put_expected(fixture *f) {
  const at_gemm *g = &f->g;
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++)
        oracle_store(f->output, (attune_dtype)g->dtype_out, d_at(f, b, i, j), f->o.expected[(b * g->n + j) * g->m + i]);
}

static double compare(fixture *f) {
  double error = -1.0;
  const double scalars[] = {f->o.c.alpha, f->o.c.beta};
  const at_outputs outputs = {.bytes[AT_GEMM_D] = f->output, .poison[AT_GEMM_D] = 0xFF};
  assert_int_equal(at_gemm_reference_compare(f->reference, scalars, &outputs, &error), ATTUNE_OK);
  return error;
}

static const struct {
  attune_dtype in, out;
} KINDS[] = {{ATTUNE_F64, ATTUNE_F64},   {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F16, ATTUNE_F16},
             {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

/* The rounded exact result of every dtype, shape, transpose and use of C passes, with an error of at most the final
 * rounding. */
TEST(the_exact_result_passes) {
  static const int shapes[][4] = {{1, 1, 1, 1}, {37, 29, 41, 1}, {5, 3, 300, 3}, {130, 7, 64, 2}};
  for (size_t kind = 0; kind < AT_COUNT(KINDS); kind++)
    for (size_t shape = 0; shape < AT_COUNT(shapes); shape++)
      for (int variant = 0; variant < 12; variant++) {
        at_gemm_case c = case_of(KINDS[kind].in, KINDS[kind].out, shapes[shape][0], shapes[shape][1], shapes[shape][2],
                                 shapes[shape][3], (at_gemm_c)(variant / 4), ATTUNE_STRICT);
        c.problem.trans_a = variant & 1 ? ATTUNE_T : ATTUNE_N;
        c.problem.trans_b = variant & 2 ? ATTUNE_T : ATTUNE_N;
        if (c.problem.batch > 1 && variant % 3 == 0) c.problem.stride_a = ATTUNE_BROADCAST;
        fixture f;
        setup(&f, &c);
        put_expected(&f);
        const double error = compare(&f);
        if (!(error <= 1.0))
          fail_msg("dtype %d:%d shape %zu variant %d: error %g", KINDS[kind].in, KINDS[kind].out, shape, variant,
                   error);
        teardown(&f);
      }
}

/* One element off by a multiple of its tolerance: three times fails, and the figure says three; no element is
 * overlooked. */
TEST(an_error_of_three_tolerances_fails) {
  for (size_t kind = 0; kind < AT_COUNT(KINDS); kind++) {
    const at_gemm_case c =
        case_of(KINDS[kind].in, KINDS[kind].out, 19, 11, 64, 2, (at_gemm_c)(kind % 3), ATTUNE_STRICT);
    fixture f;
    setup(&f, &c);
    for (int64_t b = 0; b < 2; b++)
      for (int64_t j = 0; j < 11; j++)
        for (int64_t i = 0; i < 19; i++) {
          if ((i + j * 19 + b * 209) % 13 && (i != 18 || j != 10)) continue; /* a sample, and the last of each matrix */
          put_expected(&f);
          const size_t at = (size_t)((b * 11 + j) * 19 + i);
          /* the library bounds |A||B| by norms: up to pi/2 of it on normal data, so allow for that and for the output's
           * rounding */
          oracle_store(f.output, KINDS[kind].out, d_at(&f, b, i, j), f.o.expected[at] + 3.0 * f.o.allowed[at] * 2.0);
          const double error = compare(&f);
          if (!(error > 1.0))
            fail_msg("dtype %d:%d: an error of 6 exact tolerances at (%d,%d,%d) passed as %g", KINDS[kind].in,
                     KINDS[kind].out, (int)i, (int)j, (int)b, error);
          if (!(error < 12.0))
            fail_msg("dtype %d:%d: an error of 6 exact tolerances is called %g", KINDS[kind].in, KINDS[kind].out,
                     error);
        }
    teardown(&f);
  }
}

/* The bound by norms against the exact sum of magnitudes: never below, and at most twice it on random data. */
TEST(the_tolerance_is_not_loose) {
  for (size_t kind = 0; kind < AT_COUNT(KINDS); kind++) {
    const at_gemm_case c = case_of(KINDS[kind].in, KINDS[kind].out, 16, 16, 256, 1, AT_C_NONE, ATTUNE_STRICT);
    fixture f;
    setup(&f, &c);
    for (int i = 0; i < 16; i++) {
      put_expected(&f);
      const size_t at = (size_t)(i * 16 + i);
      const double step = 64.0 * f.o.allowed[at]; /* far above the output's own rounding */
      oracle_store(f.output, KINDS[kind].out, d_at(&f, 0, i, i), f.o.expected[at] + step);
      const double moved = fabs(oracle_load(f.output, KINDS[kind].out, d_at(&f, 0, i, i)) - f.o.expected[at]),
                   error = compare(&f);
      const double allowed = moved / error;
      if (!(allowed > 0.95 * f.o.allowed[at] && allowed < 2.0 * f.o.allowed[at]))
        fail_msg("dtype %d:%d allows %g; the exact bound is %g", KINDS[kind].in, KINDS[kind].out, allowed,
                 f.o.allowed[at]);
    }
    teardown(&f);
  }
}

TEST(nan_and_unwritten_elements_fail) {
  const at_gemm_case c = case_of(ATTUNE_F32, ATTUNE_F32, 9, 7, 5, 2, AT_C_NONE, ATTUNE_STRICT);
  fixture f;
  setup(&f, &c);
  assert_true(isinf(compare(&f))); /* nothing was written */
  put_expected(&f);
  ((float *)(void *)f.output)[d_at(&f, 1, 8, 6)] = NAN;
  assert_true(isinf(compare(&f)));
  put_expected(&f);
  ((float *)(void *)f.output)[d_at(&f, 0, 0, 0)] = INFINITY;
  assert_true(isinf(compare(&f)));
  put_expected(&f);
  assert_true(compare(&f) <= 1.0);
  teardown(&f);
}

/* Each gap: between columns, between matrices; not poisoned for an in-place D, but as it was. */
TEST(a_write_into_a_gap_fails) {
  for (int use = 0; use < 3; use++) {
    at_gemm_case c = case_of(ATTUNE_F32, ATTUNE_F32, 9, 7, 5, 2, (at_gemm_c)use, ATTUNE_STRICT);
    c.problem.stride_d = 12 * 7 + 5;
    c.problem.stride_c = use == AT_C_INPLACE ? c.problem.stride_d : 0;
    fixture f;
    setup(&f, &c);
    const size_t gaps[] = {d_at(&f, 0, 9, 0), d_at(&f, 0, 11, 5), d_at(&f, 0, 9, 6), d_at(&f, 1, 0, 0) - 1,
                           d_at(&f, 1, 10, 3)};
    for (size_t i = 0; i < AT_COUNT(gaps); i++) {
      put_expected(&f);
      assert_true(compare(&f) <= 1.0);
      float *gap = &((float *)(void *)f.output)[gaps[i]], before = *gap;
      *gap = 0.0f;
      if (!isinf(compare(&f))) fail_msg("use of C %d: a write into gap %zu passed", use, i);
      memcpy(gap, &before, sizeof before);
    }
    teardown(&f);
  }
}

/* Keeps `bits` mantissa bits of an f32, rounded. */
static float rounded_to(float x, int bits) {
  int exponent = 0;
  const double fraction = frexp((double)x, &exponent);
  return (float)ldexp(nearbyint(ldexp(fraction, bits + 1)), exponent - bits - 1);
}

/* The product of inputs that were cut to fewer bits first: what tensor cores do with f32. */
static double error_with_bits(attune_accuracy accuracy, int bits, int depth) {
  const at_gemm_case c = case_of(ATTUNE_F32, ATTUNE_F32, 24, 24, depth, 1, AT_C_NONE, accuracy);
  fixture f;
  setup(&f, &c);
  const float *a = oracle_pointer(&f.o, ORACLE_A), *b = oracle_pointer(&f.o, ORACLE_B);
  for (int j = 0; j < 24; j++)
    for (int i = 0; i < 24; i++) {
      float sum = 0.0f;
      for (int k = 0; k < depth; k++)
        sum = fmaf(rounded_to(a[i + k * 24], bits), rounded_to(b[k + j * depth], bits), sum);
      ((float *)(void *)f.output)[d_at(&f, 0, i, j)] = sum;
    }
  const double error = compare(&f);
  teardown(&f);
  return error;
}

TEST(arithmetic_of_each_contract) {
  const int f32 = 23, tf32 = 10, bf16 = 7;
  assert_true(error_with_bits(ATTUNE_STRICT, f32, 96) <= 0.5);
  assert_true(error_with_bits(ATTUNE_EQUIVALENT, f32, 96) <= 0.5);
  assert_true(error_with_bits(ATTUNE_STRICT, tf32, 96) > 3.0);
  assert_true(error_with_bits(ATTUNE_EQUIVALENT, tf32, 96) > 3.0);
  assert_true(error_with_bits(ATTUNE_STRICT, bf16, 96) > 20.0);
  assert_true(error_with_bits(ATTUNE_REDUCED, tf32, 96) <= 1.0);
  assert_true(error_with_bits(ATTUNE_REDUCED, bf16, 1) > 1.0); /* in long sums its errors cancel */
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  return RUN_TESTS(NULL, NULL);
}
