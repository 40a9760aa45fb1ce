/* SPDX-License-Identifier: Apache-2.0
 * test_store.c: what is put is found, field for field; walks, trials, recorded problems; threads and processes at
 * once. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

#include <pthread.h>

TEST(round_trip) {
  at_store *store = NULL;
  assert_int_equal(at_store_open(&store, path_of("a/b/tuning.db"), AT_STORE_OWN), ATTUNE_OK);
  attune_decision d = winner_of(3), found;
  assert_int_equal(at_store_find(store, FINGERPRINT, d.problem, d.measure, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(found.problem[0], 0);
  for (int i = 0; i < 20; i++) put_number(store, i);
  for (int i = 0; i < 20; i++) assert_number(store, i);
  at_store_close(store);
  struct stat info;
  assert_int_equal(stat(path_of("a/b/tuning.db"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  assert_int_equal(stat(path_of("a/b"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0700);
  store = open_store("a/b/tuning.db");
  for (int i = 0; i < 20; i++) assert_number(store, i);
  at_store_close(store);
  at_store *reader = NULL;
  assert_int_equal(at_store_open(&reader, path_of("a/b/tuning.db"), AT_STORE_READ_ONLY), ATTUNE_OK);
  for (int i = 0; i < 20; i++) assert_number(reader, i);
  assert_int_equal(at_store_put(reader, FINGERPRINT, FAMILY, &d, NULL, 0, 10), ATTUNE_PERMISSION);
  assert_int_equal(at_store_record(reader, FINGERPRINT, d.problem, 1, 10), ATTUNE_PERMISSION);
  assert_int_equal(at_store_lease_acquire(reader, FINGERPRINT, d.problem, 1000, 500), ATTUNE_PERMISSION);
  at_store_close(reader);
}

/* Values at the ends of their range come back as they were. */
TEST(extremes) {
  at_store *store = open_store("tuning.db");
  attune_decision d = winner_of(1), found;
  memset(d.problem, 'p', sizeof d.problem - 1);
  memset(d.configuration, 'c', sizeof d.configuration - 1);
  memset(d.note, 'n', sizeof d.note - 1);
  memset(d.measure, 'm', sizeof d.measure - 1);
  d.configuration[sizeof d.configuration - 1] = d.problem[sizeof d.problem - 1] = d.note[sizeof d.note - 1] = '\0';
  d.runner_up[0] = d.runner_up_configuration[0] = d.default_implementation[0] = d.device[0] = '\0';
  d.samples = d.candidates = d.rejected = d.disturbed = d.implementation_version = 2147483647;
  d.time_ns = 1e18;
  d.spread = 4.9e-324;
  d.default_time_ns = 0.0;
  d.tuning_ms = -0.0;
  d.tuned_at = 0;
  d.complete = d.unsure = 1;
  d.placement_spread = 0.0625;
  char fingerprint[AT_FINGERPRINT_CHARS], family[AT_FAMILY_CHARS];
  memset(fingerprint, 'f', sizeof fingerprint - 1);
  memset(family, 'g', sizeof family - 1);
  fingerprint[sizeof fingerprint - 1] = family[sizeof family - 1] = '\0';
  assert_int_equal(at_store_put(store, fingerprint, family, &d, NULL, 0, 1000), ATTUNE_OK);
  assert_int_equal(at_store_find(store, fingerprint, d.problem, d.measure, &found), ATTUNE_OK);
  assert_same_winner(&d, &found);
  assert_true(found.unsure == 1 && found.placement_spread == 0.0625);
  at_store_close(store);
}

