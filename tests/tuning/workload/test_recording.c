/* SPDX-License-Identifier: Apache-2.0
 * test_recording.c: mode record writes down every call, once: of every thread and plan, at the end of a tuner and of
 * the process, over forks and changes of the mode; and tuning takes what takes longest first. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/store_open.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tuning/workload/recording.h"

enum { THREADS = 3, CALLS = 500 };

static char folder[] = "/tmp/attune-test-recording-XXXXXX", database[128];
static attune_device *host;
static _Alignas(128) float a[64 * 64], b[64 * 64];

FIXTURE(fresh) {
  static int number;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  return 0;
}

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = database, .mode = mode}));
  return tuner;
}

/* Returns false rather than fail: threads and children call it too. */
static bool call(attune_tuner *tuner, int size, int calls) {
  _Alignas(128) float d[64 * 64];
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = size, .n = size, .k = size};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  for (int i = 0; i < calls; i++)
    if (attune_gemm(tuner, attune_stream_default(host), &problem, &operands) != ATTUNE_OK) return false;
  return true;
}

/* How many calls of the size are recorded, as a tuner of its own sees it. */
static int64_t recorded(int size) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  attune_workload *workload = NULL;
  char problem[64];
  int64_t calls = 0;
  snprintf(problem, sizeof problem, "gemm f32 nn %dx%dx%d strict", size, size, size);
  OK(attune_workload_recorded(&workload, tuner, host));
  for (size_t i = 0; i < attune_workload_size(workload); i++)
    if (strcmp(attune_workload_at(workload, i)->problem, problem) == 0) calls += attune_workload_at(workload, i)->count;
  attune_workload_destroy(workload);
  attune_tuner_destroy(tuner);
  return calls;
}

static void *call_in_thread(void *tuner) {
  return call(tuner, 4, CALLS) ? tuner : NULL;
}

TEST(every_call_of_every_thread) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, tuner), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
  assert_true(call(tuner, 4, 7));
  assert_true(call(tuner, 5, 1));
  attune_workload *workload = NULL;
  OK(attune_workload_recorded(&workload, tuner, host)); /* its own calls are written first */
  assert_int_equal(attune_workload_size(workload), 2);
  attune_workload_destroy(workload);
  assert_int_equal(recorded(4), THREADS * CALLS + 7);
  at_recording_flush(tuner); /* nothing is new */
  assert_true(call(tuner, 4, 2));
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(4), THREADS * CALLS + 9);
  assert_int_equal(recorded(5), 1);
  tuner = tuner_of(ATTUNE_MODE_RECORD);
  assert_true(call(tuner, 4, 10));
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(4), THREADS * CALLS + 19);
}

/* While a third thread flushes all the time. */
static _Atomic bool flushing;
static void *flush_in_thread(void *tuner) {
  while (flushing) at_recording_flush(tuner);
  return tuner;
}
TEST(flushes_beside_calls) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  pthread_t threads[THREADS], flushes[2];
  flushing = true;
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&flushes[i], NULL, flush_in_thread, tuner), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, tuner), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  flushing = false;
  for (int i = 0; i < 2; i++) pthread_join(flushes[i], NULL);
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(4), THREADS * CALLS);
}

TEST(plans_count_too) {
  static _Alignas(128) float d[64];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  attune_plan *plan = NULL;
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 6, .n = 6, .k = 6};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  OK(attune_gemm_plan_create(&plan, tuner, attune_stream_default(host), &problem, &operands));
  for (int i = 0; i < 20; i++) OK(attune_gemm_plan_run(plan, attune_stream_default(host), &operands));
  attune_plan_destroy(plan);
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(6), 20);
}

TEST(only_while_the_mode_lasts) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_true(call(tuner, 4, 10));
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD));
  assert_true(call(tuner, 4, 5));
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_CACHED));
  assert_int_equal(recorded(4), 5);
  assert_true(call(tuner, 4, 3));
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD));
  assert_true(call(tuner, 4, 1));
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(4), 6);
}

