/* SPDX-License-Identifier: Apache-2.0
 * queue.c: the work of one created host stream: a ring of items, one thread that runs them, any number of threads that
 * submit. Positions count items since the start and only grow: an item is submitted when `end` passes it and done when
 * `done` passes it.
 *
 *   position             done                         end
 *                         |                            |
 *   ring     | free | free| running | waiting | waiting| free | free |      slot = position % RING_ITEMS
 *                         ^                            ^
 *                 the queue's thread            at_queue_submit: under `lock`; a full ring (end - done == RING_ITEMS)
 *                 runs the item, then           makes it sleep on `progress`; wakes the thread if it is asleep
 *                 done++ and wakes waiters
 *
 *   The thread without work spins for spin_ns, then sleeps on `work` until end > done.
 *   at_queue_wait(position) spins as long, then sleeps on `progress` until done >= position. */
#include "src/host/queue.h"

#include "src/host/cpu_capacity.h"
#include "src/host/host.h"
#include "src/host/main_thread_exit.h"
#include "src/host/spin.h"
#include "src/process/cancel.h"
#include "src/process/floating.h"
#include "src/process/fork.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_ITEMS 256
#define SPIN_NS 20000

typedef struct item {
  void (*fn)(const void *args);
  alignas(max_align_t) unsigned char args[AT_HOST_ARGS_BYTES];
} item;

struct at_queue {
  atomic_int references;
  unsigned generation; /* at_fork_generation() of the process that has the thread */
  uint64_t id;         /* in order of making, from 1 */
  int64_t spin_ns;
  at_queue *next, *previous; /* guarded by list_lock */
  pthread_t thread;
  item *ring; /* slot p % RING_ITEMS belongs to the giver while p >= end, else to the thread until done > p */

  pthread_mutex_t lock;    /* guards the sleeping: `work`, `progress`, `stopping`, `asleep` */
  pthread_cond_t work;     /* `end` or `stopping` changed while `asleep` */
  pthread_cond_t progress; /* `done` grew while `waiters` > 0 */
  bool stopping, asleep;
  atomic_int waiters;
  _Atomic uint64_t end, done;
};

/* Guards the list of queues and next_id. Held over fork, so that a child finds it free and the list whole. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static at_queue *list;
static uint64_t next_id = 1;
static _Thread_local const at_queue *running; /* the queue whose thread this is */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The child has none of the threads: it forgets the queues. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  if (child) list = NULL;
  if (child) running = NULL; /* a function of a stream may fork: here nothing is behind it */
}

static void watch_fork(void) {
  static at_fork_watch watch = {.lock = &list_lock, .after = after_fork};
  at_fork_watch_add(&watch);
}

void at_queue_watch_fork(void) {
  pthread_once(&fork_once, watch_fork);
}

static bool stale(const at_queue *queue) {
  return queue->generation != at_fork_generation();
}

bool at_queue_runs_here(const at_queue *queue) {
  return queue ? running == queue : running != NULL;
}

attune_status at_queue_check(const at_queue *queue) {
  if (AT_LIKELY(!stale(queue))) return ATTUNE_OK;
  return at_fail(
      ATTUNE_DEVICE_ERROR,
      "stream was created before fork, and its thread exists only in the parent; should be created again in the child");
}

/* Waits until item `position` is given; false when the queue stops and has no more. */
static bool wait_for_work(at_queue *queue, uint64_t position) {
  at_spin spin = {.limit_ns = queue->spin_ns};
  do {
    if (atomic_load_explicit(&queue->end, memory_order_acquire) > position) return true;
  } while (at_spin_turn(&spin));
  pthread_mutex_lock(&queue->lock);
  queue->asleep = true;
  while (atomic_load_explicit(&queue->end, memory_order_acquire) <= position && !queue->stopping) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += AT_MAIN_THREAD_EXIT_LOOK_NS / 1000000000;
    if (pthread_cond_timedwait(&queue->work, &queue->lock, &end) == ETIMEDOUT) at_main_thread_exit_look();
  }
  queue->asleep = false;
  pthread_mutex_unlock(&queue->lock);
  return atomic_load_explicit(&queue->end, memory_order_acquire) > position;
}

static void *run_queue(void *arg) {
  at_queue *queue = arg;
  running = queue;
  for (uint64_t position = 0; wait_for_work(queue, position); position++) {
    const item *next = &queue->ring[position % RING_ITEMS];
    assert(next->fn && atomic_load(&queue->done) == position);
    next->fn(next->args);
    if (AT_UNLIKELY(stale(queue))) return NULL; /* a child of fork that came back from the function: it ends here */
    /* Sequentially consistent with at_queue_wait's: either it sees `done` or we see it waiting. */
    atomic_store(&queue->done, position + 1);
    if (atomic_load(&queue->waiters) == 0) continue;
    pthread_mutex_lock(&queue->lock);
    pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(&queue->lock);
  }
  return NULL;
}

static void release(at_queue *queue) {
  free(queue->ring);
  free(queue);
}

static void enlist(at_queue *queue) {
  pthread_mutex_lock(&list_lock);
  queue->id = next_id++;
  queue->next = list;
  if (list) list->previous = queue;
  list = queue;
  pthread_mutex_unlock(&list_lock);
}

static void delist(at_queue *queue) {
  pthread_mutex_lock(&list_lock);
  if (queue->next) queue->next->previous = queue->previous;
  if (queue->previous)
    queue->previous->next = queue->next;
  else
    list = queue->next;
  pthread_mutex_unlock(&list_lock);
}

