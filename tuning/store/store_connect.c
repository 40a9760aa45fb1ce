/* SPDX-License-Identifier: Apache-2.0
 * store_connect.c: a connection to a database: nothing in the file is trusted before it is distinguished from other
 * programs' databases and its schema compared.
 *
 * The journal mode is TRUNCATE with every SQLite version: a write-ahead log can be damaged by a race before 3.51.3,
 * and a database in that mode cannot be read from a read-only folder; a result every few milliseconds needs no log.
 * synchronous = FULL: an acknowledged row survives a power failure.
 *
 * A file of up to CHECKED_BYTES is checked whole (quick_check); a larger one is not, as that takes longer than all
 * of its use: each row carries a hash, so damage is a miss, and once SQLite meets damage nothing more is written. */
#include "tuning/store/store_internal.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 1096041538
#define RESULT_FILE_ID 1096045139 /* of tools/compare/results/results.sql */
#define SCHEMA_VERSION 3
#define STATEMENTS_MAX 32 /* of the schema: bits of a set */
#define CHECKED_BYTES ((int64_t)1 << 20)

static attune_status read_int(at_store *store, const char *sql, int64_t *out) {
  sqlite3_stmt *statement;
  int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    int end = sqlite3_finalize(statement);
    if (code == SQLITE_ROW) code = end;
  }
  return code == SQLITE_OK ? ATTUNE_OK : at_store_fail(store, code);
}

/* Runs a pragma and wants the answer `expected`. */
static attune_status expect_text(at_store *store, const char *sql, const char *expected) {
  sqlite3_stmt *statement;
  bool same = false;
  int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
      const char *text = (const char *)sqlite3_column_text(statement, 0);
      same = text && strcmp(text, expected) == 0;
      if (!same) {
        char shown[200];
        at_store_escape(shown, sizeof shown, text ? text : "no answer");
        (void)at_fail(ATTUNE_BAD_DATA, "%s is damaged (%s: %s); move it away while no program uses it, and tune again",
                      store->path, sql, shown);
      }
    }
    int end = sqlite3_finalize(statement);
    if (code == SQLITE_ROW) code = end;
  }
  if (code != SQLITE_OK) return at_store_fail(store, code);
  return same ? ATTUNE_OK : ATTUNE_BAD_DATA;
}

static attune_status run(at_store *store, const char *sql) {
  int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? ATTUNE_OK : at_store_fail(store, code);
}

/* Makes the tables, unless another process just did. Sets store->made. */
static attune_status create(at_store *store) {
  int64_t tables = 0;
  AT_TRY(run(store, "BEGIN IMMEDIATE"));
  attune_status status = read_int(store, "SELECT count(*) FROM sqlite_schema", &tables);
  if (status == ATTUNE_OK && tables == 0) status = run(store, at_schema_sql);
  if (status == ATTUNE_OK) status = run(store, tables == 0 ? "COMMIT" : "ROLLBACK"); /* COMMIT waits for readers */
  if (status == ATTUNE_OK) store->made = tables == 0;
  if (status != ATTUNE_OK && !sqlite3_get_autocommit(store->db)) {
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL); /* the status says what failed first */
  }
  return status;
}

/* --- are the tables those of schema.sql? --- */

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

/* Which statement of the schema `sql` is, counted from 0; -1: none. */
static int statement_of(const char *sql) {
  int index = 0;
  for (const char *at = next_statement(at_schema_sql); *at; index++) {
    const size_t length = statement_length(at);
    if (strlen(sql) == length && strncmp(sql, at, length) == 0) return index;
    at = next_statement(at + length);
  }
  return -1;
}

static int count_statements(void) {
  int count = 0;
  for (const char *at = next_statement(at_schema_sql); *at; count++) at = next_statement(at + statement_length(at));
  return count;
}

