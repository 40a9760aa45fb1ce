/* SPDX-License-Identifier: Apache-2.0
 * store_lease.c: who tunes a problem now. A holder is known by its open store's token; whether it lives, by its
 * process number and start time, which mean something only at the same place: the same boot of the same machine and
 * the same process namespace. At another place a lease only expires. The store that holds a lease may take it
 * again: that renews it. */
#include "tuning/store_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEASE_WAIT_MS 500
#define LEASE_MAX_MS ((int64_t)24 * 3600 * 1000)
#define PLACE_CHARS 192

typedef struct lease_request {
  const char *fingerprint;
  const char *problem;
  int64_t now_ms;
  int64_t expires_ms;
  int64_t started;
  int64_t holder; /* pid of the live holder; 0: taken */
  char place[PLACE_CHARS];
} lease_request;

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

/* Reads a small file of /proc; the bytes read, 0 when it is not there. Always terminated. */
static size_t read_small(const char *path, char *out, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, out, size - 1);
  if (file >= 0) (void)close(file);
  out[length > 0 ? length : 0] = '\0';
  return length > 0 ? (size_t)length : 0;
}

/* Start time of a live process in clock ticks since boot; 0: no such process, or it is dead and only not yet waited
 * for. */
static int64_t process_start(int64_t pid) {
  char path[48], text[1024];
  (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  if (read_small(path, text, sizeof text) == 0) return 0;
  const char *at = strrchr(text, ')'); /* the name before it may hold anything */
  if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
  at += 2;
  for (int field = 3; field < 22; field++) {
    at = strchr(at, ' ');
    if (!at) return 0;
    at++;
  }
  return (int64_t)strtoll(at, NULL, 10);
}

static void read_place(char out[PLACE_CHARS]) {
  char boot[64], space[64];
  size_t at = 0;
  if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) == 0) {
    if (gethostname(boot, sizeof boot) != 0) boot[0] = '\0';
    boot[sizeof boot - 1] = '\0';
  }
  boot[strcspn(boot, "\n")] = '\0';
  ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  space[length > 0 ? length : 0] = '\0';
  (void)at_append(out, PLACE_CHARS, &at, "%s %s", boot, space);
}

/* Reads the present lease into request->holder: 0 when there is none that holds. */
static int read_holder(at_store *store, lease_request *request) {
  char place[PLACE_CHARS];
  sqlite3_stmt *statement;
  request->holder = 0;
  int code = at_store_statement(store, AT_SQL_LEASE_READ, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, request->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW && sqlite3_column_int64(statement, 0) != token_of(store) &&
      at_store_column_text(statement, 1, place, sizeof place, false)) {
    int64_t pid = sqlite3_column_int64(statement, 2), expires_ms = sqlite3_column_int64(statement, 4);
    /* An expiry that no call can have written is a clock that was set back, or damage. */
    bool in_time =
        pid > 0 && pid <= INT_MAX && expires_ms > request->now_ms && expires_ms - request->now_ms <= LEASE_MAX_MS;
    bool dead = strcmp(place, request->place) == 0 && process_start(pid) != sqlite3_column_int64(statement, 3);
    if (in_time && !dead) request->holder = pid;
  }
  return at_store_step_end(statement, code);
}

static int take(at_store *store, void *user) {
  lease_request *request = user;
  int code = read_holder(store, request);
  if (code != SQLITE_OK || request->holder != 0) return code;
  sqlite3_stmt *statement;
  code = at_store_statement(store, AT_SQL_ADD_FINGERPRINT, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, request->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_statement(store, AT_SQL_LEASE_TAKE, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, request->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, token_of(store));
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 4, request->place, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 5, store->pid);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 6, request->started);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 7, request->expires_ms);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) store->leased = true;
  return code;
}

attune_status at_store_lease_acquire(at_store *store, const char *fingerprint, const char *problem,
                                     int64_t lifetime_ms) {
  if (!store) return at_fail(ATTUNE_INVALID_ARGUMENT, "store is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  if (store->read_only)
    return at_fail(ATTUNE_PERMISSION, "%s is open read-only; no lease can be taken in it", store->path);
  attune_status status = at_store_check_text("fingerprint", fingerprint, AT_FINGERPRINT_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("problem", problem, AT_PROBLEM_CHARS, false);
  if (status != ATTUNE_OK) return status;
  if (lifetime_ms < 1 || lifetime_ms > LEASE_MAX_MS) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "lifetime_ms is %lld; should be 1 to %lld", (long long)lifetime_ms,
                   (long long)LEASE_MAX_MS);
  }
  lease_request request = {.fingerprint = fingerprint, .problem = problem, .now_ms = wall_ms()};
  request.expires_ms = request.now_ms + lifetime_ms;
  request.started = process_start(store->pid);
  read_place(request.place);
  const at_store_job job = {true, take, NULL, &request};
  status = at_store_run(store, &job, at_store_deadline(LEASE_WAIT_MS));
  if (status != ATTUNE_OK || request.holder == 0) return status;
  return at_fail(ATTUNE_BUSY, "process %lld tunes '%s' now", (long long)request.holder, problem);
}

static int drop(at_store *store, void *user) {
  const lease_request *request = user;
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_LEASE_DROP, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, request->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 2, request->problem, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 3, token_of(store));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

/* One that cannot be released now ends with the store, the process or its time. */
void at_store_lease_release(at_store *store, const char *fingerprint, const char *problem) {
  if (!store || !fingerprint || !problem || store->read_only || at_store_inherited(store)) return;
  lease_request request = {.fingerprint = fingerprint, .problem = problem};
  const at_store_job job = {true, drop, NULL, &request};
  (void)at_store_run(store, &job, at_store_deadline(LEASE_WAIT_MS));
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
