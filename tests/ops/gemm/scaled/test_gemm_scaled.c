/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_scaled.c: products of f8 and i8 on the host: random problems by every implementation and by the public call
 * against an oracle, special values, plans, tuning, texts, and what is refused. */
#include "tests/support/check.h"

#include "ops/gemm/problem/problem.h"
#include "tests/ops/gemm/scaled/scaled_oracle.h"
#include "tuning/op/registry.h"

#if defined(__SANITIZE_ADDRESS__)
enum { PROBLEMS = 2000 }; /* five times as slow */
#else
enum { PROBLEMS = 10000 };
#endif
enum { CONFIGURATIONS = 64 };

static attune_device *host;
static attune_stream *stream;
static attune_tuner *tuner;

FIXTURE(open_all) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.mode = ATTUNE_MODE_OFF;
  options.database = "";
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(host);
  return attune_tuner_create(&tuner, &options) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  return 0;
}

/* The operands of the problem that implementations see. */
static attune_gemm_operands run_of(const attune_gemm_operands *o, bool swap) {
  attune_gemm_operands run = *o;
  if (!swap) return run;
  run.a = o->b, run.b = o->a;
  run.scale_a = o->scale_b, run.scale_b = o->scale_a;
  run.zero_a = o->zero_b, run.zero_b = o->zero_a;
  return run;
}

static void run_each(scaled_case *c, uint64_t *state) {
  static at_configuration list[CONFIGURATIONS];
  at_gemm g;
  at_gemm_use use;
  bool swap = false;
  OK(at_gemm_check_operands(&c->p, &c->o, &use));
  OK(at_gemm_normalise(&c->p, use, &g, &swap));
  const attune_gemm_operands run = run_of(&c->o, swap);
  int found = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (!at_registry_usable(one, &g, host)) continue;
    const int count = one->configurations(one, &g, host, list, CONFIGURATIONS);
    const at_configuration *picked = &list[scaled_draw(state, (uint64_t)count)];
    at_plan *plan = NULL;
    OK(at_plan_create(&plan, &at_gemm_op, one, picked, &g, host));
    scaled_thaw(c);
    OK(plan->launch(plan, &run, stream));
    at_plan_destroy(plan);
    scaled_check(c, one->name);
    found++;
  }
  assert_true(found >= 2);
}

TEST(random_problems_are_right) {
  uint64_t state = 20261128;
  for (int i = 0; i < PROBLEMS; i++) {
    scaled_case c;
    scaled_draw_case(&c, i % 16 ? 12 : 70, i % 16 ? 300 : 700, &state);
    OK(attune_gemm(tuner, stream, &c.p, &c.o));
    scaled_check(&c, "attune_gemm");
    if (i % 2) run_each(&c, &state);
    scaled_close(&c);
  }
}

/* Blocks of the largest kind, by more than one of them in each direction. */
TEST(large_problems_are_right) {
  static const struct {
    attune_dtype in, out;
  } kinds[] = {{ATTUNE_F8E4M3, ATTUNE_BF16}, {ATTUNE_I8, ATTUNE_I32}, {ATTUNE_I8, ATTUNE_F32}};
  uint64_t state = 7;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    scaled_case c = {.p = ATTUNE_GEMM_PROBLEM_INIT};
    c.p.dtype = kinds[i].in, c.p.dtype_out = kinds[i].out;
    c.p.trans_a = ATTUNE_T;
    c.p.m = 401, c.p.n = 131, c.p.k = 1301;
    if (i == 0) c.p.scaling.scale_a = ATTUNE_SCALE_1X128, c.p.scaling.scale_b = ATTUNE_SCALE_128X128;
    scaled_open(&c, true, &state);
    run_each(&c, &state);
    scaled_close(&c);
  }
}

TEST(without_a_product_only_c_counts) {
  uint64_t state = 3;
  for (int i = 0; i < 400; i++) {
    scaled_case c;
    scaled_draw_case(&c, 12, 40, &state);
    c.o.alpha = 0.0;
    OK(attune_gemm(tuner, stream, &c.p, &c.o));
    scaled_check(&c, "alpha = 0");
    scaled_close(&c);
  }
}

