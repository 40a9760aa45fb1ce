/* SPDX-License-Identifier: Apache-2.0
 * test_fork_tuning.c: forks at any time under threads that tune, call, allocate and record: each child multiplies,
 * tunes, stores and ends. Forks in the first milliseconds of a process, while libraries are still being opened, are
 * made by running this program again. ATTUNE_TEST_FORKS: how many of both. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include "src/base/support.h"
#include "tests/src/process/without_blas.h"

#include <attune/attune.h>

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SIZE = 96, LARGE = 400 };

static char self[4096], folder[64], database[128];
static attune_device *host;
static attune_tuner *tuner;
static double a[LARGE * LARGE], b[LARGE * LARGE];
static atomic_bool ended;
static atomic_int beginners;

static attune_status multiply(attune_stream *on, int64_t n, double *out) {
  attune_gemm_problem p = {.dtype = ATTUNE_F64, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .ldd = n};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = out};
  return attune_gemm(tuner, on, &p, &o);
}

static bool set_up(attune_mode mode) {
  attune_tuner_options options = {.database = database, .mode = mode, .budget_ms = 5.0};
  for (int i = 0; i < LARGE * LARGE; i++) a[i] = b[i] = 1.0;
  return attune_device_get(&host, "host") == ATTUNE_OK && attune_tuner_create(&tuner, &options) == ATTUNE_OK;
}

/* ---- what the parent's threads do ---- */

static void *keep_tuning(void *arg) {
  atomic_fetch_add(&beginners, 1);
  for (int i = *(int *)arg; !atomic_load(&ended); i++) {
    char text[64];
    snprintf(text, sizeof text, "gemm f64 nn %dx%dx%d strict", 20 + i % 50, 30, 40 + i % 7);
    (void)attune_tune(tuner, host, text, &(attune_tune_options){.budget_ms = 10.0, .force = 1}, NULL);
  }
  return NULL;
}

/* Small and large, of one thread and of teams, and problems that are new: tuned or recorded. */
static void *keep_calling(void *arg) {
  double *out = malloc(sizeof *out * LARGE * LARGE);
  attune_stream *stream = NULL;
  atomic_fetch_add(&beginners, 1);
  (void)attune_stream_create(&stream, host);
  for (int i = *(int *)arg; !atomic_load(&ended); i++) {
    (void)multiply(attune_stream_default(host), LARGE, out);
    (void)attune_tuner_set_mode(tuner, i % 2 ? ATTUNE_MODE_RECORD : ATTUNE_MODE_TUNE);
    (void)multiply(attune_stream_default(host), 8 + i % 60, out);
    for (int j = 0; j < 4; j++) (void)multiply(stream, SIZE, out);
    (void)attune_stream_synchronize(stream);
  }
  attune_stream_destroy(stream);
  free(out);
  return NULL;
}

static void *keep_allocating(void *arg) {
  (void)arg;
  atomic_fetch_add(&beginners, 1);
  for (size_t i = 1; !atomic_load(&ended); i++) {
    void *memory = NULL;
    if (attune_alloc(&memory, attune_stream_default(host), i % 100 * 4096 + 1) == ATTUNE_OK)
      (void)attune_free(memory, attune_stream_default(host));
    if (i % 64 == 0) (void)attune_memory_empty_cache(host);
  }
  return NULL;
}

/* ---- what a child does ---- */

static bool right(const double *c, int n) {
  for (int i = 0; i < n * n; i++)
    if (c[i] != n) return false;
  return true;
}

/* A database that is busy for long, on a machine that is, keeps the winner in memory: then it is written with the
 * next. */
static attune_status store_winner(const char *problem) {
  attune_status status = attune_tuner_database_status(tuner);
  for (int i = 0; i < 10 && status == ATTUNE_BUSY; i++) {
    (void)attune_tune(tuner, host, problem, &(attune_tune_options){.budget_ms = 3.0, .force = 1}, NULL);
    status = attune_tuner_database_status(tuner);
  }
  return status;
}

/* Its budget is also the longest wait for others, of whom there are many here. */
static attune_status tune_in_turn(const char *problem, attune_decision *out) {
  attune_status status = ATTUNE_BUSY;
  while (status == ATTUNE_BUSY)
    status = attune_tune(tuner, host, problem, &(attune_tune_options){.budget_ms = 3.0}, out);
  return status;
}