TEST(replaces_and_separates) {
  at_store *store = open_store("tuning.db");
  attune_decision d = winner_of(5), other = winner_of(6), found;
  memcpy(other.problem, d.problem, sizeof d.problem);
  put_number(store, 5);
  assert_int_equal(at_store_put(store, OTHER_FINGERPRINT, FAMILY, &other, NULL, 0, 1000), ATTUNE_OK);
  assert_int_equal(at_store_find(store, OTHER_FINGERPRINT, d.problem, d.measure, &found), ATTUNE_OK);
  assert_same_winner(&other, &found);
  assert_number(store, 5);
  (void)snprintf(other.measure, sizeof other.measure, "cold,graph");
  assert_int_equal(at_store_find(store, FINGERPRINT, d.problem, other.measure, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &other, NULL, 0, 1000), ATTUNE_OK);
  assert_int_equal(at_store_find(store, FINGERPRINT, d.problem, other.measure, &found), ATTUNE_OK);
  assert_same_winner(&other, &found);
  assert_number(store, 5);
  (void)snprintf(other.measure, sizeof other.measure, "%s", d.measure);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &other, NULL, 0, 1000), ATTUNE_OK);
  assert_int_equal(at_store_find(store, FINGERPRINT, d.problem, d.measure, &found), ATTUNE_OK);
  assert_same_winner(&other, &found);
  assert_int_equal(at_store_find(store, "elsewhere", d.problem, d.measure, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM winner"), 3);
  at_store_close(store);
}

TEST(trials_belong_to_their_winner) {
  at_store *store = open_store("tuning.db");
  attune_decision d = winner_of(1);
  at_trial trials[3] = {{"one", "tile=1", 10.5, 0.5, 7, "winner"},
                        {"two", "", 0, 0, 0, "failed"},
                        {"three", "t=3", 12, 0.25, 9, "slower"}};
  put_number(store, 2);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, trials, 3, 1000), ATTUNE_OK);
  const char *path = path_of("tuning.db");
  assert_int_equal(query(path, "SELECT count(*) FROM trial"), 3);
  assert_int_equal(
      query(path,
            "SELECT count(*) FROM trial WHERE ordinal = 0 AND implementation = 'one' AND configuration = 'tile=1' "
            "AND time_ns = 10.5 AND spread = 0.5 AND samples = 7 AND verdict = 'winner'"),
      1);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, trials, 1, 1000), ATTUNE_OK);
  assert_int_equal(query(path, "SELECT count(*) FROM trial"), 1);
  trials[0].time_ns = -1;
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, trials, 1, 1000), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 1, 1000), ATTUNE_INVALID_ARGUMENT);
  at_store_close(store);
}

/* Rows that no reader would accept are refused before they are written. */
TEST(refuses_bad_rows) {
  at_store *store = open_store(":memory:");
  attune_decision good = winner_of(1), d;
#define REFUSED(change)                                                                                    \
  do {                                                                                                     \
    d = good;                                                                                              \
    change;                                                                                                \
    assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 100), ATTUNE_INVALID_ARGUMENT); \
  } while (0)
  REFUSED(d.problem[0] = '\0');
  REFUSED(d.problem[3] = '\n');
  REFUSED(d.note[0] = '\033');
  REFUSED(memset(d.configuration, 'x', sizeof d.configuration));
  REFUSED(d.implementation[0] = '\0');
  REFUSED(d.measure[0] = '\0');
  REFUSED(d.time_ns = -1);
  REFUSED(d.time_ns = 0.0 / 0.0 * d.time_ns);
  REFUSED(d.max_error = 1.0 / (d.time_ns - d.time_ns));
  REFUSED(d.samples = -1);
  REFUSED(d.placement_spread = -1);
  REFUSED(d.tuned_at = -1);
  REFUSED(d.tuned_at = INT64_MAX);
  assert_int_equal(at_store_put(store, "", FAMILY, &good, NULL, 0, 100), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_put(store, FINGERPRINT, NULL, &good, NULL, 0, 100), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, NULL, NULL, 0, 100), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_put(NULL, FINGERPRINT, FAMILY, &good, NULL, 0, 100), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_find(store, NULL, "p", "m", &d), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_record(store, FINGERPRINT, "p", 0, 100), ATTUNE_INVALID_ARGUMENT);
  at_store *none = store;
  assert_int_equal(at_store_open(&none, NULL, AT_STORE_READ_WRITE), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_open(&none, "", AT_STORE_READ_WRITE), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_store_open(&none, ":memory:", AT_STORE_READ_ONLY), ATTUNE_INVALID_ARGUMENT);
  assert_null(none);
  put_number(store, 1);
  assert_number(store, 1);
  at_store_close(store);
  at_store_close(NULL);
}

