/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_epilogue.c: every implementation that takes an epilogue on a GPU, by the conformance cases that have
 * one: on ordinary data, with other scalars and with special values, between guards. What is attune's own must be
 * right; cuBLASLt's algorithms may lose special values that the first step's default keeps, and are listed. Exits 77
 * where there is no GPU. ATTUNE_TEST_PROBLEMS: how many cases (90). */
#include "tests/support/check.h"

#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "tests/ops/op_test.h"
#include "tests/support/decision.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/registry.h"

enum { MOST = 256, NAMES = 32 };
static const double SWEEP_NS = 90e9; /* then no further case is begun */

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int wanted = 90;

static struct {
  const char *name;
  int cases, plans, refused, wrong;
} seen[NAMES];

static void check_plan(at_numerical_check *check, const at_implementation *one, const at_configuration *configuration,
                       const at_gemm *g, const char *text, size_t number) {
  at_plan *plan = NULL;
  double error = 0.0;
  if (at_plan_create(&plan, &at_gemm_op, one, configuration, g, device) != ATTUNE_OK) {
    print_message("%s %s for %s: %s\n", one->name, configuration->text, text, attune_last_message());
    seen[number].wrong += strstr(one->name, "cublas") == NULL;
    return;
  }
  const attune_status status = at_numerical_check_run(check, plan, &error);
  seen[number].plans++;
  seen[number].refused += status == ATTUNE_BAD_DATA;
  if (status != ATTUNE_OK) {
    print_message("%s, %s \"%s\": error %g: %s\n", text, one->name, configuration->text, error, attune_last_message());
    seen[number].wrong += status != ATTUNE_BAD_DATA || strstr(one->name, "cublas") == NULL;
  }
  at_plan_destroy(plan);
}

static void check_case(const at_gemm *g, int index) {
  static at_configuration all[MOST];
  char text[AT_PROBLEM_CHARS];
  at_numerical_check *check = NULL;
  OK(at_gemm_format(g, text, sizeof text));
  OK(at_numerical_check_create(&check, &at_gemm_op, g, stream, data));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (strcmp(one->backend, "cuda") != 0 || !one->supports(one, g, device)) continue;
    const int count = one->configurations(one, g, device, all, MOST);
    seen[i].name = one->name;
    seen[i].cases++;
    const int picks[] = {0, count > 1 ? index % count : -1, count > 2 ? count - 1 : -1};
    for (int j = 0; j < 3; j++)
      if (picks[j] >= 0 && picks[j] < count) check_plan(check, one, &all[picks[j]], g, text, i);
  }
  at_numerical_check_destroy(check);
}

TEST(each_case_by_each) {
  const at_op_test *op_test = at_op_test_at(AT_OP_GEMM);
  const int64_t start = at_now_ns();
  const int count = op_test->case_count();
  int done = 0, wrong = 0, refused = 0;
  for (int index = count - 1; index >= 0 && done < wanted && (double)(at_now_ns() - start) < SWEEP_NS; index -= 3) {
    uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
    if (!op_test->case_at(index, problem)) continue;
    if (!at_gemm_has_epilogue(at_gemm_of(problem))) continue;
    at_gemm_op.problem->fold(problem, device);
    check_case(at_gemm_of(problem), index);
    done++;
  }
  for (size_t i = 0; i < NAMES; i++) {
    if (!seen[i].name) continue;
    print_message("%s: %d cases, %d plans, %d refused\n", seen[i].name, seen[i].cases, seen[i].plans, seen[i].refused);
    wrong += seen[i].wrong;
    refused += seen[i].refused;
  }
  print_message("%d cases, %d refused\n", done, refused);
  assert_int_equal(wrong, 0);
  assert_true(done >= (wanted < 20 ? wanted : 20));
}

