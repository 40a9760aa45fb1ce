/* SPDX-License-Identifier: Apache-2.0
 * test_store_migrate.c: a database of version 1 is read as it is, and brought to version 3 by the first that writes, in
 * one transaction; its winners count as unsure. */
#include "tests/tuning/store/store_fixture.h"

#include "tests/tuning/store/store_version_1.h"

#include <signal.h>

enum { WINNERS = 4 };

static void assert_winner(at_store *store, int number, int unsure) {
  attune_decision d = winner_of(number), found;
  const attune_status status =
      at_store_find(store, number == 3 ? OTHER_FINGERPRINT : FINGERPRINT, d.problem, d.measure, &found);
  if (status != ATTUNE_OK) fail_msg("winner %d: %s", number, attune_last_message());
  assert_same_winner(&d, &found);
  assert_int_equal(found.unsure, unsure);
  assert_true(found.placement_spread == 0.0);
}

static int count_unsure(void *user, const char *fingerprint, const attune_decision *decision) {
  (void)fingerprint;
  *(int *)user += decision->unsure == 1;
  return 0;
}

static void assert_all(at_store *store) {
  int winners = 0, family = 0;
  for (int i = 0; i < WINNERS; i++) assert_winner(store, i, 1);
  assert_int_equal(at_store_each_winner(store, count_unsure, &winners), ATTUNE_OK);
  assert_int_equal(winners, WINNERS);
  assert_int_equal(at_store_each_of_family(store, FINGERPRINT, FAMILY, "hot,eager", count_unsure, &family), ATTUNE_OK);
  assert_int_equal(family, 3);
}

static void reading_leaves_it_as_it_is(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("old.db");
  assert_int_equal(at_store_open(&store, path_of("old.db"), AT_STORE_READ_ONLY), ATTUNE_OK);
  assert_all(store);
  at_store_close(store);
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 1);
}

static void writing_migrates(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("old.db");
  store = open_store("old.db");
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
  assert_all(store);
  attune_decision fresh = winner_of(1), found;
  fresh.placement_spread = 0.03125;
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &fresh, NULL, 0, 1000), ATTUNE_OK);
  assert_int_equal(find_number(store, 1, &found), ATTUNE_OK);
  assert_true(found.unsure == 0 && found.placement_spread == 0.03125);
  at_store_close(store);
  store = open_store("old.db"); /* and the schema is the one that new databases have */
  assert_winner(store, 0, 1);
  at_store_close(store);
  assert_int_equal(at_store_open(&store, path_of("old.db"), AT_STORE_READ_ONLY), ATTUNE_OK);
  assert_winner(store, 2, 1);
  at_store_close(store);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM trial"), 2);
  assert_int_equal(query(path_of("old.db"), "SELECT count FROM workload"), 77);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%winner_1%'"), 0);
}

/* A damaged row was a miss before and is left behind; the others come along. */
static void damaged_rows_stay_behind(void **state) {
  (void)state;
  make_version_1("old.db");
  execute(path_of("old.db"), "UPDATE winner SET time_ns = 1.0 WHERE problem LIKE '%2x16x3%'");
  at_store *store = open_store("old.db");
  attune_decision found;
  assert_winner(store, 0, 1);
  assert_int_equal(find_number(store, 2, &found), ATTUNE_NOT_FOUND);
  at_store_close(store);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS - 1);
}

/* Other tables than version 1 had: refused, and nothing is changed. */
static void strange_tables_are_refused(void **state) {
  (void)state;
  static const char *const changes[] = {"ALTER TABLE winner ADD COLUMN more TEXT", "CREATE TABLE more (x)",
                                        "DROP TABLE lease", "DROP INDEX winner_family"};
  for (size_t i = 0; i < AT_COUNT(changes); i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "strange%zu.db", i);
    make_version_1(name);
    execute(path_of(name), changes[i]);
    at_store *store = NULL;
    assert_int_equal(at_store_open(&store, path_of(name), AT_STORE_READ_WRITE), ATTUNE_BAD_DATA);
    assert_non_null(strstr(attune_last_message(), "other tables"));
    assert_int_equal(at_store_open(&store, path_of(name), AT_STORE_READ_ONLY), ATTUNE_BAD_DATA);
    assert_int_equal(query(path_of(name), "PRAGMA user_version"), 1);
    assert_int_equal(query(path_of(name), "SELECT count(*) FROM winner"), WINNERS);
  }
}

/* In a child; 0, or the number of what failed. A busy database is tried again, as its message says: how long another
 * process holds a lock is the machine's matter. */
static int use_old(void) {
  at_store *store = NULL;
  attune_decision found;
  attune_status status = ATTUNE_BUSY;
  for (int i = 0; i < 100 && status == ATTUNE_BUSY; i++)
    status = at_store_open(&store, path_of("old.db"), AT_STORE_READ_WRITE);
  for (int n = 0; n < 3 && status == ATTUNE_OK; n++) {
    for (int i = 0; i < 1000 && (i == 0 || status == ATTUNE_BUSY); i++) status = find_number(store, n, &found);
    if (status == ATTUNE_OK && !found.unsure) status = ATTUNE_BAD_DATA;
  }
  if (status != ATTUNE_OK)
    fprintf(stderr, "%d: %s: %s\n", (int)getpid(), attune_status_string(status), attune_last_message());
  at_store_close(store);
  return (int)status;
}

/* Many processes open it at once: each finds every winner, one of them brings it over. ATTUNE_TEST_PROCESSES: how many.
 */
static void processes_migrate_once(void **state) {
  (void)state;
  pid_t children[256];
  const int processes = (int)scale("ATTUNE_TEST_PROCESSES", 8);
  assert_true(processes <= (int)AT_COUNT(children));
  make_version_1("old.db");
  for (int i = 0; i < processes; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      _exit(use_old());
    }
  }
  for (int i = 0; i < processes; i++) {
    int status = 0;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS);
}

/* Killed at any moment, it is of version 1 or 3, whole. */
static void a_kill_leaves_one_or_the_other(void **state) {
  (void)state;
  const long kills = scale("ATTUNE_TEST_KILLS", 40);
  for (long i = 0; i < kills; i++) {
    make_version_1("old.db");
    const pid_t child = fork();
    if (child == 0) {
      at_store *store = NULL;
      (void)at_store_open(&store, path_of("old.db"), AT_STORE_READ_WRITE);
      _exit(0);
    }
    usleep((useconds_t)(i * 4000 / kills));
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    at_store *store = open_store("old.db");
    assert_all(store);
    at_store_close(store);
    assert_int_equal(unlink(path_of("old.db")), 0);
    (void)unlink(path_of("old.db-journal"));
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(reading_leaves_it_as_it_is), TEST(writing_migrates),       TEST(damaged_rows_stay_behind),
      TEST(strange_tables_are_refused), TEST(processes_migrate_once), TEST(a_kill_leaves_one_or_the_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
