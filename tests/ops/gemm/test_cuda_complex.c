/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_complex.c: complex products on a GPU where they differ from real ones: accuracies beyond strict, three
 * products for four, conjugates and complex scalars through calls, plans and captures, alignment. The cases of
 * test_cuda_gemm have strict ones. Exits 77 where there is no GPU. */
#include <attune/attune.h>

#include "ops/gemm/implementations.h"
#include "tests/ops/gemm/gemm_mirror.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/registry.h"
#include "tuning/store/decision.h"

enum { MOST = 256 };

static attune_device *device;
static attune_stream *stream;
static at_random *data;

/* ---- each implementation, beyond strict ---- */

static int runs, refused, runs_of_3m;

/* As in a search: a plan that verification refuses is no candidate. */
static bool verified(at_numerical_check *verifier, const at_plan *plan) {
  double error = 0.0;
  const attune_status status = at_numerical_check_run(verifier, plan, &error);
  if (status == ATTUNE_OK) return true;
  if (status != ATTUNE_BAD_DATA) fail_msg("%s: %s", plan->implementation->name, attune_last_message());
  print_message("refused: %s %s: %s\n", plan->implementation->name, plan->configuration.text, attune_last_message());
  refused++;
  return false;
}

static void run_configuration(mirror *m, const at_implementation *implementation, const at_configuration *configuration,
                              at_numerical_check *verifier, const at_gemm *g, bool swap) {
  attune_gemm_operands operands = mirror_operands(m);
  const void *a = operands.a;
  at_plan *plan = NULL;
  if (swap) operands.a = operands.b, operands.b = a;
  OK(at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device));
  if (implementation == &at_gemm_cublas || verified(verifier, plan)) {
    mirror_write(m);
    OK(plan->launch(plan, &operands, stream));
    mirror_check(m, implementation->name);
    runs++;
    runs_of_3m += implementation == &at_gemm_cublas_3m;
  }
  at_plan_destroy(plan);
}

static void run_case(const at_gemm_case *c, int index) {
  static at_configuration list[MOST];
  oracle o;
  mirror m;
  at_gemm g;
  bool swap = false;
  at_numerical_check *verifier = NULL;
  oracle_open(&o, c);
  mirror_open(&m, &o, stream);
  OK(at_gemm_normalise(&c->problem, (at_gemm_use){c->c, (uint8_t)c->alignment}, &g, &swap));
  OK(at_numerical_check_create(&verifier, &at_gemm_op, &g, stream, data));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *implementation = at_gemm_op.implementations[i];
    if (!at_registry_usable(implementation, &g, device)) continue;
    const int count = implementation->configurations(implementation, &g, device, list, MOST);
    if (count > 0) run_configuration(&m, implementation, &list[index % count], verifier, &g, swap);
  }
  at_numerical_check_destroy(verifier);
  mirror_close(&m);
  oracle_close(&o);
}

TEST(each_implementation_beyond_strict) {
  int cases = 0;
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c;
    at_gemm_case_at(index, &c);
    const attune_gemm_problem *p = &c.problem;
    if (!at_gemm_complex(p->dtype) || !is_for_gpus(&c) || index / 8 % 3) continue;
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch < 0 || (c.alpha == 0.0 && c.alpha_imag == 0.0)) continue;
    c.problem.contract.accuracy = cases++ % 3 ? ATTUNE_EQUIVALENT : ATTUNE_REDUCED;
    run_case(&c, index);
  }
  print_message("%d cases, %d runs, %d of three products, %d refused\n", cases, runs, runs_of_3m, refused);
  assert_true(cases > 40 && runs >= 2 * cases && runs_of_3m > 20 && refused < runs / 20);
}

/* ---- three products for four ---- */

static at_gemm problem_of(const char *text) {
  at_gemm g;
  OK(at_gemm_parse(text, &g));
  return g;
}

static bool supports_3m(const char *text) {
  const at_gemm g = problem_of(text);
  return at_gemm_cublas_3m.supports(&at_gemm_cublas_3m, &g, device);
}

TEST(three_products_are_not_strict) {
  assert_false(supports_3m("gemm c64 nn 64x64x64 strict"));
  assert_false(supports_3m("gemm f32 nn 64x64x64 equivalent"));
  assert_false(supports_3m("gemm c128 nn 64x64x64x3 equivalent")); /* cuBLAS has none */
  assert_true(supports_3m("gemm c64 nn 64x64x64x3 equivalent"));
  assert_true(supports_3m("gemm c128 nc 64x64x64 equivalent"));
  assert_true(supports_3m("gemm c64 nn 64x64x64 reduced"));
}

/* The error, in units of what is allowed. */
static double error_of(const at_implementation *implementation, const at_gemm *g, at_numerical_check *verifier) {
  const at_configuration none = {""};
  at_plan *plan = NULL;
  double error = -1.0;
  OK(at_plan_create(&plan, &at_gemm_op, implementation, &none, g, device));
  OK(at_numerical_check_run(verifier, plan, &error));
  at_plan_destroy(plan);
  return error;
}

