/* SPDX-License-Identifier: Apache-2.0
 * test_deferred_decision.c: a winner whose kernels are not compiled yet: the default runs at once, the compiler works
 * beside the calls, and then the winner runs; where that is not wanted, calls wait. The compiler is the test's: it ends
 * when it is told to, so that nothing depends on time. */
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/device.h>
#include <attune/graph.h>
#include <attune/workload.h>

#include "src/process/exit.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/compile/deferred_decision.h"
#include "tuning/dispatch/dispatch.h"
#include "tuning/dispatch/plan_handle.h"

#define ONE TOY("f32 9x7")
#define TWO TOY("f32 8x7")

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
static char folder[] = "/tmp/attune-test-later-XXXXXX", path[96];

/* ---- a compiler, within prepare ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int begun, done, allowed;
static bool compiled, default_compiled, broken;
static pthread_t compiler;
static attune_status (*prepare_plain)(at_plan *plan);

static attune_status prepare(at_plan *plan) {
  pthread_mutex_lock(&lock);
  bool fails = false;
  if (!compiled) {
    begun++;
    compiler = pthread_self();
    pthread_cond_broadcast(&changed);
    while (done >= allowed) pthread_cond_wait(&changed, &lock);
    done++;
    fails = broken;
    compiled = !broken;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return fails ? at_fail(ATTUNE_INTERNAL, "it does not compile") : prepare_plain(plan);
}

static attune_status look(const at_implementation *self, const void *problem, attune_device *on,
                          const at_configuration *c, bool *made) {
  (void)self, (void)problem, (void)on, (void)c;
  if (made) abort(); /* nobody compiles ahead here */
  pthread_mutex_lock(&lock);
  const bool there = compiled;
  pthread_mutex_unlock(&lock);
  return there ? ATTUNE_OK : at_fail(ATTUNE_NOT_FOUND, "it is not compiled");
}

static attune_status look_at_default(const at_implementation *self, const void *problem, attune_device *on,
                                     const at_configuration *c, bool *made) {
  (void)self, (void)problem, (void)on, (void)c, (void)made;
  return default_compiled ? ATTUNE_OK : at_fail(ATTUNE_NOT_FOUND, "it is not compiled");
}

static void allow(int more) {
  pthread_mutex_lock(&lock);
  allowed += more;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void wait_begun(int count) {
  pthread_mutex_lock(&lock);
  while (begun < count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* A database where "spin" has won both problems; a tuner that has just opened it, and an empty kernel cache. */
FIXTURE(fresh) {
  static const char *const spins[] = {"ns=1000", NULL};
  toy_reset();
  toy_spins = spins;
  options = (attune_tuner_options)ATTUNE_TUNER_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/t.db", folder);
  options.database = path;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  virtual_clock_start();
  OK(attune_tune(tuner, device, ONE, NULL, NULL));
  OK(attune_tune(tuner, device, TWO, NULL, NULL));
  virtual_clock_stop();
  attune_tuner_destroy(tuner);
  begun = done = allowed = 0;
  compiled = broken = false;
  default_compiled = true;
  prepare_plain = toy_spin_implementation.prepare;
  toy_spin_implementation.prepare = prepare;
  toy_spin_implementation.compile = look;
  toy_base_implementation.compile = look_at_default;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  return 0;
}

FIXTURE(end) {
  allow(100);
  attune_tuner_destroy(tuner);
  return may_fork() && !is_alone(); /* the next test may fork */
}

/* Implementation that runs for a call. */
static const char *runs(const char *problem) {
  const at_plan *plan = NULL;
  at_key key = toy_key(problem, device);
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, stream, &plan));
  at_plan_lru_release(plan);
  return plan->implementation->name;
}

static attune_decision decision_of(const char *problem) {
  attune_decision d;
  OK(attune_explain(tuner, device, problem, &d));
  return d;
}

/* ---- tests ---- */

TEST(the_default_runs_until_the_winner_is_compiled) {
  (void)at_fail(ATTUNE_NOT_FOUND, "mine");
  assert_string_equal(runs(ONE), "base");
  assert_string_equal(attune_last_message(), "mine");
  assert_string_equal(runs(ONE), "base");
  wait_begun(1);
  assert_false(pthread_equal(compiler, pthread_self()));
  assert_int_equal(attune_tuner_compiling(tuner, 0), 1);
  const attune_decision before = decision_of(ONE);
  assert_int_equal(before.source, ATTUNE_SOURCE_DEFAULT);
  assert_non_null(strstr(before.note, "until the winner's kernel is compiled"));
  allow(1);
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  assert_string_equal(runs(ONE), "spin");
  assert_int_equal(decision_of(ONE).source, ATTUNE_SOURCE_STORED);
  assert_int_equal(begun, 1);
  assert_string_equal(runs(TWO), "spin"); /* what is compiled is not waited for */
}

TEST(each_problem_waits_once) {
  for (int i = 0; i < 3; i++) {
    assert_string_equal(runs(ONE), "base");
    assert_string_equal(runs(TWO), "base");
  }
  assert_int_equal(attune_tuner_compiling(tuner, 0), 2);
  allow(2);
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  assert_string_equal(runs(ONE), "spin");
  assert_string_equal(runs(TWO), "spin");
}

TEST(a_setting_makes_calls_wait) {
  allow(1);
  FAILS(attune_tuner_set_compile(tuner, (attune_compile)3), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tuner_set_compile(NULL, ATTUNE_COMPILE_WAIT), ATTUNE_INVALID_ARGUMENT);
  OK(attune_tuner_set_compile(tuner, ATTUNE_COMPILE_WAIT));
  assert_string_equal(runs(ONE), "spin");
  assert_true(pthread_equal(compiler, pthread_self()));
  attune_tuner_destroy(tuner); /* and the environment's */
  compiled = false;
  allow(1);
  assert_int_equal(setenv("ATTUNE_COMPILE", "wait", 1), 0);
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  assert_int_equal(unsetenv("ATTUNE_COMPILE"), 0);
  assert_string_equal(runs(ONE), "spin");
  assert_int_equal(attune_tuner_compiling(NULL, 1), 0);
}

/* Nothing is gained where the default must be compiled too. */
TEST(no_default_no_hurry) {
  default_compiled = false;
  allow(1);
  assert_string_equal(runs(ONE), "spin");
  assert_true(pthread_equal(compiler, pthread_self()));
}

/* They keep what they get. */
TEST(captures_and_plans_wait) {
  attune_stream *own = NULL;
  attune_graph *graph = NULL;
  attune_plan *plan = NULL;
  const at_plan *captured = NULL;
  at_key key = toy_key(ONE, device);
  OK(attune_stream_create(&own, device));
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, own, NULL));
  allow(1);
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, own, &captured));
  OK(attune_graph_capture_end(graph, own));
  assert_string_equal(captured->implementation->name, "spin");
  at_plan_lru_release(captured);
  attune_graph_destroy(graph);
  attune_stream_destroy(own);
  compiled = false;
  assert_string_equal(runs(TWO), "base");
  wait_begun(2);
  allow(1);
  key = toy_key(TWO, device);
  OK(at_plan_handle_create(&plan, tuner, stream, &toy_op, &key, 0, 0));
  assert_string_equal(((const at_plan *)plan)->implementation->name, "spin");
  attune_plan_destroy(plan);
}

