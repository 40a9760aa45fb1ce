/* SPDX-License-Identifier: Apache-2.0
 * test_store_beside.c: what another process does to a database between two steps of this one, as it brings it over
 * from version 1 or makes it. The other is a second store of this process, which acts when this one's connection is
 * about to run a certain statement; a reader that does not end shows who waits for readers. */
#include "tests/tuning/store/store_fixture.h"

#include "tests/tuning/store/store_version_1.h"
#include "tuning/store/store_internal.h"

static struct {
  const char *when; /* the statement that begins so, once */
  void (*act)(void);
} other;

static sqlite3 *reader;

static int trace(unsigned what, void *user, void *statement, void *text) {
  (void)what, (void)user, (void)statement;
  if (!other.when || strncmp(text, other.when, strlen(other.when)) != 0) return 0;
  other.when = NULL;
  other.act();
  return 0;
}

static int watch_connection(sqlite3 *db, char **error, const struct sqlite3_api_routines *api) {
  (void)error, (void)api;
  return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, trace, NULL);
}

/* A read transaction, which keeps a writer's COMMIT waiting. */
static void start_reader(void) {
  assert_int_equal(sqlite3_open_v2(path_of("a.db"), &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM winner", NULL, NULL, NULL), SQLITE_OK);
}

static void end_reader(void) {
  (void)sqlite3_close(reader);
  reader = NULL;
}

static void bring_over(void) {
  at_store_close(open_store("a.db"));
}

static void bring_over_and_read(void) {
  bring_over();
  start_reader();
}

static void make_and_read(void) {
  make_database("a.db", 2);
  start_reader();
}

static void assert_found(at_store *store, int number, int unsure) {
  attune_decision found;
  const attune_status status = find_number(store, number, &found);
  if (status != ATTUNE_OK) fail_msg("find %d: %s: %s", number, attune_status_string(status), attune_last_message());
  assert_int_equal(found.unsure, unsure);
}

/* The lock came when the work was done: this one neither writes nor waits for the reader. */
static void brought_over_before_the_lock(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("a.db");
  other.when = "BEGIN IMMEDIATE";
  other.act = bring_over_and_read;
  OK(at_store_open(&store, path_of("a.db"), AT_STORE_READ_WRITE));
  assert_null(other.when);
  assert_non_null(reader);
  assert_found(store, 1, 1);
  end_reader();
  at_store_close(store);
}

static void made_before_the_lock(void **state) {
  (void)state;
  at_store *store = open_store("a.db");
  other.when = "BEGIN IMMEDIATE";
  other.act = make_and_read;
  pthread_mutex_lock(&store->lock);
  const attune_status status = at_store_connect(store, true, at_store_deadline(0));
  pthread_mutex_unlock(&store->lock);
  assert_null(other.when);
  assert_int_equal(status, ATTUNE_OK);
  assert_false(store->made);
  assert_found(store, 1, 0);
  end_reader();
  at_store_close(store);
}

/* Another writer is no reason to wait when there is nothing to bring over. */
static void a_writer_is_not_waited_for(void **state) {
  (void)state;
  sqlite3 *writer = NULL;
  make_database("a.db", 1);
  at_store *store = open_store("a.db");
  assert_int_equal(sqlite3_open_v2(path_of("a.db"), &writer, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  OK(at_store_migrate(store));
  (void)sqlite3_close(writer);
  at_store_close(store);
}

static void brought_over_while_a_reader_opens(void **state) {
  (void)state;
  static const char *const steps[] = {"PRAGMA application_id", "PRAGMA user_version", "BEGIN"};
  for (size_t i = 0; i < AT_COUNT(steps); i++) {
    at_store *store = NULL;
    make_version_1("a.db");
    other.when = steps[i];
    other.act = bring_over;
    OK(at_store_open(&store, path_of("a.db"), AT_STORE_READ_ONLY));
    assert_null(other.when);
    for (int n = 0; n < 3; n++) assert_found(store, n, 1);
    at_store_close(store);
  }
}

static int exclusive; /* what SQLite says to who wants to write */

static void try_to_write(void) {
  sqlite3 *writer = NULL;
  assert_int_equal(sqlite3_open_v2(path_of("a.db"), &writer, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  exclusive = sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
  (void)sqlite3_close(writer);
}

/* Nobody can bring it over between the look at its version and that at its tables. */
static void version_and_tables_are_of_one_moment(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("a.db");
  other.when = "SELECT sql FROM";
  other.act = try_to_write;
  OK(at_store_open(&store, path_of("a.db"), AT_STORE_READ_ONLY));
  assert_null(other.when);
  assert_int_equal(exclusive, SQLITE_BUSY);
  at_store_close(store);
}

/* Nor between the look at its version and the rows that are read after it. */
static void version_and_rows_are_of_one_moment(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("a.db");
  OK(at_store_open(&store, path_of("a.db"), AT_STORE_READ_ONLY));
  other.when = "SELECT f.text";
  other.act = try_to_write;
  exclusive = SQLITE_OK;
  assert_found(store, 0, 1);
  assert_null(other.when);
  assert_int_equal(exclusive, SQLITE_BUSY);
  try_to_write(); /* and not longer */
  assert_int_equal(exclusive, SQLITE_OK);
  at_store_close(store);
}

/* A program that has an old database open to read goes on finding winners, and finds new ones. */
static void brought_over_under_a_reader(void **state) {
  (void)state;
  at_store *store = NULL;
  make_version_1("a.db");
  OK(at_store_open(&store, path_of("a.db"), AT_STORE_READ_ONLY));
  assert_found(store, 0, 1);
  at_store *writer = open_store("a.db");
  assert_found(store, 0, 1);
  attune_decision fresh = winner_of(1);
  fresh.placement_spread = 0.25;
  OK(at_store_put(writer, FINGERPRINT, FAMILY, &fresh, NULL, 0, 20000));
  assert_found(store, 1, 0);
  assert_found(store, 2, 1);
  at_store_close(writer);
  at_store_close(store);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  void (*start)(void) = NULL;
  int (*const watch)(sqlite3 *, char **, const struct sqlite3_api_routines *) = watch_connection;
  memcpy(&start, &watch, sizeof start);
  if (sqlite3_auto_extension(start) != SQLITE_OK) return 1;
  const struct CMUnitTest tests[] = {
      TEST(brought_over_before_the_lock),         TEST(made_before_the_lock),
      TEST(a_writer_is_not_waited_for),           TEST(brought_over_while_a_reader_opens),
      TEST(version_and_tables_are_of_one_moment), TEST(version_and_rows_are_of_one_moment),
      TEST(brought_over_under_a_reader),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