/* Each by every implementation that takes it: by the first, the last and some other configuration. */
static void check_texts(const char *const *texts, size_t count) {
  int wrong = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
    OK(at_gemm_parse(texts[i], problem));
    at_gemm_op.problem->fold(problem, device);
    for (int number = 1; number < 4; number++) check_case(at_gemm_of(problem), number + 3 * (int)i);
  }
  for (size_t i = 0; i < NAMES; i++) {
    if (seen[i].name) print_message("%s: %d cases, %d plans\n", seen[i].name, seen[i].cases, seen[i].plans);
    wrong += seen[i].wrong;
  }
  assert_int_equal(wrong, 0);
}

/* Gated products, in the registers of warpgroups and by a pass over scratch memory, whole and in pieces. */
TEST(gated) {
  static const char *const texts[] = {
      "gemm bf16 tn 8192x16x1024 strict gated=m silu",
      "gemm bf16 tn 2048x512x256 strict gated=m gelu_tanh bias=m residual",
      "gemm f16 tn 1024x256x512 strict gated=m silu bias=n clamp",
      "gemm f16 tn 16x4096x1024 strict gated=n silu",
      "gemm bf16 tn 300x2048x520 strict gated=n gelu bias=n residual ld_residual=304",
      "gemm bf16 nn 1000x200x96 strict gated=m silu",
      "gemm f16 nt 520x264x200 strict gated=m gelu_tanh bias=m",
      "gemm bf16 tt 264x520x1000 strict gated=n silu bias=n",
      "gemm bf16:f32 tn 1024x128x512 strict gated=m silu residual",
      "gemm bf16 tn 512x256x256x4 strict gated=m sigmoid",
      "gemm bf16 tn 256x514x256x3 strict gated=n relu bias=n:f32",
      "gemm f32 nn 256x256x256 strict gated=m silu",
      "gemm f32 tn 130x70x64 strict gated=n gelu bias=m",
      "gemm f64 nn 130x70x64 strict gated=m silu residual",
      "gemm bf16 tn 2048x1000x256 strict gated=m silu bias=n residual workspace=1500000",
      "gemm bf16 tn 1000x2048x256x2 strict gated=n silu bias=m residual workspace=1500000",
      "gemm bf16 tn 2048x300x1001 strict gated=m silu lda=1003 ldb=1005",
      "gemm f16 nt 1026x264x1000 strict gated=m silu bias=m lda=1027 ldb=265",
      "gemm bf16 tn 301x2050x1001 strict gated=n silu bias=n residual ld_residual=303 align=2",
      "gemm f16 tn 250x64x64 strict gated=m scale_d",
      "gemm bf16 tn 8x8x64 strict gated=n tanh"};
  check_texts(texts, AT_COUNT(texts));
}

/* Of sizes that every family wants. */
TEST(matrices_in_registers) {
  static const char *const texts[] = {
      "gemm bf16 tn 1024x512x256 strict bias=m gelu_tanh residual",
      "gemm f16 tn 4096x16x1024 strict bias=m residual scale_d",
      "gemm bf16 tn 512x512x256 strict scale_d",
      "gemm bf16 tn 4096x1x1024 strict silu residual",
      "gemm bf16 nn 520x264x200 strict bias=n residual clamp",
      "gemm f16 tt 333x200x96 strict bias=m:f32 gelu aux=input residual ld_residual=340",
      "gemm bf16 tn 512x256x256x4 strict bias=m gelu_tanh aux=input residual",
      "gemm bf16:f32 tn 1024x128x512 strict silu aux=input ld_aux=1032",
      "gemm bf16 nt 768x256x512 strict gelu_tanh gradient aux=input",
      "gemm f16 nt 768x256x512 strict relu gradient aux=mask residual",
      "gemm bf16 tn 2048x8x512 strict relu gradient aux=mask",
      "gemm f32 nn 256x256x256 strict bias=m gelu residual aux=input",
      "gemm f32 tn 1024x8x512 strict tanh gradient aux=input residual",
      "gemm bf16 nn 264x520x1000 strict bias=m residual beta=inplace",
      "gemm bf16 tn 16x4096x1024 strict bias=n residual"};
  check_texts(texts, AT_COUNT(texts));
}

