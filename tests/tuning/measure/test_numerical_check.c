/* SPDX-License-Identifier: Apache-2.0
 * test_numerical_check.c: each way of being wrong is caught, by plans that are wrong in one way each. */
#include "tests/support/check.h"

#include <math.h>

#include "ops/gemm/host/host_reference.h"
#include "src/base/backend.h"
#include "tuning/measure/numerical_check.h"

static attune_device *device;
static attune_stream *stream;
static at_random *data;

typedef enum fault {
  RIGHT,
  LEAVES_ONE, /* the last element keeps the poison */
  LEAVES_ALL,
  ONE_WRONG, /* one element a little off */
  ONE_NAN,
  IN_GAP, /* writes behind a column */
  BETWEEN_MATRICES,
  BEFORE_D,
  BEHIND_D,
  CHANGES_A,
  CHANGES_B,
  CHANGES_C,
  OTHER_BITS, /* another rounding at each run */
  FORGETS_BETA,
  TRANSPOSES_A,
  FAILS,
  FAULTS
} fault;

static const char *const NAMES[] = {"right",      "leaves one element", "leaves all",       "one wrong",
                                    "one NaN",    "in the gap",         "between matrices", "before D",
                                    "behind D",   "changes A",          "changes B",        "changes C",
                                    "other bits", "forgets beta",       "transposes A",     "fails"};

static int runs;

static void corrupt(fault how, const at_gemm *g, const at_gemm_operands *o) {
  float *d = o->d, *last = d + g->stride_d * (g->batch - 1) + g->ldd * (g->n - 1) + g->m - 1;
  const float nan = NAN, off = 1e-3f;
  switch (how) {
  case LEAVES_ONE: memset(last, 0xFF, sizeof *last); break;
  case LEAVES_ALL: memset(d, 0xFF, sizeof *d * (size_t)(last - d + 1)); break;
  case ONE_WRONG: d[g->ldd * (g->n / 2)] += off; break;
  case ONE_NAN: d[g->m / 2] = nan; break;
  case IN_GAP: d[g->m] = 0.0f; break;
  case BETWEEN_MATRICES: d[g->stride_d - 1] = 0.0f; break;
  case BEFORE_D: d[-1] = 0.0f; break;
  case BEHIND_D: last[1] = 0.0f; break;
  case CHANGES_A: ((float *)(uintptr_t)o->a)[3] += off; break;
  case CHANGES_B: ((float *)(uintptr_t)o->b)[0] += off; break;
  case CHANGES_C: ((float *)(uintptr_t)o->c)[1] += off; break;
  case OTHER_BITS:
    if (isnormal(d[0]) && fabsf(d[0]) < 100.0f) d[0] = nextafterf(d[0], runs % 2 ? 100.0f : -100.0f);
    break;
  default: break;
  }
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *on) {
  (void)on;
  const fault how = (fault)plan->caller_flags;
  at_gemm g = *at_gemm_of(plan->problem);
  at_gemm_operands o = *(const at_gemm_operands *)operands;
  runs++;
  if (how == FAILS) return at_fail(ATTUNE_DEVICE_ERROR, "this plan always fails");
  if (how == FORGETS_BETA) o.beta = 0.0;
  if (how == TRANSPOSES_A) g.trans_a = !g.trans_a;
  for (int64_t b = 0; b < g.batch; b++) at_gemm_plain(&g, &o, b, 0, g.m, 0, g.n);
  corrupt(how, &g, &o);
  return ATTUNE_OK;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)problem, (void)on;
  return true;
}
static attune_status prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}
static const at_implementation fake = {
    .name = "fake", .version = 1, .backend = "host", .supports = supports, .prepare = prepare, .launch = launch};

/* Square A, so that the transposed one fits; every gap there can be. */
static at_gemm problem_of(at_gemm_c c, bool deterministic) {
  at_gemm g = {.m = 13,
               .n = 9,
               .k = 13,
               .batch = 2,
               .lda = 13,
               .ldb = 14,
               .ldd = 15,
               .stride_a = 0,
               .stride_b = 140,
               .stride_d = 150,
               .workspace_cap = 1 << 20,
               .dtype = ATTUNE_F32,
               .dtype_out = ATTUNE_F32,
               .deterministic = deterministic,
               .c = (uint8_t)c,
               .alignment = 8};
  if (c == AT_C_INPLACE) {
    g.ldc = g.ldd;
    g.stride_c = g.stride_d;
  }
  if (c == AT_C_SEPARATE) g.ldc = 13;
  return g;
}

static attune_status run_check(const at_gemm *g, fault how, double *error) {
  at_numerical_check *check = NULL;
  const at_configuration configuration = {"way=one"};
  at_plan *plan = NULL;
  assert_int_equal(at_numerical_check_create(&check, &at_gemm_op, g, stream, data), ATTUNE_OK);
  assert_int_equal(at_plan_create(&plan, &at_gemm_op, &fake, &configuration, g, device), ATTUNE_OK);
  plan->caller_flags = (int)how;
  runs = 0;
  const attune_status status = at_numerical_check_run(check, plan, error);
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
  return status;
}

static bool possible(at_gemm_c c, fault how) {
  if (how == CHANGES_C) return c == AT_C_SEPARATE;
  if (how == FORGETS_BETA) return c != AT_C_NONE;
  return true;
}

