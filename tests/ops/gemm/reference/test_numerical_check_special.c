/* SPDX-License-Identifier: Apache-2.0
 * test_numerical_check_special.c: each way to lose a NaN, an infinity, a denormal or a zero is caught, and named, by
 * plans that lose one thing each; what the default loses too is allowed. The plans are loops of their own. */
#include "tests/support/check.h"

#include <float.h>

#include "src/base/backend.h"
#include "tests/ops/gemm/gemm_oracle.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/search/search.h"

static attune_device *device;
static attune_stream *stream;
static at_random *data;

typedef enum fault {
  NONE,
  SKIPS_ZERO_B, /* as the reference BLAS does: no product where B is 0 */
  SKIPS_ZERO_A,
  CLEARS_NAN_A, /* reads a NaN as 0 */
  CLEARS_NAN_B,
  CLEARS_NAN_C,
  TAIL_OF_A, /* the same only in the last row, or at the end of k */
  TAIL_OF_B,
  CLEARS_INF_A,
  CLEARS_INF_B,
  CLEARS_INF_C,
  MAX_FOR_INF, /* saturates */
  FLUSHES_INPUTS,
  FLUSHES_C,
  FLUSHES_OUTPUT,
  READS_C, /* although beta is 0 */
  NAN_ALPHA_IS_1,
  NAN_BETA_IS_0,
  INF_ALPHA_IS_1,
  INF_BETA_IS_1,
  ALPHA_IS_USUAL, /* only the scalars that verification began with */
  BETA_IS_1,
  NAN_FOR_ZERO, /* 0 times anything is NaN */
  READS_GAPS,   /* adds 0 times what lies behind the columns of A */
  FAULTS
} fault;

/* Words that the message must have: the first, or one of two. */
static const struct {
  const char *name, *words, *or_words;
  bool needs_c;
} FAULT[FAULTS] = {
    [SKIPS_ZERO_B] = {"skips zeros of B", "loses NaN of A", "loses Inf of A", false},
    [SKIPS_ZERO_A] = {"skips zeros of A", "loses NaN of B", "loses Inf of B", false},
    [CLEARS_NAN_A] = {"clears NaN of A", "loses NaN of A", NULL, false},
    [CLEARS_NAN_B] = {"clears NaN of B", "loses NaN of B", NULL, false},
    [CLEARS_NAN_C] = {"clears NaN of C", "loses NaN of C", NULL, true},
    [TAIL_OF_A] = {"clears NaN at the end of A", "loses NaN of A", NULL, false},
    [TAIL_OF_B] = {"clears NaN at the end of B", "loses NaN of B", NULL, false},
    [CLEARS_INF_A] = {"clears Inf of A", "loses Inf of A", NULL, false},
    [CLEARS_INF_B] = {"clears Inf of B", "loses Inf of B", NULL, false},
    [CLEARS_INF_C] = {"clears Inf of C", "loses Inf of C", NULL, true},
    [MAX_FOR_INF] = {"saturates", "Inf", NULL, false},
    [FLUSHES_INPUTS] = {"flushes inputs", "flushes denormals", NULL, false},
    [FLUSHES_C] = {"flushes C", "flushes denormals", NULL, true},
    [FLUSHES_OUTPUT] = {"flushes the output", "flushes denormals", "tolerance", false},
    [READS_C] = {"reads C", "reads C although beta is 0", NULL, true},
    [NAN_ALPHA_IS_1] = {"alpha = NaN is 1", "loses NaN of alpha", NULL, false},
    [NAN_BETA_IS_0] = {"beta = NaN is 0", "loses NaN of beta", NULL, true},
    [INF_ALPHA_IS_1] = {"alpha = Inf is 1", "loses Inf of alpha", NULL, false},
    [INF_BETA_IS_1] = {"beta = Inf is 1", "loses Inf of beta", NULL, true},
    [ALPHA_IS_USUAL] = {"alpha is ignored", "tolerance with alpha=", "loses NaN of alpha", false},
    [BETA_IS_1] = {"beta is 1", "tolerance with alpha=", "loses NaN of beta", true},
    [NAN_FOR_ZERO] = {"zeros give NaN", "produces NaN or Inf from finite numbers", "loses Inf of", false},
    [READS_GAPS] = {"reads gaps", "produces NaN or Inf from finite numbers", "Inf", false}};