attune_status at_queue_create(at_queue **out) {
  at_queue *queue = calloc(1, sizeof *queue);
  if (queue) queue->ring = calloc(RING_ITEMS, sizeof *queue->ring);
  if (!queue || !queue->ring) {
    free(queue);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stream's queue");
  }
  queue->generation = at_fork_generation();
  queue->spin_ns = at_spin_limit(SPIN_NS);
  atomic_init(&queue->references, 1);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->work, NULL);
  pthread_cond_init(&queue->progress, NULL);
  int error = at_thread_start(&queue->thread, run_queue, queue);
  if (error) {
    release(queue);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no thread for a stream: %s", strerror(error));
  }
  enlist(queue);
  *out = queue;
  return ATTUNE_OK;
}

void at_queue_hold(at_queue *queue) {
  const int before = atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
  assert(before > 0);
  (void)before;
}

void at_queue_drop(at_queue *queue) {
  const int before = atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel);
  assert(before > 0);
  if (before != 1) return;
  if (!stale(queue)) { /* else a thread of the parent may have held them at the fork */
    pthread_cond_destroy(&queue->progress);
    pthread_cond_destroy(&queue->work);
    pthread_mutex_destroy(&queue->lock);
  }
  release(queue);
}

void at_queue_close(at_queue *queue) {
  assert(!at_queue_runs_here(queue)); /* it would wait for its own end */
  if (!stale(queue)) {
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    delist(queue);
  }
  free(queue->ring);
  queue->ring = NULL;
  at_queue_drop(queue);
}

/* Sleeps until `position` is reached. Called with the lock held, which is released during the sleep. */
static void sleep_until(at_queue *queue, uint64_t position) {
  atomic_fetch_add(&queue->waiters, 1);
  while (atomic_load(&queue->done) < position) at_wait(&queue->progress, &queue->lock);
  atomic_fetch_sub(&queue->waiters, 1);
}

uint64_t at_queue_submit(at_queue *queue, void (*fn)(const void *args), const void *args, size_t bytes) {
  assert(fn && bytes <= AT_HOST_ARGS_BYTES && (args || bytes == 0) && !stale(queue));
  pthread_mutex_lock(&queue->lock);
  uint64_t end; /* read again after a sleep: another thread may have submitted work */
  while ((end = atomic_load_explicit(&queue->end, memory_order_relaxed)) >= RING_ITEMS &&
         !at_queue_reached(queue, end - RING_ITEMS + 1))
    sleep_until(queue, end - RING_ITEMS + 1);
  assert(!queue->stopping && end - atomic_load(&queue->done) < RING_ITEMS);
  item *slot = &queue->ring[end % RING_ITEMS];
  slot->fn = fn;
  if (bytes) memcpy(slot->args, args, bytes);
  atomic_store_explicit(&queue->end, end + 1, memory_order_release);
  if (queue->asleep) pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->lock);
  return end + 1;
}

static bool is_full(const at_queue *queue) {
  const uint64_t end = at_queue_end(queue);
  return end >= RING_ITEMS && !at_queue_reached(queue, end - RING_ITEMS + 1);
}

attune_status at_queue_check_submit(const at_queue *queue) {
  const attune_status status = at_queue_check(queue);
  if (status != ATTUNE_OK || AT_LIKELY(!at_queue_runs_here(queue)) || !is_full(queue)) return status;
  return AT_INVALID("the stream is full, and a function that it runs submits more work; should be submitted elsewhere");
}

attune_status at_queue_check_wait(const at_queue *queue, uint64_t position) {
  const attune_status status = at_queue_check(queue);
  if (status != ATTUNE_OK || AT_LIKELY(!at_queue_runs_here(queue)) || at_queue_reached(queue, position)) return status;
  return AT_INVALID(
      "this call waits for the stream, but is made by a function that the stream runs; should be called elsewhere");
}

uint64_t at_queue_end(const at_queue *queue) {
  return atomic_load_explicit(&queue->end, memory_order_acquire);
}

bool at_queue_reached(const at_queue *queue, uint64_t position) {
  return atomic_load_explicit(&queue->done, memory_order_acquire) >= position;
}

void at_queue_wait(at_queue *queue, uint64_t position) {
  assert(position <= at_queue_end(queue));
  at_spin spin = {.limit_ns = queue->spin_ns};
  do {
    if (at_queue_reached(queue, position)) return;
  } while (at_spin_turn(&spin));
  pthread_mutex_lock(&queue->lock);
  sleep_until(queue, position);
  pthread_mutex_unlock(&queue->lock);
}

/* The first queue made after number *id and before number `end`, held; NULL when there is none. */
static at_queue *next_queue(uint64_t *id, uint64_t end) {
  at_queue *first = NULL;
  pthread_mutex_lock(&list_lock);
  for (at_queue *queue = list; queue; queue = queue->next)
    if (queue->id > *id && queue->id < end && (!first || queue->id < first->id)) first = queue;
  if (first) {
    at_queue_hold(first);
    *id = first->id;
  }
  pthread_mutex_unlock(&list_lock);
  return first;
}

void at_queue_wait_all(void) {
  pthread_mutex_lock(&list_lock);
  uint64_t end = next_id, id = 0;
  pthread_mutex_unlock(&list_lock);
  for (at_queue *queue; (queue = next_queue(&id, end)); at_queue_drop(queue)) at_queue_wait(queue, at_queue_end(queue));
}
