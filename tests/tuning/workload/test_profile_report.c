/* SPDX-License-Identifier: Apache-2.0
 * test_profile_report.c: what a tuner dispatched: every call is counted, times are those that are stored, and the
 * report is written at the end of a tuner and of the process, as a table or as JSON that a parser reads. */
#include "tests/support/check.h"
#include "tests/support/documented_json.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tuning/store/fingerprint.h"
#include "tuning/tuner/tuner.h"

enum { THREADS = 3, CALLS = 200, MOST = 16 };

static char folder[] = "/tmp/attune-test-profile-XXXXXX", database[128], report[128];
static attune_device *host;
static _Alignas(128) float a[64 * 64], b[64 * 64], d[64 * 64];

FIXTURE(fresh) {
  static int number;
  snprintf(database, sizeof database, "%s/%d.db", folder, number);
  snprintf(report, sizeof report, "%s/%d.json", folder, number++);
  unsetenv("ATTUNE_PROFILE");
  return 0;
}

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = database, .mode = mode, .budget_ms = 100.0}));
  return tuner;
}

/* Returns false rather than fail: threads and children call it too. */
static bool call(attune_tuner *tuner, int size, int calls) {
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = size, .n = size, .k = size};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  for (int i = 0; i < calls; i++)
    if (attune_gemm(tuner, attune_stream_default(host), &problem, &operands) != ATTUNE_OK) return false;
  return true;
}

typedef struct seen {
  attune_profile_entry entries[MOST];
  attune_decision decisions[MOST];
  char problems[MOST][256];
  int count, most;
} seen;

static int take(void *user, const attune_profile_entry *entry) {
  seen *s = user;
  assert_in_range(s->count, 0, MOST - 1);
  s->entries[s->count] = *entry;
  s->decisions[s->count] = *entry->decision;
  snprintf(s->problems[s->count], sizeof s->problems[0], "%s", entry->problem);
  return ++s->count == s->most;
}

/* ---- the call ---- */

static void *call_in_thread(void *tuner) {
  return call(tuner, 4, CALLS) ? tuner : NULL;
}

TEST(counts_every_call) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  attune_profile_totals totals = ATTUNE_PROFILE_TOTALS_INIT;
  attune_plan *plan = NULL;
  pthread_t threads[THREADS];
  seen s = {.count = 0};
  OK(attune_tuner_profile(tuner, take, &s, &totals));
  assert_int_equal(s.count, 0);
  assert_int_equal(totals.calls, 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, tuner), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  OK(attune_gemm_plan_create(&plan, tuner, attune_stream_default(host), &problem, &operands));
  for (int i = 0; i < 5; i++) OK(attune_gemm_plan_run(plan, attune_stream_default(host), &operands));
  attune_plan_destroy(plan);
  problem.layout = ATTUNE_ROW_MAJOR;
  problem.m = 9;
  OK(attune_gemm(tuner, attune_stream_default(host), &problem, &operands));
  OK(attune_tuner_profile(tuner, take, &s, &totals));
  assert_int_equal(s.count, 2);
  assert_int_equal(totals.calls, THREADS * CALLS + 6);
  assert_int_equal(totals.untuned_calls, totals.calls);
  assert_int_equal(totals.unknown_calls, totals.calls);
  assert_int_equal(s.entries[0].calls, THREADS * CALLS + 5);
  assert_true(s.entries[0].time_ns == 0.0 && s.entries[0].untuned);
  assert_true(s.entries[0].flops == 2.0 * 4 * 4 * 4);
  assert_string_equal(s.decisions[0].device, "host");
  assert_string_equal(s.problems[1], "gemm f32 nn 9x4x4 strict row-major");
  attune_decision decision;
  OK(attune_explain(tuner, host, s.problems[1], &decision));
  assert_string_equal(decision.problem, s.decisions[1].problem);
  s.count = 0;
  s.most = 1; /* a walk that is ended */
  OK(attune_tuner_profile(tuner, take, &s, NULL));
  assert_int_equal(s.count, 1);
  assert_int_equal(attune_tuner_profile(NULL, take, &s, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
}

static void store_winner(int size, double time_ns, double default_time_ns) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  const char *fingerprint = NULL;
  attune_decision winner = {.implementation = "host_reference",
                            .implementation_version = 1,
                            .samples = 9,
                            .measure = "hot,eager",
                            .complete = 1,
                            .time_ns = time_ns,
                            .default_time_ns = default_time_ns};
  attune_decision now;
  snprintf(winner.problem, sizeof winner.problem, "gemm f32 nn %dx%dx%d strict", size, size, size);
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_OFF)); /* which runs the default */
  OK(attune_explain(tuner, host, winner.problem, &now));
  snprintf(winner.default_implementation, sizeof winner.default_implementation, "%s threads=2", now.implementation);
  OK(at_tuner_fingerprint(tuner, host, &fingerprint));
  OK(at_store_put(tuner->user, fingerprint, "gemm f32 nn strict", &winner, NULL, 0, 1000));
  attune_tuner_destroy(tuner);
}