TEST(what_does_not_compile_is_left) {
  broken = true;
  allow(10);
  assert_string_equal(runs(ONE), "base");
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  const int tried = begun; /* the winner, and a neighbour's as a guess */
  assert_string_equal(runs(ONE), "base");
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  assert_int_equal(begun, tried); /* not again with each call */
}

TEST(what_is_tuned_meanwhile_stays) {
  assert_string_equal(runs(ONE), "base");
  wait_begun(1);
  static const char *const none[] = {NULL};
  toy_spins = none;
  toy_spin_implementation.version = 2; /* so that the winner so far is not raced again */
  virtual_clock_start();
  OK(attune_tune(tuner, device, ONE, &(attune_tune_options){.force = 1}, NULL));
  virtual_clock_stop();
  toy_spin_implementation.version = 1;
  allow(1);
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  assert_int_equal(decision_of(ONE).source, ATTUNE_SOURCE_TUNED);
  assert_string_equal(runs(ONE), "base");
}

/* Its winner is known: a later tuning run has nothing to do. */
TEST(it_is_not_recorded) {
  attune_workload *workload = NULL;
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD));
  assert_string_equal(runs(ONE), "base");
  allow(1);
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  OK(attune_workload_recorded(&workload, tuner, device));
  assert_int_equal(attune_workload_size(workload), 0);
  attune_workload_destroy(workload);
}

static void *destroy(void *of) {
  attune_tuner_destroy(of);
  return NULL;
}

/* Running compilations are finished, waiting ones dropped. */
TEST(a_tuner_may_go_meanwhile) {
  pthread_t thread;
  assert_string_equal(runs(ONE), "base");
  wait_begun(1);
  assert_string_equal(runs(TWO), "base");
  assert_int_equal(pthread_create(&thread, NULL, destroy, tuner), 0);
  while (at_deferred_left(tuner) > 1) usleep(1000); /* the second is dropped */
  allow(1);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(begun, 1);
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
}

TEST(a_child_of_fork_goes_on) {
  if (!may_fork()) skip();
  int status = 0;
  assert_string_equal(runs(ONE), "base");
  wait_begun(1);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    allowed = 100;
    if (attune_tuner_compiling(tuner, 1) != 0) _exit(1);
    if (strcmp(runs(ONE), "base") != 0) _exit(2);
    if (strcmp(runs(TWO), "base") != 0) _exit(3); /* and has a thread of its own */
    if (attune_tuner_compiling(tuner, 1) != 0 || strcmp(runs(TWO), "spin") != 0) _exit(4);
    attune_tuner_destroy(tuner);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  allow(1);
  assert_int_equal(attune_tuner_compiling(tuner, 1), 0);
  assert_string_equal(runs(ONE), "spin");
}

/* exit() waits for what is being compiled: its library must be there until then. */
static bool is_child, compiler_ended;

static void look_at_the_end(void) {
  if (is_child && (!compiler_ended || done != 1)) _exit(7);
}

static void *let_go(void *unused) {
  (void)unused;
  while (!at_exit_begun()) usleep(1000);
  compiler_ended = true;
  allow(1);
  return NULL;
}

TEST(the_process_may_end_meanwhile) {
  if (!may_fork()) skip();
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pthread_t helper;
    is_child = true;
    if (strcmp(runs(ONE), "base") != 0) _exit(1);
    wait_begun(1);
    if (pthread_create(&helper, NULL, let_go, NULL) != 0) _exit(2);
    exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

FIXTURE(open_all) {
  if (!mkdtemp(folder) || attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  return 0;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  (void)atexit(look_at_the_end); /* comes after attune's, which is asked for later */
  return RUN_TESTS_EACH(fresh, end, open_all, close_all);
}
