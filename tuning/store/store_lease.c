/* SPDX-License-Identifier: Apache-2.0
 * store_lease.c: leases: which process tunes a problem now. A holder is known by its open store's token; whether it
 * lives, by its process number and start time, which mean something only at the same place: the same boot of the same
 * machine and the same process namespace. A lease lives until it expires, so its holder renews it; at the same place it
 * ends with its process, and earlier where that is seen stopped for a time. */
#include "tuning/store/store_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/device/device_lease.h"
#include "src/process/process.h"

#define RELEASE_WAIT_MS 5000
#define RENEW_WAIT_MS 50
#define LEASE_MAX_MS ((int64_t)24 * 3600 * 1000)
#define CLEARED_AT_ONCE 32

typedef struct lease_request {
  const char *fingerprint;
  const char *problem;
  int64_t now_ms;
  int64_t expires_ms;
  int64_t started;
  int64_t holder;  /* pid of the live holder; 0: none */
  at_lease *lease; /* for the store's list */
  int changed;
  char place[AT_PLACE_CHARS];
} lease_request;

/* A row without a holder. */
typedef struct dead_row {
  int64_t fingerprint;
  int64_t token;
  char *problem;
} dead_row;

static int64_t token_of(const at_store *store) {
  int64_t token;
  memcpy(&token, &store->token, sizeof token);
  return token;
}

static int64_t wall_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The lease of the key in the store's list. The lock is held. */
static at_lease *find_held(const at_store *store, const char *fingerprint, const char *problem) {
  const size_t chars = at_fingerprint_device_chars(fingerprint);
  for (at_lease *lease = store->leases; lease; lease = lease->next)
    if (!lease->released && strcmp(lease->problem, problem) == 0 && strlen(lease->fingerprint) == chars &&
        memcmp(lease->fingerprint, fingerprint, chars) == 0)
      return lease;
  return NULL;
}

/* The holder is stopped, and was each time this store met it for so long, without a renewal. */
static bool stopped_for_long(at_store *store, int64_t pid, int64_t expires_ms) {
  at_stopped *seen = NULL;
  for (size_t i = 0; i < AT_COUNT(store->stopped); i++)
    if (store->stopped[i].pid == pid) seen = &store->stopped[i];
  if (!at_process_stopped(pid)) {
    if (seen) *seen = (at_stopped){0};
    return false;
  }
  if (!seen) seen = &store->stopped[store->next_stopped++ % AT_COUNT(store->stopped)];
  if (seen->pid != pid || seen->expires_ms != expires_ms) *seen = (at_stopped){pid, expires_ms, at_now_ns()};
  return at_now_ns() - seen->since_ns >= (int64_t)AT_LEASE_STOPPED_MS * 1000000;
}

/* Does the holder of the present row of AT_SQL_LEASE_READ or _ALL live? An expiry that no call can have written is a
 * clock that was set back, or damage. */
static bool holder_lives(at_store *store, const lease_request *request, sqlite3_stmt *statement) {
  char place[AT_PLACE_CHARS];
  if (!at_store_column_text(statement, 1, place, sizeof place, false)) return false;
  const int64_t pid = sqlite3_column_int64(statement, 2), started = sqlite3_column_int64(statement, 3);
  const int64_t expires_ms = sqlite3_column_int64(statement, 4);
  if (pid < 1 || pid > INT_MAX || expires_ms < 0 || expires_ms > request->now_ms + LEASE_MAX_MS) return false;
  const bool here = started != 0 && strcmp(place, request->place) == 0;
  if (here && (at_process_start(pid) != started || stopped_for_long(store, pid, expires_ms))) return false;
  return expires_ms > request->now_ms;
}

/* Reads the present lease into request->holder. */
static int read_holder(at_store *store, void *user) {
  lease_request *request = user;
  sqlite3_stmt *statement;
  request->holder = 0;
  int code = at_store_statement(store, AT_SQL_LEASE_READ, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, request->fingerprint);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    const bool own = sqlite3_column_int64(statement, 0) == token_of(store);
    if (own ? find_held(store, request->fingerprint, request->problem) != NULL
            : holder_lives(store, request, statement))
      request->holder = sqlite3_column_int64(statement, 2);
  }
  return at_store_step_end(statement, code);
}

