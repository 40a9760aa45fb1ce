/* SPDX-License-Identifier: Apache-2.0
 * store_open.c: opening and closing a database: nothing in the file is trusted before it was told apart from other
 * programs' databases and its schema compared.
 *
 * The journal mode is TRUNCATE with every SQLite version: a write-ahead log can be damaged by a race before 3.51.3,
 * and a database in that mode cannot be read from a read-only folder; a result every few milliseconds needs no log.
 * synchronous = FULL: an acknowledged row survives a power failure.
 *
 * A file of up to CHECKED_BYTES is checked whole (quick_check); a larger one is not, as that takes longer than all
 * of its use: each row carries a hash, so damage is a miss, and once SQLite meets damage nothing more is written. */
#include "tuning/store_internal.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION_ID 1096041538
#define SCHEMA_VERSION AT_STORE_VERSION
#define OPEN_WAIT_MS 5000
#define CLOSE_WAIT_MS 2000
#define CHECKED_BYTES ((int64_t)1 << 20)
#define SQLITE_NEEDED 3037000 /* STRICT tables */

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
        (void)at_fail(ATTUNE_BAD_DATA,
                      "%s is damaged (%s: %.200s); with no program using it, move it away and tune again", store->path,
                      sql, text ? text : "no answer");
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

/* Makes the tables, unless another process just did. */
static attune_status create(at_store *store) {
  int64_t tables = 0;
  attune_status status = run(store, "BEGIN IMMEDIATE");
  if (status != ATTUNE_OK) return status;
  status = read_int(store, "SELECT count(*) FROM sqlite_schema", &tables);
  if (status == ATTUNE_OK && tables == 0) status = run(store, at_schema_sql);
  if (status == ATTUNE_OK) status = run(store, "COMMIT");
  if (status != ATTUNE_OK && !sqlite3_get_autocommit(store->db)) {
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL); /* the status says what failed first */
  }
  return status;
}

/* Tells a tuning database from an empty file (made into one when writing), another program's file and a newer
 * attune's. */
static attune_status identify(at_store *store) {
  int64_t application = 0, version = 0, pages = 0;
  attune_status status = read_int(store, "PRAGMA application_id", &application);
  if (status == ATTUNE_OK && application == 0) {
    status = read_int(store, "PRAGMA page_count", &pages);
    if (status == ATTUNE_OK && pages == 0) {
      if (store->read_only) return at_fail(ATTUNE_NOT_FOUND, "%s is empty; tune into it first", store->path);
      status = create(store);
    }
    /* Again, whoever made it: another process may have done so between the two reads. */
    if (status == ATTUNE_OK) status = read_int(store, "PRAGMA application_id", &application);
  }
  if (status != ATTUNE_OK) return status;
  if (application != APPLICATION_ID) {
    return at_fail(ATTUNE_BAD_DATA, "%s is another program's database; set ATTUNE_DB to another file", store->path);
  }
  status = read_int(store, "PRAGMA user_version", &version);
  if (status != ATTUNE_OK) return status;
  if (version > SCHEMA_VERSION) {
    return at_fail(ATTUNE_BAD_DATA,
                   "%s was made by a newer attune (database version %lld, this one reads %d); update attune or set "
                   "ATTUNE_DB to another file",
                   store->path, (long long)version, SCHEMA_VERSION);
  }
  if (version == 1 && store->read_only) { /* its winners still serve */
    store->old = true;
    return at_store_check_schema(store, 1);
  }
  if (version == 1) return at_store_migrate(store);
  if (version != SCHEMA_VERSION) {
    return at_fail(ATTUNE_BAD_DATA, "%s has database version %lld, this attune reads %d; move it away", store->path,
                   (long long)version, SCHEMA_VERSION);
  }
  return at_store_check_schema(store, SCHEMA_VERSION);
}

/* A small file as a whole. */
static attune_status check_small(at_store *store) {
  int64_t pages = 0, page_bytes = 0;
  attune_status status = read_int(store, "PRAGMA page_count", &pages);
  if (status == ATTUNE_OK) status = read_int(store, "PRAGMA page_size", &page_bytes);
  if (status != ATTUNE_OK || pages > CHECKED_BYTES / page_bytes) return status;
  return expect_text(store, "PRAGMA quick_check(1)", "ok");
}