TEST(plans_run) {
  uint64_t state = 5;
  for (int i = 0; i < 200; i++) {
    scaled_case c;
    attune_plan *plan = NULL;
    scaled_draw_case(&c, 20, 200, &state);
    OK(attune_gemm_plan_create(&plan, tuner, stream, &c.p, &c.o));
    OK(attune_gemm_plan_run(plan, stream, &c.o));
    scaled_check(&c, "a plan");
    if (c.p.scaling.scale_a) {
      attune_gemm_operands without = c.o;
      without.scale_a = NULL;
      FAILS_SAYING(attune_gemm_plan_run(plan, stream, &without), ATTUNE_INVALID_ARGUMENT, "operands.scale_a is NULL");
    }
    attune_plan_destroy(plan);
    scaled_close(&c);
  }
}

/* Verification of a search has the same words for right and wrong: its reference agrees with what runs. */
TEST(a_search_verifies) {
  static const char *const texts[] = {
      "gemm f8e4m3:bf16 tn 48x33x260 strict scale_a=1x128 scale_b=128x128 amax_d",
      "gemm f8e4m3:f8e4m3 tn 48x32x64 strict beta scale_a=tensor scale_b=tensor scale_d amax_d",
      "gemm f8e5m2:f32 nt 17x19x300 reduced dtype_b=f8e4m3 scale_a=vector scale_b=vector",
      "gemm i8:i32 tn 64x48x70 strict beta=inplace zero_a zero_b",
      "gemm i8 nn 30x20x40x3 strict scale_a=tensor scale_d amax_d",
      "gemm i8:f16 tt 30x20x400 strict scale_a=vector scale_b=vector"};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *searching = NULL;
  options.mode = ATTUNE_MODE_CACHED;
  options.database = "";
  OK(attune_tuner_create(&searching, &options));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (attune_tune(searching, host, texts[i], NULL, NULL) != ATTUNE_OK)
      fail_msg("%s: %s", texts[i], attune_last_message());
  attune_tuner_destroy(searching);
}

TEST(texts_come_back) {
  uint64_t state = 11;
  for (int i = 0; i < 3000; i++) {
    scaled_case c;
    at_gemm g, again;
    at_gemm_use use;
    bool swap = false;
    char text[ATTUNE_PROBLEM_CHARS], shown[ATTUNE_PROBLEM_CHARS];
    scaled_draw_case(&c, 5, 40, &state);
    OK(at_gemm_check_operands(&c.p, &c.o, &use));
    OK(at_gemm_normalise(&c.p, use, &g, &swap));
    OK(at_gemm_format(&g, text, sizeof text));
    OK(at_gemm_parse(text, &again));
    assert_memory_equal(&g, &again, sizeof g);
    OK(at_gemm_show(&g, 1, shown, sizeof shown));
    OK(at_gemm_parse(shown, &again));
    if (memcmp(&g, &again, sizeof g) != 0) fail_msg("%s became %s", text, shown);
    scaled_close(&c);
  }
}

/* ---- what is refused ---- */

static scaled_case usual;

static void refused(const char *words) {
  FAILS_SAYING(attune_gemm(tuner, stream, &usual.p, &usual.o), ATTUNE_INVALID_ARGUMENT, words);
}

static void again(attune_dtype in, attune_dtype out) {
  static uint64_t state = 1;
  scaled_close(&usual);
  usual = (scaled_case){.p = ATTUNE_GEMM_PROBLEM_INIT};
  usual.p.dtype = in, usual.p.dtype_out = out;
  usual.p.m = usual.p.n = usual.p.k = 16;
  scaled_open(&usual, false, &state);
}

