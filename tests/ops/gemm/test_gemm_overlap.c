/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_overlap.c: a D that lies in what a product reads is refused by every call, and its memory is left alone;
 * one that lies beside it, in its gaps or in another matrix's place of an interleaved batch is taken. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include "ops/gemm/problem/overlap.h"

enum { FLOATS = 1 << 14 };

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;
static float memory[FLOATS] __attribute__((aligned(128)));
static uint64_t state = 1;

FIXTURE(open_tuner) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(host);
  return attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_tuner) {
  attune_tuner_destroy(tuner);
  return 0;
}

static int64_t draw(int64_t count) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)count);
}

/* ---- which elements are whose, one by one ---- */

static void mark(unsigned char *taken, unsigned char bit, size_t at, int64_t rows, int64_t cols, int64_t ld,
                 int64_t stride, int64_t batch) {
  for (int64_t b = 0; b < batch; b++)
    for (int64_t j = 0; j < cols; j++)
      for (int64_t i = 0; i < rows; i++) {
        const int64_t element = (int64_t)at + i + j * ld + b * stride;
        assert_true(element < FLOATS);
        taken[element] |= bit;
      }
}

/* Which of what is read D meets: 'a', 'b', 'c', 0 for none. */
static char meets(const at_gemm *g, size_t a, size_t b, size_t c, size_t d) {
  static unsigned char taken[FLOATS];
  memset(taken, 0, sizeof taken);
  mark(taken, 1, a, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
  mark(taken, 2, b, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch);
  if (g->c == AT_C_SEPARATE) mark(taken, 4, c, g->m, g->n, g->ldc, g->stride_c, g->batch);
  mark(taken, 8, d, g->m, g->n, g->ldd, g->stride_d, g->batch);
  unsigned both = 0;
  for (size_t i = 0; i < FLOATS; i++)
    if (taken[i] & 8) both |= taken[i];
  return both & 1 ? 'a' : both & 2 ? 'b' : both & 4 ? 'c' : 0;
}

static int64_t step_of(int64_t least) {
  return least + (draw(2) ? 0 : draw(3) ? draw(8) : draw(40));
}

static void draw_problem(attune_gemm_problem *p) {
  *p = (attune_gemm_problem){.dtype = ATTUNE_F32, .m = 1 + draw(9), .n = 1 + draw(9), .k = 1 + draw(9)};
  p->trans_a = (attune_transpose)draw(2);
  p->trans_b = (attune_transpose)draw(2);
  p->batch = draw(2) ? 1 : 1 + draw(6);
  p->lda = step_of(p->trans_a ? p->k : p->m);
  p->ldb = step_of(p->trans_b ? p->n : p->k);
  p->ldc = step_of(p->m);
  p->ldd = step_of(p->m);
  p->stride_a = draw(3) ? step_of(p->lda * (p->trans_a ? p->m : p->k)) : draw(4) ? 1 + draw(30) : ATTUNE_BROADCAST;
  p->stride_b = draw(3) ? step_of(p->ldb * (p->trans_b ? p->k : p->n)) : draw(4) ? 1 + draw(30) : ATTUNE_BROADCAST;
  p->stride_c = step_of(p->ldc * p->n);
  p->stride_d = step_of(p->ldd * p->n);
}

/* Random layouts that touch or interleave, calls of each kind: what they say is what a look at every element says. */
TEST(as_a_look_at_every_element) {
  int refused = 0, taken = 0, between = 0;
  for (int turn = 0; turn < 20000; turn++) {
    attune_gemm_problem p;
    draw_problem(&p);
    const int64_t room = draw(2) ? 60 : 600;
    const size_t at[4] = {(size_t)draw(room), (size_t)draw(room), (size_t)draw(room), (size_t)draw(room) + 30};
    const bool with_c = draw(3) == 0;
    const attune_gemm_operands o = {.alpha = 1.0,
                                    .beta = with_c ? 1.0 : 0.0,
                                    .a = memory + at[0],
                                    .b = memory + at[1],
                                    .c = memory + at[2],
                                    .d = memory + at[3]};
    if (o.d == o.a || o.d == o.b || o.d == o.c) continue;
    at_gemm g;
    bool swap = false;
    OK(at_gemm_normalise(&p, (at_gemm_use){.c = with_c ? AT_C_SEPARATE : AT_C_NONE, .alignment = 4}, &g, &swap));
    const char met = meets(&g, at[0], at[1], at[2], at[3]);
    const attune_status status = at_gemm_check_apart(&g, &o, true, false);
    if (status != (met ? ATTUNE_INVALID_ARGUMENT : ATTUNE_OK))
      fail_msg("turn %d: D meets %c, and the check says %s", turn, met ? met : '-', attune_last_message());
    if (met) {
      const char words[] = {'o', 'p', 'e', 'r', 'a', 'n', 'd', 's', '.', met, ':', 0};
      assert_non_null(strstr(attune_last_message(), words));
      refused++;
    }
    if (!met) taken++;
    if (!met && turn % 7 == 0) { /* the calls agree */
      OK(attune_gemm(tuner, stream, &p, &o));
      OK(attune_gemm(tuner, stream, &p, &o));
    }
    if (!met && at[3] > at[0] && at[3] < at[0] + (size_t)(g.lda * (at_gemm_cols_a(&g) - 1))) between++;
  }
  if (refused < 2000 || taken < 2000 || between < 100)
    fail_msg("%d refused, %d taken, %d between", refused, taken, between);
}

/* ---- the calls ---- */

static void refused(attune_status status, char operand, int line) {
  char words[64];
  snprintf(words, sizeof words, "operands.d overlaps operands.%c", operand);
  if (status != ATTUNE_INVALID_ARGUMENT || !strstr(attune_last_message(), words))
    fail_msg("line %d: %s: %s; should say \"%s\"", line, attune_status_string(status), attune_last_message(), words);
}
#define REFUSED(call, operand) refused((call), (operand), __LINE__)

static void fill(void) {
  for (int i = 0; i < FLOATS; i++) memory[i] = (float)(i % 7);
}

static void nothing_was_written(void) {
  for (int i = 0; i < FLOATS; i++) assert_true(memory[i] == (float)(i % 7));
}

/* Of a problem that ran before with operands apart, so that each goes the shortest way; row-major names the caller's
 * own. */
TEST(every_call_refuses) {
  for (int row = 0; row < 2; row++)
    for (int with_c = 0; with_c < 2; with_c++) {
      attune_gemm_problem p = {.dtype = ATTUNE_F32, .layout = (attune_layout)row, .m = 16, .n = 16, .k = 16};
      attune_gemm_operands o = {.alpha = 1.0,
                                .beta = with_c ? 1.0 : 0.0,
                                .a = memory,
                                .b = memory + 1024,
                                .c = memory + 2048,
                                .d = memory + 4096};
      attune_plan *plan = NULL;
      fill();
      for (int i = 0; i < 3; i++) OK(attune_gemm(tuner, stream, &p, &o));
      OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
      for (int i = 0; i < 3; i++) OK(attune_gemm_plan_run(plan, stream, &o));
      fill();
      const float *const reads[] = {o.a, o.b, o.c};
      for (int which = 0; which < 2 + with_c; which++)
        for (int by = -192; by <= 192; by += 64) {
          o.d = memory + (reads[which] - memory) + by;
          if (by == 0 || o.d < (void *)memory) continue;
          REFUSED(attune_gemm(tuner, stream, &p, &o), "abc"[which]);
          REFUSED(attune_gemm(tuner, stream, &p, &o), "abc"[which]);
          REFUSED(attune_gemm_plan_run(plan, stream, &o), "abc"[which]);
          nothing_was_written();
        }
      o.d = memory + 256; /* right behind A, and the call works */
      OK(attune_gemm(tuner, stream, &p, &o));
      OK(attune_gemm_plan_run(plan, stream, &o));
      attune_plan_destroy(plan);
    }
}

/* The call that finds no plan yet tunes nothing for operands that it refuses. */
TEST(a_first_call_refuses) {
  attune_tuner *own = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_decision decision;
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 33, .n = 16, .k = 16};
  const attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + 1024, .d = memory + 1028};
  options.database = "";
  options.mode = ATTUNE_MODE_TUNE;
  OK(attune_tuner_create(&own, &options));
  REFUSED(attune_gemm(own, stream, &p, &o), 'b');
  OK(attune_explain(own, host, "gemm f32 nn 33x16x16 strict", &decision));
  assert_true(decision.source != ATTUNE_SOURCE_TUNED && decision.source != ATTUNE_SOURCE_STORED);
  attune_tuner_destroy(own);
}