static double smallest_normal(attune_dtype dtype) {
  return dtype == ATTUNE_F64 ? DBL_MIN : dtype == ATTUNE_F16 ? 0x1p-14 : (double)FLT_MIN;
}

static double largest(attune_dtype dtype) {
  return dtype == ATTUNE_F64   ? DBL_MAX
         : dtype == ATTUNE_F32 ? (double)FLT_MAX
         : dtype == ATTUNE_F16 ? 65504.0
                               : 0x1.fep127;
}

static double read_input(double x, fault how, bool of_a, bool tail, attune_dtype dtype) {
  if (isnan(x) && how == (of_a ? CLEARS_NAN_A : CLEARS_NAN_B)) return 0.0;
  if (isnan(x) && tail && how == (of_a ? TAIL_OF_A : TAIL_OF_B)) return 0.0;
  if (isinf(x) && how == (of_a ? CLEARS_INF_A : CLEARS_INF_B)) return 0.0;
  return how == FLUSHES_INPUTS && fabs(x) < smallest_normal(dtype) ? 0.0 : x;
}

static double sum_of(const at_gemm *g, const at_gemm_operands *o, int64_t b, int64_t i, int64_t j, fault how) {
  const attune_dtype dtype = (attune_dtype)g->dtype;
  double sum = 0.0;
  for (int64_t p = 0; p < g->k; p++) {
    const int64_t a = b * g->stride_a + (g->trans_a ? p + i * g->lda : i + p * g->lda);
    const int64_t at = b * g->stride_b + (g->trans_b ? j + p * g->ldb : p + j * g->ldb);
    const bool end = p == g->k - 1;
    const double x = read_input(oracle_load(o->a, dtype, (size_t)a), how, true, end || i == g->m - 1, dtype),
                 y = read_input(oracle_load(o->b, dtype, (size_t)at), how, false, end || j == g->n - 1, dtype);
    if ((how == SKIPS_ZERO_B && y == 0.0) || (how == SKIPS_ZERO_A && x == 0.0)) continue;
    if (how == NAN_FOR_ZERO && (x == 0.0 || y == 0.0)) return (double)NAN;
    sum += x * y;
    if (how == READS_GAPS && (g->trans_a ? i + 1 < g->m : end && g->k > 1))
      sum += 0.0 * oracle_load(o->a, dtype, (size_t)(b * g->stride_a + (g->trans_a ? g->k + i * g->lda : g->m)));
  }
  return dtype != ATTUNE_F64 && fabs(sum) > 0x1.ffffffp127 ? copysign((double)INFINITY, sum) : sum;
}

static double read_c(double x, fault how, attune_dtype dtype) {
  if ((isnan(x) && how == CLEARS_NAN_C) || (isinf(x) && how == CLEARS_INF_C)) return 0.0;
  return how == FLUSHES_C && fabs(x) < smallest_normal(dtype) ? 0.0 : x;
}

static void scalars_of(const at_gemm *g, const at_gemm_operands *o, fault how, double *alpha, double *beta) {
  *alpha = o->alpha;
  *beta = o->beta;
  if ((isnan(*alpha) && how == NAN_ALPHA_IS_1) || (isinf(*alpha) && how == INF_ALPHA_IS_1)) *alpha = 1.0;
  if (how == ALPHA_IS_USUAL) *alpha = g->c == AT_C_NONE ? 1.0 : AT_GEMM_TEST_ALPHA;
  if (isnan(*beta) && how == NAN_BETA_IS_0) *beta = 0.0;
  if ((isinf(*beta) && how == INF_BETA_IS_1) || (how == BETA_IS_1 && *beta != 0.0)) *beta = 1.0;
}

static void multiply(const at_gemm *g, const at_gemm_operands *o, fault how) {
  const attune_dtype out = (attune_dtype)g->dtype_out;
  double alpha = 0.0, beta = 0.0;
  scalars_of(g, o, how, &alpha, &beta);
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        double x = alpha * sum_of(g, o, b, i, j, how);
        if (beta != 0.0 || (how == READS_C && g->c != AT_C_NONE))
          x += beta * read_c(oracle_load(o->c, out, (size_t)(b * g->stride_c + j * g->ldc + i)), how, out);
        if (how == MAX_FOR_INF && !isnan(x) && fabs(x) > largest(out)) x = copysign(largest(out), x);
        if (how == FLUSHES_OUTPUT && fabs(x) < smallest_normal(out)) x = 0.0;
        oracle_store(o->d, out, (size_t)(b * g->stride_d + j * g->ldd + i), x);
      }
}

