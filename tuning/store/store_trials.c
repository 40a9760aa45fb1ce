/* SPDX-License-Identifier: Apache-2.0
 * store_trials.c: the trials stored with a winner, read back. */
#include "tuning/store/store_internal.h"

typedef struct request {
  const char *fingerprint, *problem, *measure;
  at_trial *out;
  int most, count;
} request;

static bool read_row(sqlite3_stmt *statement, at_trial *out) {
  out->time_ns = sqlite3_column_double(statement, 2);
  out->spread = sqlite3_column_double(statement, 3);
  out->samples = sqlite3_column_int(statement, 4);
  return at_store_column_text(statement, 0, out->implementation, sizeof out->implementation, false) &&
         at_store_column_text(statement, 1, out->configuration, sizeof out->configuration, true) &&
         at_store_column_text(statement, 5, out->verdict, sizeof out->verdict, false) &&
         at_store_real_ok(out->time_ns) && at_store_real_ok(out->spread) && out->samples >= 0;
}

static int read_trials(at_store *store, void *user) {
  request *r = user;
  sqlite3_stmt *statement;
  r->count = 0;
  int code = at_store_statement(store, AT_SQL_TRIALS, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, r->fingerprint);
  if (code == SQLITE_OK)
    code = sqlite3_bind_text(statement, 2, at_fingerprint_implementations(r->fingerprint), -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 3, r->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 4, r->measure, -1, SQLITE_STATIC);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW)
    if (r->count < r->most && read_row(statement, &r->out[r->count])) r->count++;
  return at_store_step_end(statement, code);
}

attune_status at_store_trials(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                              at_trial *out, int most, int *out_count) {
  *out_count = 0;
  if (at_store_forked(store)) return at_store_fail_forked(store);
  request r = {fingerprint, problem, measure, out, most, 0};
  const at_store_job job = {false, read_trials, NULL, &r};
  const attune_status status = at_store_run(store, &job, at_store_deadline(20 * AT_STORE_READ_WAIT_MS));
  if (status == ATTUNE_OK) *out_count = r.count;
  return status;
}
