/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_plan.c: plans of elementwise that callers hold: what they run with and what they refuse; and calls
 * made by the log's function in the middle of another call. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/host_tuner.h"

static float a[64], b[64], out[64];

static void fill(void) {
  for (int i = 0; i < 64; i++) {
    a[i] = (float)i;
    b[i] = (float)(2 * i + 100);
    out[i] = -1.0f;
  }
}

static void begin(call *k) {
  call_begin(k);
  call_output(k, out, ATTUNE_F32, 2, CALL_SIZES(2, 8));
  call_input(k, "a", a, ATTUNE_F32, 2, CALL_SIZES(2, 8));
  call_input(k, "b", b, ATTUNE_F32, 1, CALL_SIZES(8));
  call_scalar(k, "s", 3)->kind = ATTUNE_F64;
  fill();
}

static attune_plan *plan_of(const char *text, const call *k) {
  attune_plan *plan = NULL;
  OK(attune_elementwise_plan_create(&plan, tuner, stream, text, &k->operands));
  return plan;
}

static void run_refused(const attune_plan *plan, const call *k, const char *words) {
  for (int i = 0; i < 64; i++) out[i] = 77.0f;
  FAILS(attune_elementwise_plan_run(plan, stream, &k->operands), ATTUNE_INVALID_ARGUMENT);
  if (!strstr(attune_last_message(), words)) fail_msg("%s; should say %s", attune_last_message(), words);
  for (int i = 0; i < 64; i++) assert_true(out[i] == 77.0f);
}

static void expect(const float *got, double s) {
  for (int i = 0; i < 16; i++) assert_true(got[i] == (float)(i + (2 * (i % 8) + 100) * s));
}

TEST(runs_with_other_addresses) {
  call k;
  begin(&k);
  attune_plan *plan = plan_of("a + b * s", &k);
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  expect(out, 3);
  k.scalars[0].kind = (attune_dtype)0; /* f64 as well */
  k.scalars[0].value = -2;
  k.outputs[0].data = out + 32;
  k.inputs[0].name = k.inputs[1].name = k.scalars[0].name = NULL; /* not looked at */
  static const int64_t packed[] = {8, 1};
  k.inputs[0].strides = packed;
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  expect(out + 32, -2);
  attune_plan_destroy(plan);
}

TEST(refuses_other_operands) {
  static const int64_t turned[] = {1, 2}, zeros[] = {0, 0};
  static const attune_dtype kinds[] = {ATTUNE_I64, ATTUNE_BOOL, ATTUNE_C128, ATTUNE_F32, (attune_dtype)99};
  call k;
  begin(&k);
  attune_plan *plan = plan_of("a + b * s", &k);
  k.inputs[0].sizes[0] = 1;
  run_refused(plan, &k, "input 0 (a): shape is 1 x 8; the plan has 2 x 8");
  begin(&k);
  k.outputs[0].sizes[0] = k.inputs[0].sizes[0] = 3;
  run_refused(plan, &k, "output 0: shape is 3 x 8; the plan has 2 x 8; create a plan with these operands");
  begin(&k);
  k.inputs[1].dtype = ATTUNE_I32;
  run_refused(plan, &k, "input 1 (b): dtype is i32; the plan has f32; create a plan with these operands");
  begin(&k);
  k.outputs[0].dtype = ATTUNE_I32;
  run_refused(plan, &k, "output 0: dtype is i32; the plan has f32");
  begin(&k);
  k.inputs[1].dtype = (attune_dtype)(ATTUNE_F32 | 256);
  run_refused(plan, &k, "should be an attune_dtype, and the plan has f32");
  begin(&k);
  k.inputs[0].strides = turned;
  run_refused(plan, &k, "input 0 (a): strides are 1, 2; the plan has 8, 1");
  begin(&k);
  k.outputs[0].strides = zeros;
  run_refused(plan, &k, "output 0: strides are 0, 0; the plan has 8, 1");
  begin(&k);
  k.inputs[0].dims = 3;
  k.inputs[0].sizes[2] = 8;
  k.inputs[0].sizes[1] = 2;
  k.inputs[0].sizes[0] = 1;
  run_refused(plan, &k, "input 0 (a): dims is 3; the plan has 2");
  static const int counts[] = {0, 1, 3, -1, 100, INT32_MAX};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    begin(&k);
    k.operands.input_count = counts[i];
    run_refused(plan, &k, "operands.input_count is ");
    begin(&k);
    if (counts[i] == 1) continue;
    k.operands.output_count = counts[i];
    run_refused(plan, &k, "operands.output_count is ");
    begin(&k);
    k.operands.scalar_count = counts[i];
    run_refused(plan, &k, "operands.scalar_count is ");
  }
  begin(&k);
  k.operands.outputs = NULL;
  run_refused(plan, &k, "operands.outputs is NULL; should list 1");
  begin(&k);
  k.operands.inputs = NULL;
  run_refused(plan, &k, "operands.inputs is NULL; should list 2");
  begin(&k);
  k.operands.scalars = NULL;
  run_refused(plan, &k, "operands.scalars is NULL; should list 1");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    begin(&k);
    k.scalars[0].kind = kinds[i];
    run_refused(plan, &k, "scalar 0 has kind");
  }
  attune_plan_destroy(plan);
}

