/* SPDX-License-Identifier: Apache-2.0
 * store.c: finding and putting winners, recording calls. A put joins a queue in memory, then whoever gets the
 * connection writes what waits there in one transaction; a row leaves the queue only when it is committed. */
#include "tuning/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE_MAX 4096       /* rows kept while the database cannot be written; later ones are refused */
#define QUEUE_WITH_TRIALS 64 /* beyond so many waiting rows, new ones leave their trials behind */
#define BATCH_MAX 64         /* rows in one transaction */

static attune_status check_writable(at_store *store) {
  if (at_store_forked(store)) return at_store_fail_forked(store);
  if (store->read_only)
    return at_fail(ATTUNE_PERMISSION, "%s is open read-only; nothing can be stored in it", store->path);
  return ATTUNE_OK;
}

/* --- the queue --- */

/* The newest waiting row of the key. */
static bool find_queued(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                        attune_decision *out) {
  bool found = false;
  pthread_mutex_lock(&store->queue_lock);
  uint64_t key = store->first ? at_store_row_key(fingerprint, problem, measure) : 0;
  for (const at_store_row *row = store->first; row; row = row->next) {
    if (row->key != key || strcmp(row->fingerprint, fingerprint) != 0 || strcmp(row->winner.problem, problem) != 0 ||
        strcmp(row->winner.measure, measure) != 0)
      continue;
    *out = row->winner;
    found = true;
  }
  pthread_mutex_unlock(&store->queue_lock);
  return found;
}

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

/* Under the connection's lock, so no row is freed meanwhile. */
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
  if (!store) return at_fail(ATTUNE_INVALID_ARGUMENT, "store is NULL");
  int64_t deadline_ns = at_store_deadline(wait_ms);
  at_store_row *row = NULL;
  attune_status status = check_writable(store);
  if (status == ATTUNE_OK) status = at_store_row_make(&row, fingerprint, family, winner, trials, trial_count);
  if (status != ATTUNE_OK) return status;
  if (queue_full(store)) status = at_store_flush(store, 0, deadline_ns);
  uint64_t ticket = enqueue(store, row);
  if (ticket == 0) {
    free(row);
    if (status == ATTUNE_OK) status = at_fail(ATTUNE_BUSY, "%s is in use by other threads; try again", store->path);
    return at_fail_prefix(status, "%d winners wait to be written and no more are kept: ", QUEUE_MAX);
  }
  return at_store_flush(store, ticket, deadline_ns);
}

/* A lease that nobody can ask for comes and goes in one transaction, which writes pages all the same. */
static int write_nothing(at_store *store, void *user) {
  (void)user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_TOUCH, &statement);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_UNTOUCH, &statement);
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

attune_status at_store_try_write(at_store *store, int wait_ms) {
  if (!store) return at_fail(ATTUNE_INVALID_ARGUMENT, "store is NULL");
  attune_status status = check_writable(store);
  const at_store_job job = {true, write_nothing, NULL, NULL};
  return status == ATTUNE_OK ? at_store_run(store, &job, at_store_deadline(wait_ms)) : status;
}

/* --- finding --- */

typedef struct find_request {
  const char *fingerprint;
  const char *problem;
  const char *measure;
  attune_decision *out;
  bool found;
} find_request;

static int find_row(at_store *store, void *user) {
  find_request *request = user;
  char fingerprint[AT_FINGERPRINT_CHARS];
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_FIND, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, request->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 3, request->measure, -1, SQLITE_STATIC);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(statement);
  /* Compared again, because a damaged index may lead to another row than the one asked for. */
  request->found = code == SQLITE_ROW && at_store_row_read(statement, fingerprint, request->out) &&
                   strcmp(fingerprint, request->fingerprint) == 0 &&
                   strcmp(request->out->problem, request->problem) == 0 &&
                   strcmp(request->out->measure, request->measure) == 0;
  return at_store_step_end(statement, code);
}

attune_status at_store_find(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                            attune_decision *out) {
  if (!store || !fingerprint || !problem || !measure || !out) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "store, fingerprint, problem, measure or out is NULL");
  }
  memset(out, 0, sizeof *out);
  find_request request = {fingerprint, problem, measure, out, false};
  attune_status status = ATTUNE_OK;
  if (!at_store_forked(store)) {
    if (find_queued(store, fingerprint, problem, measure, out)) return ATTUNE_OK;
    const at_store_job job = {false, find_row, NULL, &request};
    status = at_store_run(store, &job, at_store_deadline(AT_STORE_READ_WAIT_MS));
    if (status == ATTUNE_OK && request.found) return ATTUNE_OK;
  }
  memset(out, 0, sizeof *out);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA) return status;
  return at_fail(ATTUNE_NOT_FOUND, "%s has no usable winner of '%s', %s", store->path, problem, measure);
}

/* --- the recorded workload --- */

typedef struct record_request {
  const at_record *records;
  size_t count;
} record_request;

static int record_row(at_store *store, const at_record *record) {
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_ADD_FINGERPRINT, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, record->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_RECORD, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, record->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, record->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, record->calls);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 4, (int64_t)time(NULL));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

static int record_rows(at_store *store, void *user) {
  const record_request *request = user;
  int code = SQLITE_OK;
  for (size_t i = 0; i < request->count && code == SQLITE_OK; i++) code = record_row(store, &request->records[i]);
  return code;
}

static attune_status check_record(const at_record *record) {
  attune_status status = at_store_check_text("fingerprint", record->fingerprint, AT_FINGERPRINT_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("problem", record->problem, AT_PROBLEM_CHARS, false);
  if (status == ATTUNE_OK && record->calls < 1)
    status = at_fail(ATTUNE_INVALID_ARGUMENT, "count is %lld; should be 1 or more", (long long)record->calls);
  return status;
}

attune_status at_store_record_all(at_store *store, const at_record *records, size_t count, int wait_ms) {
  if (!store || (count && !records)) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", store ? "records" : "store");
  attune_status status = check_writable(store);
  for (size_t i = 0; i < count && status == ATTUNE_OK; i++) status = check_record(&records[i]);
  if (status != ATTUNE_OK || count == 0) return status;
  record_request request = {records, count};
  const at_store_job job = {true, record_rows, NULL, &request};
  return at_store_run(store, &job, at_store_deadline(wait_ms));
}

attune_status at_store_record(at_store *store, const char *fingerprint, const char *problem, int64_t count,
                              int wait_ms) {
  const at_record record = {fingerprint, problem, count};
  return at_store_record_all(store, &record, 1, wait_ms);
}
