/* SPDX-License-Identifier: Apache-2.0
 * test_guard.c: a team that is slower in the program than the default is set aside for a time, and said so, also where
 * only its mean is slower; one that is slow because everything is, is not; threads, streams, and a bound on threads
 * that comes later. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>

#include "src/host/threads.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/plans/guard.h"
#include "tuning/tuner/winner.h"

#define TEAM "ns=10000,threads=2"

static attune_device *device;
static attune_tuner *first, *other;      /* the other has a database of its own */
static attune_tuner *tuner;              /* that is called: one of them */
static _Atomic int64_t team_ns, base_ns; /* what a call of each takes */
static _Atomic int outlier_every;        /* one call of the team in so many takes long; 0: none */
static _Atomic int team_calls, base_calls;
static char logged[512];

/* A quota: all threads stop for `stop_ns` after each `run_ns`, a random half more or less. 0: there is none. */
static int64_t run_ns, stop_ns, stop_at;
static uint64_t draws;
static double share = 2.0;

double __wrap_at_cpu_share(void);
double __wrap_at_cpu_share(void) {
  return share;
}

static void maybe_stop(int64_t start) {
  if (!run_ns || start < stop_at) return;
  draws = draws * 6364136223846793005u + 1442695040888963407u;
  virtual_clock_pass(stop_ns, 0.0);
  stop_at = at_now_ns() + run_ns / 2 + (int64_t)((draws >> 33) % (uint64_t)run_ns);
}

static attune_status watched_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const bool team = plan->implementation == &toy_spin_implementation;
  const int64_t start = at_now_ns();
  (void)operands, (void)stream;
  const int number = atomic_fetch_add(team ? &team_calls : &base_calls, 1);
  int64_t ns = team ? team_ns : base_ns;
  if (team && outlier_every && number % outlier_every == 0) ns = 2000000;
  toy_pass(start, ns, 1);
  maybe_stop(start);
  return ATTUNE_OK;
}

static void keep_log(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_WARNING) at_copy_text(logged, sizeof logged, line);
}

/* A tuner that has a team as the winner; the stored times are what a call of each takes now. */
static attune_status make_tuner(attune_tuner **out) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_decision d = {
      .time_ns = (double)team_ns, .default_time_ns = (double)base_ns, .source = ATTUNE_SOURCE_TUNED, .complete = 1};
  at_key key = toy_key(TOY_PROBLEM, device);
  at_plan *plan = NULL;
  options.database = "";
  OK(at_tuner_create(out, &options, toy_ops, 1));
  at_copy_text(d.problem, sizeof d.problem, TOY_PROBLEM);
  at_copy_text(d.implementation, sizeof d.implementation, "spin");
  d.implementation_version = 1;
  at_copy_text(d.configuration, sizeof d.configuration, TEAM);
  OK(at_plan_of_decision(&toy_op, at_key_problem(&key), device, &d, &plan));
  return at_plan_table_put(&(*out)->plans, &key, &plan, &d, false);
}

FIXTURE(open_tuner) {
  toy_reset();
  toy_base_implementation.launch = toy_spin_implementation.launch = watched_launch;
  at_copy_text(toy_base, sizeof toy_base, "ns=30000");
  team_ns = 10000;
  base_ns = 30000;
  outlier_every = team_calls = base_calls = 0;
  logged[0] = '\0';
  run_ns = 0;
  share = 2.0;
  attune_set_log(keep_log, NULL, ATTUNE_LOG_WARNING);
  other = NULL;
  OK(make_tuner(&first));
  tuner = first;
  return 0;
}

FIXTURE(close_tuner) {
  attune_tuner_destroy(first);
  attune_tuner_destroy(other);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  return 0;
}

static const at_plan *plan_now(void) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_plan *plan = NULL;
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(device), &plan));
  return plan;
}

static void calls(attune_stream *stream, int count) {
  uint64_t operands[AT_OPERANDS_BYTES / 8] = {0};
  const at_plan *plan = plan_now();
  for (int i = 0; i < count; i++) OK(plan->launch(plan, operands, stream));
}