TEST(refuses_bad_memory) {
  call k;
  begin(&k);
  attune_plan *plan = plan_of("a + b * s", &k);
  k.inputs[1].data = NULL;
  run_refused(plan, &k, "input b is NULL");
  begin(&k);
  k.outputs[0].data = NULL;
  run_refused(plan, &k, "output 0 is NULL");
  begin(&k);
  k.inputs[0].data = out;
  run_refused(plan, &k, "an output shares the memory of an input, but did not when the plan was created");
  k.inputs[0].data = out + 1;
  run_refused(plan, &k, "output 0 overlaps input a");
  begin(&k);
  k.inputs[1].data = out + 5;
  run_refused(plan, &k, "output 0 overlaps input b");
  begin(&k);
  k.inputs[0].data = (char *)a + 1;
  run_refused(plan, &k, "input 0 (a) is aligned to 1 byte; should be aligned to 4, for its dtype, f32");
  k.inputs[0].data = (char *)a + 2;
  run_refused(plan, &k, "input 0 (a) is aligned to 2 bytes; should be aligned to 4, for its dtype, f32");
  begin(&k);
  k.inputs[1].data = (char *)k.inputs[1].data + 4;
  run_refused(plan, &k, "input 1 (b) is aligned to 4 bytes; should be aligned to ");
  attune_plan_destroy(plan);
}

/* One element, which is no vector's part: still of its dtype. */
TEST(refuses_bad_memory_of_one_element) {
  unsigned char bytes[80] = {0};
  call k;
  call_begin(&k);
  call_output(&k, bytes + 1, ATTUNE_U8, 1, CALL_SIZES(8));
  call_input(&k, "a", a, ATTUNE_F32, 0, NULL);
  attune_plan *plan = plan_of("a", &k);
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  k.inputs[0].data = (char *)a + 1;
  FAILS(attune_elementwise_plan_run(plan, stream, &k.operands), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(plan);
  k.inputs[0] = tensor_of_shape("a", a, ATTUNE_F32, 1, CALL_SIZES(8)); /* all are bytes apart for the sake of one */
  plan = plan_of("a", &k);
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  k.inputs[0].data = (char *)a + 2;
  FAILS(attune_elementwise_plan_run(plan, stream, &k.operands), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(plan);
}

TEST(in_place) {
  call k;
  begin(&k);
  k.outputs[0].data = a;
  attune_plan *plan = plan_of("a + b * s", &k);
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  expect(a, 3);
  fill();
  k.outputs[0].data = out; /* and apart */
  OK(attune_elementwise_plan_run(plan, stream, &k.operands));
  expect(out, 3);
  attune_plan_destroy(plan);
}

/* Columns of one matrix: their addresses mingle, their elements do not. */
TEST(columns_of_one_matrix) {
  static const int64_t step = 2;
  call k;
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(16))->strides = &step;
  call_input(&k, "a", out + 1, ATTUNE_F32, 1, CALL_SIZES(16))->strides = &step;
  attune_plan *plan = plan_of("a * 2 + 1", &k);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 64; i++) out[i] = (float)(i + round);
    if (round == 2)
      OK(attune_elementwise(tuner, stream, "a * 2 + 1", &k.operands));
    else
      OK(attune_elementwise_plan_run(plan, stream, &k.operands));
    for (int i = 0; i < 16; i++) {
      assert_true(out[2 * i] == (float)(2 * i + 1 + round) * 2 + 1);
      assert_true(out[2 * i + 1] == (float)(2 * i + 1 + round));
    }
  }
  k.inputs[0].data = out + 2;
  FAILS(attune_elementwise_plan_run(plan, stream, &k.operands), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(plan);
}

TEST(of_another_operation) {
  call k;
  begin(&k);
  attune_plan *plan = plan_of("a + b * s", &k), *gemm = NULL;
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = out};
  OK(attune_gemm_plan_create(&gemm, tuner, stream, &problem, &operands));
  run_refused(gemm, &k, "plan is of gemm, the operands of elementwise");
  FAILS(attune_gemm_plan_run(plan, stream, &operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_run(plan, NULL, &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_run(plan, stream, NULL), ATTUNE_INVALID_ARGUMENT);
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *other = NULL;
    OK(attune_device_at(&other, i));
    if (other == host) continue;
    FAILS_SAYING(attune_elementwise_plan_run(plan, attune_stream_default(other), &k.operands), ATTUNE_INVALID_ARGUMENT,
                 "should be of the same device");
  }
  attune_plan_destroy(gemm);
  attune_plan_destroy(plan);
}

/* ---- calls within calls ---- */

typedef struct within {
  int calls, wrong, others;
} within;

static float theirs[64];

