/* SPDX-License-Identifier: Apache-2.0
 * store_fixture.h: what the tests of the store share: a private folder, winners made from a number, workers as
 * processes. */
#ifndef AT_TESTS_STORE_FIXTURE_H
#define AT_TESTS_STORE_FIXTURE_H

#include "tests/support/store_open.h"
#include "tuning/store/decision.h"

#include "tests/support/check.h"
#include "tests/support/folder.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINGERPRINT "host|test cpu|avx2"
#define OTHER_FINGERPRINT "cuda:0|NVIDIA H200|13.0"
#define FAMILY "gemm f32 nn strict"

static char folder[128];

/* The path of a file in the test's own folder, which is new for each test. */
static inline const char *path_of(const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* In memory where that is possible: no test here depends on a disk, and a commit waits for it. ATTUNE_TEST_FOLDER
 * names another. */
static inline int setup(void **state) {
  (void)state;
  const char *base = getenv("ATTUNE_TEST_FOLDER");
  if (!base) base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  (void)snprintf(folder, sizeof folder, "%s/attune-store-XXXXXX", base);
  return mkdtemp(folder) ? 0 : -1;
}

static inline int teardown(void **state) {
  (void)state;
  return folder_remove(folder);
}

/* A number from the environment: sizes are for continuous integration unless it says otherwise. */
static inline long scale(const char *name, long otherwise) {
  const char *text = getenv(name);
  long value = text ? strtol(text, NULL, 10) : 0;
  return value > 0 ? value : otherwise;
}

/* Every field differs for every number. */
static inline attune_decision winner_of(int number) {
  attune_decision d;
  memset(&d, 0, sizeof d);
  (void)snprintf(d.problem, sizeof d.problem, "gemm f32 nn %dx16x%d strict", number, number + 1);
  (void)snprintf(d.device, sizeof d.device, "cuda:%d", number % 8);
  (void)snprintf(d.implementation, sizeof d.implementation, "implementation_%d", number % 7);
  d.implementation_version = 1 + number % 5;
  (void)snprintf(d.configuration, sizeof d.configuration, "tile=%dx128,stages=%d", number, number % 4);
  d.source = ATTUNE_SOURCE_STORED;
  d.time_ns = 1000.25 + number;
  d.spread = 0.001 * (1 + number % 9);
  d.samples = 20 + number;
  (void)snprintf(d.default_implementation, sizeof d.default_implementation, "default_%d", number % 3);
  d.default_time_ns = 2000.5 + number;
  (void)snprintf(d.runner_up, sizeof d.runner_up, "runner_%d", number);
  (void)snprintf(d.runner_up_configuration, sizeof d.runner_up_configuration, "tile=%d", number + 3);
  d.runner_up_time_ns = 1500.0 + number; /* a whole number: SQLite stores it as an integer */
  (void)snprintf(d.measure, sizeof d.measure, "hot,eager");
  d.candidates = 30 + number;
  d.rejected = number % 6;
  d.disturbed = number % 10;
  d.max_error = 0.125;
  d.tuning_ms = 12.5 + number;
  d.complete = number % 2;
  d.tuned_at = 1700000000 + number;
  (void)snprintf(d.note, sizeof d.note, "note \xc3\x97 %d", number);
  return d;
}

static inline void assert_same_winner(const attune_decision *a, const attune_decision *b) {
  assert_string_equal(a->problem, b->problem);
  assert_string_equal(a->device, b->device);
  assert_string_equal(a->implementation, b->implementation);
  assert_int_equal(a->implementation_version, b->implementation_version);
  assert_string_equal(a->configuration, b->configuration);
  assert_int_equal(a->source, b->source);
  assert_true(a->time_ns == b->time_ns && a->spread == b->spread);
  assert_int_equal(a->samples, b->samples);
  assert_string_equal(a->default_implementation, b->default_implementation);
  assert_true(a->default_time_ns == b->default_time_ns);
  assert_string_equal(a->runner_up, b->runner_up);
  assert_string_equal(a->runner_up_configuration, b->runner_up_configuration);
  assert_true(a->runner_up_time_ns == b->runner_up_time_ns);
  assert_string_equal(a->measure, b->measure);
  assert_int_equal(a->candidates, b->candidates);
  assert_int_equal(a->rejected, b->rejected);
  assert_int_equal(a->disturbed, b->disturbed);
  assert_true(a->max_error == b->max_error && a->tuning_ms == b->tuning_ms);
  assert_int_equal(a->complete, b->complete);
  assert_int_equal(a->tuned_at, b->tuned_at);
  assert_string_equal(a->note, b->note);
}

static inline at_store *open_store(const char *name) {
  at_store *store = NULL;
  attune_status status =
      at_store_open(&store, strcmp(name, ":memory:") == 0 ? name : path_of(name), AT_STORE_READ_WRITE);
  if (status != ATTUNE_OK) fail_msg("%s: %s", attune_status_string(status), attune_last_message());
  return store;
}

static inline void put_number(at_store *store, int number) {
  attune_decision d = winner_of(number);
  attune_status status = at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 20000);
  if (status != ATTUNE_OK) fail_msg("put %d: %s: %s", number, attune_status_string(status), attune_last_message());
}

static inline attune_status find_number(at_store *store, int number, attune_decision *out) {
  attune_decision d = winner_of(number);
  return at_store_find(store, FINGERPRINT, d.problem, d.measure, out);
}

static inline void assert_number(at_store *store, int number) {
  attune_decision d = winner_of(number), found;
  attune_status status = ATTUNE_BUSY;
  for (int i = 0; i < 100 && status == ATTUNE_BUSY; i++) status = find_number(store, number, &found);
  if (status != ATTUNE_OK) fail_msg("find %d: %s: %s", number, attune_status_string(status), attune_last_message());
  assert_same_winner(&d, &found);
}

/* One integer of the file, read with a connection of the test's own. */
static inline long long query(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  (void)sqlite3_busy_timeout(db, 10000);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  long long value = sqlite3_column_int64(statement, 0);
  const char *text = (const char *)sqlite3_column_text(statement, 0);
  if (text && strcmp(text, "ok") == 0) value = 1;
  (void)sqlite3_finalize(statement);
  (void)sqlite3_close(db);
  return value;
}

static inline void execute(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *error = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  (void)sqlite3_busy_timeout(db, 10000);
  if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s: %s", sql, error);
  (void)sqlite3_close(db);
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(file >= 0);
  assert_int_equal(write(file, bytes, size), size);
  assert_int_equal(close(file), 0);
}

static inline unsigned char *read_file(const char *path, size_t *size) {
  struct stat info;
  int file = open(path, O_RDONLY);
  assert_true(file >= 0 && fstat(file, &info) == 0);
  *size = (size_t)info.st_size;
  unsigned char *bytes = malloc(*size + 1);
  assert_non_null(bytes);
  assert_int_equal(read(file, bytes, *size), *size);
  (void)close(file);
  return bytes;
}

static inline void make_database(const char *name, int count) {
  at_store *store = open_store(name);
  for (int i = 0; i < count; i++) put_number(store, i);
  at_store_close(store);
}

static inline void assert_unchanged(const char *path, const unsigned char *bytes, size_t size) {
  size_t now;
  unsigned char *present = read_file(path, &now);
  assert_int_equal(now, size);
  assert_memory_equal(present, bytes, size);
  free(present);
}

/* Runs `work` in a child, which must not return to cmocka; its exit status says how it went. */
static inline pid_t spawn(int (*work)(int number), int number) {
  pid_t pid = fork();
  if (pid == 0) _exit(work(number));
  assert_true(pid > 0);
  return pid;
}

static inline int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
