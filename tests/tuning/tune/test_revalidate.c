/* SPDX-License-Identifier: Apache-2.0
 * test_revalidate.c: a stored winner that holds, gains less than it claimed, is slower than the default, is wrong, is
 * gone. */
#include "tests/support/check.h"

#include "tests/support/toy/toy_clock.h"
#include "tuning/tune/tune.h"
#include "tuning/tuner/tuner.h"

static attune_device *device;
static at_timer *timer;
static attune_recheck out;
static attune_decision stored;

/* Checks "spin" with that configuration, of which a winner claims the speedup; the default takes 200 us. */
static attune_status recheck(const char *configuration, double claim) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  memset(&out, 0, sizeof out);
  memset(&stored, 0, sizeof stored);
  at_copy_text(stored.implementation, sizeof stored.implementation, "spin");
  at_copy_text(stored.configuration, sizeof stored.configuration, configuration);
  stored.implementation_version = 1;
  stored.time_ns = 200e3 / claim;
  stored.default_time_ns = 200e3;
  return at_revalidate(&out, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, &stored, 60e6);
}

static void expect(const char *configuration, double claim, attune_verdict verdict) {
  OK(recheck(configuration, claim));
  if (out.verdict == verdict) return;
  fail_msg("%s, claimed %.2f: verdict %d, speedup %.3f, error %.3f", configuration, claim, (int)out.verdict,
           out.speedup, out.error);
}

TEST(verdicts) {
  toy_reset();
  expect("ns=100000", 2.0, ATTUNE_VERDICT_HOLDS);
  assert_true(out.speedup > 1.7 && out.speedup < 2.3 && out.samples >= 4 && out.max_error <= 1.0);
  assert_true(out.time_ns > 90e3 && out.default_time_ns > 1.7 * out.time_ns);
  expect("ns=150000", 2.0, ATTUNE_VERDICT_GAINS_LESS);
  expect("ns=300000", 2.0, ATTUNE_VERDICT_SLOWER);
  expect("ns=300000", 1.0, ATTUNE_VERDICT_SLOWER);
  expect("ns=100000,fault=wrong", 2.0, ATTUNE_VERDICT_WRONG);
  expect("ns=100000,fault=nan", 2.0, ATTUNE_VERDICT_WRONG);
}

static attune_status (*prepare_base)(at_plan *plan);
static void (*destroy_base)(at_plan *plan);
static int made, alive;

static attune_status prepare_counted(at_plan *plan) {
  const attune_status status = prepare_base(plan);
  made += status == ATTUNE_OK;
  alive += status == ATTUNE_OK;
  return status;
}

static void destroy_counted(at_plan *plan) {
  alive -= plan->state != NULL;
  destroy_base(plan);
}

/* The default as the winner has one plan, which is given back. */
TEST(the_default_is_prepared_once) {
  toy_reset();
  const at_key key = toy_key(TOY_PROBLEM, device);
  memset(&out, 0, sizeof out);
  memset(&stored, 0, sizeof stored);
  at_copy_text(stored.implementation, sizeof stored.implementation, toy_base_implementation.name);
  at_copy_text(stored.configuration, sizeof stored.configuration, toy_base);
  stored.implementation_version = 1;
  stored.time_ns = stored.default_time_ns = 200e3;
  prepare_base = toy_base_implementation.prepare, destroy_base = toy_base_implementation.destroy;
  toy_base_implementation.prepare = prepare_counted, toy_base_implementation.destroy = destroy_counted;
  made = alive = 0;
  const attune_status status =
      at_revalidate(&out, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, &stored, 60e6);
  toy_reset();
  OK(status);
  assert_int_equal(out.verdict, ATTUNE_VERDICT_HOLDS);
  assert_int_equal(made, 1);
  assert_int_equal(alive, 0);
}

/* Even far slower than what a search would look at twice. */
TEST(a_very_slow_one_is_timed) {
  toy_reset();
  expect("ns=2000000", 2.0, ATTUNE_VERDICT_SLOWER);
}

TEST(what_is_gone_is_not_found) {
  toy_reset();
  toy_refused = "ns=100000";
  assert_int_equal(recheck("ns=100000", 2.0), ATTUNE_NOT_FOUND);
  toy_refused = NULL;
  memset(&out, 0, sizeof out);
  memset(&stored, 0, sizeof stored);
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_copy_text(stored.implementation, sizeof stored.implementation, "nobody");
  assert_int_equal(at_revalidate(&out, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, &stored, 1e6),
                   ATTUNE_NOT_FOUND);
}

/* The public call: from a real search to a real recheck. */
TEST(the_public_call) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  virtual_clock_stop();
  char path[] = "/tmp/attune-test-recheck-XXXXXX";
  assert_non_null(mkdtemp(path));
  char database[64], journal[80];
  snprintf(database, sizeof database, "%s/tuning.db", path);
  snprintf(journal, sizeof journal, "%s-journal", database);
  options.database = database;
  OK(attune_tuner_create(&tuner, &options));
  const char *problem = "gemm f64 nn 40x40x40 strict";
  FAILS_SAYING(attune_verify(tuner, device, problem, 0.0, NULL, &out), ATTUNE_NOT_FOUND, problem);
  OK(attune_tune(tuner, device, problem, &(attune_tune_options){.budget_ms = 60.0}, NULL));
  OK(attune_verify(tuner, device, problem, 40.0, &stored, &out));
  assert_string_equal(stored.problem, problem);
  assert_true(out.verdict >= ATTUNE_VERDICT_HOLDS && out.verdict <= ATTUNE_VERDICT_UNSURE &&
              out.verdict != ATTUNE_VERDICT_WRONG);
  assert_true(out.time_ns > 0.0 && out.speedup > 0.0 && out.samples >= 4);
  OK(attune_tuner_set_search(tuner, &(attune_search_options){.rounds = 5}));
  OK(attune_verify(tuner, device, problem, 40.0, NULL, &out));
  assert_in_range(out.samples, 4, 5);
  assert_int_equal(attune_verify(NULL, device, problem, 0.0, NULL, &out), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_verify(tuner, device, "gemm f64 nn", 0.0, NULL, &out), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_verify(tuner, device, "fft 8", 0.0, NULL, &out), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
  remove(database);
  remove(journal);
  remove(path);
}

FIXTURE(open_all) {
  toy_reset();
  return attune_device_get(&device, "host") != ATTUNE_OK || at_timer_create(&timer, device) != ATTUNE_OK;
}

FIXTURE(close_all) {
  at_timer_destroy(timer);
  return 0;
}

int main(void) {
  virtual_clock_start();
  return RUN_TESTS(open_all, close_all);
}