/* 0, or the number of what failed. */
static int live(int number, bool early) {
  static double c[LARGE * LARGE];
  attune_stream *stream = NULL;
  attune_decision decision;
  char text[64];
  void *memory = NULL;
  if (multiply(attune_stream_default(host), LARGE, c) != ATTUNE_OK || !right(c, LARGE)) return 1;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return 2;
  if (multiply(stream, SIZE, c) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK || !right(c, SIZE))
    return 3;
  snprintf(text, sizeof text, "gemm f64 nn %dx%dx13 strict", 2000 + number, early ? 12 : 11);
  if (tune_in_turn(text, &decision) != ATTUNE_OK) return 4;
  if (decision.source != ATTUNE_SOURCE_TUNED) return 5;
  if (store_winner(text) != ATTUNE_OK) return 6;
  if (attune_alloc(&memory, stream, 100000) != ATTUNE_OK || attune_free(memory, stream) != ATTUNE_OK) return 7;
  if (attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD) != ATTUNE_OK) return 8;
  if (multiply(attune_stream_default(host), 200 + number % 50, c) != ATTUNE_OK || !right(c, 200 + number % 50))
    return 9;
  attune_stream_destroy(stream);
  if (number % 2) attune_tuner_destroy(tuner);
  return 0;
}

static void in_child(int number, bool early) {
  int end = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(600);
    const int failed = live(number, early);
    if (failed) fprintf(stderr, "child %d: %d: %s\n", number, failed, attune_last_message());
    if (number % 3 == 0) exit(failed);
    _exit(failed);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  if (end != 0) fail_msg("child %d has wait status %#x", number, (unsigned)end);
}

static int forks(void) {
  const char *text = getenv("ATTUNE_TEST_FORKS");
  return text ? atoi(text) : 12;
}

FIXTURE(open_folder) {
  snprintf(folder, sizeof folder, "/tmp/attune-fork-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(database, sizeof database, "%s/tuning.db", folder);
  return 0;
}

FIXTURE(close_folder) {
  char journal[160];
  snprintf(journal, sizeof journal, "%s-journal", database);
  (void)unlink(journal);
  (void)unlink(database);
  return rmdir(folder);
}

/* The winners of all children are in the database that the parent uses. */
static int count_children(void *user, const attune_decision *winner, const char *fingerprint, int here) {
  (void)fingerprint;
  (void)here;
  int *count = user;
  *count += strstr(winner->problem, "x11x13") != NULL;
  return 0;
}

TEST(children_of_busy_threads_live) {
  void *(*const jobs[])(void *) = {keep_tuning, keep_tuning, keep_calling, keep_calling, keep_allocating};
  pthread_t threads[AT_COUNT(jobs)];
  int first[AT_COUNT(jobs)], children = 0;
  assert_true(set_up(ATTUNE_MODE_TUNE));
  for (size_t i = 0; i < AT_COUNT(jobs); i++) {
    first[i] = (int)i * 1000;
    assert_int_equal(pthread_create(&threads[i], NULL, jobs[i], &first[i]), 0);
  }
  for (int i = 0; i < forks(); i++) {
    usleep((useconds_t)((unsigned)i * 2654435761u % 20000u));
    in_child(i, false);
  }
  atomic_store(&ended, true);
  for (size_t i = 0; i < AT_COUNT(jobs); i++) pthread_join(threads[i], NULL);
  assert_int_equal(attune_tuner_winners(tuner, count_children, &children), ATTUNE_OK);
  assert_int_equal(children, forks());
  attune_tuner_destroy(tuner);
}

/* ---- the first milliseconds ---- */

static int fork_early(int number) {
  int zero = 0;
  pthread_t thread;
  alarm(600);
  if (!set_up(ATTUNE_MODE_TUNE) || pthread_create(&thread, NULL, keep_tuning, &zero) != 0) return 2;
  while (atomic_load(&beginners) == 0) sched_yield();
  usleep((useconds_t)((unsigned)number * 2654435761u % 8000u));
  in_child(number, true);
  return 0;
}

TEST(early_children_live) {
  for (int i = 0; i < forks(); i++) {
    char number[16];
    char *const arguments[] = {self, database, number, NULL};
    pid_t child = 0;
    int end = 0;
    snprintf(number, sizeof number, "%d", 5000 + i);
    assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &end, 0), child);
    if (end != 0) fail_msg("process %d has wait status %#x", i, (unsigned)end);
  }
}

int main(int argc, char **argv) {
  if (argc > 2) {
    snprintf(database, sizeof database, "%s", argv[1]);
    return fork_early(atoi(argv[2]));
  }
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 1;
  return RUN_TESTS(open_folder, close_folder);
}