TEST(times_are_the_stored_ones) {
  attune_profile_totals totals = ATTUNE_PROFILE_TOTALS_INIT;
  seen s = {.count = 0};
  store_winner(8, 1000.0, 3000.0);
  store_winner(16, 500.0, 400.0);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  assert_true(call(tuner, 8, 3) && call(tuner, 16, 2) && call(tuner, 63, 1));
  OK(attune_tuner_profile(tuner, take, &s, &totals));
  assert_int_equal(s.count, 3);
  assert_string_equal(s.problems[0], "gemm f32 nn 8x8x8 strict");
  assert_true(s.entries[0].time_ns == 3000.0 && s.entries[0].saved_ns == 6000.0 && s.entries[0].share == 0.75);
  assert_true(s.entries[1].time_ns == 1000.0 && s.entries[1].saved_ns == -200.0 && s.entries[1].share == 0.25);
  assert_true(s.entries[2].time_ns == 0.0 && s.entries[2].share == 0.0 && s.entries[2].untuned);
  assert_true(totals.time_ns == 4000.0 && totals.saved_ns == 5800.0 && totals.unknown_calls == 1);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(ATTUNE_MODE_OFF); /* reads nothing until it is asked */
  assert_true(call(tuner, 8, 10));
  s.count = 0;
  OK(attune_tuner_profile(tuner, take, &s, &totals));
  assert_true(s.entries[0].untuned && s.entries[0].time_ns == 30000.0 && s.entries[0].worth_ns == 20000.0);
  assert_true(totals.worth_ns == 20000.0);
  attune_tuner_destroy(tuner);
}

TEST(problems_beyond_the_bound) {
  attune_profile_totals totals = ATTUNE_PROFILE_TOTALS_INIT;
  seen s = {.count = 0};
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  tuner->plans.most = 2;
  for (int size = 4; size < 10; size++) assert_true(call(tuner, size, 10));
  OK(attune_tuner_profile(tuner, take, &s, &totals));
  assert_int_equal(s.count, 2);
  assert_int_equal(totals.other_calls, 40);
  assert_int_equal(totals.calls, 60);
  attune_tuner_destroy(tuner);
}

/* ---- JSON ---- */

static json_t *load(const char *path) {
  json_error_t error;
  json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!json) fail_msg("%s:%d: %s", path, error.line, error.text);
  return json;
}

/* The calls of tuner number `index` of the file. */
static int64_t calls_in(const json_t *json, size_t index) {
  const json_t *tuner = json_array_get(json_object_get(json, "tuners"), index);
  assert_non_null(tuner);
  return json_integer_value(json_object_get(tuner, "calls"));
}

