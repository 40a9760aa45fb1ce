/* SPDX-License-Identifier: Apache-2.0
 * fork.h: what a fork needs: whether this process is still the one that made a thing, and locks that the child finds
 * free.
 *
 * A lock that is held for a moment only is taken before the fork and given back after it, so the child finds what it
 * guards whole. One that is held for long (for a whole search) must not hold up a fork: the child makes it again, and
 * forgets what the thread that held it had begun. A library that is being opened is waited for (loading.h); what it and
 * its user asked of pthread_atfork during a fork comes too late for that fork, but a watch does not. */
#ifndef AT_FORK_H
#define AT_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A number that changes in a child of fork. */
unsigned at_fork_generation(void);

/* As above, for callers that already have its number: on the path of calls. */
extern atomic_uint at_fork_count __attribute__((visibility("hidden"))); /* fork.c's */
static inline unsigned at_fork_generation_now(void) {
  return atomic_load_explicit(&at_fork_count, memory_order_relaxed);
}

/* A thing with locks; each of the first three may be NULL. The thread that forks takes `lock` and calls `before`, of
 * the newest watch first; after the fork, of the oldest watch first, it calls `after` and releases `lock`: as with
 * pthread_atfork. But no fork misses a watch: one is added before the first use of its locks, and adding waits for a
 * fork that is under way, while a handler of pthread_atfork that comes during a fork has its `before` left out. */
typedef struct at_fork_watch {
  pthread_mutex_t *lock;
  void (*before)(void *of);
  void (*after)(void *of, bool child);
  void *of;
  struct at_fork_watch *next, *previous; /* private to fork.c */
} at_fork_watch;

/* From add to remove each fork calls them. The watch is the caller's memory. Call both without holding a lock that any
 * `before` takes. One that is there already is not added again: a pthread_once that a fork cut off adds it once more in
 * the child. */
void at_fork_watch_add(at_fork_watch *watch);
void at_fork_watch_remove(at_fork_watch *watch);

/* pthread_atfork, for functions that must come after or before those of one library; for ever. What a library asks of
 * pthread_atfork is forgotten when exit() runs its destructors, while threads go on and fork. */
void at_fork_functions(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#endif