static attune_decision explain(void) {
  attune_decision d;
  OK(attune_explain(tuner, device, TOY_PROBLEM, &d));
  return d;
}

/* Calls until the team is set aside; false: it stands after so many. */
static bool set_aside_within(attune_stream *stream, int most) {
  for (int done = 0; done < most; done += 100) {
    calls(stream, 100);
    OK(attune_stream_synchronize(stream));
    if (strcmp(explain().implementation, "base") == 0) return true;
  }
  return false;
}

static void check_aside(attune_stream *stream) {
  const attune_decision d = explain();
  assert_string_equal(d.implementation, "base");
  assert_string_equal(d.configuration, "ns=30000");
  assert_string_equal(d.runner_up, "spin");
  assert_string_equal(d.runner_up_configuration, TEAM);
  assert_true(d.runner_up_time_ns > d.time_ns && d.time_ns >= 30000.0);
  assert_non_null(strstr(d.note, "set aside"));
  assert_non_null(strstr(logged, "set aside"));
  assert_non_null(strstr(logged, TOY_PROBLEM));
  const int before = team_calls;
  calls(stream, 50);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(team_calls, before);
}

TEST(a_slow_team_is_set_aside) {
  calls(attune_stream_default(device), 500);
  assert_string_equal(explain().implementation, "spin");
  assert_int_equal(base_calls, 0);
  team_ns = 60000; /* others want the CPUs now */
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  assert_in_range(base_calls, 1, 3000);
  check_aside(attune_stream_default(device));
}

/* A plan that one tuner sets aside keeps running in the process's other tuners, which check for themselves. */
TEST(other_tuners_find_out_for_themselves) {
  OK(make_tuner(&other));
  team_ns = 60000;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  check_aside(attune_stream_default(device));
  team_ns = 10000; /* the others are gone when the second one calls */
  tuner = other;
  const int before = team_calls;
  calls(attune_stream_default(device), 500);
  assert_int_equal(team_calls, before + 500);
  assert_string_equal(explain().implementation, "spin");
  tuner = first;
  assert_string_equal(explain().implementation, "base");
  tuner = other;
  logged[0] = '\0';
  team_ns = 60000;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  check_aside(attune_stream_default(device));
}

/* Measured again by the same tuner, and the winner again: it runs again. */
TEST(measured_again_it_has_another_chance) {
  static const char *const spins[] = {TEAM, NULL};
  attune_decision d;
  team_ns = 60000;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  toy_base_implementation.launch = toy_spin_implementation.launch = toy_launch;
  toy_spins = spins;
  OK(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 200.0, .force = 1}, &d));
  toy_base_implementation.launch = toy_spin_implementation.launch = watched_launch;
  assert_string_equal(d.implementation, "spin");
  assert_string_equal(explain().implementation, "spin");
}

TEST(a_slow_team_of_a_created_stream) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, device));
  team_ns = 60000;
  assert_true(set_aside_within(stream, 40000));
  check_aside(stream); /* each thread has its own time */
  attune_stream_destroy(stream);
}

/* Its median is a third of the default's time, and its mean more than three times that: each twentieth call stalls. */
TEST(stalls_count) {
  outlier_every = 20;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  check_aside(attune_stream_default(device));
}

/* Faster in the mean, for all that one call in a thousand takes very long. */
TEST(rare_stalls_are_no_reason) {
  outlier_every = 1000;
  calls(attune_stream_default(device), 20000);
  assert_string_equal(explain().implementation, "spin");
  assert_string_equal(logged, "");
  assert_int_equal(base_calls, 0);
}

/* The process runs for two fifths of the time and is stopped for the rest. In a short look it is chance who is stopped:
 * a team three times as fast as the default is not set aside for that. */
TEST(a_quota_stops_both) {
  team_ns = 100000;
  base_ns = 300000;
  run_ns = 40000000;
  stop_ns = 60000000;
  stop_at = 0;
  draws = 1;
  share = 0.8;
  OK(make_tuner(&other));
  tuner = other;
  assert_false(set_aside_within(attune_stream_default(device), 300000));
  assert_string_equal(logged, "");
  team_ns = 600000; /* slower than the default, it still is */
  assert_true(set_aside_within(attune_stream_default(device), 20000));
}