static int launches;

/* The fault is in the configuration: "fault=3". */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *on) {
  int64_t how = NONE;
  (void)on;
  launches++;
  at_configuration_get(&plan->configuration, "fault", &how);
  multiply(at_gemm_of(plan->problem), operands, (fault)how);
  return ATTUNE_OK;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)problem, (void)on;
  return true;
}

static fault default_fault; /* of the default */
static int default_configurations(const at_implementation *self, const void *problem, attune_device *on,
                                  at_configuration *out, int max) {
  (void)self, (void)problem, (void)on;
  if (max < 1) return 0;
  snprintf(out[0].text, sizeof out[0].text, "fault=%d", (int)default_fault);
  return 1;
}

static attune_status prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}

static const at_implementation standard = {.name = "standard",
                                           .version = 1,
                                           .backend = "host",
                                           .supports = supports,
                                           .configurations = default_configurations,
                                           .prepare = prepare,
                                           .launch = launch};
static const at_implementation fake = {
    .name = "fake", .version = 1, .backend = "host", .supports = supports, .prepare = prepare, .launch = launch};
static const at_implementation *const implementations[] = {&standard, &fake};
static at_op op; /* gemm with these */

static at_gemm problem_of(const char *text) {
  at_gemm g;
  OK(at_gemm_parse(text, &g));
  return g;
}

static attune_status check_with(const char *text, const at_implementation *implementation, fault how,
                                char *default_lost, size_t size) {
  const at_gemm g = problem_of(text);
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  at_configuration configuration = {""};
  double error = 0.0;
  snprintf(configuration.text, sizeof configuration.text, "fault=%d", (int)how);
  OK(at_numerical_check_create(&check, &op, &g, stream, data));
  OK(at_plan_create(&plan, &op, implementation, &configuration, &g, device));
  launches = 0;
  const attune_status status = at_numerical_check_run(check, plan, &error);
  if (default_lost) at_numerical_check_rules(check, at_numerical_check_default_lost(check), default_lost, size);
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
  return status;
}

static attune_status run_check(const char *text, fault how) {
  return check_with(text, &fake, how, NULL, 0);
}

/* One element, vectors, few lines, many lines, batches, broadcast, transposes, each dtype. */
static const char *const PROBLEMS[] = {"gemm f64 nn 1x1x1 strict",
                                       "gemm f32 nn 1x1x7 strict",
                                       "gemm f64 nt 1x40x9 strict",
                                       "gemm f32 tn 33x1x2 strict",
                                       "gemm f64 nn 5x7x3 strict",
                                       "gemm f32 tt 13x17x5 strict",
                                       "gemm f64 tn 40x31x12 strict",
                                       "gemm f16 nn 25x30x9 strict",
                                       "gemm bf16 nt 6x35x11 strict",
                                       "gemm bf16:f32 nn 30x4x8 strict",
                                       "gemm f32 nn 9x8x7x3 strict",
                                       "gemm f64 nn 26x28x6x2 strict stride_a=broadcast",
                                       "gemm f32 tn 4x40x9 strict lda=11 ldb=16"};
static const char *const USES[] = {"", " beta", " beta=inplace"};

TEST(each_loss_is_caught) {
  default_fault = NONE;
  for (size_t i = 0; i < AT_COUNT(PROBLEMS); i++)
    for (size_t use = 0; use < AT_COUNT(USES); use++)
      for (int how = NONE + 1; how < FAULTS; how++) {
        char text[AT_PROBLEM_CHARS];
        snprintf(text, sizeof text, "%s%s", PROBLEMS[i], USES[use]);
        const at_gemm g = problem_of(text);
        if ((FAULT[how].needs_c && g.c == AT_C_NONE) || (how == READS_GAPS && g.lda == at_gemm_rows_a(&g))) continue;
        if (run_check(text, (fault)how) != ATTUNE_BAD_DATA) fail_msg("%s: %s: not caught", text, FAULT[how].name);
        const char *message = attune_last_message();
        if (!strstr(message, FAULT[how].words) && !(FAULT[how].or_words && strstr(message, FAULT[how].or_words)))
          fail_msg("%s: %s: %s", text, FAULT[how].name, message);
        if (!strstr(message, "fake fault=")) fail_msg("%s: the message names no plan: %s", text, message);
      }
}