typedef struct walk_log {
  at_store *store;
  int count;
  int stop_at;
  char last[ATTUNE_PROBLEM_CHARS];
  long sum; /* of samples: which rows came */
} walk_log;

static int on_winner(void *user, const char *fingerprint, const attune_decision *decision) {
  walk_log *log = user;
  assert_string_equal(fingerprint, FINGERPRINT);
  assert_true(strcmp(log->last, decision->problem) < 0);
  (void)snprintf(log->last, sizeof log->last, "%s", decision->problem);
  log->sum += decision->samples;
  /* No lock is held: the store may be used from inside, written too. */
  attune_decision found;
  assert_int_equal(at_store_find(log->store, fingerprint, decision->problem, decision->measure, &found), ATTUNE_OK);
  if (log->count == 50) put_number(log->store, 3);
  return ++log->count == log->stop_at;
}

TEST(walks_in_order) {
  at_store *store = open_store("tuning.db");
  enum { COUNT = 150 };
  long sum = 0;
  for (int i = 0; i < COUNT; i++) {
    put_number(store, i);
    sum += winner_of(i).samples;
  }
  walk_log log = {store, 0, -1, "", 0};
  assert_int_equal(at_store_each_winner(store, on_winner, &log), ATTUNE_OK);
  assert_int_equal(log.count, COUNT);
  assert_int_equal(log.sum, sum);
  log = (walk_log){store, 0, 40, "", 0};
  assert_int_equal(at_store_each_winner(store, on_winner, &log), ATTUNE_OK);
  assert_int_equal(log.count, 40);
  attune_decision d = winner_of(1000);
  assert_int_equal(at_store_put(store, FINGERPRINT, "another family", &d, NULL, 0, 1000), ATTUNE_OK);
  log = (walk_log){store, 0, -1, "", 0};
  assert_int_equal(at_store_each_of_family(store, FINGERPRINT, FAMILY, "hot,eager", on_winner, &log), ATTUNE_OK);
  assert_int_equal(log.count, COUNT);
  log = (walk_log){store, 0, -1, "", 0};
  assert_int_equal(at_store_each_of_family(store, FINGERPRINT, "another family", "hot,eager", on_winner, &log),
                   ATTUNE_OK);
  assert_int_equal(log.count, 1);
  log = (walk_log){store, 0, -1, "", 0};
  assert_int_equal(at_store_each_of_family(store, FINGERPRINT, FAMILY, "cold,graph", on_winner, &log), ATTUNE_OK);
  assert_int_equal(at_store_each_of_family(store, OTHER_FINGERPRINT, FAMILY, "hot,eager", on_winner, &log), ATTUNE_OK);
  assert_int_equal(log.count, 0);
  at_store_close(store);
}

/* One problem with several fingerprints and measures: each of them once. */
static int count_winner(void *user, const char *fingerprint, const attune_decision *decision) {
  (void)fingerprint;
  (void)decision;
  ++*(int *)user;
  return 0;
}