/* Slower than the default was, and so is the default now. */
TEST(a_slow_machine_is_no_reason) {
  team_ns = 60000;
  base_ns = 120000;
  calls(attune_stream_default(device), 15000);
  assert_string_equal(explain().implementation, "spin");
  assert_true(base_calls > 0 && base_calls < 250);
}

/* The default is measured again: the machine has become fast again, the team has not. */
TEST(a_machine_that_recovers) {
  team_ns = 60000;
  base_ns = 120000;
  calls(attune_stream_default(device), 15000);
  base_ns = 30000;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  check_aside(attune_stream_default(device));
}

/* Calls until the team runs again: how many of the default there were. */
static int calls_until_it_is_back(int most) {
  const int before = base_calls, team = team_calls;
  while (team_calls == team && base_calls - before < most) calls(attune_stream_default(device), 50);
  return base_calls - before;
}

/* After a second, 33,333 calls of the default, the team has another chance; if it loses again, after two seconds. */
TEST(it_comes_back) {
  team_ns = 60000;
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  assert_in_range(calls_until_it_is_back(100000), 30000, 34000);
  assert_true(set_aside_within(attune_stream_default(device), 40000));
  assert_in_range(calls_until_it_is_back(100000), 60000, 68000);
  team_ns = 10000; /* the others are gone */
  base_calls = 0;
  calls(attune_stream_default(device), 20000);
  assert_int_equal(base_calls, 0);
  assert_string_equal(explain().implementation, "spin");
}

/* Once a second there is a comparison at most while the machine is slow, and less often each time. */
TEST(doubts_are_rare) {
  team_ns = 60000;
  base_ns = 120000;
  calls(attune_stream_default(device), 250000); /* 15 s: comparisons after 0, 1, 3, 7 and 15 s */
  assert_in_range(base_calls, 4 * 200, 5 * 250);
  assert_string_equal(explain().implementation, "spin");
}

static void *call_in_thread(void *arg) {
  (void)arg;
  calls(attune_stream_default(device), 1500);
  return NULL;
}

TEST(many_threads) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  team_ns = 20000;
  base_ns = 2000;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(team_calls + base_calls, THREADS * 1500);
}

TEST(a_bound_on_threads) {
  OK(attune_set_threads(1));
  calls(attune_stream_default(device), 20);
  const attune_decision d = explain();
  OK(attune_set_threads(0));
  assert_int_equal(team_calls, 0);
  assert_string_equal(d.implementation, "base");
  assert_non_null(strstr(d.note, "needs 2 threads, but only 1 may be used"));
  if (at_cpu_count() < 2) return;
  calls(attune_stream_default(device), 20);
  assert_int_equal(team_calls, 20);
  assert_string_equal(explain().implementation, "spin");
}

/* Plans of one thread, and those that must give the same bits, are called as they are. */
TEST(who_has_no_guard) {
  static const struct {
    const char *problem, *configuration;
    bool guarded;
  } rows[] = {{TOY_PROBLEM, "ns=10,threads=1", false},
              {TOY_PROBLEM, "ns=10", false},
              {TOY_PROBLEM " deterministic", "ns=10,threads=2", false},
              {TOY_PROBLEM, "ns=10,threads=2", true}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    at_key key = toy_key(rows[i].problem, device);
    at_configuration c;
    at_plan *plan = NULL;
    const attune_decision d = {.default_time_ns = 1.0};
    at_copy_text(c.text, sizeof c.text, rows[i].configuration);
    OK(at_plan_create(&plan, &toy_op, &toy_spin_implementation, &c, at_key_problem(&key), device));
    at_guard_attach(plan, &d);
    assert_int_equal(plan->guard != NULL, rows[i].guarded);
    assert_int_equal(plan->launch != watched_launch, rows[i].guarded);
    at_plan_destroy(plan);
  }
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  if (at_cpu_count() < 2) return skip_all("a team needs two CPUs");
  virtual_clock_start();
  return RUN_TESTS_EACH(open_tuner, close_tuner, NULL, NULL);
}
