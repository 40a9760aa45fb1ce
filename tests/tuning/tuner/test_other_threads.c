/* SPDX-License-Identifier: Apache-2.0
 * test_other_threads.c: one database serves a host with 1 to 64 CPUs: each number of CPUs has its own winners, and
 * where one has none the nearest of another runs with the threads that there are, watched, before the vendor's
 * default. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <attune/tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/plans/guard.h"

static attune_device *device;
static char folder[] = "/tmp/attune-test-threads-XXXXXX", database[64];
static int cpus; /* that this process may use */

int __wrap_at_cpu_count(void);
int __wrap_at_cpu_count(void) {
  return cpus;
}

static int fresh(void **state) {
  (void)state;
  toy_reset();
  (void)remove(database);
  cpus = 2;
  return 0;
}

static attune_tuner *open_tuner(void) {
  attune_tuner *tuner = NULL;
  const attune_tuner_options options = {.database = database, .mode = ATTUNE_MODE_CACHED};
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  return tuner;
}

/* With so many CPUs: tunes among some candidates, in a process of its own as far as winners are concerned. */
static attune_decision tune_with(int count, const char *const *spins, bool force) {
  attune_decision d;
  cpus = count;
  toy_spins = spins;
  attune_tuner *tuner = open_tuner();
  OK(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 500.0, .force = force}, &d));
  attune_tuner_destroy(tuner);
  return d;
}

static attune_decision explain_with(int count) {
  attune_decision d;
  cpus = count;
  attune_tuner *tuner = open_tuner();
  OK(attune_explain(tuner, device, TOY_PROBLEM, &d));
  attune_tuner_destroy(tuner);
  return d;
}

static void expect_choice(const attune_decision *d, attune_source source, const char *configuration) {
  if (d->source != source || strcmp(d->configuration, configuration) != 0)
    fail_msg("with %d CPUs: source %d, %s %s (%s; %s)", cpus, d->source, d->implementation, d->configuration, d->note,
             d->changed);
}

static const char *const TWO[] = {"ns=60000,threads=2", NULL}, *const ONE[] = {"ns=90000,threads=1", NULL},
                         *const MANY[] = {"ns=1000,threads=64", NULL};

static int count_winner(void *user, const attune_decision *d, const char *fingerprint, int valid) {
  int *counts = user;
  (void)d;
  assert_non_null(strstr(fingerprint, "; with threads "));
  counts[valid != 0]++;
  return 0;
}

TEST(each_number_has_its_winner) {
  attune_decision d = tune_with(2, TWO, false);
  expect_choice(&d, ATTUNE_SOURCE_TUNED, "ns=60000,threads=2");
  d = tune_with(1, ONE, false);
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  d = tune_with(1, ONE, true); /* destroys nothing of the other */
  d = tune_with(64, MANY, false);
  expect_choice(&d, ATTUNE_SOURCE_TUNED, "ns=1000,threads=64");
  d = explain_with(2);
  expect_choice(&d, ATTUNE_SOURCE_STORED, "ns=60000,threads=2");
  d = explain_with(64);
  expect_choice(&d, ATTUNE_SOURCE_STORED, "ns=1000,threads=64");
  assert_int_equal(explain_with(1).source, ATTUNE_SOURCE_STORED);
  int counts[2] = {0, 0};
  cpus = 2;
  attune_tuner *tuner = open_tuner();
  OK(attune_tuner_winners(tuner, count_winner, counts));
  attune_tuner_destroy(tuner);
  assert_int_equal(counts[1], 1);
  assert_int_equal(counts[0], 2);
  d = tune_with(2, MANY, false); /* complete and sure: nothing is measured */
  expect_choice(&d, ATTUNE_SOURCE_STORED, "ns=60000,threads=2");
}

static int find_trial(void *user, const attune_trial *trial) {
  const char **wanted = user;
  if (strcmp(trial->configuration, wanted[0]) == 0) wanted[1] = trial->configuration;
  if (strcmp(trial->configuration, wanted[2]) == 0) wanted[3] = trial->configuration;
  return 0;
}

static void expect_trials(int count, const char *here, const char *elsewhere) {
  const char *wanted[] = {here, NULL, elsewhere, NULL};
  cpus = count;
  attune_tuner *tuner = open_tuner();
  OK(attune_tuner_trials(tuner, device, TOY_PROBLEM, find_trial, wanted));
  attune_tuner_destroy(tuner);
  if (!wanted[1] || wanted[3]) fail_msg("with %d CPUs the trials are of others", count);
}

/* Whichever number was tuned last, and though a later one replaces its own. */
TEST(each_number_has_its_trials) {
  const char *nothing[] = {"", NULL, "", NULL};
  (void)tune_with(2, TWO, false);
  (void)tune_with(64, MANY, false);
  expect_trials(2, TWO[0], MANY[0]);
  expect_trials(64, MANY[0], "none"); /* which raced the winner of 2 too */
  (void)tune_with(64, MANY, true);
  (void)tune_with(2, TWO, true);
  expect_trials(64, MANY[0], "none");
  expect_trials(2, TWO[0], MANY[0]);
  cpus = 4;
  attune_tuner *tuner = open_tuner();
  FAILS(attune_tuner_trials(tuner, device, TOY_PROBLEM, find_trial, nothing), ATTUNE_NOT_FOUND);
  attune_tuner_destroy(tuner);
}