static bool own_left_behind(const at_store *store, sqlite3_stmt *statement) {
  if (sqlite3_column_int64(statement, 0) != token_of(store)) return false;
  const char *problem = (const char *)sqlite3_column_text(statement, 6);
  if (!problem) return true;
  for (const at_lease *lease = store->leases; lease; lease = lease->next)
    if (!lease->released && strcmp(lease->problem, problem) == 0) return false;
  return true;
}

/* Deletes some of the rows of the dead, and of leases of this store that could not be deleted at their release. */
static int clear_dead(at_store *store, const lease_request *request) {
  dead_row rows[CLEARED_AT_ONCE];
  int count = 0;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_LEASE_ALL, &statement);
  if (code != SQLITE_OK) return code;
  while (count < CLEARED_AT_ONCE && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const int64_t token = sqlite3_column_int64(statement, 0);
    if (token == token_of(store) ? !own_left_behind(store, statement) : holder_lives(store, request, statement))
      continue;
    dead_row *row = &rows[count];
    row->fingerprint = sqlite3_column_int64(statement, 5);
    row->token = token;
    const char *problem = (const char *)sqlite3_column_text(statement, 6);
    row->problem = problem ? strdup(problem) : NULL;
    if (row->problem) count++;
  }
  code = at_store_step_end(statement, code);
  for (int i = 0; i < count && code == SQLITE_OK; i++) {
    code = at_store_statement(store, AT_SQL_LEASE_CLEAR, &statement);
    if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 1, rows[i].fingerprint);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, rows[i].problem, -1, SQLITE_STATIC);
    if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, rows[i].token);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  for (int i = 0; i < count; i++) free(rows[i].problem);
  return code;
}

static int take(at_store *store, void *user) {
  lease_request *request = user;
  int code = read_holder(store, request);
  if (code == SQLITE_OK) code = clear_dead(store, request);
  if (code != SQLITE_OK || request->holder != 0) return code;
  sqlite3_stmt *statement;
  code = at_store_statement(store, AT_SQL_ADD_FINGERPRINT, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, request->fingerprint);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_LEASE_TAKE, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, request->fingerprint);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, token_of(store));
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 4, request->place, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 5, store->pid);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 6, request->started);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 7, request->expires_ms);
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

/* Into the list, from which those go whose rows are gone now. */
static void taken(at_store *store, void *user) {
  lease_request *request = user;
  for (at_lease **link = &store->leases; *link;) {
    at_lease *lease = *link;
    if (!lease->released) {
      link = &lease->next;
      continue;
    }
    *link = lease->next;
    free(lease);
  }
  if (request->holder != 0) return;
  request->lease->next = store->leases;
  store->leases = request->lease;
  store->leased = true;
  request->lease = NULL;
}