TEST(what_is_right_passes) {
  static const char *const entangled[] = {
      "gemm f32 nn 3x4x5x2 strict beta lda=6 stride_a=3", "gemm f64 tn 30x40x9x3 strict stride_a=2 stride_b=1",
      "gemm f64 nn 30x40x9x2 strict beta ldc=60 stride_c=30", "gemm f64 nn 3x4x2x3 strict beta stride_c=2"};
  default_fault = NONE;
  for (size_t i = 0; i < AT_COUNT(entangled); i++) {
    if (run_check(entangled[i], NONE) != ATTUNE_OK) fail_msg("%s: %s", entangled[i], attune_last_message());
    assert_int_equal(run_check(entangled[i], NAN_ALPHA_IS_1), ATTUNE_BAD_DATA);
  }
  for (size_t i = 0; i < AT_COUNT(PROBLEMS); i++)
    for (size_t use = 0; use < AT_COUNT(USES); use++) {
      char text[AT_PROBLEM_CHARS];
      snprintf(text, sizeof text, "%s%s", PROBLEMS[i], USES[use]);
      if (run_check(text, NONE) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
    }
}

/* Other candidates may lose the values that the default loses, and no others; the default itself always passes. */
TEST(the_default_is_the_measure) {
  static const char text[] = "gemm f32 nn 30x40x9 strict beta";
  char lost[200];
  default_fault = FLUSHES_INPUTS;
  OK(check_with(text, &fake, FLUSHES_INPUTS, lost, sizeof lost));
  assert_string_equal(lost, "flushes denormals");
  assert_int_equal(check_with(text, &fake, NAN_BETA_IS_0, lost, sizeof lost), ATTUNE_BAD_DATA);
  assert_string_equal(attune_last_message() + strlen(attune_last_message()) - strlen("loses NaN of beta"),
                      "loses NaN of beta");
  OK(check_with(text, &fake, NONE, lost, sizeof lost));
  assert_string_equal(lost, "");
  OK(check_with(text, &standard, FLUSHES_INPUTS, lost, sizeof lost));
  assert_string_equal(lost, "");
  default_fault = NONE;
}

/* A large problem takes few launches more, and a default that wins takes none. */
TEST(it_costs_little) {
  default_fault = NONE;
  OK(run_check("gemm f32 nn 96x80x3 strict", NONE));
  assert_in_range(launches, 1, 9);
  OK(run_check("gemm f32 nn 96x80x3 strict beta", NONE));
  assert_in_range(launches, 1, 14);
  OK(check_with("gemm f32 nn 96x80x3 strict", &standard, NONE, NULL, 0));
  assert_int_equal(launches, 2); /* usual scalars, others */
}

/* A wrong one leaves nothing behind for the next. */
TEST(one_check_many_plans) {
  static const fault order[] = {NONE, CLEARS_NAN_A, NONE, READS_C, NONE, FLUSHES_C, CLEARS_INF_B, NONE};
  static const char *const texts[] = {"gemm f64 nn 27x33x10 strict beta", "gemm f64 nn 3x5x10 strict beta=inplace"};
  for (size_t t = 0; t < AT_COUNT(texts); t++) {
    const at_gemm g = problem_of(texts[t]);
    at_numerical_check *check = NULL;
    OK(at_numerical_check_create(&check, &op, &g, stream, data));
    for (size_t i = 0; i < AT_COUNT(order); i++) {
      at_configuration configuration = {""};
      at_plan *plan = NULL;
      double error = 0.0;
      snprintf(configuration.text, sizeof configuration.text, "fault=%d", (int)order[i]);
      OK(at_plan_create(&plan, &op, &fake, &configuration, &g, device));
      const attune_status status = at_numerical_check_run(check, plan, &error);
      if ((status == ATTUNE_OK) != (order[i] == NONE)) fail_msg("plan %zu: %s", i, attune_last_message());
      if (order[i] == NONE) assert_true(error >= 0.0 && error <= 1.0);
      at_plan_destroy(plan);
    }
    at_numerical_check_destroy(check);
  }
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  op = at_gemm_op;
  op.implementations = implementations;
  op.implementation_count = AT_COUNT(implementations);
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  return failed;
}