static int wait_for(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A tuner that is never destroyed; and a child that counts its own calls only. */
TEST(at_exit_and_after_fork) {
  const pid_t program = fork();
  if (program == 0) {
    attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
    if (!call(tuner, 4, 60)) _exit(1);
    if (attune_tuner_profile(tuner, NULL, NULL, NULL) != ATTUNE_OK) _exit(1); /* adds them up, records nothing */
    if (!call(tuner, 4, 40)) _exit(1);
    const pid_t child = fork();
    if (child == 0) exit(call(tuner, 4, 7) && call(tuner, 5, 2) ? 0 : 1);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(2);
    exit(call(tuner, 4, 10) ? 0 : 3);
  }
  assert_int_equal(wait_for(program), 0);
  assert_int_equal(recorded(4), 117);
  assert_int_equal(recorded(5), 2);
}

/* Calls that could not be written are not lost: they come with the next flush. */
TEST(what_could_not_be_written_comes_later) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  assert_true(call(tuner, 4, 10));
  at_recording_flush(tuner);
  at_store *user = tuner->user, *read_only = NULL;
  OK(at_store_open(&read_only, database, AT_STORE_READ_ONLY));
  tuner->user = read_only;
  assert_true(call(tuner, 4, 10));
  at_recording_flush(tuner);
  assert_int_equal(recorded(4), 10);
  FAILS(attune_tuner_database_status(tuner), ATTUNE_PERMISSION);
  tuner->user = user;
  at_store_close(read_only);
  at_recording_flush(tuner);
  OK(attune_tuner_database_status(tuner));
  attune_tuner_destroy(tuner);
  assert_int_equal(recorded(4), 20);
}

static char lost[512];

static void on_error(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_ERROR) (void)snprintf(lost, sizeof lost, "%s", line);
}

/* Each time is an error, for the program ends; the first one was another. */
TEST(what_is_lost_at_the_end_is_an_error) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  assert_true(call(tuner, 4, 10));
  at_recording_flush(tuner);
  at_store *read_only = NULL;
  OK(at_store_open(&read_only, database, AT_STORE_READ_ONLY));
  at_store_close(tuner->user);
  tuner->user = read_only;
  attune_set_log(on_error, NULL, ATTUNE_LOG_WARNING);
  assert_true(call(tuner, 4, 10));
  at_recording_flush(tuner);
  assert_non_null(strstr(lost, "not recorded yet: "));
  lost[0] = '\0';
  attune_tuner_destroy(tuner);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  assert_non_null(strstr(lost, "not recorded: "));
}

/* 1000 tiny products take less than 10 larger ones; a stored time of the default counts more than an estimate. */
TEST(longest_first) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  const char *fingerprint = NULL;
  attune_workload *w = NULL;
  OK(at_tuner_fingerprint(tuner, host, &fingerprint));
  OK(at_store_record(tuner->user, fingerprint, "gemm f32 nn 4x4x4 strict", 1000, 1000));
  OK(at_store_record(tuner->user, fingerprint, "gemm f32 nn 900x900x900 strict", 10, 1000));
  OK(at_store_record(tuner->user, fingerprint, "gemm f32 nn 5x5x5 strict", 1, 1000));
  const attune_decision winner = {.problem = "gemm f32 nn 5x5x5 strict",
                                  .implementation = "host_reference",
                                  .implementation_version = 1,
                                  .measure = "hot,eager",
                                  .time_ns = 1e12,
                                  .default_time_ns = 2e12,
                                  .samples = 3};
  OK(at_store_put(tuner->user, fingerprint, "gemm f32 nn strict", &winner, NULL, 0, 1000));
  OK(attune_workload_recorded(&w, tuner, host));
  assert_int_equal(attune_workload_size(w), 3);
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f32 nn 5x5x5 strict");
  assert_true(attune_workload_at(w, 0)->time_ns == 2e12);
  assert_string_equal(attune_workload_at(w, 1)->problem, "gemm f32 nn 900x900x900 strict");
  assert_string_equal(attune_workload_at(w, 2)->problem, "gemm f32 nn 4x4x4 strict");
  assert_true(attune_workload_at(w, 2)->time_ns > 0.0);
  attune_workload_destroy(w);
  attune_tuner_destroy(tuner);
}

FIXTURE(open_all) {
  setenv("HOME", folder, 1);
  return mkdtemp(folder) && attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, open_all, close_all);
}
