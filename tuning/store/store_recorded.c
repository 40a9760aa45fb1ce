/* SPDX-License-Identifier: Apache-2.0
 * store_recorded.c: the recorded workload: the calls of each problem on a device, whatever its libraries. */
#include "src/base/array.h"
#include "tuning/store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- writing --- */

typedef struct record_request {
  const at_record *records;
  size_t count;
} record_request;

static int record_row(at_store *store, const at_record *record) {
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_ADD_FINGERPRINT, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, record->fingerprint);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_RECORD, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, record->fingerprint);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, record->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, record->calls);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 4, (int64_t)time(NULL));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

static int record_rows(at_store *store, void *user) {
  const record_request *request = user;
  int code = SQLITE_OK;
  for (size_t i = 0; i < request->count && code == SQLITE_OK; i++) code = record_row(store, &request->records[i]);
  return code;
}

static attune_status check_record(const at_record *record) {
  attune_status status = at_store_check_text("fingerprint", record->fingerprint, AT_FINGERPRINT_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("problem", record->problem, AT_PROBLEM_CHARS, false);
  if (status == ATTUNE_OK && record->calls < 1)
    status = AT_INVALID("count is %lld; should be 1 or more", (long long)record->calls);
  return status;
}

attune_status at_store_record_all(at_store *store, const at_record *records, size_t count, int wait_ms) {
  AT_REQUIRE(store);
  if (count) AT_REQUIRE(records);
  attune_status status = at_store_check_writable(store);
  for (size_t i = 0; i < count && status == ATTUNE_OK; i++) status = check_record(&records[i]);
  if (status != ATTUNE_OK || count == 0) return status;
  record_request request = {records, count};
  const at_store_job job = {true, record_rows, NULL, &request};
  return at_store_run(store, &job, at_store_deadline(wait_ms));
}

attune_status at_store_record(at_store *store, const char *fingerprint, const char *problem, int64_t count,
                              int wait_ms) {
  const at_record record = {fingerprint, problem, count};
  return at_store_record_all(store, &record, 1, wait_ms);
}

/* --- reading, most called first --- */

typedef struct recorded {
  int64_t count;
  char *problem;
} recorded;

typedef struct recorded_list {
  const char *fingerprint;
  recorded *items;
  size_t count;
  size_t room;
} recorded_list;

static void empty_list(recorded_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i].problem);
  list->count = 0;
}

/* Reads all at once: their order changes while others count. */
static int read_recorded(at_store *store, void *user) {
  recorded_list *list = user;
  sqlite3_stmt *statement;
  char problem[AT_PROBLEM_CHARS];
  empty_list(list);
  int code = at_store_statement(store, AT_SQL_RECORDED, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, list->fingerprint);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    const int64_t count = sqlite3_column_int64(statement, 1);
    const bool sound = sqlite3_column_type(statement, 1) == SQLITE_INTEGER && count > 0 &&
                       at_store_column_text(statement, 0, problem, sizeof problem, false);
    char *copy = sound && AT_ARRAY_ROOM(list->items, list->count, list->room) ? strdup(problem) : NULL;
    if (sound && !copy) {
      (void)sqlite3_reset(statement);
      return SQLITE_NOMEM;
    }
    if (sound) list->items[list->count++] = (recorded){count, copy};
  }
  return at_store_step_end(statement, code);
}

attune_status at_store_each_recorded(at_store *store, const char *fingerprint, at_store_recorded_fn fn, void *user) {
  if (!store || !fingerprint || !fn) return AT_INVALID("store, fingerprint or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  recorded_list list = {fingerprint, NULL, 0, 0};
  const at_store_job job = {false, read_recorded, NULL, &list};
  attune_status status = at_store_run(store, &job, at_store_deadline(20 * AT_STORE_READ_WAIT_MS));
  for (size_t i = 0; i < list.count && status == ATTUNE_OK; i++) {
    if (fn(user, list.items[i].problem, list.items[i].count) != 0) break;
  }
  empty_list(&list);
  free(list.items);
  return status;
}
