/* SPDX-License-Identifier: Apache-2.0
 * deferred_decision.c: see deferred_decision.h. All is under the compile queue's lock. */
#include "tuning/compile/deferred_decision.h"

#include <stdlib.h>
#include <string.h>

#include "src/process/compile_queue.h"
#include "src/process/fork.h"

enum { MOST = 1024 };

typedef struct work {
  struct work *next;
  attune_tuner *tuner;
  const at_op *op;
  attune_device *device;
  at_deferred_fn fn;
  at_key key; /* as much as at_key_bytes of it */
} work;

static bool decide_first(void *unused);

static at_compile_group group = {.priority = AT_COMPILE_DEFERRED, .most = 1, .step = decide_first};
static work *first; /* what waits, the oldest first; with `running` that one is being decided */
static bool running;
static unsigned generation; /* of the process that these hold for: a child of fork has nothing to decide */

/* The parent's waiting entries are leaked in the child, a few kilobytes. */
static void lock(void) {
  at_compile_lock();
  if (generation == at_fork_generation_now()) return;
  generation = at_fork_generation_now();
  first = NULL;
  running = false;
}

static bool decide_first(void *unused) {
  (void)unused;
  work *w = first;
  if (!w) return false;
  running = true;
  at_compile_unlock();
  w->fn(w->tuner, w->op, &w->key, w->device);
  lock();
  if (first != w) return true; /* fn forked, and this is the child */
  running = false;
  first = w->next;
  free(w);
  return true;
}

/* How much there is of the tuner, of this key or, with NULL, of any. */
static size_t count_of(const attune_tuner *tuner, const at_key *key) {
  size_t count = 0;
  for (const work *w = first; w; w = w->next) count += w->tuner == tuner && (!key || at_key_equal(&w->key, key));
  return count;
}

bool at_deferred_add(attune_tuner *tuner, const at_op *op, const at_key *key, attune_device *device,
                     at_deferred_fn fn) {
  const size_t bytes = at_key_bytes(key);
  work *w = malloc(offsetof(work, key) + bytes), **end = &first;
  size_t waiting = 0;
  if (!w) return false;
  w->next = NULL;
  w->tuner = tuner;
  w->op = op;
  w->device = device;
  w->fn = fn;
  memcpy(&w->key, key, bytes);
  lock();
  for (; *end; end = &(*end)->next) waiting++;
  const bool there = count_of(tuner, key) > 0, takes = there || (waiting < MOST && at_compile_start(&group));
  if (takes && !there) {
    *end = w;
    w = NULL;
  }
  at_compile_unlock();
  free(w);
  return takes;
}

void at_deferred_wait(const attune_tuner *tuner, const at_key *key) {
  lock();
  while (count_of(tuner, key) > 0 && at_compile_is_busy(&group)) (void)at_compile_wait_change(NULL);
  at_compile_unlock();
}

size_t at_deferred_left(const attune_tuner *tuner) {
  lock();
  const size_t count = count_of(tuner, NULL);
  at_compile_unlock();
  return count;
}

void at_deferred_forget(const attune_tuner *tuner) {
  lock();
  for (work **link = running ? &first->next : &first; *link;) {
    work *w = *link;
    if (w->tuner != tuner) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    free(w);
  }
  while (running && first->tuner == tuner) (void)at_compile_wait_change(NULL);
  at_compile_unlock();
}