/* Problems of the sizes that fast kernels want, tuned as by a program; the winner is verified by the search. */
TEST(tuned) {
  static const char *const texts[] = {"gemm bf16 tn 1024x512x256 strict bias=m gelu_tanh",
                                      "gemm f16 tn 4096x16x1024 strict bias=m silu",
                                      "gemm bf16 nn 512x512x512 strict bias=n relu aux=mask",
                                      "gemm f16 nt 768x256x512 strict gelu_tanh gradient aux=input bias-gradient=m",
                                      "gemm f32 nn 256x256x256 strict bias=m gelu residual",
                                      "gemm bf16 tn 512x256x256x4 strict bias=m sigmoid clamp",
                                      "gemm f64 nn 128x128x128 strict bias=n tanh",
                                      "gemm bf16 tn 2048x64x512 strict bias=m residual",
                                      "gemm bf16 tn 22016x512x4096 strict gated=m silu",
                                      "gemm bf16 tn 22016x16x4096 strict gated=m silu",
                                      "gemm f16 tn 512x8192x2048 strict gated=n gelu_tanh bias=n residual"};
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}));
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    DECISION(decision);
    OK(attune_tune(tuner, device, texts[i], &(attune_tune_options){.budget_ms = 400.0}, decision));
    const attune_decision_info info = info_of(decision);
    assert_int_equal(info.source, ATTUNE_SOURCE_TUNED);
    print_message("%s: %s %s, %.2f us, default %.2f us, %d measured, %d rejected%s\n", texts[i], info.implementation,
                  info.configuration, info.time_ns / 1e3, info.default_time_ns / 1e3, info.candidates, info.rejected,
                  info.complete ? "" : ", incomplete");
  }
  attune_tuner_destroy(tuner);
}

/* The pass's own, which a residual asks for: the slope of gelu_tanh is 1 or 0 where the cube of aux overflows. */
TEST(gelu_tanh_gradient_of_large_numbers) {
  static const float ones[] = {1, 1, 1, 1, 1, 1}, aux[] = {1e18f, 5e19f, 3e38f, -1e18f, -5e19f, -3e38f};
  enum { COUNT = 6, OPERANDS = 5, APART = 16 };
  float out[COUNT], *memory = NULL;
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}));
  OK(attune_alloc((void **)&memory, stream, OPERANDS * APART * sizeof(float)));
  OK(attune_fill(stream, memory, 0, OPERANDS * APART * sizeof(float)));
  float *const a = memory, *const b = a + APART, *const x = b + APART, *const residual = x + APART,
               *const d = residual + APART;
  OK(attune_copy(stream, a, ones, sizeof ones));
  OK(attune_copy(stream, b, ones, sizeof *ones));
  OK(attune_copy(stream, x, aux, sizeof aux));
  const attune_gemm_problem p = {
      .dtype = ATTUNE_F32,
      .m = COUNT,
      .n = 1,
      .k = 1,
      .epilogue = {.activation = ATTUNE_ACTIVATION_GELU_TANH, .aux = ATTUNE_AUX_INPUT, .gradient = 1, .residual = 1}};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d, .residual = residual, .aux = x};
  OK(attune_gemm(tuner, stream, &p, &o));
  OK(attune_copy(stream, out, d, sizeof out));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < COUNT; i++) assert_true(out[i] == (i < 3 ? 1.0f : 0.0f));
  OK(attune_free(memory, stream));
  attune_tuner_destroy(tuner);
}

int main(int argc, char **argv) {
  const char *problems = argc > 1 ? argv[1] : getenv("ATTUNE_TEST_PROBLEMS");
  if (problems) wanted = atoi(problems);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (at_random_create(&data, 5) != ATTUNE_OK || attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  at_random_destroy(data);
  return failed;
}