static attune_status check_request(at_store *store, const char *fingerprint, const char *problem, int64_t lifetime_ms) {
  if (!store) return AT_INVALID("store is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  if (store->read_only)
    return at_fail(ATTUNE_PERMISSION, "%s is open read-only; no lease can be taken in it", store->path);
  AT_TRY(at_store_check_text("fingerprint", fingerprint, AT_FINGERPRINT_CHARS, false));
  AT_TRY(at_store_check_text("problem", problem, AT_PROBLEM_CHARS, false));
  if (lifetime_ms < 1 || lifetime_ms > LEASE_MAX_MS)
    return AT_INVALID("lifetime_ms is %lld; should be 1 to %lld", (long long)lifetime_ms, (long long)LEASE_MAX_MS);
  return ATTUNE_OK;
}

/* With the device's part of the fingerprint. */
static at_lease *lease_new(const char *fingerprint, const char *problem) {
  const size_t chars = at_fingerprint_device_chars(fingerprint), problem_bytes = strlen(problem) + 1;
  at_lease *lease = calloc(1, sizeof *lease + problem_bytes + chars + 1);
  if (!lease) return NULL;
  memcpy(lease->problem, problem, problem_bytes);
  lease->fingerprint = memcpy(lease->problem + problem_bytes, fingerprint, chars);
  return lease;
}

/* Who waits asks again and again, so the question alone writes nothing. */
attune_status at_store_lease_acquire(at_store *store, const char *fingerprint, const char *problem, int64_t lifetime_ms,
                                     int wait_ms) {
  AT_TRY(check_request(store, fingerprint, problem, lifetime_ms));
  lease_request request = {.fingerprint = fingerprint, .problem = problem, .now_ms = wall_ms()};
  request.expires_ms = request.now_ms + lifetime_ms;
  request.started = at_process_start(store->pid);
  at_process_place(request.place);
  const at_store_job ask = {false, read_holder, NULL, &request}, get = {true, take, taken, &request};
  const int64_t deadline_ns = at_store_deadline(wait_ms);
  attune_status status = at_store_run(store, &ask, deadline_ns);
  if (status == ATTUNE_OK && request.holder == 0) {
    request.lease = lease_new(fingerprint, problem);
    if (!request.lease) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a lease");
    status = at_store_run(store, &get, deadline_ns);
    free(request.lease);
  }
  if (status != ATTUNE_OK || request.holder == 0) return status;
  char shown[AT_SHOWN_CHARS];
  return at_fail(ATTUNE_BUSY, "'%s' is being measured by process %lld", at_shown(shown, problem),
                 (long long)request.holder);
}

static int extend(at_store *store, void *user) {
  lease_request *request = user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_LEASE_RENEW, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, request->fingerprint);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, token_of(store));
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 4, request->expires_ms);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) request->changed = sqlite3_changes(store->db);
  return code;
}

attune_status at_store_lease_renew(at_store *store, const char *fingerprint, const char *problem, int64_t lifetime_ms) {
  AT_TRY(check_request(store, fingerprint, problem, lifetime_ms));
  lease_request request = {.fingerprint = fingerprint, .problem = problem, .expires_ms = wall_ms() + lifetime_ms};
  const at_store_job job = {true, extend, NULL, &request};
  attune_status status = at_store_run(store, &job, at_store_deadline(RENEW_WAIT_MS));
  if (status != ATTUNE_OK || request.changed > 0) return status;
  char shown[AT_SHOWN_CHARS];
  return at_fail(ATTUNE_NOT_FOUND, "the lease on '%s' is lost", at_shown(shown, problem));
}

static int drop(at_store *store, void *user) {
  const lease_request *request = user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_LEASE_DROP, &statement);
  if (code == SQLITE_OK) code = at_store_bind_device(statement, 1, request->fingerprint);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, token_of(store));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

static void dropped(at_store *store, void *user) {
  const lease_request *request = user;
  const at_lease *gone = find_held(store, request->fingerprint, request->problem);
  for (at_lease **link = &store->leases; gone && *link; link = &(*link)->next) {
    if (*link != gone) continue;
    at_lease *lease = *link;
    *link = lease->next;
    free(lease);
    break;
  }
}

/* One that cannot be released now goes with the next that is taken, else with the store, the process or its time. */
void at_store_lease_release(at_store *store, const char *fingerprint, const char *problem) {
  if (!store || !fingerprint || !problem || store->read_only || at_store_inherited(store)) return;
  pthread_mutex_lock(&store->lock);
  const bool held = find_held(store, fingerprint, problem) != NULL;
  pthread_mutex_unlock(&store->lock);
  if (!held) return;
  lease_request request = {.fingerprint = fingerprint, .problem = problem};
  const at_store_job job = {true, drop, dropped, &request};
  if (at_store_run(store, &job, at_store_deadline(RELEASE_WAIT_MS)) == ATTUNE_OK) return;
  pthread_mutex_lock(&store->lock);
  at_lease *lease = find_held(store, fingerprint, problem);
  if (lease) lease->released = true;
  pthread_mutex_unlock(&store->lock);
}

static int drop_all(at_store *store, void *user) {
  (void)user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_LEASE_DROP_ALL, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 1, token_of(store));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

void at_store_lease_drop_all(at_store *store, int64_t deadline_ns) {
  const at_store_job job = {true, drop_all, NULL, NULL};
  if (store->leased) (void)at_store_run(store, &job, deadline_ns);
}
