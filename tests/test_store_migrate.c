/* SPDX-License-Identifier: Apache-2.0
 * test_store_migrate.c: a database of version 1 is read as it is, and brought to version 2 by the first that writes, in
 * one transaction; its winners count as unsure. */
#include "tests/store_fixture.h"

#include <signal.h>

/* As version 1 made it: three winners of one fingerprint (of numbers 0, 1 and 2), one of another (3), the trials of the
 * first, and a recorded problem. */
static const char VERSION_1[] =
    "PRAGMA application_id = 1096041538;\n"
    "PRAGMA user_version = 1;\n"
    "CREATE TABLE fingerprint (\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  text TEXT NOT NULL UNIQUE\n"
    ") STRICT;\n"
    "CREATE TABLE winner (\n"
    "  fingerprint INTEGER NOT NULL,\n"
    "  family TEXT NOT NULL,\n"
    "  problem TEXT NOT NULL,\n"
    "  measure TEXT NOT NULL,\n"
    "  device TEXT NOT NULL,\n"
    "  implementation TEXT NOT NULL,\n"
    "  version INTEGER NOT NULL,\n"
    "  configuration TEXT NOT NULL,\n"
    "  time_ns REAL NOT NULL,\n"
    "  spread REAL NOT NULL,\n"
    "  samples INTEGER NOT NULL,\n"
    "  default_implementation TEXT NOT NULL,\n"
    "  default_time_ns REAL NOT NULL,\n"
    "  runner_up TEXT NOT NULL,\n"
    "  runner_up_configuration TEXT NOT NULL,\n"
    "  runner_up_time_ns REAL NOT NULL,\n"
    "  candidates INTEGER NOT NULL,\n"
    "  rejected INTEGER NOT NULL,\n"
    "  disturbed INTEGER NOT NULL,\n"
    "  max_error REAL NOT NULL,\n"
    "  tuning_ms REAL NOT NULL,\n"
    "  complete INTEGER NOT NULL,\n"
    "  tuned_at INTEGER NOT NULL,\n"
    "  note TEXT NOT NULL,\n"
    "  row_check INTEGER NOT NULL,\n"
    "  PRIMARY KEY (problem, fingerprint, measure)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE trial (\n"
    "  fingerprint INTEGER NOT NULL,\n"
    "  problem TEXT NOT NULL,\n"
    "  measure TEXT NOT NULL,\n"
    "  ordinal INTEGER NOT NULL,\n"
    "  implementation TEXT NOT NULL,\n"
    "  configuration TEXT NOT NULL,\n"
    "  time_ns REAL NOT NULL,\n"
    "  spread REAL NOT NULL,\n"
    "  samples INTEGER NOT NULL,\n"
    "  verdict TEXT NOT NULL,\n"
    "  PRIMARY KEY (problem, fingerprint, measure, ordinal)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE workload (\n"
    "  fingerprint INTEGER NOT NULL,\n"
    "  problem TEXT NOT NULL,\n"
    "  count INTEGER NOT NULL,\n"
    "  last INTEGER NOT NULL,\n"
    "  PRIMARY KEY (fingerprint, problem)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE lease (\n"
    "  fingerprint INTEGER NOT NULL,\n"
    "  problem TEXT NOT NULL,\n"
    "  token INTEGER NOT NULL,\n"
    "  place TEXT NOT NULL,\n"
    "  pid INTEGER NOT NULL,\n"
    "  started INTEGER NOT NULL,\n"
    "  expires INTEGER NOT NULL,\n"
    "  PRIMARY KEY (fingerprint, problem)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE INDEX winner_family ON winner (fingerprint, family, measure, problem);\n"
    "INSERT INTO \"fingerprint\" VALUES(1,'host|test cpu|avx2');"
    "INSERT INTO \"fingerprint\" VALUES(2,'cuda:0|NVIDIA H200|13.0');"
    "INSERT INTO \"trial\" VALUES(1,'gemm f32 nn 0x16x1 strict','hot,eager',0,'one','tile=1',10.5,0.5,7,"
    "'winner');"
    "INSERT INTO \"trial\" VALUES(1,'gemm f32 nn 0x16x1 strict','hot,eager',1,'two','',0.0,0.0,0,"
    "'failed');"
    "INSERT INTO \"winner\" VALUES(1,'gemm f32 nn strict','gemm f32 nn 0x16x1 strict','hot,eager',"
    "'cuda:0','implementation_0',1,'tile=0x128,stages=0',1000.25,0.001,20,'default_0',2000.5,'runner_0',"
    "'tile=3',1500.0,30,0,0,0.125,12.5,0,1700000000,'note \xc3\x97 0',3171844644916171123);"
    "INSERT INTO \"winner\" VALUES(1,'gemm f32 nn strict','gemm f32 nn 1x16x2 strict','hot,eager',"
    "'cuda:1','implementation_1',2,'tile=1x128,stages=1',1001.25,0.002,21,'default_1',2001.5,'runner_1',"
    "'tile=4',1501.0,31,1,1,0.125,13.5,1,1700000001,'note \xc3\x97 1',-2062649866990723326);"
    "INSERT INTO \"winner\" VALUES(1,'gemm f32 nn strict','gemm f32 nn 2x16x3 strict','hot,eager',"
    "'cuda:2','implementation_2',3,'tile=2x128,stages=2',1002.25,0.003,22,'default_2',2002.5,'runner_2',"
    "'tile=5',1502.0,32,2,2,0.125,14.5,0,1700000002,'note \xc3\x97 2',1808085097106290658);"
    "INSERT INTO \"winner\" VALUES(2,'gemm f32 nn strict','gemm f32 nn 3x16x4 strict','hot,eager',"
    "'cuda:3','implementation_3',4,'tile=3x128,stages=3',1003.25,0.004,23,'default_0',2003.5,'runner_3',"
    "'tile=6',1503.0,33,3,3,0.125,15.5,1,1700000003,'note \xc3\x97 3',2753166438275382862);"
    "INSERT INTO \"workload\" VALUES(1,'gemm f64 nn 2x2x2 strict',77,1795300820);";

enum { WINNERS = 4 };

static void make_version_1(const char *name) {
  write_file(path_of(name), "", 0);
  execute(path_of(name), VERSION_1);
  assert_int_equal(chmod(path_of(name), 0600), 0);
}

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
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 2);
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

/* Many processes open it at once: each finds every winner, one of them brings it over. */
static void processes_migrate_once(void **state) {
  (void)state;
  enum { PROCESSES = 8 };
  pid_t children[PROCESSES];
  make_version_1("old.db");
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      at_store *store = NULL;
      attune_decision found;
      int good = at_store_open(&store, path_of("old.db"), AT_STORE_READ_WRITE) == ATTUNE_OK;
      for (int n = 0; n < 3 && good; n++) good = find_number(store, n, &found) == ATTUNE_OK && found.unsure;
      at_store_close(store);
      _exit(good ? 0 : 1);
    }
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 2);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS);
}

/* Killed at any moment, it is of version 1 or 2, whole. */
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