/* Whatever their order: a table that was made later comes last. */
static int compare_schema(at_store *store, bool *same) {
  sqlite3_stmt *statement;
  uint32_t seen = 0;
  *same = true;
  int code = sqlite3_prepare_v2(store->db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", -1, &statement, NULL);
  if (code != SQLITE_OK) return code;
  while (*same && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const char *sql = (const char *)sqlite3_column_text(statement, 0);
    const int index = sql ? statement_of(sql) : -1;
    *same = index >= 0 && index < STATEMENTS_MAX && !(seen & (uint32_t)1 << index);
    if (*same) seen |= (uint32_t)1 << index;
  }
  const int end = sqlite3_finalize(statement);
  if (*same && code != SQLITE_DONE) return code;
  *same = *same && seen == (uint32_t)(((uint64_t)1 << count_statements()) - 1);
  return end;
}

static attune_status check_schema(at_store *store) {
  bool same = false;
  const int code = compare_schema(store, &same);
  if (code != SQLITE_OK) return at_store_fail(store, code);
  if (same) return ATTUNE_OK;
  return at_fail(ATTUNE_BAD_DATA,
                 "%s does not have the schema of a tuning database of version %d; move it away or name another file "
                 "with " AT_STORE_NAMED,
                 store->path, SCHEMA_VERSION);
}

/* No release wrote another version: there is nothing to convert, and the file stays as it is. */
static attune_status check_version(at_store *store) {
  int64_t version = 0;
  AT_TRY(read_int(store, "PRAGMA user_version", &version));
  if (version > SCHEMA_VERSION)
    return at_fail(ATTUNE_BAD_DATA,
                   "%s was made by a newer attune (database version %lld, this one reads %d); update attune or name "
                   "another file with " AT_STORE_NAMED,
                   store->path, (long long)version, SCHEMA_VERSION);
  if (version < SCHEMA_VERSION)
    return at_fail(ATTUNE_BAD_DATA,
                   "%s was made by an older attune (database version %lld, this one reads %d) and is left unchanged; "
                   "move it away or name another file with " AT_STORE_NAMED ", and tune again",
                   store->path, (long long)version, SCHEMA_VERSION);
  return check_schema(store);
}

/* Tells a tuning database from an empty file (made into one with `make`, else *empty), another program's file and
 * another version's. */
static attune_status identify(at_store *store, bool make, bool *empty) {
  int64_t application = 0, pages = 0;
  attune_status status = read_int(store, "PRAGMA application_id", &application);
  if (status == ATTUNE_OK && application == 0) {
    status = read_int(store, "PRAGMA page_count", &pages);
    if (status == ATTUNE_OK && pages == 0) {
      *empty = !make;
      if (!make) return ATTUNE_OK;
      status = create(store);
    }
    /* Again, whoever made it: another process may have done so between the two reads. */
    if (status == ATTUNE_OK) status = read_int(store, "PRAGMA application_id", &application);
  }
  if (status != ATTUNE_OK) return status;
  if (application == RESULT_FILE_ID)
    return at_fail(ATTUNE_BAD_DATA,
                   "%s is a result file of attune bench, not a tuning database: attune compare and attune history read "
                   "it; name another file with " AT_STORE_NAMED,
                   store->path);
  if (application != APPLICATION_ID)
    return at_fail(ATTUNE_BAD_DATA, "%s is another program's database; name another file with " AT_STORE_NAMED,
                   store->path);
  return check_version(store);
}

/* A small file as a whole. */
static attune_status check_small(at_store *store) {
  int64_t pages = 0, page_bytes = 0;
  attune_status status = read_int(store, "PRAGMA page_count", &pages);
  if (status == ATTUNE_OK) status = read_int(store, "PRAGMA page_size", &page_bytes);
  if (status != ATTUNE_OK || pages > CHECKED_BYTES / page_bytes) return status;
  return expect_text(store, "PRAGMA quick_check(1)", "ok");
}

/* All that must be true of a connection before it is used. */
static attune_status check_connection(at_store *store, bool memory, bool make, bool *empty) {
  if (!store->read_only && sqlite3_db_readonly(store->db, "main") != 0)
    return at_fail(ATTUNE_PERMISSION, "%s cannot be written; check its permissions or open it read-only", store->path);
  attune_status status = run(store, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;");
  if (status == ATTUNE_OK) status = identify(store, make, empty);
  if (status != ATTUNE_OK || *empty) return status;
  if (!store->read_only && !memory) status = expect_text(store, "PRAGMA journal_mode = TRUNCATE", "truncate");
  if (status == ATTUNE_OK) status = run(store, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;");
  if (status == ATTUNE_OK && !memory) status = check_small(store);
  return status;
}

void at_store_disconnect(at_store *store) {
  for (int i = 0; i < AT_SQL_COUNT; i++) {
    (void)sqlite3_finalize(store->statements[i]);
    store->statements[i] = NULL;
  }
  (void)sqlite3_close(store->db);
  store->db = NULL;
}

attune_status at_store_connect_to(at_store *store, const char *path, bool make, int64_t deadline_ns) {
  const bool memory = strcmp(path, ":memory:") == 0;
  bool empty = false;
  int flags = store->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (memory) flags |= SQLITE_OPEN_MEMORY;
  /* NOMUTEX: the store's lock guards the connection. No CREATE: the file is there, with our mode. */
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW;
  store->deadline_ns = deadline_ns;
  int code = sqlite3_open_v2(path, &store->db, flags, NULL);
  if (code == SQLITE_OK) code = at_store_configure(store);
  attune_status status = code == SQLITE_OK ? check_connection(store, memory, make, &empty) : at_store_fail(store, code);
  if (status != ATTUNE_OK || empty) at_store_disconnect(store);
  return status;
}

attune_status at_store_connect(at_store *store, bool make, int64_t deadline_ns) {
  char *path = NULL;
  bool there = false;
  attune_status status = at_store_path(&path, &there, store->path, store->access, make);
  if (status == ATTUNE_OK && (there || make)) status = at_store_connect_to(store, path, make, deadline_ns);
  free(path);
  return status;
}

attune_status at_store_reconnect(at_store *store) {
  const int64_t deadline_ns = at_store_deadline(AT_STORE_OPEN_WAIT_MS);
  sqlite3_randomness(0, NULL); /* the child must not draw what the parent draws */
  sqlite3_randomness(sizeof store->token, &store->token);
  if (strcmp(store->path, ":memory:") == 0) return at_store_connect_to(store, store->path, true, deadline_ns);
  return at_store_connect(store, false, deadline_ns);
}
