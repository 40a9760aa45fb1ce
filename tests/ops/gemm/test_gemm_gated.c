/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_gated.c: gated products through attune.h: what is refused and how, the layout of served models' weights,
 * both sides, products of nothing, plans, products in pieces, texts. That each part computes what it should for all
 * types is the conformance tests' work. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>
#include <stdlib.h>

#include "ops/gemm/epilogue/gated.h"

enum { M = 26, N = 18, K = 7, MOST = 26, GUARD = 8, BEFORE = 0x7e };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static float a[M * K], b[K * N], bias[MOST], other[M * N], room[GUARD + M * N + GUARD], *const d = room + GUARD;

static attune_gemm_problem problem(void) {
  return (attune_gemm_problem){.dtype = ATTUNE_F32, .m = M, .n = N, .k = K, .gated = ATTUNE_GATED_M};
}
static attune_gemm_operands operands(void) {
  return (attune_gemm_operands){.alpha = 1.0, .a = a, .b = b, .d = d, .bias = bias, .residual = other};
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

TEST(refused) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.gated = 3;
  REFUSED("problem.gated is 3");
  p.m = 25;
  REFUSED("problem.m is 25, but problem.gated is m (1)");
  p.gated = ATTUNE_GATED_N, p.n = 17;
  REFUSED("problem.n is 17, but problem.gated is n (2)");
  o.beta = 1.0, o.c = other;
  REFUSED("operands.beta is not 0, but problem.gated is 1");
  p.epilogue.aux = ATTUNE_AUX_INPUT, o.aux = other;
  REFUSED("problem.epilogue.aux is not 0, but problem.gated is 1");
  p.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_A, o.bias_gradient = other;
  REFUSED("problem.epilogue.bias_gradient is not 0, but problem.gated is 1");
  p.dtype = ATTUNE_C64;
  REFUSED("problem.dtype is c64");
  p.dtype = ATTUNE_I8;
  REFUSED("problem.dtype is i8");
  p.ldd = M / 2 - 1;
  REFUSED("problem.ldd is 12; should be at least 13");
  p.epilogue.residual = 1, p.ld_residual = 12;
  REFUSED("problem.ld_residual is 12; should be at least 13");
  p.epilogue.bias = ATTUNE_BIAS_M, o.bias = NULL;
  REFUSED("operands.bias is NULL");
  p.epilogue.residual = 1, o.residual = d + M / 2 * N - 1;
  REFUSED("operands.residual overlaps operands.d");
  p.reserved[4] = 1;
  REFUSED("problem.reserved");
  o.b = d + M / 2 * N; /* behind D, which is half as large as the product */
  OK(run(&p, &o));
}

static double silu(double x) {
  return x / (1.0 + exp(-x));
}

/* Element (i, j) of the product with its bias, of a row- or column-major problem. */
static double z_at(const attune_gemm_problem *p, const attune_gemm_operands *o, int i, int j) {
  const float *x = o->a, *y = o->b;
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  double z = p->epilogue.bias == ATTUNE_BIAS_M   ? (double)bias[i]
             : p->epilogue.bias == ATTUNE_BIAS_N ? (double)bias[j]
                                                 : 0.0;
  for (int k = 0; k < p->k && o->alpha != 0.0; k++)
    z += o->alpha * (double)x[row == (p->trans_a != 0) ? i + k * M : i * K + k] *
         (double)y[row == (p->trans_b != 0) ? k + j * K : k * N + j];
  return z;
}

static void poison(void) {
  memset(room, BEFORE, sizeof room);
}

/* D, and that nothing but D was written. */
static void check(const attune_gemm_problem *p, const attune_gemm_operands *o) {
  const bool row = p->layout == ATTUNE_ROW_MAJOR, halves_m = p->gated == ATTUNE_GATED_M;
  const int rows = halves_m ? M / 2 : M, columns = halves_m ? N : N / 2, inner = row ? columns : rows;
  const int ld = p->ldd ? (int)p->ldd : inner, ld_residual = p->ld_residual ? (int)p->ld_residual : inner;
  static bool written[GUARD + M * N + GUARD];
  memset(written, 0, sizeof written);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      const int at = row ? i * ld + j : i + j * ld, more = row ? i * ld_residual + j : i + j * ld_residual;
      const double up = halves_m ? z_at(p, o, i + M / 2, j) : z_at(p, o, i, j + N / 2);
      double y = silu(z_at(p, o, i, j)) * up;
      if (p->epilogue.residual) y += (double)other[more];
      assert_true(fabs((double)d[at] - y) < 2e-5 * fmax(1.0, fabs(y)));
      written[GUARD + at] = true;
    }
  for (int i = 0; i < GUARD + M * N + GUARD; i++) {
    const unsigned char *bytes = (const unsigned char *)&room[i];
    for (int e = 0; e < 4 && !written[i]; e++) assert_int_equal(bytes[e], BEFORE);
  }
}