TEST(what_does_not_fit_is_named) {
  again(ATTUNE_F8E5M2, ATTUNE_F32);
  refused("f8e5m2, which no library multiplies");
  again(ATTUNE_F8E4M3, ATTUNE_F64);
  refused("problem.dtype_out is f64 for f8 inputs");
  again(ATTUNE_F8E4M3, ATTUNE_F8E5M2);
  refused("problem.dtype_out is f8e5m2 for f8 inputs");
  again(ATTUNE_I8, ATTUNE_F64);
  refused("problem.dtype_out is f64 for i8 inputs");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.scaling.dtype_b = ATTUNE_I8;
  refused("problem.scaling.dtype_b is i8 (7) with f8e4m3");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.scaling.scale_a = 5;
  refused("problem.scaling.scale_a is 5");
  usual.p.scaling.scale_a = ATTUNE_SCALE_VECTOR;
  refused("operands.scale_a is NULL");
  usual.o.scale_a = (const float *)(const void *)((const char *)usual.o.a + 1);
  refused("operands.scale_a is 0x");
  usual.p.batch = 2;
  refused("problem.scaling.scale_a is vector, but problem.batch is 2");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.scaling.scale_d = 1;
  refused("problem.scaling.scale_d is 1, but D is bf16");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.scaling.zero_b = 1;
  refused("problem.scaling.zero_b is 1 with f8");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.scaling.reserved = 1;
  refused("problem.scaling.reserved");
  again(ATTUNE_I8, ATTUNE_I32);
  usual.p.scaling.amax_d = 1;
  refused("problem.scaling.amax_d is not 0 with an i32 D");
  again(ATTUNE_I8, ATTUNE_F32);
  usual.p.scaling.scale_b = ATTUNE_SCALE_128X128;
  refused("problem.scaling.scale_b is 128x128 with i8");
  again(ATTUNE_F8E4M3, ATTUNE_BF16);
  usual.p.epilogue.activation = ATTUNE_ACTIVATION_RELU;
  refused("products of 8-bit elements have no epilogue");
}

/* Towards zero, and to the nearest number of i32. What becomes 0 there alone still needs its matrices. */
TEST(scalars_of_i32) {
  static const double alphas[] = {0.9, -1.9, 3e9, -3e9, (double)INFINITY, -(double)INFINITY, (double)NAN};
  static const int32_t wanted[] = {0, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0};
  const int8_t one = 1;
  int32_t c = 1, d = 5;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  p.dtype = ATTUNE_I8, p.dtype_out = ATTUNE_I32, p.m = p.n = p.k = 1;
  for (int i = 0; i < 7; i++) {
    attune_gemm_operands o = {.alpha = alphas[i], .a = &one, .b = &one, .d = &d};
    OK(attune_gemm(tuner, stream, &p, &o));
    assert_int_equal(d, wanted[i]);
    o.alpha = 0.0, o.beta = alphas[i], o.c = &c;
    OK(attune_gemm(tuner, stream, &p, &o));
    assert_int_equal(d, wanted[i]);
  }
  const attune_gemm_operands half = {.alpha = 0.5, .b = &one, .d = &d};
  FAILS_SAYING(attune_gemm(tuner, stream, &p, &half), ATTUNE_INVALID_ARGUMENT, "operands.a is NULL");
}

TEST(operands_that_overlap_are_named) {
  again(ATTUNE_F8E4M3, ATTUNE_F8E4M3);
  usual.p.scaling.amax_d = 1;
  usual.o.amax_d = (float *)usual.o.d;
  refused("overlaps operands.");
  usual.p.scaling.amax_d = 0;
  usual.p.scaling.scale_a = ATTUNE_SCALE_TENSOR;
  usual.o.scale_a = usual.o.d;
  refused("operands.scale_a overlaps operands.d");
  again(ATTUNE_F8E4M3, ATTUNE_F8E4M3);
  usual.o.beta = 1.0;
  usual.o.c = usual.o.d;
  refused("operands.c is operands.d, but C is bf16");
  again(ATTUNE_F8E4M3, ATTUNE_F8E4M3);
  usual.o.beta = 1.0;
  usual.o.c = (const char *)usual.o.a + 1;
  refused("bf16; should be a multiple of 2");
  scaled_close(&usual);
}

TEST(other_types_have_no_scales) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  float x[3] = {1, 1, 1};
  const attune_gemm_operands o = {.alpha = 1.0, .a = &x[0], .b = &x[1], .d = &x[2]};
  p.m = p.n = p.k = 1;
  p.scaling.scale_a = ATTUNE_SCALE_TENSOR;
  FAILS_SAYING(attune_gemm(tuner, stream, &p, &o), ATTUNE_INVALID_ARGUMENT, "problem.scaling is not 0 with f32");
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
