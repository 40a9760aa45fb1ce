/* SPDX-License-Identifier: Apache-2.0
 * test_dispatch.c: what runs for a problem, in each mode: the stored winner, the measured one, a guess; once among
 * threads and processes; and that whatever fails on the way leaves the default running. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/workload.h>

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/toy/toy_clock.h"

enum { THREADS = 16, PROCESSES = 3 };

extern char **environ;

static attune_device *device;
static char folder[64], database[128];
static const char *const FAST[] = {"ns=50000", NULL}; /* base takes four times as long */

FIXTURE(fresh) {
  static int number;
  toy_reset();
  toy_spins = FAST;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  return 0;
}

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner_options options = {.database = database, .mode = mode};
  attune_tuner *tuner = NULL;
  options.budget_ms = 3000.0; /* never reached: a race of two ends by itself */
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  OK(attune_tuner_database_status(tuner));
  return tuner;
}

/* Implementation that runs for the problem now. */
static const at_plan *dispatch_on(attune_tuner *tuner, attune_stream *stream, const char *problem) {
  const at_key key = toy_key(problem, stream->device);
  const at_plan *plan = NULL;
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, stream, &plan));
  assert_non_null(plan);
  return plan;
}

static const at_plan *dispatch(attune_tuner *tuner, const char *problem) {
  return dispatch_on(tuner, attune_stream_default(device), problem);
}

static void assert_runs(attune_tuner *tuner, const char *problem, const char *implementation, attune_source source) {
  attune_decision decision;
  const at_plan *plan = dispatch(tuner, problem);
  assert_string_equal(plan->implementation->name, implementation);
  assert_ptr_equal(dispatch(tuner, problem), plan); /* a hit */
  OK(attune_explain(tuner, device, problem, &decision));
  assert_string_equal(decision.implementation, implementation);
  assert_int_equal(decision.source, source);
}

static void store_winner(void) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  assert_int_equal(toy_searches, 1);
  attune_tuner_destroy(tuner);
}

/* ---- modes ---- */

TEST(tune_measures_once_and_stores) {
  store_winner();
  attune_tuner *second = tuner_of(ATTUNE_MODE_TUNE);
  assert_runs(second, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  attune_decision decision;
  OK(attune_tune(second, device, TOY_PROBLEM, NULL, &decision));
  assert_string_equal(decision.implementation, "spin");
  assert_int_equal(toy_searches, 1); /* a second tuner measures nothing */
  OK(attune_tune(second, device, TOY_PROBLEM, &(attune_tune_options){.force = 1}, &decision));
  assert_int_equal(toy_searches, 2); /* unless forced to */
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  attune_tuner_destroy(second);
}

TEST(off_reads_nothing) {
  store_winner();
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_OFF);
  assert_runs(tuner, TOY_PROBLEM, "base", ATTUNE_SOURCE_DEFAULT);
  attune_tuner_destroy(tuner);
}

TEST(cached_takes_the_stored_winner) {
  store_winner();
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  assert_runs(tuner, TOY("f64 9x7"), "base", ATTUNE_SOURCE_DEFAULT);
  assert_int_equal(toy_searches, 1);
  attune_tuner_destroy(tuner);
}

TEST(record_writes_the_problem_down) {
  store_winner();
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  assert_runs(tuner, TOY("f64 9x7"), "base", ATTUNE_SOURCE_DEFAULT);
  attune_workload *workload = NULL;
  OK(attune_workload_recorded(&workload, tuner, device));
  assert_int_equal(attune_workload_size(workload), 1);
  assert_string_equal(attune_workload_at(workload, 0)->problem, TOY("f64 9x7"));
  assert_int_equal(attune_workload_at(workload, 0)->count, 1);
  attune_workload_destroy(workload);
  attune_tuner_destroy(tuner);
}

TEST(a_mode_change_forgets_guesses) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY_PROBLEM, "base", ATTUNE_SOURCE_DEFAULT);
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_TUNE));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_CACHED));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  attune_tuner_destroy(tuner);
}

TEST(explain_measures_nothing) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  attune_decision decision;
  OK(attune_explain(tuner, device, TOY_PROBLEM, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_DEFAULT);
  assert_int_equal(toy_launches, 0);
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL)); /* tuning replaces a guess that calls already use */
  OK(attune_explain(tuner, device, TOY_PROBLEM, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  attune_tuner_destroy(tuner);
}

TEST(tuning_replaces_a_guess_in_use) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  const at_plan *guess = dispatch(tuner, TOY_PROBLEM);
  assert_string_equal(guess->implementation->name, "base");
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  assert_non_null(guess->launch); /* whoever runs it still may */
  attune_tuner_destroy(tuner);
}

/* ---- what fails is a miss ---- */

static void assert_miss(void) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY_PROBLEM, "base", ATTUNE_SOURCE_DEFAULT);
  attune_tuner_destroy(tuner);
}

