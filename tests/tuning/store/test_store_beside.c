/* SPDX-License-Identifier: Apache-2.0
 * test_store_beside.c: another process makes a database between two steps of this one. The other is a second store of
 * this process, which acts when this one's connection is about to run a certain statement; a reader that does not end
 * shows who waits for readers. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

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
TEST(made_before_the_lock) {
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

int main(void) {
  void (*start)(void) = NULL;
  int (*const watch)(sqlite3 *, char **, const struct sqlite3_api_routines *) = watch_connection;
  memcpy(&start, &watch, sizeof start);
  if (sqlite3_auto_extension(start) != SQLITE_OK) return 1;
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
