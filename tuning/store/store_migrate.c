/* SPDX-License-Identifier: Apache-2.0
 * store_migrate.c: are the tables of a database those of its version, and how an older one becomes one of the present
 * version: in one transaction, by the first process that may write to it.
 *
 * Version 1 measured at one placement of the operands, so its winners count as unsure: they are used, and the next
 * tuning run measures them again. Versions 1 and 2 had the whole fingerprint in one text; at_fingerprint_from_version_2
 * takes it apart, and what it does not say counts as the same, so that whatever held before holds on. */
#include "tuning/store/store_internal.h"

#include "schema_2_sql.h"
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
  char *text = strdup(version == AT_STORE_VERSION ? at_schema_sql : at_schema_2_sql);
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
      "%s has other tables than a tuning database of version %d; move it away or name another file by " AT_STORE_NAMED,
      store->path, version);
}

/* --- to the present version --- */

static int run(at_store *store, const char *sql) {
  return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* Leases are of attunes that cannot work with the new tables. */
static const char MAKE_ROOM[] = "DROP INDEX winner_family;"
                                "DROP TABLE lease;"
                                "ALTER TABLE winner RENAME TO old_winner;"
                                "ALTER TABLE trial RENAME TO old_trial;"
                                "ALTER TABLE workload RENAME TO old_workload;"
                                "ALTER TABLE fingerprint RENAME TO old_fingerprint;";

/* Every device first, as workloads have no other; several old fingerprints may be of one device: their calls are
 * added. */
static const char COPY_REST[] =
    "INSERT OR IGNORE INTO fingerprint (text) SELECT device_of(text) FROM old_fingerprint WHERE device_of(text) "
    "NOTNULL "
    "ORDER BY id;"
    "INSERT OR IGNORE INTO trial SELECT f.id, i.id, problem, measure, ordinal, implementation, configuration, time_ns, "
    "spread, samples, verdict FROM old_trial t JOIN old_fingerprint o ON o.id = t.fingerprint JOIN fingerprint f ON "
    "f.text = device_of(o.text) JOIN implementations i ON i.text = implementations_of(o.text);"
    "INSERT INTO workload SELECT f.id, problem, CAST(min(total(count), 9.2e18) AS INTEGER), max(last) FROM "
    "old_workload "
    "w JOIN old_fingerprint o ON o.id = w.fingerprint JOIN fingerprint f ON f.text = device_of(o.text) WHERE count > 0 "
    "GROUP BY f.id, problem;"
    "DROP TABLE old_winner; DROP TABLE old_trial; DROP TABLE old_workload; DROP TABLE old_fingerprint;";

/* Damaged rows, misses so far, are left behind. */
static int copy_winners(at_store *store) {
  sqlite3_stmt *statement;
  at_stored_row *row = malloc(sizeof *row);
  if (!row) return SQLITE_NOMEM;
  int code = at_store_statement(store, AT_SQL_OLD_WINNERS, &statement);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW || !at_store_row_read(statement, row)) continue;
    const int wrote = at_store_winner_write(store, row->fingerprint, row->family, &row->decision);
    if (wrote != SQLITE_OK) code = wrote;
  }
  free(row);
  return statement ? at_store_step_end(statement, code) : code;
}

/* The tables that are looked for later must not be those of before: statements are prepared again. */
static void forget_statements(at_store *store) {
  for (int i = 0; i < AT_SQL_COUNT; i++) {
    (void)sqlite3_finalize(store->statements[i]);
    store->statements[i] = NULL;
  }
}

/* Making the tables sets the version too. */
static int rebuild(at_store *store) {
  int code = run(store, MAKE_ROOM);
  if (code == SQLITE_OK) code = run(store, at_schema_sql);
  if (code == SQLITE_OK) code = copy_winners(store);
  forget_statements(store);
  return code == SQLITE_OK ? run(store, COPY_REST) : code;
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

/* What does not fit into the cache is written early, and then nobody can read the old rows any more: the cache may have
 * so many pages of 4 KiB. */
static const char NO_SPILL[] = "PRAGMA cache_spill = 65536";

/* Inside a transaction that may write. Who finds the work done writes nothing, and leaves by ROLLBACK: COMMIT would
 * wait for every reader, and keep new ones out. */
static attune_status migrate(at_store *store) {
  int version = 0, code = version_of(store, &version);
  if (code != SQLITE_OK) return at_store_fail(store, code);
  const bool old = version < AT_STORE_VERSION;
  if (old) {
    const attune_status status = at_store_check_schema(store, version);
    if (status != ATTUNE_OK) return status;
    store->version = version; /* whose statements read the old rows */
    at_store_steps_for_all(store);
    code = run(store, NO_SPILL);
    if (code == SQLITE_OK) code = rebuild(store);
    if (code != SQLITE_OK) return at_store_fail(store, code);
  }
  const attune_status status = at_store_check_schema(store, AT_STORE_VERSION);
  if (status != ATTUNE_OK) return status;
  code = run(store, old ? "COMMIT" : "ROLLBACK");
  if (code == SQLITE_OK && old) code = run(store, "PRAGMA shrink_memory");
  return code == SQLITE_OK ? ATTUNE_OK : at_store_fail(store, code);
}

/* The write lock without waiting for it, while the version is still an older one: *mine. */
static int begin(at_store *store, bool *mine) {
  const int64_t deadline_ns = store->deadline_ns;
  int version = 0, code = version_of(store, &version);
  *mine = false;
  if (code != SQLITE_OK || version >= AT_STORE_VERSION) return code;
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
  const attune_status status = mine ? migrate(store) : at_store_check_schema(store, AT_STORE_VERSION);
  if (mine && status != ATTUNE_OK && !sqlite3_get_autocommit(store->db))
    (void)run(store, "ROLLBACK"); /* the status says what failed first */
  if (status == ATTUNE_OK) store->version = AT_STORE_VERSION;
  return status;
}

/* --- an older database that is only read: its winners still serve --- */

/* Version and tables of one moment: another process may be about to bring it over. */
attune_status at_store_read_old(at_store *store) {
  int version = 0, code = run(store, "BEGIN");
  if (code == SQLITE_OK) code = version_of(store, &version);
  attune_status status = code == SQLITE_OK ? at_store_check_schema(store, version) : at_store_fail(store, code);
  if (!sqlite3_get_autocommit(store->db)) (void)run(store, "ROLLBACK"); /* nothing was written */
  if (status == ATTUNE_OK) store->version = version;
  return status;
}

int at_store_look_again(at_store *store) {
  int version = 0;
  const int code = version_of(store, &version);
  if (code != SQLITE_OK || version == store->version) return code;
  forget_statements(store);
  store->version = version;
  return SQLITE_OK;
}