/* Where nothing was measured with this number of CPUs. */
TEST(the_nearest_runs_with_fewer_threads) {
  (void)tune_with(2, TWO, false);
  attune_decision d = explain_with(1);
  expect_choice(&d, ATTUNE_SOURCE_NEIGHBOUR, "ns=60000,threads=1");
  assert_non_null(strstr(d.note, "measured with 2 CPU threads"));
  assert_non_null(strstr(d.changed, "CPU threads 2 there, 1 here"));
  (void)tune_with(64, MANY, false);
  d = explain_with(1);
  expect_choice(&d, ATTUNE_SOURCE_NEIGHBOUR, "ns=60000,threads=1");
  d = explain_with(4);
  expect_choice(&d, ATTUNE_SOURCE_NEIGHBOUR, "ns=60000,threads=2");
  d = explain_with(16);
  expect_choice(&d, ATTUNE_SOURCE_NEIGHBOUR, "ns=1000,threads=16");
  d = explain_with(63);
  expect_choice(&d, ATTUNE_SOURCE_NEIGHBOUR, "ns=1000,threads=63");
}

/* A search there races it: with nothing else that is faster, it wins, and is stored for this number. */
TEST(a_search_races_it) {
  static const char *const slow[] = {"ns=190000,threads=1", NULL};
  (void)tune_with(2, TWO, false);
  attune_decision d = tune_with(1, slow, false);
  expect_choice(&d, ATTUNE_SOURCE_TUNED, "ns=60000,threads=1");
  assert_true(d.default_time_ns > 2.0 * d.time_ns);
  d = explain_with(1);
  expect_choice(&d, ATTUNE_SOURCE_STORED, "ns=60000,threads=1");
}

/* A plan of the problem as dispatch makes it, in calls of a program; the launches of `spin` among them. */
static int spin_calls;

static attune_status counted_spin(const at_plan *plan, const void *operands, attune_stream *stream) {
  spin_calls++;
  return toy_launch(plan, operands, stream);
}

static int calls_of_guess(int calls) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  attune_tuner *tuner = open_tuner();
  at_operand_set *set = NULL;
  at_random *numbers = NULL;
  OK(at_random_create(&numbers, 3));
  OK(at_operand_set_create(&set, &toy_op, key.words + 1, attune_stream_default(device), numbers, 1, SIZE_MAX, false));
  toy_spin_implementation.launch = counted_spin;
  spin_calls = 0;
  for (int i = 0; i < calls; i++) OK(toy_call(tuner, attune_stream_default(device), key.words + 1, set->operands));
  const int spun = spin_calls;
  at_operand_set_destroy(set);
  at_random_destroy(numbers);
  attune_tuner_destroy(tuner);
  return spun;
}

/* The calls themselves measure it: where the default is faster, it is set aside. */
TEST(the_guess_is_watched) {
  static const char *const bad[] = {"ns=60000,threads=2", NULL};
  (void)tune_with(2, bad, false);
  cpus = 1;
  const int good = calls_of_guess(3000);
  if (good < 2500) fail_msg("%d of 3000 calls ran a guess that is faster", good);
  at_copy_text(toy_base, sizeof toy_base, "ns=20000"); /* the default is faster here */
  const int worse = calls_of_guess(12000);
  if (worse > 6000) fail_msg("%d of 12000 calls ran a guess that is slower", worse);
  if (worse == 0) fail_msg("the guess was never tried");
}

/* Nothing is stored of it, so nothing is verified. */
TEST(what_was_measured_elsewhere_is_not_verified) {
  attune_recheck check = {0};
  (void)tune_with(2, TWO, false);
  cpus = 1;
  attune_tuner *tuner = open_tuner();
  assert_int_equal(attune_verify(tuner, device, TOY_PROBLEM, 100.0, NULL, &check), ATTUNE_NOT_FOUND);
  attune_tuner_destroy(tuner);
  cpus = 2;
  toy_spins = TWO;
  at_copy_text(toy_base, sizeof toy_base, "ns=20000"); /* the winner is slower than the default now */
  tuner = open_tuner();
  OK(attune_verify(tuner, device, TOY_PROBLEM, 100.0, NULL, &check));
  assert_int_equal(check.verdict, ATTUNE_VERDICT_SLOWER);
  assert_int_equal(check.marked, 1);
  attune_tuner_destroy(tuner);
  assert_int_equal(explain_with(2).unsure, 1);
}

static int close_all(void **state) {
  (void)state;
  return folder_remove(folder);
}

int main(void) {
  if (!mkdtemp(folder) || attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  snprintf(database, sizeof database, "%s/t.db", folder);
  cpus = 2;
  virtual_clock_start();
  at_cpu_capacity_set(64.0);
  return RUN_TESTS_EACH(fresh, NULL, NULL, close_all);
}