TEST(another_version_is_a_miss) {
  store_winner();
  toy_spin_implementation.version = 2;
  assert_miss();
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE); /* and is tuned again */
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  assert_int_equal(toy_searches, 2);
  attune_tuner_destroy(tuner);
}

TEST(an_unknown_implementation_is_a_miss) {
  store_winner();
  toy_op.implementation_count = 1;
  assert_miss();
}

TEST(a_broken_configuration_is_a_miss) {
  store_winner();
  toy_refused = FAST[0];
  assert_miss();
}

static bool on_another_library(const at_implementation *self, const at_configuration *configuration, attune_device *of,
                               char *out, size_t size) {
  (void)self;
  size_t at = 0;
  (void)configuration, (void)of;
  return at_append(out, size, &at, "spinlib-2.0");
}

TEST(another_fingerprint_is_a_miss) {
  store_winner();
  toy_spin_implementation.depends = on_another_library;
  assert_miss();
}

TEST(no_database_still_tunes) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  options.database = folder; /* a directory */
  options.mode = ATTUNE_MODE_TUNE;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  assert_int_not_equal(attune_tuner_database_status(tuner), ATTUNE_OK);
  assert_non_null(strstr(attune_last_message(), folder));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_TUNED);
  assert_int_equal(toy_searches, 1);
  attune_tuner_destroy(tuner);
}

TEST(no_candidate_at_all) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  toy_op.implementation_count = 0;
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_plan *plan = NULL;
  FAILS_SAYING(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(device), &plan), ATTUNE_UNSUPPORTED,
               TOY_PROBLEM);
  attune_tuner_destroy(tuner);
}

/* ---- layers and neighbours ---- */

TEST(the_user_layer_is_over_the_system_layer) {
  store_winner();
  char system[128];
  at_copy_text(system, sizeof system, database);
  snprintf(database, sizeof database, "%s/user-of-layers.db", folder);
  attune_tuner_options options = {.database = database, .system_database = system, .mode = ATTUNE_MODE_TUNE};
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_SYSTEM);
  assert_int_equal(toy_searches, 1);
  static const char *const faster[] = {"ns=20000", NULL};
  toy_spins = faster;
  attune_tuner_destroy(tuner);
  options.system_database = NULL; /* whose winner would be raced, and might stay */
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  OK(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.force = 1}, NULL));
  options.system_database = system;
  attune_tuner_destroy(tuner);
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  assert_string_equal(dispatch(tuner, TOY_PROBLEM)->configuration.text, "ns=20000");
  attune_tuner_destroy(tuner);
}

/* The operator has the last word. */
TEST(the_environment_may_win) {
  store_winner();
  setenv("ATTUNE_MODE", "off", 1);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_int_equal(attune_tuner_get_mode(tuner), ATTUNE_MODE_CACHED);
  attune_tuner_destroy(tuner);
  setenv("ATTUNE_OVERRIDE", "mode", 1);
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_int_equal(attune_tuner_get_mode(tuner), ATTUNE_MODE_OFF);
  assert_runs(tuner, TOY_PROBLEM, "base", ATTUNE_SOURCE_DEFAULT);
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_TUNE));
  assert_int_equal(attune_tuner_get_mode(tuner), ATTUNE_MODE_OFF);
  FAILS(attune_tuner_set_mode(tuner, (attune_mode)9), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
  setenv("ATTUNE_DB", database, 1);
  setenv("ATTUNE_OVERRIDE", "db", 1);
  const attune_tuner_options elsewhere = {.database = "", .mode = ATTUNE_MODE_CACHED};
  OK(at_tuner_create(&tuner, &elsewhere, toy_ops, 1));
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  attune_tuner_destroy(tuner);
  setenv("ATTUNE_OVERRIDE", "mode,budget", 1);
  FAILS(at_tuner_create(&tuner, &elsewhere, toy_ops, 1), ATTUNE_INVALID_ARGUMENT);
  unsetenv("ATTUNE_OVERRIDE");
  unsetenv("ATTUNE_DB");
  unsetenv("ATTUNE_MODE");
}

TEST(a_near_problem_lends_its_winner) {
  store_winner();
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  OK(attune_tuner_set_search(tuner, &(attune_search_options){.no_guess = 1}));
  assert_runs(tuner, TOY("f32 11x7"), "base", ATTUNE_SOURCE_DEFAULT);
  OK(attune_tuner_set_search(tuner, NULL));
  assert_runs(tuner, TOY("f32 10x7"), "spin", ATTUNE_SOURCE_NEIGHBOUR);
  assert_runs(tuner, TOY("f32 9x64"), "base", ATTUNE_SOURCE_DEFAULT); /* far */
  assert_runs(tuner, TOY("f64 10x7"), "base", ATTUNE_SOURCE_DEFAULT); /* of another family */
  assert_runs(tuner, TOY("f32:i64 10x7"), "base", ATTUNE_SOURCE_DEFAULT);
  assert_runs(tuner, TOY("f32 10x7") " align=4", "base", ATTUNE_SOURCE_DEFAULT);
  attune_tuner_destroy(tuner);
}

