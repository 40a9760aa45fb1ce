/* SPDX-License-Identifier: Apache-2.0
 * store_transaction.c: runs a piece of work in a transaction, and says what SQLite's codes mean. */
#include "tuning/store_internal.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "src/file_limit.h"

int64_t at_store_deadline(int64_t wait_ms) {
  if (wait_ms < 0) wait_ms = 0;
  if (wait_ms > 3600000) wait_ms = 3600000;
  return at_now_ns() + wait_ms * 1000000;
}

static attune_status refused_by_system(const at_store *store) {
  int error = sqlite3_system_errno(store->db);
  return error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION : ATTUNE_IO_ERROR;
}

/* Readers of a write-ahead log write beside the file. attune makes none, but other programs can. */
static attune_status cannot_read_here(const at_store *store) {
  return at_fail(ATTUNE_PERMISSION,
                 "%s cannot be read while its folder cannot be written; if another program gave it a write-ahead log, "
                 "run PRAGMA journal_mode = DELETE on it where its folder can be written",
                 store->path);
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
  case SQLITE_CANTOPEN:
    if (store->read_only) return cannot_read_here(store);
    return at_fail(refused_by_system(store), "%s: %s; its folder must be writable", path, reason);
  case SQLITE_READONLY:
    if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY)
      return at_fail(ATTUNE_PERMISSION,
                     "%s holds a write that did not end and must be undone first; open it once (attune show) where its "
                     "folder can be written",
                     path);
    if (store->read_only) return cannot_read_here(store);
    return at_fail(ATTUNE_PERMISSION, "%s cannot be written (%s, SQLite code %d); check its mode and its folder's",
                   path, reason, code);
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
  at_store_steps_again(store);
  int code = SQLITE_OK;
  /* An older database, which is only read: that it still is one must stay true until the rows are read. */
  const bool old = store->version < AT_STORE_VERSION, begun = job->write || old;
  if (begun) {
    code = at_store_statement(store, old ? AT_SQL_BEGIN_READ : AT_SQL_BEGIN, &statement);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  if (code == SQLITE_OK && old) code = at_store_look_again(store);
  if (code == SQLITE_OK) code = job->work(store, job->user);
  if (code == SQLITE_OK && begun) {
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