/* Only D = beta C is computed: A and B are not read and may lie anywhere. */
TEST(what_is_not_read_may_overlap) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 16, .n = 16, .k = 16};
  attune_gemm_operands o = {
      .alpha = 0.0, .beta = 2.0, .a = memory + 1, .b = memory + 2, .c = memory + 1024, .d = memory};
  OK(attune_gemm(tuner, stream, &p, &o));
  o.d = memory + 1024;
  OK(attune_gemm(tuner, stream, &p, &o)); /* in place */
  o.d = memory + 1040;
  REFUSED(attune_gemm(tuner, stream, &p, &o), 'c');
  o.alpha = 1.0;
  o.beta = 0.0; /* C is not read */
  OK(attune_gemm(tuner, stream, &p, &o));
}

/* D lies in the gaps of A, and one struct holds a product's A, B and D. */
TEST(interleaved_layouts_work) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4, .lda = 8, .ldd = 8};
  attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + 1024, .d = memory + 4};
  fill();
  for (int i = 0; i < 3; i++) OK(attune_gemm(tuner, stream, &p, &o));
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++) {
      float sum = 0.0f;
      for (int l = 0; l < 4; l++) sum += memory[i + 8 * l] * memory[1024 + l + 4 * j];
      assert_true(memory[4 + i + 8 * j] == sum);
    }
  p = (attune_gemm_problem){.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4, .batch = 50};
  p.stride_a = p.stride_b = p.stride_d = 48;
  o = (attune_gemm_operands){.alpha = 1.0, .a = memory, .b = memory + 16, .d = memory + 32};
  fill();
  for (int i = 0; i < 3; i++) OK(attune_gemm(tuner, stream, &p, &o));
  for (int b = 0; b < 50; b++) assert_true(memory[48 * b + 16] == (float)((48 * b + 16) % 7));
  o.d = memory + 31;
  REFUSED(attune_gemm(tuner, stream, &p, &o), 'b');
}

