/* SPDX-License-Identifier: Apache-2.0
 * fork.c: counts the forks between the first process and this one, and keeps the locks of everybody who asked over each
 * of them. */
#include "src/process/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "src/process/loading.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
atomic_uint at_fork_count;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; held over a fork */
static at_fork_watch *list, *oldest;                          /* the newest first */
static bool loading_held;                                     /* by the thread that forks */

static void before(void) {
  const bool held = at_loading_hold(); /* first: who loads may add a watch */
  pthread_mutex_lock(&list_lock);
  loading_held = held;
  for (const at_fork_watch *watch = list; watch; watch = watch->next)
    if (watch->before) watch->before(watch->of);
}

static void after(bool child) {
  for (const at_fork_watch *watch = oldest; watch; watch = watch->previous) watch->after(watch->of, child);
  pthread_mutex_unlock(&list_lock);
}

static void after_in_parent(void) {
  if (loading_held) at_loading_release();
  after(false);
}

static void after_in_child(void) {
  atomic_fetch_add(&at_fork_count, 1);
  at_loading_renew(loading_held);
  after(true);
}

/* When attune is loaded, not at its first use: that may come during a fork which another library holds up (another
 * copy of attune, while it opens one), and handlers that come during a fork do not run for it at all. */
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before, after_in_parent, after_in_child);
}

unsigned at_fork_generation(void) {
  pthread_once(&once, at_loading_stay);
  return at_fork_generation_now();
}

/* Under the list's lock. */
static bool listed(const at_fork_watch *watch) {
  const at_fork_watch *one = list;
  while (one && one != watch) one = one->next;
  return one != NULL;
}

static void put_first(at_fork_watch *watch) {
  watch->previous = NULL;
  watch->next = list;
  if (list)
    list->previous = watch;
  else
    oldest = watch;
  list = watch;
}

void at_fork_watch_add(at_fork_watch *watch) {
  pthread_once(&once, at_loading_stay);
  pthread_mutex_lock(&list_lock);
  if (!listed(watch)) put_first(watch);
  pthread_mutex_unlock(&list_lock);
}

void at_fork_watch_remove(at_fork_watch *watch) {
  pthread_mutex_lock(&list_lock);
  if (watch->next)
    watch->next->previous = watch->previous;
  else
    oldest = watch->previous;
  if (watch->previous)
    watch->previous->next = watch->next;
  else
    list = watch->next;
  pthread_mutex_unlock(&list_lock);
}
