/* SPDX-License-Identifier: Apache-2.0
 * store_migrate.c: are the tables of a database those of schema.sql, and how one of version 1 gets there.
 *
 * Version 1 measured at one placement of the operands, so its winners count as unsure: they are used, and the next tuning
 * run measures them again. */
#include "tuning/store_internal.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MAX 32 /* of the schema: bits of a set */

static const char ADDED[] = "  placement_spread REAL NOT NULL,\n  unsure INTEGER NOT NULL,\n"; /* by version 2 */

/* Past blanks, comments and pragmas of the schema's text, to the next statement that is stored. */
static const char *next_statement(const char *text) {
  for (;;) {
    text += strspn(text, "\n;");
    if (strncmp(text, "--", 2) != 0 && strncmp(text, "PRAGMA", 6) != 0) return text;
    text += strcspn(text, "\n");
  }
}

/* The end of the statement at `text`: its semicolon. */
static size_t statement_length(const char *text) {
  return strcspn(text, ";");
}

/* The schema's text in the version, to be freed. */
static char *schema_text(int version) {
  char *text = strdup(at_schema_sql);
  char *added = text && version == 1 ? strstr(text, ADDED) : NULL;
  if (added) memmove(added, added + sizeof ADDED - 1, strlen(added + sizeof ADDED - 1) + 1);
  return text;
}

/* Which statement of the schema `sql` is, counted from 0; -1: none. */
static int statement_of(const char *schema, const char *sql) {
  int index = 0;
  for (const char *at = next_statement(schema); *at; index++) {
    const size_t length = statement_length(at);
    if (strlen(sql) == length && strncmp(sql, at, length) == 0) return index;
    at = next_statement(at + length);
  }
  return -1;
}

static int count_statements(const char *schema) {
  int count = 0;
  for (const char *at = next_statement(schema); *at; count++) at = next_statement(at + statement_length(at));
  return count;
}

/* Whatever their order: a table that was made later comes last. */
static int compare(at_store *store, const char *schema, bool *same) {
  sqlite3_stmt *statement;
  uint32_t seen = 0;
  *same = true;
  int code = sqlite3_prepare_v2(store->db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", -1, &statement, NULL);
  if (code != SQLITE_OK) return code;
  while (*same && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const char *sql = (const char *)sqlite3_column_text(statement, 0);
    const int index = sql ? statement_of(schema, sql) : -1;
    *same = index >= 0 && index < STATEMENTS_MAX && !(seen & (uint32_t)1 << index);
    if (*same) seen |= (uint32_t)1 << index;
  }
  const int end = sqlite3_finalize(statement);
  if (*same && code != SQLITE_DONE) return code;
  *same = *same && seen == (uint32_t)(((uint64_t)1 << count_statements(schema)) - 1);
  return end;
}

attune_status at_store_check_schema(at_store *store, int version) {
  char *schema = schema_text(version);
  bool same = false;
  if (!schema) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to open %s", store->path);
  const int code = compare(store, schema, &same);
  free(schema);
  if (code != SQLITE_OK) return at_store_fail(store, code);
  if (same) return ATTUNE_OK;
  return at_fail(
      ATTUNE_BAD_DATA,
      "%s has other tables than a tuning database of version %d; move it away or set ATTUNE_DB to another file",
      store->path, version);
}

/* --- version 1 to 2 --- */

static int run(at_store *store, const char *sql) {
  return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* Runs the statement of the schema that begins with `start`. */
static int create(at_store *store, const char *start) {
  for (const char *at = next_statement(at_schema_sql); *at;) {
    const size_t length = statement_length(at);
    if (strncmp(at, start, strlen(start)) == 0) {
      char *sql = strndup(at, length);
      const int code = sql ? run(store, sql) : SQLITE_NOMEM;
      free(sql);
      return code;
    }
    at = next_statement(at + length);
  }
  return SQLITE_ERROR;
}

/* Damaged rows, misses so far, are left behind. */
static int copy_winners(at_store *store) {
  char fingerprint[AT_FINGERPRINT_CHARS], family[AT_FAMILY_CHARS];
  attune_decision winner;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_OLD_WINNERS, &statement);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (!at_store_row_read_family(statement, fingerprint, family, &winner)) continue;
    const int wrote = at_store_winner_write(store, fingerprint, family, &winner);
    if (wrote == SQLITE_OK) continue;
    (void)sqlite3_reset(statement);
    return wrote;
  }
  return at_store_step_end(statement, code);
}

