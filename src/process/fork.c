/* SPDX-License-Identifier: Apache-2.0
 * fork.c: counts the forks between the first process and this one, and keeps the registered locks over each
 * of them. */
#include "src/process/fork.h"

#include <stdatomic.h>
#include <stddef.h>

#include "src/process/floating.h"
#include "src/process/loading.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
atomic_uint at_fork_count;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; held over a fork */
static at_fork_watch *list, *oldest;                          /* the newest first */
static bool loading_held;                                     /* by the thread that forks */

/* ---- what the C library calls ---- */

/* pthread_atfork names the library that asks, for the C library to forget its functions when it runs the library's
 * destructors. Attune's functions are of a variable, which nothing but forget_forks ends. */
int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *of);
void __cxa_finalize(void *of);
static char asker;

/* While glibc (2.36) runs one function it lets others leave its list, and then looks by its place for the function
 * before the one that ran: beyond the end, if two or more have left, and aborts. So the list has an end of places that
 * do nothing and stay: as many functions may leave. */
enum { PLACES = 32 };

void at_fork_functions(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  (void)__register_atfork(before, in_parent, in_child, &asker);
  for (int i = 0; i < PLACES; i++) (void)__register_atfork(NULL, NULL, NULL, &asker);
}

static void before(void) {
  const bool held = at_loading_hold(); /* first: a thread that loads may add a watch */
  pthread_mutex_lock(&list_lock);
  loading_held = held;
  for (const at_fork_watch *watch = list; watch; watch = watch->next) {
    if (watch->lock) pthread_mutex_lock(watch->lock);
    if (watch->before) watch->before(watch->of);
  }
}

static void after(bool child) {
  for (const at_fork_watch *watch = oldest; watch; watch = watch->previous) {
    if (watch->after) watch->after(watch->of, child);
    if (watch->lock) pthread_mutex_unlock(watch->lock);
  }
  pthread_mutex_unlock(&list_lock);
}

static void after_in_parent(void) {
  if (loading_held) at_loading_release();
  after(false);
}

static void after_in_child(void) {
  atomic_fetch_add(&at_fork_count, 1);
  at_thread_forked();
  at_loading_renew(loading_held);
  after(true);
}

/* When attune is loaded, not at its first use: that may come during a fork which another library holds up (another
 * copy of attune, while it opens one), and handlers that come during a fork do not run for it at all. */
__attribute__((constructor)) static void watch_forks(void) {
  at_fork_functions(before, after_in_parent, after_in_child);
}

/* Closed before its first use, attune is gone from memory. */
__attribute__((destructor)) static void forget_forks(void) {
  if (!at_loading_stays()) __cxa_finalize(&asker);
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
