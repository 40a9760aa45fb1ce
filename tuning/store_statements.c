/* SPDX-License-Identifier: Apache-2.0
 * store_statements.c: every SQL statement, how it is run in a transaction, and what SQLite's codes mean. */
#include "tuning/store_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "src/file_limit.h"

#define FIELD_COLUMNS_1                                                                                       \
  "problem, measure, device, implementation, version, configuration, time_ns, spread, samples, "              \
  "default_implementation, "                                                                                  \
  "default_time_ns, runner_up, runner_up_configuration, runner_up_time_ns, candidates, rejected, disturbed, " \
  "max_error, "                                                                                               \
  "tuning_ms, complete, tuned_at, note"
#define FIELD_COLUMNS FIELD_COLUMNS_1 ", placement_spread, unsure"
#define WINNER_OF(columns) "SELECT f.text, w.family, " columns ", row_check, w.fingerprint FROM "
#define WINNER WINNER_OF(FIELD_COLUMNS)
#define WINNER_1 WINNER_OF(FIELD_COLUMNS_1)
#define BY_KEY                                                 \
  "fingerprint f CROSS JOIN winner w ON w.fingerprint = f.id " \
  "WHERE f.text = ?1 AND w.problem = ?2 AND w.measure = ?3"
#define IN_ORDER                                               \
  "winner w CROSS JOIN fingerprint f ON f.id = w.fingerprint " \
  "WHERE (w.problem, w.fingerprint, w.measure) > (?1, ?2, ?3) ORDER BY w.problem, w.fingerprint, w.measure"
#define OF_FAMILY                                                                       \
  "fingerprint f CROSS JOIN winner w INDEXED BY winner_family ON w.fingerprint = f.id " \
  "WHERE f.text = ?4 AND w.family = ?5 AND w.measure = ?6 AND w.problem > ?1 ORDER BY w.problem"
#define FINGERPRINT "(SELECT id FROM fingerprint WHERE text = ?1)"