TEST(walks_equal_problems) {
  at_store *store = open_store("tuning.db");
  attune_decision d = winner_of(1);
  for (int i = 0; i < 100; i++) {
    char fingerprint[32];
    (void)snprintf(fingerprint, sizeof fingerprint, "machine %d", i / 2);
    (void)snprintf(d.measure, sizeof d.measure, i % 2 ? "cold,graph" : "hot,eager");
    assert_int_equal(at_store_put(store, fingerprint, FAMILY, &d, NULL, 0, 1000), ATTUNE_OK);
  }
  int count = 0;
  assert_int_equal(at_store_each_winner(store, count_winner, &count), ATTUNE_OK);
  assert_int_equal(count, 100);
  at_store_close(store);
}

static int on_recorded(void *user, const char *problem, int64_t count) {
  char *log = user;
  size_t at = strlen(log);
  (void)snprintf(log + at, 200 - at, "%s=%lld;", problem, (long long)count);
  return strstr(log, "stop") != NULL;
}

TEST(records_a_workload) {
  char log[200] = "";
  at_store *store = open_store("tuning.db");
  assert_int_equal(at_store_record(store, FINGERPRINT, "one", 3, 1000), ATTUNE_OK);
  assert_int_equal(at_store_record(store, FINGERPRINT, "two", 5, 1000), ATTUNE_OK);
  assert_int_equal(at_store_record(store, FINGERPRINT, "one", 4, 1000), ATTUNE_OK);
  assert_int_equal(at_store_record(store, OTHER_FINGERPRINT, "three", 4, 1000), ATTUNE_OK);
  assert_int_equal(at_store_each_recorded(store, FINGERPRINT, on_recorded, log), ATTUNE_OK);
  assert_string_equal(log, "one=7;two=5;");
  assert_int_equal(at_store_record(store, FINGERPRINT, "stop", INT64_MAX, 1000), ATTUNE_OK);
  assert_int_equal(at_store_record(store, FINGERPRINT, "stop", INT64_MAX, 1000), ATTUNE_OK);
  log[0] = '\0';
  assert_int_equal(at_store_each_recorded(store, FINGERPRINT, on_recorded, log), ATTUNE_OK);
  assert_string_equal(log, "stop=9223372036854775807;");
  at_store_close(store);
}

/* --- many at once --- */

enum { PROCESSES = 8, THREADS = 4 };
static int commits;

