/* SPDX-License-Identifier: Apache-2.0
 * deferred_decision.c: see deferred_decision.h. The thread lives as long as there is work. */
#include "tuning/compile/deferred_decision.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/floating.h"

enum { MOST = 1024, NICE = 10 };

typedef struct work {
  struct work *next;
  attune_tuner *tuner;
  const at_op *op;
  attune_device *device;
  at_deferred_fn fn;
  at_key key; /* as much as at_key_bytes of it */
} work;

/* A child of fork has no such thread: its queue is empty. */
static struct queue {
  pthread_mutex_t lock; /* guards everything here; a leaf, held for a moment */
  pthread_cond_t *changed;
  work *first, **end;
  size_t count;  /* that waits */
  work *running; /* NULL: none */
  bool thread, ended;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &queue.first};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t conditions[2]; /* one for this process and one for a child: others may wait for the first there */

static bool is_of(const work *w, const attune_tuner *tuner, const at_key *key) {
  return w && w->tuner == tuner && (!key || at_key_equal(&w->key, key));
}

/* ---- fork and exit ---- */

static void before_fork(void *unused) {
  (void)unused;
  pthread_mutex_lock(&queue.lock);
}

/* What waited there is leaked here, a few kilobytes: it may have been changing hands. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  if (child) {
    queue.first = queue.running = NULL;
    queue.end = &queue.first;
    queue.count = 0;
    queue.thread = false;
    queue.changed = queue.changed == &conditions[0] ? &conditions[1] : &conditions[0];
    pthread_cond_init(queue.changed, NULL);
  }
  pthread_mutex_unlock(&queue.lock);
}

static bool is_running(void) {
  pthread_mutex_lock(&queue.lock);
  queue.ended = true;
  const bool running = queue.running != NULL;
  pthread_mutex_unlock(&queue.lock);
  return running;
}

/* The compiler must not be met by the end of its library. */
static void at_end(void) {
  at_patience patience = {0};
  while (is_running() && at_patience_nap(&patience)) continue;
}

static void begin(void) {
  static at_fork_watch watch = {.before = before_fork, .after = after_fork};
  queue.changed = &conditions[0];
  pthread_cond_init(queue.changed, NULL);
  at_fork_watch_add(&watch);
  at_exit_call(at_end);
}

/* ---- the thread ---- */

static work *take(void) {
  work *w = queue.ended ? NULL : queue.first;
  if (!w) return NULL;
  queue.first = w->next;
  if (!queue.first) queue.end = &queue.first;
  queue.count--;
  return w;
}

static void *at_work(void *unused) {
  (void)unused;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone */
  pthread_mutex_lock(&queue.lock);
  while ((queue.running = take()) != NULL) {
    work *w = queue.running;
    pthread_mutex_unlock(&queue.lock);
    w->fn(w->tuner, w->op, &w->key, w->device);
    pthread_mutex_lock(&queue.lock);
    queue.running = NULL;
    free(w);
    pthread_cond_broadcast(queue.changed);
  }
  queue.thread = false;
  pthread_cond_broadcast(queue.changed);
  pthread_mutex_unlock(&queue.lock);
  return NULL;
}

/* Under the lock. */
static bool start_thread(void) {
  if (!queue.thread) queue.thread = at_thread_start(NULL, at_work, NULL) == 0;
  return queue.thread;
}

/* ---- calls ---- */

static bool has(const attune_tuner *tuner, const at_key *key) {
  const work *w = queue.first;
  while (w && !is_of(w, tuner, key)) w = w->next;
  return w || is_of(queue.running, tuner, key);
}

bool at_deferred_add(attune_tuner *tuner, const at_op *op, const at_key *key, attune_device *device, at_deferred_fn fn) {
  const size_t bytes = at_key_bytes(key);
  pthread_once(&once, begin);
  work *w = malloc(offsetof(work, key) + bytes);
  if (!w) return false;
  w->next = NULL;
  w->tuner = tuner;
  w->op = op;
  w->device = device;
  w->fn = fn;
  memcpy(&w->key, key, bytes);
  pthread_mutex_lock(&queue.lock);
  const bool there = has(tuner, key), takes = there || (!queue.ended && queue.count < MOST && start_thread());
  if (takes && !there) {
    *queue.end = w;
    queue.end = &w->next;
    queue.count++;
    w = NULL;
  }
  pthread_mutex_unlock(&queue.lock);
  free(w);
  return takes;
}

void at_deferred_wait(const attune_tuner *tuner, const at_key *key) {
  pthread_once(&once, begin);
  pthread_mutex_lock(&queue.lock);
  while (has(tuner, key) && queue.thread) at_wait(queue.changed, &queue.lock);
  pthread_mutex_unlock(&queue.lock);
}

size_t at_deferred_left(const attune_tuner *tuner) {
  pthread_mutex_lock(&queue.lock);
  size_t count = is_of(queue.running, tuner, NULL);
  for (const work *w = queue.first; w; w = w->next) count += is_of(w, tuner, NULL);
  pthread_mutex_unlock(&queue.lock);
  return count;
}

void at_deferred_forget(const attune_tuner *tuner) {
  pthread_once(&once, begin);
  pthread_mutex_lock(&queue.lock);
  for (work **link = &queue.first; *link;) {
    work *w = *link;
    if (!is_of(w, tuner, NULL)) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    queue.count--;
    free(w);
  }
  queue.end = &queue.first;
  while (*queue.end) queue.end = &(*queue.end)->next;
  while (is_of(queue.running, tuner, NULL)) at_wait(queue.changed, &queue.lock);
  pthread_mutex_unlock(&queue.lock);
}
