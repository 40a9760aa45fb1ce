/* SPDX-License-Identifier: Apache-2.0
 * test_store_migrate_fails.c: an older database that cannot be brought to the present version, because the file cannot
 * grow, another process reads it, brings it over or may write it alone, serves as it is; and a large one is brought over,
 * which is told. Waiting passes on the virtual clock. */
#include "tests/tuning/store/store_version_1.h"
#include "tests/tuning/store/store_version_2.h"

#include "tests/support/virtual_clock.h"
#include "tuning/store/store_internal.h"

#include <signal.h>
#include <sys/resource.h>

enum { WINNERS = 4 };

void __wrap_at_store_nap(void);
void __wrap_at_store_nap(void) {
  virtual_clock_pass(100000000, 0.0);
}

static int count_one(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  (void)decision, (void)fingerprint, (void)valid;
  ++*(int *)user;
  return 0;
}

/* In a process that opens it: 0, or what was wrong. */
static int serves_as_it_is(attune_status why) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  int winners = 0;
  options.database = path_of("old.db");
  options.mode = ATTUNE_MODE_CACHED;
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  if (attune_tuner_database_status(tuner) != ATTUNE_OK) return 2;
  if (attune_tuner_winners(tuner, count_one, &winners) != ATTUNE_OK || winners != WINNERS) return 3;
  if (attune_tuner_database_prepare(tuner) != why || !strstr(attune_last_message(), "old.db")) return 4;
  attune_tuner_destroy(tuner);
  return 0;
}

static void assert_untouched(void) {
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 1);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS);
  assert_int_equal(query(path_of("old.db"), "PRAGMA integrity_check"), 1);
}

static void a_file_that_may_not_grow(void **state) {
  (void)state;
  int end = 0;
  make_version_1("old.db");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct stat file;
    if (stat(path_of("old.db"), &file) != 0) _exit(100);
    const rlim_t most = (rlim_t)file.st_size;
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most}) != 0) _exit(101);
    _exit(serves_as_it_is(ATTUNE_IO_ERROR));
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
  assert_untouched();
}

/* Another connection, as another process would have it. */
static void beside(const char *begin) {
  sqlite3 *db = NULL;
  make_version_1("old.db");
  assert_int_equal(sqlite3_open_v2(path_of("old.db"), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, begin, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(serves_as_it_is(ATTUNE_BUSY), 0);
  assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  assert_untouched();
}

static void another_reads_it(void **state) {
  (void)state;
  beside("BEGIN; SELECT * FROM winner");
}

static void another_brings_it_over(void **state) {
  (void)state;
  beside("BEGIN IMMEDIATE; ALTER TABLE winner RENAME TO old_winner");
}

/* And it is brought over by the next who can. */
static void later_it_can_be(void **state) {
  (void)state;
  beside("BEGIN IMMEDIATE");
  at_store_close(open_store("old.db"));
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
}

static int told;
static void count_told(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_INFO && strstr(line, "old.db") && strstr(line, "version 3")) told++;
}

/* ATTUNE_TEST_TRIALS: how many; 2000000 took 25 s. A large one is told before and after, a small one is not. */
static void with_many_trials(void **state) {
  (void)state;
  const long all = scale("ATTUNE_TEST_TRIALS", 2000);
  char rows[512];
  (void)snprintf(rows, sizeof rows,
                 "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %ld) INSERT INTO trial "
                 "SELECT 1, 'gemm f32 nn 7x7x' || i || ' strict', 'hot,eager', 0, 'one', 'tile=' || i, 10.5, 0.5, 7, "
                 "'slower' FROM c",
                 all);
  for (int large = 0; large < 2; large++) {
    make_version_2(path_of("old.db"), ROWS_2);
    execute(path_of("old.db"), rows);
    const long long before = query(path_of("old.db"), "SELECT count(*) FROM trial");
    if (large) /* pages that nothing uses */
      execute(path_of("old.db"),
              "CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(20000000)); DROP TABLE filler");
    told = 0;
    attune_set_log(count_told, NULL, ATTUNE_LOG_INFO);
    at_store *store = open_store("old.db");
    attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
    at_store_close(store);
    const bool is_large = query(path_of("old.db"), "PRAGMA page_count") * 4096 > AT_STORE_LARGE_BYTES;
    assert_true(is_large || !large);
    assert_int_equal(told, is_large ? 2 : 0);
    assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
    assert_true(query(path_of("old.db"), "SELECT count(*) FROM trial") >= all && before >= all);
    assert_int_equal(unlink(path_of("old.db")), 0);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_file_that_may_not_grow), TEST(another_reads_it), TEST(another_brings_it_over),
      TEST(later_it_can_be),          TEST(with_many_trials),
  };
  virtual_clock_start();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
