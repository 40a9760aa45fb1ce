/* SPDX-License-Identifier: Apache-2.0
 * test_conformance_stream.c: every implementation of the host and every public call keeps the order of its stream, for
 * each operation; and implementations and calls that do not are found. */
#include "tests/ops/conformance.h"

#include "ops/ops.h"
#include "tests/support/toy/toy_op.h"
#include "tests/support/toy/wide_op.h"
#include "tuning/tuner/tuner.h"

enum { CASES = 16, CONFIGURATIONS = 2, PATIENCE_MS = 60000 };

static attune_device *device;
static at_random *data[2];
static int checked;

static void keeps_order(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  conform_scene s;
  conform_open_scene(&s, op_test, problem, device, data, PATIENCE_MS);
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, "host") == 0 && implementation->supports(implementation, problem, device))
      checked += conform_implementation(&s, implementation, CONFIGURATIONS, text);
  }
  conform_close_scene(&s);
}

TEST(implementations_keep_the_order) {
  static const char *const spins[] = {"ns=1,a=1", "ns=1,a=2", NULL};
  toy_spins = wide_spins = spins;
  for (int i = 0; i < at_op_count; i++) assert_true(conform_cases(at_op_test_at(i), device, CASES, keeps_order) > 3);
  assert_true(conform_cases(&toy_op_test, device, CASES, keeps_order) > 3);
  assert_true(conform_cases(&wide_op_test, device, CASES, keeps_order) > 3);
  assert_true(checked > (getenv("AT_UNDER_VALGRIND") ? 15 : 60));
}

/* ---- what does not is found ---- */

/* What is wrong with the toy operation, as it is now, and its configuration. */
static const char *found(const char *configuration, int patience_ms) {
  const at_key key = toy_key(TOY("f64 5x3"), device);
  conform_scene s;
  at_configuration c;
  at_plan *plan = NULL;
  at_copy_text(c.text, sizeof c.text, configuration);
  conform_open_scene(&s, &toy_op_test, key.words + 1, device, data, patience_ms);
  OK(at_plan_create(&plan, &toy_op, &toy_base_implementation, &c, s.problem, device));
  const char *why = conform_plan(&s, plan, NULL);
  at_plan_destroy(plan);
  conform_close_scene(&s);
  return why;
}

#define FINDS(configuration, words)                         \
  do {                                                      \
    const char *finds_why = found(configuration, 60000);    \
    assert_string_equal(finds_why ? finds_why : "", words); \
  } while (0)

TEST(implementations_that_do_not_are_found) {
  FINDS("ns=1", "");
  FINDS("ns=1,fault=early", "runs before its turn in the stream");
  FINDS("ns=1,fault=frozen", "gives wrong numbers in a replay");
  FINDS("ns=1,fault=wrong", "gives wrong numbers behind a call that waits");
  FINDS("ns=1,fault=launch", "fails behind a call that waits");
  const char *why = found("ns=1,fault=waits", 10); /* it waits for as long as the gate does, however long that is */
  assert_string_equal(why ? why : "", "makes its caller wait for the stream");
}

/* On the inline stream. */
static attune_status call_elsewhere(attune_tuner *tuner, attune_stream *stream, const void *problem,
                                    const void *operands) {
  return toy_call(tuner, attune_stream_default(stream->device), problem, operands);
}

/* In order but while it is captured. */
static attune_status call_in_capture(attune_tuner *tuner, attune_stream *stream, const void *problem,
                                     const void *operands) {
  return stream->capture ? call_elsewhere(tuner, stream, problem, operands)
                         : toy_call(tuner, stream, problem, operands);
}

/* Another problem that gives the same numbers: it comes to the default. */
static attune_status call_another(attune_tuner *tuner, attune_stream *stream, const void *problem,
                                  const void *operands) {
  toy other = *toy_of(problem);
  other.deterministic = !other.deterministic;
  return toy_call(tuner, stream, &other, operands);
}

static attune_status create_none(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                                 const void *operands) {
  (void)tuner, (void)stream, (void)problem, (void)operands;
  *out = NULL;
  return at_fail(ATTUNE_UNSUPPORTED, "no plans");
}

static attune_status run_elsewhere(const attune_plan *plan, attune_stream *stream, const void *operands) {
  return toy_plan_run(plan, attune_stream_default(stream->device), operands);
}

/* With a scale of its own. */
static attune_status run_stale(const attune_plan *plan, attune_stream *stream, const void *operands) {
  toy_operands o = *(const toy_operands *)operands;
  o.scale = 2.0;
  return toy_plan_run(plan, stream, &o);
}

TEST(calls_that_do_not_are_found) {
  toy_op_test.call = call_elsewhere;
  FINDS("ns=1", "runs before its turn in the stream");
  toy_op_test.call = call_in_capture;
  FINDS("ns=1", "runs while it is captured");
  toy_op_test.call = call_another;
  FINDS("ns=1", "is not what the public call comes to");
  toy_op_test.call = toy_call;
  toy_op_test.plan_create = create_none;
  FINDS("ns=1", "has no plan by plan_create");
  toy_op_test.plan_create = toy_plan_create;
  toy_op_test.plan_run = run_elsewhere;
  FINDS("ns=1", "runs before its turn in the stream");
  toy_op_test.plan_run = run_stale;
  FINDS("ns=1", "gives wrong numbers behind a call that waits");
  toy_op_test.plan_run = toy_plan_run;
  FINDS("ns=1", "");
}

int main(void) {
  at_copy_text(toy_base, sizeof toy_base, "ns=1");
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  for (int i = 0; i < 2; i++)
    if (at_random_create(&data[i], 3 + (uint64_t)i) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  for (int i = 0; i < 2; i++) at_random_destroy(data[i]);
  return failed;
}