TEST(both_sides) {
  for (int way = 0; way < 64; way++) {
    attune_gemm_problem p = problem();
    attune_gemm_operands o = operands();
    p.layout = (attune_layout)(way & 1);
    p.gated = way & 2 ? ATTUNE_GATED_M : ATTUNE_GATED_N;
    p.trans_a = (attune_transpose)(way >> 2 & 1), p.trans_b = (attune_transpose)(way >> 3 & 1);
    p.epilogue = (attune_gemm_epilogue){.activation = ATTUNE_ACTIVATION_SILU, .bias = (uint8_t)(way % 3)};
    p.epilogue.residual = way >> 4 & 1;
    const int64_t inner = p.layout == ATTUNE_ROW_MAJOR ? (p.gated == ATTUNE_GATED_N ? N / 2 : N)
                                                       : (p.gated == ATTUNE_GATED_M ? M / 2 : M);
    if (way >> 5) p.ldd = inner + (inner < 15), p.ld_residual = inner;
    for (int turn = 0; turn < 3; turn++) { /* decided, remembered, guessed */
      poison();
      OK(run(&p, &o));
      check(&p, &o);
    }
  }
}

/* Without a product g and u are the bias. */
TEST(products_of_nothing) {
  for (int way = 0; way < 8; way++) {
    attune_gemm_problem p = problem();
    attune_gemm_operands o = operands();
    p.gated = way & 1 ? ATTUNE_GATED_M : ATTUNE_GATED_N, p.layout = (attune_layout)(way >> 1 & 1);
    p.epilogue = (attune_gemm_epilogue){.activation = ATTUNE_ACTIVATION_SILU, .bias = (uint8_t)(1 + way % 2)};
    p.epilogue.residual = 1;
    if (way >> 2)
      p.k = 0;
    else
      o.alpha = 0.0;
    o.a = o.b = NULL;
    poison();
    OK(run(&p, &o));
    check(&p, &o);
  }
}

TEST(plans) {
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  attune_plan *plan = NULL;
  p.layout = ATTUNE_ROW_MAJOR, p.trans_b = ATTUNE_T, p.gated = ATTUNE_GATED_N;
  p.epilogue = (attune_gemm_epilogue){.activation = ATTUNE_ACTIVATION_SILU, .bias = ATTUNE_BIAS_N};
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  for (int turn = 0; turn < 3; turn++) {
    o.alpha = turn == 1 ? 0.0 : 1.0 + turn;
    poison();
    OK(attune_gemm_plan_run(plan, stream, &o));
    check(&p, &o);
  }
  o.bias = d;
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT, "overlaps");
  attune_plan_destroy(plan);
}

/* On a stream of its own calls run behind each other, each with scratch memory. */
TEST(asynchronous) {
  attune_stream *own = NULL;
  attune_gemm_problem p = problem();
  attune_gemm_operands o = operands();
  p.epilogue.activation = ATTUNE_ACTIVATION_SILU;
  OK(attune_stream_create(&own, device));
  poison();
  for (int turn = 0; turn < 50; turn++) OK(attune_gemm(tuner, own, &p, &o));
  OK(attune_stream_synchronize(own));
  check(&p, &o);
  attune_stream_destroy(own);
}

/* Pieces cover D, begin at multiples of 64 and need no more memory than there is. */
TEST(splits) {
  static const int64_t sizes[][3] = {{4096, 1000, 1}, {22016, 77, 1}, {512, 64, 9}, {130, 5000, 3}, {2, 1, 70}};
  int pieces = 0, refused = 0;
  for (int way = 0; way < 40; way++) {
    const int64_t *size = sizes[way % 5];
    const bool rows = way / 5 % 2;
    at_gemm g = {.m = rows ? size[0] : size[1], .n = rows ? size[1] : size[0], .k = 64, .batch = size[2]};
    g.dtype = g.dtype_out = ATTUNE_BF16, g.alignment = 128, g.workspace_cap = 1 << 30;
    g.gated = rows ? ATTUNE_GATED_M : ATTUNE_GATED_N;
    g.lda = g.m, g.ldb = g.k, g.ldd = at_gemm_rows_d(&g);
    if (g.batch > 1) g.stride_a = g.m * g.k, g.stride_b = g.k * g.n, g.stride_d = g.ldd * at_gemm_cols_d(&g);
    const size_t memory = (size_t)30000 << way / 5;
    at_gated_split s;
    if (!at_gated_split_of(&s, &g, memory)) {
      refused++;
      continue;
    }
    assert_true(s.bytes <= memory && s.product.ldd >= s.product.m && s.product.gated == 0);
    const int64_t side = rows ? g.n : g.m, each = rows ? s.piece.n : s.piece.m;
    int64_t reached = 0;
    for (int64_t i = 0; i < s.count; i++) {
      const attune_gemm_operands none = {.d = (void *)(uintptr_t)(1 << 20)};
      const attune_gemm_operands o = at_gated_operands(&s, &g, &none, i);
      const int64_t elements = (int64_t)((uintptr_t)o.d - (1 << 20)) / 2, first = rows ? elements / g.ldd : elements;
      assert_true(first % 64 == 0 && first <= reached);
      reached = first + each;
    }
    assert_int_equal(reached, side);
    pieces += s.count > 1;
  }
  assert_true(pieces > 5 && refused > 0);
}

