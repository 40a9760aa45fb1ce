/* SPDX-License-Identifier: Apache-2.0
 * store_fork.c: stores and fork. The child leaves the inherited connection alone and opens its own at the first use;
 * SQLite keeps per-process tables of file locks, so a fork waits until no connection of ours holds one: then the
 * child's copy of those tables is empty, and none of SQLite's own locks is held. Rows that wait to be written are the
 * parent's to write. */
#include "tuning/store/store_internal.h"

#include "src/process/fork.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; taken before any store's lock */
static at_store *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void *unused) {
  (void)unused;
  for (at_store *store = list; store; store = store->next) {
    pthread_mutex_lock(&store->lock);
    pthread_mutex_lock(&store->queue_lock);
  }
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  (void)child;
  for (at_store *store = list; store; store = store->next) {
    pthread_mutex_unlock(&store->queue_lock);
    pthread_mutex_unlock(&store->lock);
  }
}

static void add_handlers(void) {
  static at_fork_watch watch = {.lock = &list_lock, .before = before_fork, .after = after_fork};
  at_fork_watch_add(&watch);
}

attune_status at_store_list_add(at_store *store) {
  (void)pthread_once(&once, add_handlers);
  pthread_mutex_lock(&list_lock);
  store->next = list;
  list = store;
  pthread_mutex_unlock(&list_lock);
  return ATTUNE_OK;
}

void at_store_list_remove(at_store *store) {
  pthread_mutex_lock(&list_lock);
  for (at_store **link = &list; *link; link = &(*link)->next) {
    if (*link == store) {
      *link = store->next;
      break;
    }
  }
  pthread_mutex_unlock(&list_lock);
}

bool at_store_inherited(const at_store *store) {
  return __atomic_load_n(&store->pid, __ATOMIC_ACQUIRE) != getpid();
}

/* Connections of the parent, which a child leaves as they are: recorded, so that leak checkers find them. */
typedef struct left_behind {
  struct left_behind *next;
  sqlite3 *db;
} left_behind;
static _Atomic(left_behind *) all_left_behind;

static void leave_behind(sqlite3 *db) {
  left_behind *one = db ? malloc(sizeof *one) : NULL;
  if (!one) return;
  one->db = db;
  one->next = atomic_load(&all_left_behind);
  while (!atomic_compare_exchange_weak(&all_left_behind, &one->next, one)) continue;
}

/* SQLite must not close what it did not open: the parent's connection stays behind, unused. Under the lock. */
static void forget_parent(at_store *store) {
  leave_behind(store->db);
  store->db = NULL;
  memset(store->statements, 0, sizeof store->statements);
  store->damaged = store->leased = false;
  store->batch = 0;
  while (store->leases) {
    at_lease *lease = store->leases;
    store->leases = lease->next;
    free(lease);
  }
  pthread_mutex_lock(&store->queue_lock);
  while (store->first) {
    at_store_row *row = store->first;
    store->first = row->next;
    free(row);
  }
  store->last = NULL;
  store->queued = 0;
  store->written_ticket = store->last_ticket;
  pthread_mutex_unlock(&store->queue_lock);
}

/* Tried again at each use: what is in the way may go away. */
bool at_store_forked(at_store *store) {
  if (!at_store_inherited(store)) return false;
  pthread_mutex_lock(&store->lock);
  if (at_store_inherited(store)) {
    forget_parent(store);
    if (at_store_reconnect(store) == ATTUNE_OK) __atomic_store_n(&store->pid, getpid(), __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&store->lock);
  return at_store_inherited(store);
}

attune_status at_store_fail_forked(const at_store *store) {
  return at_fail_prefix(ATTUNE_IO_ERROR,
                        "%s was opened before fork and cannot be reopened in the child: ", store->path);
}
