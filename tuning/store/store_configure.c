/* SPDX-License-Identifier: Apache-2.0
 * store_configure.c: what a new connection is given before it is used: limits, switches that keep a hostile file from
 * doing more than hold data, patience, and functions for older databases. */
#include "tuning/store/store_internal.h"

#include <string.h>
#include <sys/stat.h>

#define STEPS_EACH_CALL 10000          /* SQLite's virtual machine steps between two looks at steps_left */
#define STEPS_MAX ((int64_t)200000000) /* seconds: a damaged tree can be a maze without an end */
#define STEPS_EACH_BYTE 8              /* of a file that is rewritten whole: several times what a sound one takes */

static int busy(void *user, int count) {
  at_store *store = user;
  if (at_now_ns() >= store->deadline_ns || (count == 0 && !at_store_is_locked(store))) return 0;
  at_store_nap();
  return 1;
}

static int progress(void *user) {
  at_store *store = user;
  store->steps_left -= STEPS_EACH_CALL;
  return store->steps_left < 0;
}

static const struct {
  int option;
  int value;
} switches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_ENABLE_FKEY, 0},
    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    {SQLITE_DBCONFIG_DQS_DML, 0},
    {SQLITE_DBCONFIG_DQS_DDL, 0},
};

static const struct {
  int limit;
  int value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 1 << 16},   {SQLITE_LIMIT_SQL_LENGTH, 1 << 14}, {SQLITE_LIMIT_COLUMN, 64},
    {SQLITE_LIMIT_EXPR_DEPTH, 32},    {SQLITE_LIMIT_COMPOUND_SELECT, 4},  {SQLITE_LIMIT_FUNCTION_ARG, 8},
    {SQLITE_LIMIT_ATTACHED, 0},       {SQLITE_LIMIT_VARIABLE_NUMBER, 64}, {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

void at_store_steps_again(at_store *store) {
  store->steps_left = STEPS_MAX;
}

void at_store_steps_for_all(at_store *store) {
  struct stat file;
  at_store_steps_again(store);
  if (stat(store->path, &file) == 0) store->steps_left += STEPS_EACH_BYTE * (int64_t)file.st_size;
}

/* --- fingerprints of databases before version 3 --- */

/* The two parts of the fingerprint that the argument would be now. NULL, which equals nothing, for what is none. */
static void part_of(sqlite3_context *context, sqlite3_value *value, bool device) {
  char now[AT_FINGERPRINT_CHARS];
  const char *text = (const char *)sqlite3_value_text(value);
  at_message kept;
  at_message_keep(&kept);
  if (text && at_fingerprint_from_version_2(text, now, sizeof now) == ATTUNE_OK)
    sqlite3_result_text(context, device ? now : at_fingerprint_implementations(now),
                        device ? (int)at_fingerprint_device_chars(now) : -1, SQLITE_TRANSIENT);
  else
    sqlite3_result_null(context);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

static void device_of(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  part_of(context, values[0], true);
}

static void implementations_of(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  part_of(context, values[0], false);
}

int at_store_configure(at_store *store) {
  (void)sqlite3_extended_result_codes(store->db, 1);
  for (size_t i = 0; i < AT_COUNT(switches); i++) {
    int code = sqlite3_db_config(store->db, switches[i].option, switches[i].value, NULL);
    /* A SQLite built without extensions refuses that one switch: then there is nothing to switch off. */
    if (code != SQLITE_OK && switches[i].option != SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION) return code;
  }
  for (size_t i = 0; i < AT_COUNT(limits); i++) (void)sqlite3_limit(store->db, limits[i].limit, limits[i].value);
  at_store_steps_again(store);
  sqlite3_progress_handler(store->db, STEPS_EACH_CALL, progress, store);
  const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  int code = sqlite3_create_function(store->db, "device_of", 1, flags, NULL, device_of, NULL, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_create_function(store->db, "implementations_of", 1, flags, NULL, implementations_of, NULL, NULL);
  return code == SQLITE_OK ? sqlite3_busy_handler(store->db, busy, store) : code;
}