/* Where the device tells alignment classes apart, a winner holds for its own class only, better or worse, and is not
 * lent to another either; the host has one class from 16 bytes on. */
static void fold_nothing(void *problem, const attune_device *on) {
  (void)problem, (void)on;
}

TEST(a_winner_holds_for_its_alignment_class) {
  store_winner(); /* of 128 bytes */
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY_PROBLEM " align=16", "spin", ATTUNE_SOURCE_STORED);
  assert_runs(tuner, TOY_PROBLEM " align=8", "base", ATTUNE_SOURCE_DEFAULT);
  toy_problem_type.fold = fold_nothing; /* as on a device to which each class is another */
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  for (int alignment = 4; alignment <= 64; alignment *= 2) {
    char problem[AT_PROBLEM_CHARS];
    snprintf(problem, sizeof problem, TOY_PROBLEM " align=%d", alignment);
    assert_runs(tuner, problem, "base", ATTUNE_SOURCE_DEFAULT);
  }
  OK(attune_tune(tuner, device, TOY("f32 10x7") " align=16", &(attune_tune_options){.budget_ms = 500.0}, NULL));
  assert_runs(tuner, TOY("f32 10x7") " align=16", "spin", ATTUNE_SOURCE_TUNED);
  assert_runs(tuner, TOY("f32 40x7"), "base", ATTUNE_SOURCE_DEFAULT);
  assert_runs(tuner, TOY("f32 10x7") " align=32", "base", ATTUNE_SOURCE_DEFAULT);
  attune_tuner_destroy(tuner);
}

/* Puts a winner of the toy problem into the database without a measurement. */
static void put_winner(double time_ns, double default_time_ns) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  attune_decision decision;
  const char *fingerprint = NULL;
  char family[AT_FAMILY_CHARS];
  OK(at_decision_begin(tuner, &toy_op, key.words + 1, device, &decision));
  OK(at_tuner_fingerprint(tuner, device, &fingerprint));
  OK(toy_op.problem->family(key.words + 1, family, sizeof family));
  at_copy_text(decision.implementation, sizeof decision.implementation, "spin");
  at_copy_text(decision.configuration, sizeof decision.configuration, FAST[0]);
  decision.implementation_version = 1;
  decision.time_ns = time_ns;
  decision.default_time_ns = default_time_ns;
  decision.samples = 11;
  decision.complete = 1;
  decision.tuned_at = 1700000000;
  OK(at_store_put(at_tuner_store(tuner), fingerprint, family, &decision, NULL, 0, 1000));
  attune_tuner_destroy(tuner);
}

TEST(a_winner_by_little_is_not_lent) {
  put_winner(100000.0, 108000.0);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY_PROBLEM, "spin", ATTUNE_SOURCE_STORED);
  assert_runs(tuner, TOY("f32 10x7"), "base", ATTUNE_SOURCE_DEFAULT);
  attune_tuner_destroy(tuner);
  put_winner(100000.0, 120000.0);
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_runs(tuner, TOY("f32 10x7"), "spin", ATTUNE_SOURCE_NEIGHBOUR);
  attune_tuner_destroy(tuner);
}

/* ---- capture ---- */

static bool capturing;
static bool always_capturing(attune_stream *stream) {
  (void)stream;
  return capturing;
}

/* The host with a stream that can be captured, as far as dispatch looks. */
TEST(a_capturing_stream_never_tunes) {
  at_backend_stream stream_calls = *device->backend.stream;
  stream_calls.capturing = always_capturing;
  attune_device captured = *device;
  captured.backend.stream = &stream_calls;
  attune_stream stream = *attune_stream_default(device);
  stream.device = &captured;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  capturing = true;
  for (int i = 0; i < 2; i++)
    assert_string_equal(dispatch_on(tuner, &stream, TOY_PROBLEM)->implementation->name, "base");
  assert_int_equal(toy_launches, 0);
  assert_int_equal(toy_searches, 0);
  capturing = false;
  assert_string_equal(dispatch_on(tuner, &stream, TOY_PROBLEM)->implementation->name,
                      "spin"); /* outside it is still tuned */
  assert_int_equal(toy_searches, 1);
  capturing = true;
  assert_string_equal(dispatch_on(tuner, &stream, TOY_PROBLEM)->implementation->name,
                      "spin"); /* and a winner is used inside */
  attune_tuner_destroy(tuner);
  tuner = tuner_of(ATTUNE_MODE_TUNE);
  assert_string_equal(dispatch_on(tuner, &stream, TOY_PROBLEM)->implementation->name, "spin"); /* a stored one too */
  assert_int_equal(toy_searches, 1);
  attune_tuner_destroy(tuner);
}