/* The tables that are looked for later must not be those of before: statements are prepared again. */
static void forget(at_store *store, at_statement which) {
  (void)sqlite3_finalize(store->statements[which]);
  store->statements[which] = NULL;
}

static int rebuild(at_store *store) {
  int code = run(store, "DROP INDEX winner_family; ALTER TABLE winner RENAME TO winner_1");
  if (code == SQLITE_OK) code = create(store, "CREATE TABLE winner ");
  if (code == SQLITE_OK) code = create(store, "CREATE INDEX winner_family ");
  if (code == SQLITE_OK) code = copy_winners(store);
  forget(store, AT_SQL_OLD_WINNERS);
  forget(store, AT_SQL_PUT);
  if (code == SQLITE_OK) code = run(store, "DROP TABLE winner_1; PRAGMA user_version = 2");
  return code;
}

static int version_of(at_store *store, int *out) {
  sqlite3_stmt *statement;
  int code = sqlite3_prepare_v2(store->db, "PRAGMA user_version", -1, &statement, NULL);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) *out = sqlite3_column_int(statement, 0);
  const int end = sqlite3_finalize(statement);
  return code == SQLITE_ROW ? end : code == SQLITE_DONE ? SQLITE_ERROR : code;
}

/* Inside a transaction that may write. Who finds the work done writes nothing, and leaves by ROLLBACK: COMMIT would wait
 * for every reader, and keep new ones out. */
static attune_status migrate(at_store *store) {
  int version = 0, code = version_of(store, &version);
  if (code != SQLITE_OK) return at_store_fail(store, code);
  const bool old = version == 1;
  if (old) {
    const attune_status status = at_store_check_schema(store, 1);
    if (status != ATTUNE_OK) return status;
    code = rebuild(store);
    if (code != SQLITE_OK) return at_store_fail(store, code);
  }
  const attune_status status = at_store_check_schema(store, AT_STORE_VERSION);
  if (status != ATTUNE_OK) return status;
  code = run(store, old ? "COMMIT" : "ROLLBACK");
  return code == SQLITE_OK ? ATTUNE_OK : at_store_fail(store, code);
}

/* The write lock without waiting for it, while the version is still 1: *mine. */
static int begin(at_store *store, bool *mine) {
  const int64_t deadline_ns = store->deadline_ns;
  int version = 0, code = version_of(store, &version);
  *mine = false;
  if (code != SQLITE_OK || version != 1) return code;
  store->deadline_ns = 0;
  code = run(store, "BEGIN IMMEDIATE");
  store->deadline_ns = deadline_ns;
  *mine = code == SQLITE_OK;
  return code;
}

/* Who waits for another process's migration looks for its end, and does not queue for the lock. */
attune_status at_store_migrate(at_store *store) {
  bool mine = false;
  int code = begin(store, &mine);
  while ((code & 0xff) == SQLITE_BUSY && at_now_ns() < store->deadline_ns) {
    at_store_nap();
    code = begin(store, &mine);
  }
  if (code != SQLITE_OK) return at_store_fail(store, code);
  if (!mine) return at_store_check_schema(store, AT_STORE_VERSION);
  const attune_status status = migrate(store);
  if (status != ATTUNE_OK && !sqlite3_get_autocommit(store->db))
    (void)run(store, "ROLLBACK"); /* the status says what failed first */
  return status;
}

/* --- a database of version 1 that is only read: its winners still serve --- */

/* Version and tables of one moment: another process may be about to bring it over. */
attune_status at_store_read_old(at_store *store) {
  int version = 0, code = run(store, "BEGIN");
  if (code == SQLITE_OK) code = version_of(store, &version);
  attune_status status = code == SQLITE_OK ? at_store_check_schema(store, version == 1 ? 1 : AT_STORE_VERSION)
                                           : at_store_fail(store, code);
  if (!sqlite3_get_autocommit(store->db)) (void)run(store, "ROLLBACK"); /* nothing was written */
  store->old = version == 1;
  return status;
}

void at_store_look_at_old(at_store *store) {
  int version = 0;
  if (version_of(store, &version) != SQLITE_OK || version == 1) return;
  for (int i = 0; i < AT_SQL_COUNT; i++) forget(store, (at_statement)i);
  store->old = false;
}