/* Whatever is in a text, the file is valid; and numbers do not follow the locale. */
TEST(json_is_valid) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  store_winner(8, 1000.25, 3000.0);
  (void)setlocale(LC_ALL, "de_DE.UTF-8");
  assert_true(call(tuner, 8, 2));
  at_plan_entry *entry = tuner->plans.entries;
  static const char odd[] = "a\"b\\c\x01\x7f\xc3(\n/";
  memcpy(entry->decision->configuration, odd, sizeof odd);
  entry->decision->default_time_ns = 1e300 * 1e300; /* infinite: JSON has no such number */
  OK(attune_tuner_profile_write(tuner, report));
  (void)setlocale(LC_ALL, "C");
  json_t *json = load(report);
  assert_int_equal(json_integer_value(json_object_get(json, "process")), getpid());
  assert_documented("## Profile JSON", json_object_get(json, "tuners"));
  const json_t *problem =
      json_array_get(json_object_get(json_array_get(json_object_get(json, "tuners"), 0), "problems"), 0);
  assert_string_equal(json_string_value(json_object_get(problem, "problem")), "gemm f32 nn 8x8x8 strict");
  assert_string_equal(json_string_value(json_object_get(problem, "source")), "stored");
  assert_true(json_number_value(json_object_get(problem, "time_ns")) == 2000.5);
  assert_true(json_is_null(json_object_get(problem, "default_one_ns")));
  assert_string_equal(json_string_value(json_object_get(problem, "configuration")), "a\"b\\c\x01\x7f\xc3\x83(\n/");
  json_decref(json);
  assert_int_equal(attune_tuner_profile_write(tuner, folder), ATTUNE_IO_ERROR);
  assert_int_equal(attune_tuner_profile_write(tuner, "/nonexistent/x.json"), ATTUNE_NOT_FOUND);
  FAILS_SAYING(attune_tuner_profile_write(tuner, "/dev/full"), ATTUNE_IO_ERROR, "/dev/full");
  assert_int_equal(attune_tuner_profile_write(tuner, ""), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
}

/* ---- ATTUNE_PROFILE ---- */

static void wait_for(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* Two tuners at once, one destroyed, one alive at the end; one that did nothing is left out. */
TEST(written_at_the_end) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("ATTUNE_PROFILE", report, 1);
    attune_tuner *first = tuner_of(ATTUNE_MODE_CACHED), *second = tuner_of(ATTUNE_MODE_CACHED);
    attune_tuner *idle = tuner_of(ATTUNE_MODE_CACHED);
    if (!idle || !call(first, 4, 10) || !call(second, 5, 20)) _exit(1);
    attune_tuner_destroy(first);
    if (access(report, R_OK) != 0 || !call(second, 5, 5)) _exit(2);
    exit(0);
  }
  wait_for(child);
  json_t *json = load(report);
  assert_int_equal(json_integer_value(json_object_get(json, "process")), child);
  assert_int_equal(json_array_size(json_object_get(json, "tuners")), 2);
  assert_int_equal(calls_in(json, 0), 10);
  assert_int_equal(calls_in(json, 1), 25);
  json_decref(json);
}

/* A child tells of its own calls only, in a file of its own. */
TEST(a_child_has_its_own) {
  char pattern[160], path[160];
  snprintf(pattern, sizeof pattern, "%s/fork-%%p.json", folder);
  int channel[2];
  assert_int_equal(pipe(channel), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    setenv("ATTUNE_PROFILE", pattern, 1);
    attune_tuner *gone = tuner_of(ATTUNE_MODE_CACHED), *tuner = tuner_of(ATTUNE_MODE_CACHED);
    if (!call(gone, 5, 3) || !call(tuner, 4, 100)) _exit(1);
    attune_tuner_destroy(gone);
    const pid_t child = fork();
    if (child == 0) exit(call(tuner, 4, 7) ? 0 : 1);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(2);
    if (write(channel[1], &child, sizeof child) != (ssize_t)sizeof child) _exit(3);
    exit(0);
  }
  pid_t child = 0;
  wait_for(parent);
  assert_int_equal(read(channel[0], &child, sizeof child), sizeof child);
  close(channel[0]);
  close(channel[1]);
  snprintf(path, sizeof path, "%s/fork-%ld.json", folder, (long)parent);
  json_t *json = load(path);
  assert_int_equal(calls_in(json, 0), 3);
  assert_int_equal(calls_in(json, 1), 100);
  json_decref(json);
  snprintf(path, sizeof path, "%s/fork-%ld.json", folder, (long)child);
  json = load(path);
  assert_int_equal(json_array_size(json_object_get(json, "tuners")), 1);
  assert_int_equal(calls_in(json, 0), 7);
  json_decref(json);
}