static int writer_process(int number) {
  at_store *store = NULL;
  if (at_store_open(&store, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 1;
  for (int i = 0; i < commits; i++) {
    attune_decision d = winner_of(number * commits + i);
    if (at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 60000) != ATTUNE_OK) return 2;
    if (at_store_record(store, FINGERPRINT, "shared", 1, 60000) != ATTUNE_OK) return 3;
  }
  at_store_close(store);
  return 0;
}

static char new_file[32];

static int open_new_file(int number) {
  at_store *store = NULL;
  attune_status status =
      at_store_open(&store, path_of(new_file), number % 2 ? AT_STORE_READ_WRITE : AT_STORE_READ_ONLY);
  if (status == ATTUNE_OK) at_store_close(store);
  bool right = status == ATTUNE_OK || (number % 2 == 0 && status == ATTUNE_NOT_FOUND); /* read before it was made */
  if (!right) fprintf(stderr, "%s\n", attune_last_message());
  return right ? 0 : 1;
}

TEST(processes_make_one_file) {
  for (int round = 0; round < scale("ATTUNE_TEST_NEW_FILES", 60); round++) {
    pid_t pids[PROCESSES];
    (void)snprintf(new_file, sizeof new_file, "new%d.db", round);
    for (int i = 0; i < PROCESSES; i++) pids[i] = spawn(open_new_file, i);
    for (int i = 0; i < PROCESSES; i++) assert_int_equal(wait_for(pids[i]), 0);
  }
}

static long long recorded_total(void) {
  return query(path_of("tuning.db"), "SELECT sum(count) FROM workload");
}

TEST(processes_lose_nothing) {
  commits = (int)scale("ATTUNE_TEST_COMMITS", 200);
  pid_t pids[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) pids[i] = spawn(writer_process, i); /* they also race to make the file */
  for (int i = 0; i < PROCESSES; i++) assert_int_equal(wait_for(pids[i]), 0);
  at_store *store = open_store("tuning.db");
  for (int i = 0; i < PROCESSES * commits; i++) assert_number(store, i);
  at_store_close(store);
  assert_int_equal(recorded_total(), PROCESSES * commits);
  assert_int_equal(query(path_of("tuning.db"), "PRAGMA integrity_check"), 1);
}

typedef struct thread_work {
  at_store *store;
  int first;
  int count;
  int wrong;
  double longest_ms;
} thread_work;

/* As a compute call does it: at most 50 ms a put; a row that is not written yet is found all the same. */
static void *writer_thread(void *user) {
  thread_work *work = user;
  for (int i = 0; i < work->count; i++) {
    attune_decision d = winner_of(work->first + i), found;
    int64_t start = at_now_ns();
    attune_status status = at_store_put(work->store, FINGERPRINT, FAMILY, &d, NULL, 0, 50);
    double ms = (double)(at_now_ns() - start) / 1e6;
    if (ms > work->longest_ms) work->longest_ms = ms;
    if (status != ATTUNE_OK && status != ATTUNE_BUSY) work->wrong++;
    do status = at_store_find(work->store, FINGERPRINT, d.problem, d.measure, &found);
    while (status == ATTUNE_BUSY);
    if (status != ATTUNE_OK || found.samples != d.samples) work->wrong++;
  }
  return NULL;
}

static int threaded_process(int number) {
  thread_work work[THREADS];
  pthread_t threads[THREADS];
  at_store *store = NULL;
  double longest_ms = 0;
  if (at_store_open(&store, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 1;
  for (int i = 0; i < THREADS; i++) {
    work[i] = (thread_work){store, (number * THREADS + i) * commits, commits, 0, 0};
    if (pthread_create(&threads[i], NULL, writer_thread, &work[i]) != 0) return 2;
  }
  int wrong = 0;
  for (int i = 0; i < THREADS; i++) {
    (void)pthread_join(threads[i], NULL);
    wrong += work[i].wrong;
    if (work[i].longest_ms > longest_ms) longest_ms = work[i].longest_ms;
  }
  at_store_close(store);
  if (getenv("ATTUNE_TEST_VERBOSE")) fprintf(stderr, "process %d: longest put %.1f ms\n", number, longest_ms);
  return wrong ? 3 : 0;
}

TEST(threads_in_processes_lose_nothing) {
  enum { MOST = 64 };
  int processes = (int)scale("ATTUNE_TEST_PROCESSES", 4);
  assert_true(processes <= MOST);
  commits = (int)scale("ATTUNE_TEST_THREAD_COMMITS", 40);
  pid_t pids[MOST];
  for (int i = 0; i < processes; i++) pids[i] = spawn(threaded_process, i);
  for (int i = 0; i < processes; i++) assert_int_equal(wait_for(pids[i]), 0);
  at_store *store = open_store("tuning.db");
  for (int i = 0; i < processes * THREADS * commits; i++) assert_number(store, i);
  at_store_close(store);
  assert_int_equal(query(path_of("tuning.db"), "PRAGMA integrity_check"), 1);
}

/* One store of one process, in many threads; in this process, so that a sanitizer watches it. */
TEST(threads_share_a_store) {
  static const char *const names[] = {"tuning.db", ":memory:"};
  for (size_t n = 0; n < 2; n++) {
    at_store *store = open_store(names[n]);
    thread_work work[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      work[i] = (thread_work){store, i * 50, 50, 0, 0};
      assert_int_equal(pthread_create(&threads[i], NULL, writer_thread, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      assert_int_equal(pthread_join(threads[i], NULL), 0);
      assert_int_equal(work[i].wrong, 0);
    }
    for (int i = 0; i < THREADS * 50; i++) assert_number(store, i);
    at_store_close(store);
  }
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
