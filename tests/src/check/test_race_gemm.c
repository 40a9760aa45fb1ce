/* SPDX-License-Identifier: Apache-2.0
 * test_race_gemm.c: the race check on every operand of products: those of an epilogue, of a scaling, and the matrices
 * that arrays of pointers name. */
#include "tests/support/check.h"

#include <attune/attune.h>

static attune_device *host;
static attune_stream *a, *b;
static attune_tuner *tuner;
static float memory[16][256]; /* an operand each, with room behind it */

static struct {
  int count;
  char call[64], operand[64], access[64];
} heard;

static void hear(void *user, const attune_race *race) {
  (void)user;
  heard.count++;
  snprintf(heard.call, sizeof heard.call, "%s", race->first.call);
  snprintf(heard.operand, sizeof heard.operand, "%s", race->first.operand);
  snprintf(heard.access, sizeof heard.access, "%s", race->first.access);
}

static int races(void) {
  const int count = heard.count;
  heard.count = 0;
  return count;
}

FIXTURE(begin) {
  memset(&heard, 0, sizeof heard);
  memset(memory, 0, sizeof memory);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  if (attune_stream_create(&a, host) != ATTUNE_OK || attune_stream_create(&b, host) != ATTUNE_OK) return -1;
  return attune_set_race_check(1, hear, NULL) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(end) {
  attune_stream_destroy(a);
  attune_stream_destroy(b);
  return attune_set_race_check(0, NULL, NULL) == ATTUNE_OK ? 0 : -1;
}

/* Stream b uses one byte that the call on stream a may have used as `operand`; NULL: it has not. */
static void expect_byte(const void *at, attune_access access, const char *operand, bool written) {
  const attune_use use = {"byte", at, 1, access};
  OK(attune_note_use(b, "the program's kernel", &use, 1));
  const int count = races();
  if (count != (operand != NULL)) fail_msg("%d races on %s", count, operand ? operand : "what is not used");
  if (operand) assert_string_equal(heard.operand, operand);
  if (operand) assert_string_equal(heard.access, written ? "writes" : "reads");
  OK(attune_note_wait(NULL, b)); /* the next one is not about this one */
}

/* The first byte of `bytes`, the last one, and the one behind. */
static void expect(const char *operand, const void *data, size_t bytes, bool written) {
  const char *at = data;
  const attune_access access = written ? ATTUNE_READS : ATTUNE_WRITES;
  if (!written) expect_byte(at, ATTUNE_READS, NULL, false);
  expect_byte(at, access, operand, written);
  expect_byte(at + bytes - 1, access, operand, written);
  expect_byte(at + bytes, ATTUNE_WRITES, NULL, false);
}

static void finish(void) {
  OK(attune_stream_synchronize(a));
  OK(attune_note_wait(NULL, b));
}

enum { A, B, C, D, BIAS, RESIDUAL, AUX, SUMS, SCALE_A, SCALE_B, SCALE_D, AMAX, ZERO_A, ZERO_B };

static attune_gemm_operands operands(void) {
  return (attune_gemm_operands){.alpha = 1.0,
                                .a = memory[A],
                                .b = memory[B],
                                .c = memory[C],
                                .d = memory[D],
                                .bias = memory[BIAS],
                                .residual = memory[RESIDUAL],
                                .aux = memory[AUX],
                                .bias_gradient = memory[SUMS],
                                .scale_a = memory[SCALE_A],
                                .scale_b = memory[SCALE_B],
                                .scale_d = memory[SCALE_D],
                                .amax_d = memory[AMAX],
                                .zero_a = (const int8_t *)memory[ZERO_A],
                                .zero_b = (const int8_t *)memory[ZERO_B]};
}

/* By the call, and by a plan. */
static void run(const attune_gemm_problem *p, const attune_gemm_operands *o, bool by_plan) {
  attune_plan *plan = NULL;
  if (!by_plan) {
    OK(attune_gemm(tuner, a, p, o));
    return;
  }
  OK(attune_gemm_plan_create(&plan, tuner, a, p, o));
  OK(attune_gemm_plan_run(plan, a, o));
  attune_plan_destroy(plan);
}

/* D and the residual are 4 x 3. */
TEST_WITH(test_epilogue, begin, end) {
  for (int i = 0; i < 4; i++) {
    const attune_gemm_problem p = {.dtype = ATTUNE_F32,
                                   .layout = i & 1 ? ATTUNE_ROW_MAJOR : ATTUNE_COLUMN_MAJOR,
                                   .m = 4,
                                   .n = 3,
                                   .k = 2,
                                   .epilogue = {.bias = ATTUNE_BIAS_M, .residual = 1},
                                   .scaling = {.scale_d = 1}};
    const attune_gemm_operands o = operands();
    run(&p, &o, i >= 2);
    expect("d", o.d, 48, true);
    expect("a", o.a, 32, false);
    expect("b", o.b, 24, false);
    expect("bias", o.bias, 16, false);
    expect("residual", o.residual, 48, false);
    expect("scale_d", o.scale_d, 4, false);
    finish();
  }
}

/* z in columns of 4, 6 apart; read by the gradient, else written. */
TEST_WITH(test_aux_input, begin, end) {
  for (int gradient = 0; gradient < 2; gradient++) {
    const attune_gemm_problem p = {
        .dtype = ATTUNE_F32,
        .m = 4,
        .n = 3,
        .k = 2,
        .epilogue = {.activation = ATTUNE_ACTIVATION_GELU, .aux = ATTUNE_AUX_INPUT, .gradient = (uint8_t)gradient},
        .ld_aux = 6};
    const attune_gemm_operands o = operands();
    run(&p, &o, gradient);
    expect("aux", memory[AUX], 16, !gradient);
    expect("aux", memory[AUX] + 12, 16, !gradient);
    expect_byte(memory[AUX] + 5, ATTUNE_WRITES, NULL, false);
    finish();
  }
}

TEST_WITH(test_mask, begin, end) {
  for (int gradient = 0; gradient < 2; gradient++) {
    const attune_gemm_problem p = {
        .dtype = ATTUNE_F32,
        .m = 20,
        .n = 2,
        .k = 1,
        .epilogue = {.activation = ATTUNE_ACTIVATION_RELU, .aux = ATTUNE_AUX_RELU_MASK, .gradient = (uint8_t)gradient},
        .ld_aux = 24};
    const attune_gemm_operands o = operands();
    run(&p, &o, gradient);
    expect("aux", memory[AUX], 6, !gradient);
    finish();
  }
}

/* Of the caller's A, whatever the layout; alpha = 0 reads A, but not B. */
TEST_WITH(test_bias_gradient, begin, end) {
  for (int i = 0; i < 4; i++) {
    const attune_gemm_problem p = {.dtype = ATTUNE_F32,
                                   .layout = i & 1 ? ATTUNE_ROW_MAJOR : ATTUNE_COLUMN_MAJOR,
                                   .m = 4,
                                   .n = 3,
                                   .k = 2,
                                   .epilogue = {.bias_gradient = ATTUNE_BIAS_GRADIENT_A}};
    attune_gemm_operands o = operands();
    o.alpha = i < 2;
    OK(attune_gemm(tuner, a, &p, &o));
    expect("bias_gradient", o.bias_gradient, 16, true);
    expect("a", o.a, 32, false);
    expect_byte(o.b, ATTUNE_WRITES, i < 2 ? "b" : NULL, false);
    finish();
  }
}

/* For a D of 8 bits C is bf16. */
TEST_WITH(test_scales, begin, end) {
  for (int i = 0; i < 4; i++) {
    const attune_gemm_problem p = {
        .dtype = ATTUNE_F8E4M3,
        .dtype_out = ATTUNE_F8E4M3,
        .layout = i & 1 ? ATTUNE_ROW_MAJOR : ATTUNE_COLUMN_MAJOR,
        .m = 4,
        .n = 3,
        .k = 2,
        .scaling = {.scale_a = ATTUNE_SCALE_VECTOR, .scale_b = ATTUNE_SCALE_TENSOR, .scale_d = 1, .amax_d = 1}};
    attune_gemm_operands o = operands();
    o.alpha = i < 2;
    o.beta = 1.0;
    OK(attune_gemm(tuner, a, &p, &o));
    expect("amax_d", o.amax_d, 4, true);
    expect("scale_d", o.scale_d, 4, false);
    expect("c", o.c, 24, false);
    expect_byte(memory[SCALE_A], ATTUNE_WRITES, i < 2 ? "scale_a" : NULL, false);
    if (i < 2) expect("scale_a", o.scale_a, 16, false);
    if (i < 2) expect("scale_b", o.scale_b, 4, false);
    finish();
  }
}

TEST_WITH(test_zero_points, begin, end) {
  const attune_gemm_problem p = {.dtype = ATTUNE_I8,
                                 .dtype_out = ATTUNE_I32,
                                 .layout = ATTUNE_ROW_MAJOR,
                                 .m = 4,
                                 .n = 3,
                                 .k = 4,
                                 .scaling = {.zero_a = 1, .zero_b = 1}};
  const attune_gemm_operands o = operands();
  OK(attune_gemm(tuner, a, &p, &o));
  expect("zero_a", o.zero_a, 1, false);
  expect("zero_b", o.zero_b, 1, false);
  finish();
}

/* The imaginary part of beta alone reads C. */
TEST_WITH(test_complex, begin, end) {
  const attune_gemm_problem p = {.dtype = ATTUNE_C64, .m = 2, .n = 2, .k = 2};
  attune_gemm_operands o = operands();
  o.beta_imag = 1.0;
  OK(attune_gemm(tuner, a, &p, &o));
  expect("c", o.c, 32, false);
  finish();
}

/* Two matrices of each kind. alpha = 0 reads neither A nor B. */
TEST_WITH(test_arrays, begin, end) {
  for (int i = 0; i < 6; i++) {
    const attune_gemm_problem p = {.dtype = ATTUNE_F32,
                                   .layout = i & 1 ? ATTUNE_ROW_MAJOR : ATTUNE_COLUMN_MAJOR,
                                   .m = 4,
                                   .n = 3,
                                   .k = 2,
                                   .batch = 2,
                                   .pointers = ATTUNE_POINTERS_HOST};
    const void *as[] = {memory[0], memory[1]}, *bs[] = {memory[2], memory[3]}, *cs[] = {memory[4], memory[5]};
    void *ds[] = {memory[6], memory[7]};
    const attune_gemm_operands o = {.alpha = i < 4,
                                    .a = (const void *)as,
                                    .b = (const void *)bs,
                                    .beta = 1,
                                    .c = (const void *)cs,
                                    .d = (void *)ds};
    run(&p, &o, i / 2 == 1);
    for (int one = 0; one < 2; one++) {
      expect("d", ds[one], 48, true);
      assert_string_equal(heard.call, "attune_gemm_batched");
      expect("c", cs[one], 48, false);
      if (i < 4) expect("a", as[one], 32, false);
      if (i < 4) expect("b", bs[one], 24, false);
      if (i >= 4) expect_byte(as[one], ATTUNE_WRITES, NULL, false);
    }
    expect_byte(&ds[1], ATTUNE_WRITES, "array d", false);
    expect_byte(&as[1], ATTUNE_WRITES, i < 4 ? "array a" : NULL, false);
    expect_byte(&bs[1], ATTUNE_WRITES, i < 4 ? "array b" : NULL, false);
    expect_byte(&cs[1], ATTUNE_WRITES, "array c", false);
    finish();
  }
}

FIXTURE(start) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  return attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:", .mode = ATTUNE_MODE_OFF}) ==
                 ATTUNE_OK
             ? 0
             : -1;
}

FIXTURE(stop) {
  attune_tuner_destroy(tuner);
  return 0;
}

int main(void) {
  return RUN_TESTS(start, stop);
}