/* A product in pieces is as a whole one. */
TEST(in_pieces) {
  enum { TOKENS = 333, OUT = 256, IN = 48 };
  float *x = malloc(sizeof *x * TOKENS * IN), *w = malloc(sizeof *w * OUT * IN),
        *y = malloc(sizeof *y * TOKENS * OUT / 2);
  assert_true(x && w && y);
  for (int i = 0; i < TOKENS * IN; i++) x[i] = (float)((i * 37 + 11) % 41 - 20) / 20.0f;
  for (int i = 0; i < OUT * IN; i++) w[i] = (float)((i * 29 + 5) % 37 - 18) / 18.0f;
  for (int layout = 0; layout < 2; layout++) {
    attune_gemm_problem p = {.dtype = ATTUNE_F32, .k = IN, .contract = {.workspace_cap = 100000}};
    p.layout = (attune_layout)layout; /* the same memory: D (tokens x out), row-major */
    p.gated = layout ? ATTUNE_GATED_N : ATTUNE_GATED_M;
    p.m = layout ? TOKENS : OUT, p.n = layout ? OUT : TOKENS;
    p.trans_a = layout ? ATTUNE_N : ATTUNE_T, p.trans_b = layout ? ATTUNE_T : ATTUNE_N;
    p.epilogue.activation = ATTUNE_ACTIVATION_SILU;
    const attune_gemm_operands o = {.alpha = 1.0, .a = layout ? x : w, .b = layout ? w : x, .d = y};
    memset(y, 0xff, sizeof *y * TOKENS * OUT / 2);
    OK(run(&p, &o));
    for (int t = 0; t < TOKENS; t++)
      for (int j = 0; j < OUT / 2; j++) {
        double gate = 0.0, up = 0.0;
        for (int k = 0; k < IN; k++) {
          gate += (double)x[t * IN + k] * (double)w[j * IN + k];
          up += (double)x[t * IN + k] * (double)w[(j + OUT / 2) * IN + k];
        }
        assert_true(fabs((double)y[t * OUT / 2 + j] - silu(gate) * up) < 1e-3);
      }
  }
  free(x), free(w), free(y);
}

TEST(texts) {
  static const char *const good[] = {"gemm bf16 tn 4096x16x512 strict gated=m silu",
                                     "gemm f32 nn 8x6x4x3 strict gated=n bias=n gelu_tanh residual clamp",
                                     "gemm f16 nt 8x6x4 strict gated=m ldd=5 ld_residual=4 residual"};
  static const char *const bad[] = {"gemm f32 nn 7x8x8 strict gated=m silu",
                                    "gemm f32 nn 8x7x8 strict gated=n",
                                    "gemm f32 nn 8x8x8 strict gated=k",
                                    "gemm f32 nn 8x8x8 strict beta gated=m",
                                    "gemm f32 nn 8x8x8 strict gated=m gelu aux=input",
                                    "gemm c64 nn 8x8x8 strict gated=m",
                                    "gemm f32 nn 8x8x8 strict gated=m ldd=3"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    char out[ATTUNE_PROBLEM_CHARS], again[ATTUNE_PROBLEM_CHARS];
    attune_gemm_problem p = {0};
    OK(attune_gemm_problem_parse(&p, good[i]));
    OK(attune_gemm_problem_format(out, sizeof out, &p, NULL));
    assert_non_null(strstr(out, strstr(good[i], "gated=m") ? " gated=m" : " gated=n"));
    OK(attune_gemm_problem_parse(&p, out));
    OK(attune_gemm_problem_format(again, sizeof again, &p, NULL));
    assert_string_equal(out, again);
  }
  attune_gemm_problem p = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(attune_gemm_problem_parse(&p, bad[i]), ATTUNE_INVALID_ARGUMENT);
  char out[ATTUNE_PROBLEM_CHARS];
  p = (attune_gemm_problem){.dtype = ATTUNE_F32, .m = 16, .n = 64, .k = 8, .layout = ATTUNE_ROW_MAJOR};
  p.gated = ATTUNE_GATED_N, p.trans_b = ATTUNE_T, p.epilogue.bias = ATTUNE_BIAS_N;
  OK(attune_gemm_problem_format(out, sizeof out, &p, NULL));
  assert_string_equal(out, "gemm f32 tn 64x16x8 strict gated=m bias=m");
}

int main(void) {
  const attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  for (int i = 0; i < M * K; i++) a[i] = (float)((i * 37 + 11) % 41 - 20) / 20.0f;
  for (int i = 0; i < K * N; i++) b[i] = (float)((i * 29 + 5) % 37 - 18) / 18.0f;
  for (int i = 0; i < MOST; i++) bias[i] = (float)(i % 7 - 3) / 4.0f;
  for (int i = 0; i < M * N; i++) other[i] = (float)(i % 11 - 5) / 5.0f;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failures;
}
