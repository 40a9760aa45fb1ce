/* SPDX-License-Identifier: Apache-2.0
 * store_transaction.c: runs a piece of work in a transaction. */
#include "tuning/store/store_internal.h"

#include <time.h>

#include "src/base/file_limit.h"
#include "src/process/cancel.h"

/* Deleted, or moved away: then the journal of its name may be another database's by now, and reads may fail in any
 * way. */
static bool has_moved(const at_store *store) {
  int moved = 0;
  return sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

/* The lock is held. A transaction that fails is undone whole. */
static attune_status transact(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  if (job->write && store->damaged) {
    store->moved = has_moved(store);
    if (store->moved) store->damaged = false;
    return at_fail(ATTUNE_BAD_DATA, "%s is damaged and no longer written; move it away while no program uses it",
                   store->path);
  }
  sqlite3_stmt *statement;
  store->deadline_ns = 0;
  at_store_steps_again(store);
  int code = SQLITE_OK;
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
  store->moved = code == SQLITE_READONLY_DBMOVED || has_moved(store);
  if (store->moved) store->damaged = false; /* that is said of a file which is no longer the database */
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

/* The lock is held. Where the file was deleted or moved away while it was open, the database at its path is written
 * instead, a new one if there is none: what this process found out is not lost with it. */
static attune_status connect_and_transact(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  attune_status status = ATTUNE_OK;
  for (int tries = 0; tries < 4; tries++) {
    status = store->db ? ATTUNE_OK : at_store_connect(store, job->write, deadline_ns);
    if (status == ATTUNE_OK && store->db) status = transact(store, job, deadline_ns);
    if (!store->moved) break;
    store->moved = false;
    at_store_disconnect(store);
  }
  return status;
}

static attune_status try_until(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  const at_message kept = at_message_keep(); /* a later try may succeed */
  for (;;) {
    if (!lock_until(store, deadline_ns))
      return at_fail(ATTUNE_BUSY, "%s is in use by another thread; try again", store->path);
    at_file_limit limit;
    bool was_damaged = store->damaged;
    at_file_limit_begin(&limit);
    attune_status status = connect_and_transact(store, job, deadline_ns);
    at_file_limit_end(&limit);
    bool now_damaged = store->damaged && !was_damaged, made = store->made,
         false_row = store->false_row && !store->false_row_told;
    store->made = false;
    store->false_row_told = store->false_row;
    pthread_mutex_unlock(&store->lock);
    if (made) at_log(ATTUNE_LOG_INFO, "created the tuning database %s", store->path);
    if (now_damaged) at_log(ATTUNE_LOG_WARNING, "%s", attune_last_message());
    if (false_row)
      at_log(ATTUNE_LOG_ERROR,
             "%s: rows whose checksums do not match are not used; `attune tune' measures their problems again",
             store->path);
    if (status != ATTUNE_BUSY || at_now_ns() >= deadline_ns) return at_message_settle(&kept, status);
    at_store_nap();
  }
}

attune_status at_store_run(at_store *store, const at_store_job *job, int64_t deadline_ns) {
  const int cancel = at_cancel_hold();
  const attune_status status = try_until(store, job, deadline_ns);
  at_cancel_let(cancel);
  return status;
}
