/* SPDX-License-Identifier: Apache-2.0
 * store_open.c: opens and closes a store. */
#include "tuning/store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file_limit.h"

#define CLOSE_WAIT_MS 2000
#define SQLITE_NEEDED 3037000 /* STRICT tables */

static void release(at_store *store) {
  at_file_limit limit;
  at_file_limit_begin(&limit);
  at_store_disconnect(store);
  at_file_limit_end(&limit);
  while (store->first) {
    at_store_row *row = store->first;
    store->first = row->next;
    free(row);
  }
  while (store->leases) {
    at_lease *lease = store->leases;
    store->leases = lease->next;
    free(lease);
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
    return at_fail(ATTUNE_UNSUPPORTED, "the SQLite library was built without support for threads, which attune needs");
  if (sqlite3_libversion_number() < SQLITE_NEEDED)
    return at_fail(ATTUNE_UNSUPPORTED, "the SQLite library is version %s; attune needs 3.37 or later",
                   sqlite3_libversion());
  return ATTUNE_OK;
}

/* A named path is made absolute now, for the program may change its folder before the database is made. */
static attune_status first_connection(at_store *store, const char *given, int wait_ms) {
  const int64_t deadline_ns = at_store_deadline(wait_ms);
  bool there = false;
  sqlite3_randomness(sizeof store->token, &store->token);
  if (strcmp(given, ":memory:") == 0) {
    store->path = strdup(given);
    if (!store->path) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to open %s", given);
    attune_status status = at_store_connect_to(store, given, true, deadline_ns);
    store->made = false;
    return status;
  }
  attune_status status = at_store_path(&store->path, &there, given, store->access, false);
  if (status != ATTUNE_OK || !there) return status;
  at_file_limit limit;
  at_file_limit_begin(&limit); /* what a crash left half written is undone now */
  status = at_store_connect_to(store, store->path, false, deadline_ns);
  at_file_limit_end(&limit);
  return status;
}

attune_status at_store_open_within(at_store **out, const char *path, at_store_access access, int wait_ms) {
  AT_REQUIRE(out, path);
  *out = NULL;
  if (strcmp(path, ":memory:") == 0 && access == AT_STORE_READ_ONLY)
    return AT_INVALID(":memory: is opened read-only, so it would always be empty; open it for writing");
  AT_TRY(check_library());
  at_store *store = calloc(1, sizeof *store);
  if (!store) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to open %s", path);
  store->access = access;
  store->read_only = access == AT_STORE_READ_ONLY;
  store->pid = getpid();
  pthread_mutex_init(&store->lock, NULL);
  pthread_mutex_init(&store->queue_lock, NULL);
  attune_status status = at_store_list_add(store);
  if (status != ATTUNE_OK) {
    destroy(store);
    return status;
  }
  pthread_mutex_lock(&store->lock);
  status = first_connection(store, path, wait_ms);
  const bool stays = status == ATTUNE_OK || (status == ATTUNE_BUSY && store->path);
  if (!stays) release(store);
  pthread_mutex_unlock(&store->lock);
  if (stays) {
    *out = store;
    return status;
  }
  at_store_list_remove(store);
  destroy(store);
  return status;
}

/* In a child made by fork that never used it the store stays as it is, and in the list: SQLite must not close what it
 * did not open. */
void at_store_close(at_store *store) {
  if (!store || at_store_inherited(store)) return;
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