/* ---- what an epilogue has ---- */

enum { SIDE = 8, BETWEEN = 24 };

static attune_gemm_problem with_aux(bool gradient, bool mask) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = SIDE, .n = SIDE, .k = SIDE, .batch = 3};
  p.epilogue.activation = mask ? ATTUNE_ACTIVATION_RELU : ATTUNE_ACTIVATION_GELU;
  p.epilogue.aux = mask ? ATTUNE_AUX_RELU_MASK : ATTUNE_AUX_INPUT;
  p.epilogue.gradient = gradient;
  p.epilogue.residual = 1;
  p.lda = p.ldb = p.ldc = p.ldd = p.ld_residual = BETWEEN;
  p.ld_aux = mask ? BETWEEN * 32 : BETWEEN;
  return p;
}

/* aux lies in the gaps of each other matrix, and not a byte further; but nothing in those of a mask that is written. */
TEST(aux_in_gaps) {
  for (int kind = 0; kind < 4; kind++) {
    const attune_gemm_problem p = with_aux(kind & 1, kind & 2);
    attune_gemm_operands o = {.alpha = 1.0, .beta = 1.0};
    const void **const each[] = {(const void **)&o.d, &o.a, &o.b, &o.c, &o.residual};
    static const char *const names[] = {"d", "a", "b", "c", "residual"};
    for (int which = 0; which < (kind & 1 ? 1 : 5); which++) {
      for (int i = 0; i < 5; i++) *each[i] = memory + 1024 * (i + 1);
      char words[64];
      snprintf(words, sizeof words, "operands.aux overlaps operands.%s", names[which]);
      o.aux = memory + 1024 * (which + 1) + SIDE;
      if (kind != 2)
        OK(attune_gemm(tuner, stream, &p, &o));
      else
        FAILS_SAYING(attune_gemm(tuner, stream, &p, &o), ATTUNE_INVALID_ARGUMENT, words);
      o.aux = (char *)o.aux - (kind & 2 ? 1 : 4);
      FAILS_SAYING(attune_gemm(tuner, stream, &p, &o), ATTUNE_INVALID_ARGUMENT, words);
    }
  }
}

/* The last line of a mask ends with its last byte, though packed lines are longer. */
TEST(behind_a_mask) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = SIDE, .n = SIDE, .k = SIDE};
  attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + 64};
  char *const mask = (char *)(memory + 128);
  p.epilogue.activation = ATTUNE_ACTIVATION_RELU, p.epilogue.aux = ATTUNE_AUX_RELU_MASK;
  o.aux = mask;
  o.d = mask + 16 * (SIDE - 1) + 4;
  OK(attune_gemm(tuner, stream, &p, &o));
  o.aux = mask + 4;
  FAILS_SAYING(attune_gemm(tuner, stream, &p, &o), ATTUNE_INVALID_ARGUMENT, "operands.aux overlaps operands.d");
}

int main(void) {
  return RUN_TESTS(open_tuner, close_tuner);
}