/* The lock is held. */
static attune_status connect(at_store *store, bool memory) {
  int flags = store->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (memory) flags |= SQLITE_OPEN_MEMORY;
  /* NOMUTEX: the store's lock guards the connection. No CREATE: the file is there, with our mode. */
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW;
  store->deadline_ns = at_store_deadline(OPEN_WAIT_MS);
  int code = sqlite3_open_v2(store->path, &store->db, flags, NULL);
  if (code == SQLITE_OK) code = at_store_configure(store);
  if (code != SQLITE_OK) return at_store_fail(store, code);
  sqlite3_randomness(sizeof store->token, &store->token);
  if (!store->read_only && sqlite3_db_readonly(store->db, "main") != 0) {
    return at_fail(ATTUNE_PERMISSION, "%s cannot be written; check its mode or open it read-only", store->path);
  }
  attune_status status = run(store, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;");
  if (status == ATTUNE_OK) status = identify(store);
  if (status == ATTUNE_OK && !store->read_only && !memory)
    status = expect_text(store, "PRAGMA journal_mode = TRUNCATE", "truncate");
  if (status == ATTUNE_OK) status = run(store, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;");
  if (status == ATTUNE_OK && !memory) status = check_small(store);
  return status;
}

static void release(at_store *store) {
  for (int i = 0; i < AT_SQL_COUNT; i++) (void)sqlite3_finalize(store->statements[i]);
  (void)sqlite3_close(store->db);
  while (store->first) {
    at_store_row *row = store->first;
    store->first = row->next;
    free(row);
  }
}

static void destroy(at_store *store) {
  pthread_mutex_destroy(&store->queue_lock);
  pthread_mutex_destroy(&store->lock);
  free(store->path);
  free(store);
}

static attune_status check_library(void) {
  if (!sqlite3_threadsafe())
    return at_fail(ATTUNE_UNSUPPORTED, "the SQLite library was built without threads; attune needs them");
  if (sqlite3_libversion_number() < SQLITE_NEEDED) {
    return at_fail(ATTUNE_UNSUPPORTED, "the SQLite library is version %s; attune needs 3.37 or later",
                   sqlite3_libversion());
  }
  return ATTUNE_OK;
}

attune_status at_store_open(at_store **out, const char *path, at_store_access access) {
  if (!out || !path) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given", out ? "path" : "out");
  *out = NULL;
  bool memory = strcmp(path, ":memory:") == 0;
  if (memory && access == AT_STORE_READ_ONLY) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, ":memory: is opened read-only; it would always be empty");
  }
  attune_status status = check_library();
  if (status != ATTUNE_OK) return status;
  at_store *store = calloc(1, sizeof *store);
  if (!store) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to open %s", path);
  store->read_only = access == AT_STORE_READ_ONLY;
  store->pid = getpid();
  if (!memory)
    status = at_store_path(&store->path, path, access);
  else if (!(store->path = strdup(path)))
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to open %s", path);
  pthread_mutex_init(&store->lock, NULL);
  pthread_mutex_init(&store->queue_lock, NULL);
  if (status == ATTUNE_OK) status = at_store_list_add(store);
  if (status != ATTUNE_OK) {
    destroy(store);
    return status;
  }
  pthread_mutex_lock(&store->lock);
  status = connect(store, memory);
  if (status != ATTUNE_OK) release(store);
  pthread_mutex_unlock(&store->lock);
  if (status == ATTUNE_OK) {
    *out = store;
    return ATTUNE_OK;
  }
  at_store_list_remove(store);
  destroy(store);
  return status;
}

/* In a child made by fork the store stays as it is, and in the list: SQLite must not close what it did not open. */
void at_store_close(at_store *store) {
  if (!store || at_store_forked(store)) return;
  int64_t deadline_ns = at_store_deadline(CLOSE_WAIT_MS);
  attune_status status = store->read_only ? ATTUNE_OK : at_store_flush(store, 0, deadline_ns);
  if (status != ATTUNE_OK)
    at_log(ATTUNE_LOG_WARNING, "%s: %d winners are lost: %s", store->path, store->queued, attune_last_message());
  at_store_lease_drop_all(store, deadline_ns);
  pthread_mutex_lock(&store->lock);
  release(store);
  pthread_mutex_unlock(&store->lock);
  at_store_list_remove(store);
  destroy(store);
}
