/* SPDX-License-Identifier: Apache-2.0
 * store_configure.c: what a new connection is given before it is used: limits, switches that keep a hostile file from
 * doing more than hold data, and patience. */
#include "tuning/store/store_internal.h"

#define STEPS_EACH_CALL 10000          /* SQLite's virtual machine steps between two looks at steps_left */
#define STEPS_MAX ((int64_t)200000000) /* seconds: a damaged tree can be a maze without an end */

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
  return sqlite3_busy_handler(store->db, busy, store);
}