/* ---- one tuning at a time ---- */

typedef struct crowd {
  attune_tuner *tuner;
  pthread_barrier_t start;
} crowd;

static void *call_once(void *arg) {
  crowd *all = arg;
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_plan *plan = NULL;
  pthread_barrier_wait(&all->start);
  const attune_status status = at_dispatch_as(all->tuner, &toy_op, &key, 0, attune_stream_default(device), &plan);
  return status == ATTUNE_OK ? (void *)(uintptr_t)plan : NULL;
}

static void let_threads_tune(attune_tuner *tuner) {
  crowd all = {.tuner = tuner};
  pthread_t threads[THREADS];
  toy_watched = true;
  pthread_barrier_init(&all.start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_once, &all), 0);
  for (int i = 0; i < THREADS; i++) {
    void *plan = NULL;
    pthread_join(threads[i], &plan);
    assert_non_null(plan);
    assert_string_equal(((const at_plan *)plan)->implementation->name, "spin");
  }
  pthread_barrier_destroy(&all.start);
  assert_int_equal(toy_searches, 1);
  assert_int_equal(toy_overlaps, 0);
  attune_tuner_destroy(all.tuner);
}

TEST(sixteen_threads_tune_once) {
  let_threads_tune(tuner_of(ATTUNE_MODE_TUNE));
  fresh(NULL);
  snprintf(database, sizeof database, ":memory:"); /* nothing but the tuner itself to agree by */
  let_threads_tune(tuner_of(ATTUNE_MODE_TUNE));
}

/* Tuners of one process that share a database, at the same time: one of them measures, and never two at once. */
static void *call_with_own_tuner(void *arg) {
  pthread_barrier_t *start = arg;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  pthread_barrier_wait(start);
  const at_plan *plan = dispatch(tuner, TOY_PROBLEM);
  const bool right = strcmp(plan->implementation->name, "spin") == 0;
  attune_tuner_destroy(tuner);
  return right ? arg : NULL;
}

TEST(tuners_of_one_database_tune_once) {
  pthread_t threads[4];
  pthread_barrier_t start;
  toy_watched = true;
  pthread_barrier_init(&start, NULL, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_with_own_tuner, &start), 0);
  for (int i = 0; i < 4; i++) {
    void *right = NULL;
    pthread_join(threads[i], &right);
    assert_non_null(right);
  }
  pthread_barrier_destroy(&start);
  assert_int_equal(toy_searches, 1);
  assert_int_equal(toy_overlaps, 0);
}

/* A process of its own: waits for the starter, tunes, says in its exit status how often it measured. */
static int child(const char *path, const char *go) {
  toy_reset();
  toy_spins = FAST;
  at_copy_text(database, sizeof database, path);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  while (access(go, F_OK) != 0) usleep(500);
  attune_decision decision;
  dispatch(tuner, TOY_PROBLEM);
  OK(attune_explain(tuner, device, TOY_PROBLEM, &decision));
  attune_tuner_destroy(tuner);
  return toy_searches || (int)decision.source > ATTUNE_SOURCE_NEIGHBOUR ? toy_searches : 100;
}

TEST(processes_of_one_database_tune_once) {
  char name[4096] = ""; /* the link itself would be another program under valgrind */
  assert_true(readlink("/proc/self/exe", name, sizeof name - 1) > 0);
  for (int round = 0; round < 2; round++) {
    fresh(NULL);
    char go[160];
    snprintf(go, sizeof go, "%s.go", database);
    char *argv[] = {name, database, go, NULL};
    pid_t pids[PROCESSES];
    attune_tuner_destroy(tuner_of(ATTUNE_MODE_CACHED)); /* the file is there */
    for (int i = 0; i < PROCESSES; i++) assert_int_equal(posix_spawn(&pids[i], name, NULL, NULL, argv, environ), 0);
    usleep(100000);
    FILE *file = fopen(go, "w");
    assert_non_null(file);
    fclose(file);
    int searches = 0;
    for (int i = 0; i < PROCESSES; i++) {
      int status = 0;
      assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
      assert_true(WIFEXITED(status));
      searches += WEXITSTATUS(status);
    }
    unlink(go);
    assert_int_equal(searches, 1);
  }
}

static int remove_all(const char *path) {
  char command[160];
  snprintf(command, sizeof command, "rm -rf -- '%s'", path);
  return system(command);
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  virtual_clock_start();
  if (argc == 3) return child(argv[1], argv[2]);
  at_copy_text(folder, sizeof folder, "/tmp/attune-test-dispatch-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  return remove_all(folder) == 0 ? failed : 1;
}