TEST(three_products_are_as_exact) {
  static const char *const texts[] = {"gemm c64 nc 300x200x2000 equivalent beta",
                                      "gemm c128 tn 256x256x1024 equivalent", "gemm c64 ct 33x65x700x7 equivalent"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    const at_gemm g = problem_of(texts[i]);
    at_numerical_check *verifier = NULL;
    OK(at_numerical_check_create(&verifier, &at_gemm_op, &g, stream, data));
    const double four = error_of(&at_gemm_cublas, &g, verifier), three = error_of(&at_gemm_cublas_3m, &g, verifier);
    print_message("%s: four products %.3f, three %.3f of what is allowed\n", texts[i], four, three);
    assert_true(four > 0.0 && three > 0.0 && three <= 1.0);
    at_numerical_check_destroy(verifier);
  }
}

/* ---- public calls ---- */

static at_gemm_case conjugated_case(attune_dtype dtype, at_gemm_c use) {
  at_gemm_case c = plain_case(dtype, dtype, 37, 29, 41, 5);
  c.problem.trans_a = ATTUNE_C, c.problem.trans_b = ATTUNE_C;
  c.alpha_imag = 0.5;
  c.c = use;
  if (use != AT_C_NONE) c.beta = 0.75, c.beta_imag = -2.0;
  return c;
}

static void replay_a_plan(attune_tuner *tuner, const at_gemm_case *c) {
  oracle o;
  mirror m;
  attune_plan *plan = NULL;
  attune_graph *graph = NULL;
  oracle_open(&o, c);
  mirror_open(&m, &o, stream);
  const attune_gemm_operands operands = mirror_operands(&m);
  OK(attune_gemm_plan_create(&plan, tuner, stream, &c->problem, &operands));
  OK(attune_gemm_plan_run(plan, stream, &operands));
  mirror_check(&m, "a plan");
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_gemm_plan_run(plan, stream, &operands));
  OK(attune_graph_capture_end(graph, stream));
  for (int turn = 0; turn < 2; turn++) {
    oracle_reset(&o);
    mirror_write(&m);
    OK(attune_graph_replay(graph, stream));
    mirror_check(&m, "a replay");
  }
  attune_graph_destroy(graph);
  attune_plan_destroy(plan);
  mirror_close(&m);
  oracle_close(&o);
}

/* With the default, then with what a search finds. */
TEST(calls_plans_and_replays) {
  static const attune_mode modes[] = {ATTUNE_MODE_OFF, ATTUNE_MODE_TUNE};
  for (size_t i = 0; i < AT_COUNT(modes); i++) {
    attune_tuner *tuner = NULL;
    const attune_tuner_options options = {.database = "", .mode = modes[i], .budget_ms = 500 * test_patience()};
    OK(attune_tuner_create(&tuner, &options));
    for (int kind = 0; kind < 6; kind++) {
      const at_gemm_case c = conjugated_case(kind % 2 ? ATTUNE_C128 : ATTUNE_C64, (at_gemm_c)(kind / 2));
      call_and_check(tuner, stream, &c, "a call");
      replay_a_plan(tuner, &c);
    }
    attune_tuner_destroy(tuner);
  }
}

/* No kernel loads an element that lies across its own size. */
TEST(elements_are_whole) {
  attune_tuner *tuner = NULL;
  attune_plan *plan = NULL;
  attune_decision decision;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_CACHED}));
  for (int kind = 0; kind < 2; kind++) {
    at_gemm_case c = plain_case(kind ? ATTUNE_C128 : ATTUNE_C64, (attune_dtype)0, 16, 16, 16, 1);
    oracle o;
    mirror m;
    c.alignment = kind ? 8 : 4;
    oracle_open(&o, &c);
    mirror_open(&m, &o, stream);
    attune_gemm_operands operands = mirror_operands(&m);
    const char *word = kind ? "aligned to 8 bytes" : "aligned to 4 bytes";
    FAILS_SAYING(attune_gemm(tuner, stream, &c.problem, &operands), ATTUNE_INVALID_ARGUMENT, word);
    FAILS_SAYING(attune_gemm_plan_create(&plan, tuner, stream, &c.problem, &operands), ATTUNE_INVALID_ARGUMENT, word);
    operands.alpha = 0.0; /* nothing to multiply */
    FAILS_SAYING(attune_gemm(tuner, stream, &c.problem, &operands), ATTUNE_INVALID_ARGUMENT, word);
    mirror_close(&m);
    oracle_close(&o);
    c.alignment *= 2;
    call_and_check(tuner, stream, &c, "whole elements");
  }
  FAILS(attune_tune(tuner, device, "gemm c64 nn 16x16x16 strict align=4", NULL, &decision), ATTUNE_UNSUPPORTED);
  attune_tuner_destroy(tuner);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (at_random_create(&data, 3) != ATTUNE_OK || attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  at_random_destroy(data);
  return failed;
}
