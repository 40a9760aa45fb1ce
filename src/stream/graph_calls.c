/* SPDX-License-Identifier: Apache-2.0
 * graph_calls.c: see graph_calls.h. All lists are in one, so that an owner finds its counters in each. */
#include "src/stream/graph_calls.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "src/process/fork.h"

typedef struct counter {
  uint64_t owner, each; /* how often a replay calls it */
  _Atomic uint64_t *calls;
} counter;

struct at_graph_calls {
  at_graph_replays replays; /* first: at_graph_calls_replayed */
  uint64_t folded;          /* of them, those that the counters have; under the lock, as all below */
  counter *counters;
  size_t count, room;
  at_graph_calls *next, *previous;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static at_graph_calls *all;

/* Replays before the fork are the parent's. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  for (at_graph_calls *c = all; c && child; c = c->next)
    c->folded = atomic_load_explicit(&c->replays.count, memory_order_relaxed);
}

static void watch_forks(void) {
  static at_fork_watch watch = {.lock = &lock, .after = after_fork};
  at_fork_watch_add(&watch);
}

/* Under the lock. */
static void fold(at_graph_calls *c) {
  const uint64_t replays = atomic_load_explicit(&c->replays.count, memory_order_relaxed), more = replays - c->folded;
  for (size_t i = 0; i < c->count && more; i++)
    atomic_fetch_add_explicit(c->counters[i].calls, more * c->counters[i].each, memory_order_relaxed);
  c->folded = replays;
}

static at_graph_calls *make(void) {
  at_graph_calls *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->next = all;
  if (all) all->previous = c;
  return all = c;
}

static bool add(at_graph_calls *c, uint64_t owner, _Atomic uint64_t *calls, uint64_t each) {
  for (size_t i = 0; i < c->count; i++)
    if (c->counters[i].calls == calls) {
      c->counters[i].each += each;
      return true;
    }
  if (!AT_ARRAY_ROOM(c->counters, c->count, c->room)) return false;
  c->counters[c->count++] = (counter){.owner = owner, .each = each, .calls = calls};
  return true;
}

void at_graph_calls_note(at_capture *capture, uint64_t owner, _Atomic uint64_t *calls) {
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  if (!capture->calls) capture->calls = make();
  if (capture->calls) (void)add(capture->calls, owner, calls, 1);
  pthread_mutex_unlock(&lock);
}

void at_graph_calls_collect(void) {
  pthread_mutex_lock(&lock);
  for (at_graph_calls *c = all; c; c = c->next) fold(c);
  pthread_mutex_unlock(&lock);
}

void at_graph_calls_forget(uint64_t owner) {
  pthread_mutex_lock(&lock);
  for (at_graph_calls *c = all; c; c = c->next) {
    size_t kept = 0;
    fold(c);
    for (size_t i = 0; i < c->count; i++)
      if (c->counters[i].owner != owner) c->counters[kept++] = c->counters[i];
    c->count = kept;
  }
  pthread_mutex_unlock(&lock);
}

at_graph_calls *at_graph_calls_clone(const at_graph_calls *calls) {
  if (!calls) return NULL;
  pthread_mutex_lock(&lock);
  at_graph_calls *copy = make();
  for (size_t i = 0; copy && i < calls->count; i++)
    (void)add(copy, calls->counters[i].owner, calls->counters[i].calls, calls->counters[i].each);
  pthread_mutex_unlock(&lock);
  return copy;
}

void at_graph_calls_free(at_graph_calls *calls) {
  if (!calls) return;
  pthread_mutex_lock(&lock);
  fold(calls);
  if (calls->next) calls->next->previous = calls->previous;
  if (calls->previous)
    calls->previous->next = calls->next;
  else
    all = calls->next;
  pthread_mutex_unlock(&lock);
  free(calls->counters);
  free(calls);
}
