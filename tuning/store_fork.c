/* SPDX-License-Identifier: Apache-2.0
 * store_fork.c: stores and fork. The child must leave the inherited connections alone, but may open stores of its
 * own; SQLite keeps per-process tables of file locks, so a fork waits until no connection of ours holds one: then
 * the child's copy of those tables is empty, and none of SQLite's own locks is held. */
#include "tuning/store_internal.h"

#include <unistd.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; taken before any store's lock */
static at_store *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers_error;

static void before_fork(void) {
  pthread_mutex_lock(&list_lock);
  for (at_store *store = list; store; store = store->next) pthread_mutex_lock(&store->lock);
}

static void after_fork(void) {
  for (at_store *store = list; store; store = store->next) pthread_mutex_unlock(&store->lock);
  pthread_mutex_unlock(&list_lock);
}

static void add_handlers(void) {
  handlers_error = pthread_atfork(before_fork, after_fork, after_fork);
}

attune_status at_store_list_add(at_store *store) {
  (void)pthread_once(&once, add_handlers);
  if (handlers_error != 0) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to prepare for fork");
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

bool at_store_forked(const at_store *store) {
  return store->pid != getpid();
}

attune_status at_store_fail_forked(const at_store *store) {
  return at_fail(ATTUNE_IO_ERROR, "%s was opened before fork; open it anew in the child", store->path);
}
