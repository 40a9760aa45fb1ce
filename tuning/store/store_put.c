/* SPDX-License-Identifier: Apache-2.0
 * store_put.c: putting winners. A put joins a queue in memory, then whoever gets the connection writes what waits
 * there in one transaction; a row leaves the queue only when it is committed. */
#include "tuning/store/store_internal.h"

#include <stdlib.h>

#define QUEUE_MAX 4096       /* rows kept while the database cannot be written; later ones are refused */
#define QUEUE_WITH_TRIALS 64 /* beyond so many waiting rows, new ones leave their trials behind */
#define BATCH_MAX 64         /* rows in one transaction */

attune_status at_store_check_writable(at_store *store) {
  if (at_store_forked(store)) return at_store_fail_forked(store);
  if (store->read_only)
    return at_fail(ATTUNE_PERMISSION, "%s is open read-only; nothing can be stored in it", store->path);
  return ATTUNE_OK;
}

/* --- the queue --- */

/* Appends the row, which then belongs to the queue, and gives its ticket; 0: no room. */
static uint64_t enqueue(at_store *store, at_store_row *row) {
  uint64_t ticket = 0;
  pthread_mutex_lock(&store->queue_lock);
  if (store->queued < QUEUE_MAX) {
    ticket = ++store->last_ticket;
    row->ticket = ticket;
    if (store->queued >= QUEUE_WITH_TRIALS) row->trial_count = 0;
    if (store->last)
      store->last->next = row;
    else
      store->first = row;
    store->last = row;
    store->queued++;
  }
  pthread_mutex_unlock(&store->queue_lock);
  return ticket;
}

static bool queue_full(at_store *store) {
  pthread_mutex_lock(&store->queue_lock);
  bool full = store->queued >= QUEUE_MAX;
  pthread_mutex_unlock(&store->queue_lock);
  return full;
}

static bool written(at_store *store, uint64_t ticket) {
  pthread_mutex_lock(&store->queue_lock);
  bool is = ticket == 0 ? !store->first : store->written_ticket >= ticket;
  pthread_mutex_unlock(&store->queue_lock);
  return is;
}

static const at_store_row *next_row(at_store *store, const at_store_row *row) {
  pthread_mutex_lock(&store->queue_lock);
  const at_store_row *next = row ? row->next : store->first;
  pthread_mutex_unlock(&store->queue_lock);
  return next;
}

typedef struct batch {
  uint64_t ticket; /* of the last row written */
  int rows;
} batch;

/* Under the connection's lock, so no row is freed. */
static int write_batch(at_store *store, void *user) {
  batch *b = user;
  int most = store->batch > 0 ? store->batch : 1;
  const at_store_row *row = NULL;
  *b = (batch){0, 0};
  store->batch = 1;
  while (b->rows < most && (row = next_row(store, row))) {
    int code = at_store_row_write(store, row);
    if (code != SQLITE_OK) return code;
    b->ticket = row->ticket;
    b->rows++;
  }
  return SQLITE_OK;
}

static void batch_committed(at_store *store, void *user) {
  const batch *b = user;
  store->batch = 4 * b->rows < BATCH_MAX ? 4 * b->rows : BATCH_MAX;
  pthread_mutex_lock(&store->queue_lock);
  while (store->first && store->first->ticket <= b->ticket) {
    at_store_row *row = store->first;
    store->first = row->next;
    if (!store->first) store->last = NULL;
    store->queued--;
    store->written_ticket = row->ticket;
    free(row);
  }
  pthread_mutex_unlock(&store->queue_lock);
}

attune_status at_store_flush(at_store *store, uint64_t ticket, int64_t deadline_ns) {
  batch b;
  const at_store_job job = {true, write_batch, batch_committed, &b};
  while (!written(store, ticket)) {
    attune_status status = at_store_run(store, &job, deadline_ns);
    if (status != ATTUNE_OK) return written(store, ticket) ? ATTUNE_OK : status;
  }
  return ATTUNE_OK;
}

attune_status at_store_put(at_store *store, const char *fingerprint, const char *family, const attune_decision *winner,
                           const at_trial *trials, int trial_count, int wait_ms) {
  if (!store) return AT_INVALID("store is NULL");
  int64_t deadline_ns = at_store_deadline(wait_ms);
  at_store_row *row = NULL;
  attune_status status = at_store_check_writable(store);
  if (status == ATTUNE_OK) status = at_store_row_make(&row, fingerprint, family, winner, trials, trial_count);
  if (status != ATTUNE_OK) return status;
  if (queue_full(store)) status = at_store_flush(store, 0, deadline_ns);
  uint64_t ticket = enqueue(store, row);
  if (ticket == 0) {
    free(row);
    if (status == ATTUNE_OK) status = at_fail(ATTUNE_BUSY, "%s is in use by other threads; try again", store->path);
    return at_fail_prefix(status, "%d winners are waiting to be written, the maximum: ", QUEUE_MAX);
  }
  return at_store_flush(store, ticket, deadline_ns);
}

/* Not queued: what cannot be written now is no loss. */
static int write_winner(at_store *store, void *user) {
  const at_store_row *row = user;
  return at_store_winner_write(store, row->fingerprint, row->family, row->winner);
}

attune_status at_store_doubt(at_store *store, const char *fingerprint, const char *family,
                             const attune_decision *winner, int wait_ms) {
  if (!store) return AT_INVALID("store is NULL");
  at_store_row *row = NULL;
  attune_status status = at_store_check_writable(store);
  if (status == ATTUNE_OK) status = at_store_row_make(&row, fingerprint, family, winner, NULL, 0);
  const at_store_job job = {true, write_winner, NULL, row};
  if (status == ATTUNE_OK) status = at_store_run(store, &job, at_store_deadline(wait_ms));
  free(row);
  return status;
}

/* A lease that no process can ask for comes and goes in one transaction, which still writes pages. */
static int write_nothing(at_store *store, void *user) {
  (void)user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_TOUCH, &statement);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_UNTOUCH, &statement);
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

static int read_nothing(at_store *store, void *user) {
  sqlite3_stmt *statement;
  (void)user;
  int code = at_store_statement(store, AT_SQL_LEASE_ALL, &statement);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  return at_store_step_end(statement, code);
}

attune_status at_store_try_read(at_store *store, int wait_ms) {
  if (!store) return AT_INVALID("store is NULL");
  const at_store_job job = {false, read_nothing, NULL, NULL};
  return at_store_run(store, &job, at_store_deadline(wait_ms));
}

attune_status at_store_try_write(at_store *store, int wait_ms) {
  if (!store) return AT_INVALID("store is NULL");
  attune_status status = at_store_check_writable(store);
  const at_store_job job = {true, write_nothing, NULL, NULL};
  return status == ATTUNE_OK ? at_store_run(store, &job, at_store_deadline(wait_ms)) : status;
}
