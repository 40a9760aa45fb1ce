/* SPDX-License-Identifier: Apache-2.0
 * store_rows.c: a winner with its trials as a checked copy, and how it is written. */
#include "tuning/store/store_internal.h"

#include "tuning/store/decision.h"

#include <stdlib.h>
#include <string.h>

static attune_status check_trial(const at_trial *trial) {
  attune_status status =
      at_store_check_text("trial implementation", trial->implementation, sizeof trial->implementation, false);
  if (status == ATTUNE_OK)
    status = at_store_check_text("trial configuration", trial->configuration, sizeof trial->configuration, true);
  if (status == ATTUNE_OK) status = at_store_check_text("trial verdict", trial->verdict, sizeof trial->verdict, false);
  if (status != ATTUNE_OK) return status;
  if (!at_store_real_ok(trial->time_ns) || !at_store_real_ok(trial->spread) || trial->samples < 0)
    return AT_INVALID("trial %s: time, spread and samples should be 0 or more and finite", trial->implementation);
  return ATTUNE_OK;
}

attune_status at_store_row_make(at_store_row **out, const char *fingerprint, const char *family,
                                const attune_decision *winner, const at_trial *trials, int trial_count) {
  if (!winner || trial_count < 0 || trial_count > 65536 || (trial_count > 0 && !trials))
    return AT_INVALID("winner is NULL or trial_count %d is not that of trials (65536 at most)", trial_count);
  attune_status status = at_store_check_text("fingerprint", fingerprint, AT_FINGERPRINT_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("family", family, AT_FAMILY_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("problem", winner->problem, AT_PROBLEM_CHARS, false);
  for (int i = 0; i < trial_count && status == ATTUNE_OK; i++) status = check_trial(&trials[i]);
  if (status != ATTUNE_OK) return status;
  const size_t trial_bytes = (size_t)trial_count * sizeof *trials, winner_bytes = at_decision_bytes(winner),
               fingerprint_bytes = strlen(fingerprint) + 1, family_bytes = strlen(family) + 1;
  at_store_row *row = calloc(1, sizeof *row + trial_bytes + winner_bytes + fingerprint_bytes + family_bytes);
  if (!row) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to keep a winner");
  char *behind = (char *)row->trials + trial_bytes;
  row->winner = (attune_decision *)(void *)behind;
  at_decision_keep(row->winner, winner);
  row->winner->complete = winner->complete != 0;
  row->winner->unsure = winner->unsure != 0;
  row->winner->source = ATTUNE_SOURCE_STORED;
  row->fingerprint = memcpy(behind + winner_bytes, fingerprint, fingerprint_bytes);
  row->family = memcpy(behind + winner_bytes + fingerprint_bytes, family, family_bytes);
  row->trial_count = trial_count;
  if (trial_count > 0) memcpy(row->trials, trials, trial_bytes);
  status = at_store_check_fields(row->winner);
  if (status != ATTUNE_OK) {
    free(row);
    return status;
  }
  row->key = at_store_row_key(fingerprint, winner->problem, winner->measure);
  *out = row;
  return ATTUNE_OK;
}

static int bind_text(sqlite3_stmt *statement, int index, const char *text) {
  return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

/* The two texts of a fingerprint, at places 1 and 2. */
static int bind_fingerprint(sqlite3_stmt *statement, const char *fingerprint) {
  const int code = at_store_bind_device(statement, 1, fingerprint);
  return code == SQLITE_OK ? bind_text(statement, 2, at_fingerprint_implementations(fingerprint)) : code;
}

/* Binds the key that AT_SQL_CLEAR_TRIALS and AT_SQL_PUT_TRIAL begin with. */
static int trial_statement(at_store *store, at_statement which, const at_store_row *row, sqlite3_stmt **out) {
  int code = at_store_statement(store, which, out);
  if (code == SQLITE_OK) code = bind_fingerprint(*out, row->fingerprint);
  if (code == SQLITE_OK) code = bind_text(*out, 3, row->winner->problem);
  if (code == SQLITE_OK) code = bind_text(*out, 4, row->winner->measure);
  return code;
}

static int write_trials(at_store *store, const at_store_row *row) {
  sqlite3_stmt *statement;
  int code = trial_statement(store, AT_SQL_CLEAR_TRIALS, row, &statement);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  for (int i = 0; i < row->trial_count && code == SQLITE_OK; i++) {
    const at_trial *trial = &row->trials[i];
    code = trial_statement(store, AT_SQL_PUT_TRIAL, row, &statement);
    if (code == SQLITE_OK) code = sqlite3_bind_int(statement, 5, i);
    if (code == SQLITE_OK) code = bind_text(statement, 6, trial->implementation);
    if (code == SQLITE_OK) code = bind_text(statement, 7, trial->configuration);
    if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 8, trial->time_ns);
    if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 9, trial->spread);
    if (code == SQLITE_OK) code = sqlite3_bind_int(statement, 10, trial->samples);
    if (code == SQLITE_OK) code = bind_text(statement, 11, trial->verdict);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  return code;
}

static int add_text(at_store *store, at_statement which, const char *text, int length) {
  sqlite3_stmt *statement;
  int code = at_store_statement(store, which, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, text, length, SQLITE_STATIC);
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

int at_store_winner_write(at_store *store, const char *fingerprint, const char *family, const attune_decision *winner) {
  sqlite3_stmt *statement;
  int code = add_text(store, AT_SQL_ADD_FINGERPRINT, fingerprint, (int)at_fingerprint_device_chars(fingerprint));
  if (code == SQLITE_OK)
    code = add_text(store, AT_SQL_ADD_IMPLEMENTATIONS, at_fingerprint_implementations(fingerprint), -1);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_PUT, &statement);
  if (code == SQLITE_OK) code = bind_fingerprint(statement, fingerprint);
  if (code == SQLITE_OK) code = bind_text(statement, 3, family);
  if (code == SQLITE_OK) code = at_store_bind_fields(statement, 4, fingerprint, family, winner);
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

int at_store_row_write(at_store *store, const at_store_row *row) {
  const int code = at_store_winner_write(store, row->fingerprint, row->family, row->winner);
  return code == SQLITE_OK ? write_trials(store, row) : code;
}