static const char *const texts[AT_SQL_COUNT] = {
    [AT_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [AT_SQL_COMMIT] = "COMMIT",
    [AT_SQL_ROLLBACK] = "ROLLBACK",
    [AT_SQL_FIND] = WINNER BY_KEY,
    [AT_SQL_ADD_FINGERPRINT] = "INSERT INTO fingerprint (text) VALUES (?1) ON CONFLICT DO NOTHING",
    [AT_SQL_PUT] =
        "INSERT OR REPLACE INTO winner (fingerprint, family, " FIELD_COLUMNS ", row_check) VALUES (" FINGERPRINT ", "
        "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, "
        "?25, ?26, ?27)",
    [AT_SQL_CLEAR_TRIALS] = "DELETE FROM trial WHERE fingerprint = " FINGERPRINT " AND problem = ?2 AND measure = ?3",
    [AT_SQL_PUT_TRIAL] =
        "INSERT INTO trial (fingerprint, problem, measure, ordinal, implementation, configuration, time_ns, spread, "
        "samples, verdict) VALUES (" FINGERPRINT ", ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [AT_SQL_RECORD] = "INSERT INTO workload (fingerprint, problem, count, last) VALUES (" FINGERPRINT ", ?2, ?3, ?4) "
                      "ON CONFLICT DO UPDATE SET last = max(last, excluded.last), "
                      "count = CASE WHEN count > 9223372036854775807 - excluded.count THEN 9223372036854775807 "
                      "ELSE count + excluded.count END",
    [AT_SQL_WALK] = WINNER IN_ORDER,
    [AT_SQL_WALK_FAMILY] = WINNER OF_FAMILY,
    [AT_SQL_RECORDED] =
        "SELECT problem, count FROM workload WHERE fingerprint = " FINGERPRINT " ORDER BY count DESC, problem",
    [AT_SQL_LEASE_READ] =
        "SELECT token, place, pid, started, expires, fingerprint, problem FROM lease WHERE fingerprint = " FINGERPRINT
        " AND problem = ?2",
    [AT_SQL_LEASE_ALL] = "SELECT token, place, pid, started, expires, fingerprint, problem FROM lease",
    [AT_SQL_LEASE_CLEAR] = "DELETE FROM lease WHERE fingerprint = ?1 AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_RENEW] =
        "UPDATE lease SET expires = ?4 WHERE fingerprint = " FINGERPRINT " AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_TAKE] = "INSERT OR REPLACE INTO lease (fingerprint, problem, token, place, pid, started, expires) "
                          "VALUES (" FINGERPRINT ", ?2, ?3, ?4, ?5, ?6, ?7)",
    [AT_SQL_TOUCH] = "INSERT OR REPLACE INTO lease (fingerprint, problem, token, place, pid, started, expires) "
                     "VALUES (0, '', 0, '', 0, 0, 0)",
    [AT_SQL_UNTOUCH] = "DELETE FROM lease WHERE fingerprint = 0 AND problem = ''",
    [AT_SQL_LEASE_DROP] = "DELETE FROM lease WHERE fingerprint = " FINGERPRINT " AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_DROP_ALL] = "DELETE FROM lease WHERE token = ?1",
    [AT_SQL_OLD_WINNERS] = WINNER_1 "winner_1 w CROSS JOIN fingerprint f ON f.id = w.fingerprint",
};

/* The same of a database of version 1; NULL: not another. */
static const char *const old_texts[AT_SQL_COUNT] = {
    [AT_SQL_FIND] = WINNER_1 BY_KEY,
    [AT_SQL_WALK] = WINNER_1 IN_ORDER,
    [AT_SQL_WALK_FAMILY] = WINNER_1 OF_FAMILY,
};

#define STEPS_EACH_CALL 10000          /* SQLite's virtual machine steps between two looks at steps_left */
#define STEPS_MAX ((int64_t)200000000) /* seconds: a damaged tree can be a maze without an end */

int at_store_statement(at_store *store, at_statement which, sqlite3_stmt **out) {
  sqlite3_stmt **statement = &store->statements[which];
  int code = SQLITE_OK;
  if (*statement) {
    (void)sqlite3_reset(*statement);
    (void)sqlite3_clear_bindings(*statement);
  } else {
    const char *text = store->old && old_texts[which] ? old_texts[which] : texts[which];
    code = sqlite3_prepare_v3(store->db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
  }
  *out = *statement;
  return code;
}

int at_store_step_end(sqlite3_stmt *statement, int code) {
  int reset = sqlite3_reset(statement);
  if (code == SQLITE_ROW || code == SQLITE_DONE) return reset;
  return code;
}

int at_store_step_done(sqlite3_stmt *statement) {
  return at_store_step_end(statement, sqlite3_step(statement));
}

int64_t at_store_deadline(int64_t wait_ms) {
  if (wait_ms < 0) wait_ms = 0;
  if (wait_ms > 3600000) wait_ms = 3600000;
  return at_now_ns() + wait_ms * 1000000;
}

void at_store_nap(void) {
  struct timespec time = {0, 250000 + (long)((uint64_t)at_now_ns() * 2654435761u % 1750000u)};
  (void)nanosleep(&time, NULL);
}

static int busy(void *user, int count) {
  const at_store *store = user;
  (void)count;
  if (at_now_ns() >= store->deadline_ns) return 0;
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

int at_store_configure(at_store *store) {
  (void)sqlite3_extended_result_codes(store->db, 1);
  for (size_t i = 0; i < AT_COUNT(switches); i++) {
    int code = sqlite3_db_config(store->db, switches[i].option, switches[i].value, NULL);
    /* A SQLite built without extensions refuses that one switch: then there is nothing to switch off. */
    if (code != SQLITE_OK && switches[i].option != SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION) return code;
  }
  for (size_t i = 0; i < AT_COUNT(limits); i++) (void)sqlite3_limit(store->db, limits[i].limit, limits[i].value);
  store->steps_left = STEPS_MAX;
  sqlite3_progress_handler(store->db, STEPS_EACH_CALL, progress, store);
  return sqlite3_busy_handler(store->db, busy, store);
}

static attune_status refused_by_system(const at_store *store) {
  int error = sqlite3_system_errno(store->db);
  return error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION : ATTUNE_IO_ERROR;
}

attune_status at_store_fail(at_store *store, int code) {
  const char *path = store->path;
  struct rlimit limit;
  const char *reason =
      store->db && sqlite3_errcode(store->db) == (code & 0xff) ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
  switch (code & 0xff) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED: return at_fail(ATTUNE_BUSY, "%s is in use by another thread or process; try again", path);
  case SQLITE_NOMEM: return at_fail(ATTUNE_OUT_OF_MEMORY, "%s: SQLite has no memory", path);
  case SQLITE_FULL: return at_fail(ATTUNE_IO_ERROR, "%s cannot grow: %s; free space on its filesystem", path, reason);
  case SQLITE_IOERR:
    if (code == SQLITE_IOERR_WRITE && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return at_fail(ATTUNE_IO_ERROR, "%s: %s; this process may write files of up to %llu bytes (ulimit -f)", path,
                     reason, (unsigned long long)limit.rlim_cur);
    return at_fail(ATTUNE_IO_ERROR, "%s: %s (SQLite code %d)", path, reason, code);
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_FORMAT:
  case SQLITE_TOOBIG:
  case SQLITE_CONSTRAINT:
  case SQLITE_MISMATCH:
  case SQLITE_INTERRUPT:
  case SQLITE_ERROR: /* the statements are right, so what they work on is not */
    store->damaged = true;
    return at_fail(ATTUNE_BAD_DATA, "%s is damaged (%s); with no program using it, move it away and tune again", path,
                   reason);
  case SQLITE_CANTOPEN: return at_fail(refused_by_system(store), "%s: %s; its folder must be writable", path, reason);
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_AUTH:
    return at_fail(ATTUNE_PERMISSION, "%s cannot be written (%s, SQLite code %d); check its mode and its folder's",
                   path, reason, code);
  default: return at_fail(ATTUNE_INTERNAL, "%s: %s (SQLite code %d)", path, reason, code);
  }
}

/* The lock is held. A transaction that fails is undone whole. */
static attune_status transact(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  if (job->write && store->damaged) {
    return at_fail(ATTUNE_BAD_DATA, "%s is damaged and no longer written; with no program using it, move it away",
                   store->path);
  }
  sqlite3_stmt *statement;
  store->deadline_ns = 0;
  store->steps_left = STEPS_MAX;
  int code = SQLITE_OK;
  if (store->old) at_store_look_at_old(store);
  if (job->write) {
    code = at_store_statement(store, AT_SQL_BEGIN, &statement);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  if (code == SQLITE_OK) code = job->work(store, job->user);
  if (code == SQLITE_OK && job->write) {
    store->deadline_ns = deadline_ns;
    code = at_store_statement(store, AT_SQL_COMMIT, &statement);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  if (code == SQLITE_OK) {
    if (job->committed) job->committed(store, job->user);
    return ATTUNE_OK;
  }
  attune_status status = at_store_fail(store, code);
  if (!sqlite3_get_autocommit(store->db)) {
    /* Only a refused rollback of a failing disk could leave the transaction open, and then the next one says so. */
    if (at_store_statement(store, AT_SQL_ROLLBACK, &statement) == SQLITE_OK) (void)at_store_step_done(statement);
  }
  return status;
}

/* By the wall clock, as ThreadSanitizer does not know pthread_mutex_clocklock; the holder's own patience bounds a
 * clock that jumps. */
static bool lock_until(at_store *store, int64_t deadline_ns) {
  if (pthread_mutex_trylock(&store->lock) == 0) return true;
  int64_t left_ns = deadline_ns - at_now_ns();
  struct timespec time;
  if (left_ns <= 0) return false;
  clock_gettime(CLOCK_REALTIME, &time);
  int64_t end_ns = (int64_t)time.tv_nsec + left_ns;
  time.tv_sec += (time_t)(end_ns / 1000000000);
  time.tv_nsec = (long)(end_ns % 1000000000);
  return pthread_mutex_timedlock(&store->lock, &time) == 0;
}

attune_status at_store_run(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  at_message kept; /* a later try may succeed */
  at_message_keep(&kept);
  for (;;) {
    if (!lock_until(store, deadline_ns))
      return at_fail(ATTUNE_BUSY, "%s is in use by another thread; try again", store->path);
    at_file_limit limit;
    bool was_damaged = store->damaged;
    at_file_limit_begin(&limit);
    attune_status status = store->db ? ATTUNE_OK : at_store_connect(store, job->write, deadline_ns);
    if (status == ATTUNE_OK && store->db) status = transact(store, job, deadline_ns);
    at_file_limit_end(&limit);
    bool now_damaged = store->damaged && !was_damaged, made = store->made;
    store->made = false;
    pthread_mutex_unlock(&store->lock);
    if (made) at_log(ATTUNE_LOG_INFO, "made a new tuning database %s", store->path);
    if (now_damaged) at_log(ATTUNE_LOG_WARNING, "%s", attune_last_message());
    if (status != ATTUNE_BUSY || at_now_ns() >= deadline_ns) return at_message_settle(&kept, status);
    at_store_nap();
  }
}