TEST(each_fault_is_caught) {
  for (int c = AT_C_NONE; c <= AT_C_SEPARATE; c++)
    for (int how = LEAVES_ONE; how < FAULTS; how++) {
      if (how == OTHER_BITS || !possible((at_gemm_c)c, (fault)how)) continue;
      const at_gemm g = problem_of((at_gemm_c)c, false);
      double error = 0.0;
      const attune_status status = run_check(&g, (fault)how, &error),
                          expected = how == FAILS ? ATTUNE_DEVICE_ERROR : ATTUNE_BAD_DATA;
      if (status != expected) fail_msg("use of C %d, %s: %s", c, NAMES[how], attune_status_string(status));
      if (how == FAILS)
        assert_string_equal(attune_last_message(), "this plan always fails");
      else if (!strstr(attune_last_message(), "fake way=one"))
        fail_msg("%s: the message names no plan: %s", NAMES[how], attune_last_message());
    }
}

TEST(messages_say_what_is_wrong) {
  static const struct {
    fault how;
    const char *words;
  } faults[] = {{LEAVES_ONE, "tolerance"}, {ONE_WRONG, "tolerance"}, {BEFORE_D, "outside"},
                {BEHIND_D, "outside"},     {CHANGES_A, "inputs"},    {CHANGES_C, "inputs"}};
  const at_gemm g = problem_of(AT_C_SEPARATE, false);
  for (size_t i = 0; i < AT_COUNT(faults); i++) {
    double error = 0.0;
    assert_int_equal(run_check(&g, faults[i].how, &error), ATTUNE_BAD_DATA);
    if (!strstr(attune_last_message(), faults[i].words))
      fail_msg("%s: %s", NAMES[faults[i].how], attune_last_message());
  }
}

TEST(what_is_right_passes) {
  for (int c = AT_C_NONE; c <= AT_C_SEPARATE; c++)
    for (int alignment = 4, once = 0; alignment <= 16; alignment *= 2)
      for (int deterministic = 0; deterministic < 2; deterministic++) {
        at_gemm g = problem_of((at_gemm_c)c, deterministic != 0);
        g.alignment = (uint8_t)alignment;
        double error = -1.0;
        if (run_check(&g, RIGHT, &error) != ATTUNE_OK)
          fail_msg("use of C %d, align %d: %s", c, alignment, attune_last_message());
        assert_true(error >= 0.0 && error <= 1.0);
        if (!deterministic) once = runs; /* special values too; three more for the same bits */
        assert_int_equal(runs, deterministic ? once + 3 : once);
      }
}

/* Rounding that differs from run to run is within the tolerance: only a deterministic contract refuses it. */
TEST(other_bits_are_refused_where_asked) {
  double error = 0.0;
  at_gemm g = problem_of(AT_C_NONE, false);
  assert_int_equal(run_check(&g, OTHER_BITS, &error), ATTUNE_OK);
  g = problem_of(AT_C_NONE, true);
  FAILS_SAYING(run_check(&g, OTHER_BITS, &error), ATTUNE_BAD_DATA, "bits");
  g = problem_of(AT_C_INPLACE, true);
  assert_int_equal(run_check(&g, OTHER_BITS, &error), ATTUNE_BAD_DATA);
}

/* A check serves many plans: a wrong one leaves nothing behind for the next. */
TEST(one_check_many_plans) {
  const at_gemm g = problem_of(AT_C_INPLACE, false);
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  const at_configuration configuration = {""};
  static const fault order[] = {RIGHT, RIGHT,     ONE_WRONG, RIGHT, LEAVES_ONE, RIGHT, FAILS,    RIGHT, BEHIND_D,
                                RIGHT, CHANGES_A, CHANGES_B, RIGHT, IN_GAP,     RIGHT, BEFORE_D, RIGHT};
  assert_int_equal(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data), ATTUNE_OK);
  assert_int_equal(at_plan_create(&plan, &at_gemm_op, &fake, &configuration, &g, device), ATTUNE_OK);
  for (size_t i = 0; i < AT_COUNT(order); i++) {
    double error = 0.0;
    plan->caller_flags = (int)order[i];
    const attune_status status = at_numerical_check_run(check, plan, &error);
    if ((status == ATTUNE_OK) != (order[i] == RIGHT))
      fail_msg("plan %zu, %s: %s", i, NAMES[order[i]], attune_last_message());
  }
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
}

/* Large operands are fetched less often: what is wrong with them is found all the same. */
TEST(large_operands) {
  static const struct {
    fault how;
    const char *words;
  } faults[] = {{ONE_NAN, "tolerance"}, {CHANGES_A, "inputs"},  {BEHIND_D, "outside"}, {CHANGES_B, "inputs"},
                {BEFORE_D, "outside"},  {LEAVES_ALL, "tolera"}, {CHANGES_A, "inputs"}};
  const int64_t k = 1100000; /* A and B are 17.6 MB */
  const at_gemm g = {.m = 2,
                     .n = 2,
                     .k = k,
                     .batch = 1,
                     .lda = 2,
                     .ldb = k,
                     .ldd = 2,
                     .workspace_cap = 1 << 20,
                     .dtype = ATTUNE_F32,
                     .dtype_out = ATTUNE_F32,
                     .alignment = 8};
  const at_configuration configuration = {"way=one"};
  at_op op = at_gemm_op;
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  double error = 0.0;
  op.specials = NULL; /* they take long */
  OK(at_numerical_check_create(&check, &op, &g, stream, data));
  OK(at_plan_create(&plan, &op, &fake, &configuration, &g, device));
  for (size_t i = 0; i < AT_COUNT(faults); i++) {
    plan->caller_flags = (int)RIGHT;
    OK(at_numerical_check_run(check, plan, &error));
    plan->caller_flags = (int)faults[i].how;
    assert_int_equal(at_numerical_check_run(check, plan, &error), ATTUNE_BAD_DATA);
    if (!strstr(attune_last_message(), faults[i].words))
      fail_msg("%s: %s", NAMES[faults[i].how], attune_last_message());
  }
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  return failed;
}