/* Standard error of a child with this setting. */
static void errors_of(attune_mode mode, const char *profile, const char *log, char *out, size_t size) {
  int channel[2];
  size_t at = 0;
  assert_int_equal(pipe(channel), 0);
  store_winner(8, 1000.0, 3000.0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("ATTUNE_PROFILE", profile, 1);
    if (log) setenv("ATTUNE_LOG", log, 1);
    dup2(channel[1], 2);
    attune_tuner *tuner = tuner_of(mode);
    exit(call(tuner, 8, 3000) && call(tuner, 62, 11) ? 0 : 1);
  }
  close(channel[1]);
  for (ssize_t got; at < size - 1 && (got = read(channel[0], out + at, size - 1 - at)) > 0;) at += (size_t)got;
  out[at] = '\0';
  close(channel[0]);
  wait_for(child);
}

static void expect(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("no \"%s\" in\n%s", words, text);
}

/* A winner of another number of CPU threads is a guess here: its problem is still to be tuned, in both forms. */
TEST(other_threads_leave_untuned) {
  char text[8192], fingerprint[AT_FINGERPRINT_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  const char *device = NULL;
  const attune_decision winner = {.problem = "gemm f32 nn 62x62x62 strict",
                                  .implementation = "host_reference",
                                  .implementation_version = 1,
                                  .samples = 9,
                                  .measure = "hot,eager",
                                  .complete = 1,
                                  .time_ns = 1000,
                                  .default_time_ns = 3000};
  OK(at_tuner_fingerprint(tuner, host, &device));
  snprintf(fingerprint, sizeof fingerprint, "%s; with threads 4000; host_reference 1", device);
  OK(at_store_put(tuner->user, fingerprint, "gemm f32 nn strict", &winner, NULL, 0, 1000));
  attune_tuner_destroy(tuner);
  errors_of(ATTUNE_MODE_CACHED, "stderr", NULL, text, sizeof text);
  expect(text, "calls run untuned:\n");
  expect(text, "          11  gemm f32 nn 62x62x62 strict on host\n");
}

TEST(as_a_table) {
  char text[8192];
  errors_of(ATTUNE_MODE_CACHED, "stderr", NULL, text, sizeof text);
  expect(text,
         "mode cached: 3011 calls of 2 problems, 3.0 ms estimated; 11 calls of problems that were never measured");
  expect(text, "3000     3.0 ms  100.0%  stored     gemm f32 nn 8x8x8 strict on host: host_reference");
  expect(text, "saved against the default: 6.0 ms");
  expect(text, "11 of 3011 calls run untuned:\n          11  gemm f32 nn 62x62x62 strict on host\n");
  expect(text, "attune tune recorded");
}

/* Stored results of a problem that does not run are known, also at the end of a process that never read them. */
TEST(mode_off_tells_what_is_stored) {
  char text[8192];
  errors_of(ATTUNE_MODE_OFF, "stderr", NULL, text, sizeof text);
  expect(text, "mode off: 3011 calls of 2 problems, 9.0 ms estimated; 11 calls of problems that were never measured");
  expect(text, "stored winners that are not used (mode off) would save 6.0 ms: run with ATTUNE_MODE=cached");
  expect(text, "11 of 3011 calls run untuned:\n          11  gemm f32 nn 62x62x62 strict on host\n");
}

TEST(a_file_that_cannot_be_written) {
  char text[8192];
  errors_of(ATTUNE_MODE_CACHED, "/nonexistent/profile.json", "error", text, sizeof text);
  expect(text, "attune: error: the profile cannot be written to /nonexistent/profile.json: No such file");
}

FIXTURE(open_all) {
  setenv("HOME", folder, 1);
  setenv("ATTUNE_LOG", "warning", 1); /* read once a process */
  return mkdtemp(folder) && attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, open_all, close_all);
}