static bool call_theirs(const char *text) {
  call k;
  call_begin(&k);
  call_output(&k, theirs, ATTUNE_F32, 1, CALL_SIZES(16));
  call_input(&k, "a", a, ATTUNE_F32, 1, CALL_SIZES(16));
  call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(16));
  return attune_elementwise(tuner, stream, text, &k.operands) == ATTUNE_OK;
}

static void call_others(void *user, attune_log_level level, const char *line) {
  within *w = user;
  char text[64];
  (void)level, (void)line;
  w->calls++;
  for (int i = 0; i < w->others; i++) {
    snprintf(text, sizeof text, "a * %d - b", i);
    w->wrong += !call_theirs(text) || theirs[5] != a[5] * (float)i - b[5];
  }
  w->wrong += !call_theirs("b - a") || theirs[5] != b[5] - a[5];
}

/* What is remembered of either call is its own, although the outer one is new each time and the inner one is not. */
TEST(calls_within_calls) {
  within w = {0};
  call k;
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(16));
  call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(16));
  call_input(&k, "a", a, ATTUNE_F32, 1, CALL_SIZES(16));
  fill();
  attune_set_log(call_others, &w, ATTUNE_LOG_INFO);
  for (int round = 0; round < 400; round++) {
    char text[64];
    snprintf(text, sizeof text, "a - b - %d", round);
    OK(attune_elementwise(tuner, stream, text, &k.operands));
    for (int i = 0; i < 16; i++) assert_true(out[i] == a[i] - b[i] - (float)round);
    assert_true(call_theirs("b - a"));
    for (int i = 0; i < 16; i++) assert_true(theirs[i] == b[i] - a[i]);
  }
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  assert_true(w.calls >= 400);
  assert_int_equal(w.wrong, 0);
}

/* A remembered call whose plan must be found anew, while others take its place. */
TEST(remembered_calls_whose_plan_is_gone) {
  within w = {.others = 100};
  call k;
  attune_tuner *own = tuner;
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  begin(&k);
  for (int round = 0; round < 6; round++) {
    OK(attune_tuner_set_mode(tuner, round % 2 ? ATTUNE_MODE_CACHED : ATTUNE_MODE_OFF));
    attune_set_log(call_others, &w, ATTUNE_LOG_INFO);
    OK(attune_elementwise(tuner, stream, "a + b * s", &k.operands));
    attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
    expect(out, 3);
    OK(attune_elementwise(tuner, stream, "a + b * s", &k.operands));
    expect(out, 3);
  }
  assert_true(w.calls >= 2);
  assert_int_equal(w.wrong, 0);
  attune_tuner_destroy(tuner);
  tuner = own;
}

/* A run of the plan on a call's operands at other addresses: of the output, then of the inputs. */
static attune_status run_at(const attune_plan *plan, call *k, void *const *data) {
  k->outputs[0].data = data[0];
  for (int i = 0; i < k->operands.input_count; i++) k->inputs[i].data = data[1 + i];
  return attune_elementwise_plan_run(plan, stream, &k->operands);
}

/* The caller's numbers, whatever the order in the expression. */
TEST(addresses_are_named) {
  call k;
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(16));
  call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(16)); /* not in the expression's order */
  call_input(&k, "a", a, ATTUNE_F32, 1, CALL_SIZES(16));
  attune_plan *plan = plan_of("a - b", &k);
  const struct {
    void *data[3];
    const char *says;
  } wrong[] = {{{NULL, b, a}, "output 0 is NULL; should be"},
               {{out, NULL, a}, "input b is NULL; should be"},
               {{out, b, NULL}, "input a is NULL; should be"},
               {{out, b, out + 1}, "output 0 overlaps input a"},
               {{out, out + 1, a}, "output 0 overlaps input b"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    FAILS(run_at(plan, &k, wrong[i].data), ATTUNE_INVALID_ARGUMENT);
    if (!strstr(attune_last_message(), wrong[i].says)) fail_msg("%zu: %s", i, attune_last_message());
  }
  attune_plan_destroy(plan);
}

/* An input that the simplified expression does without still has its place among the addresses. */
TEST(addresses_of_what_is_not_read) {
  static const char *const texts[] = {"true ? a : b", "false ? b : a"};
  static const int64_t second[] = {2};
  for (int turn = 0; turn < 8; turn++) {
    call k;
    call_begin(&k);
    call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(16));
    const bool last = turn & 2, apart = turn & 4; /* b stands last; a has gaps */
    if (!last) call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(16));
    attune_tensor *read = call_input(&k, "a", a, ATTUNE_F32, 1, CALL_SIZES(16));
    if (last) call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(16));
    if (apart) read->strides = second;
    fill();
    attune_plan *plan = plan_of(texts[turn % 2], &k);
    OK(run_at(plan, &k, (void *[]){out, last ? a : b, last ? b : a}));
    for (int i = 0; i < 16; i++) assert_true(out[i] == a[apart ? 2 * i : i]);
    attune_plan_destroy(plan);
  }
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
