/* SPDX-License-Identifier: Apache-2.0
 * compile_queue.c: see compile_queue.h. Threads live as long as there is work. */
#include "src/process/compile_queue.h"

#include <assert.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/floating.h"
#include "src/process/fork.h"

typedef at_compile_group group;

enum { EACH_MOST = 64 };

static const int NICE[] = {[AT_COMPILE_DEFERRED] = 10, [AT_COMPILE_PRECOMPILE] = 19, [AT_COMPILE_WARM] = 0};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t *changed;
  group *first;      /* the highest priority first; within one, the oldest */
  int threads, jobs; /* that run on them */
  bool ended;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t conditions[2]; /* one for this process and one for a child: others may wait for the first there */
static _Thread_local bool in_job;    /* this is a thread of the queue, and in a job */

/* ---- groups: under the lock ---- */

/* In a child the group has nothing of what it had. */
static group *renew(group *g) {
  const unsigned now = at_fork_generation_now();
  if (g->generation != now) {
    g->listed = false;
    g->threads = 0;
    g->generation = now;
  }
  return g;
}

static void list(group *g) {
  group **link = &queue.first;
  while (*link && (*link)->priority <= g->priority) link = &(*link)->next;
  g->next = *link;
  *link = g;
  g->listed = true;
}

static void unlist(group *g) {
  group **link = &queue.first;
  while (*link != g) link = &(*link)->next;
  *link = g->next;
  g->listed = false;
  pthread_cond_broadcast(queue.changed);
}

/* The first that is short of threads; NULL: none is. */
static group *first_short(void) {
  group *g = queue.first;
  while (g && g->threads >= g->most) g = g->next;
  return g;
}

static bool is_outranked(const group *g) {
  const group *other = first_short();
  return other && other->priority < g->priority;
}

/* ---- fork and exit ---- */

static void set_condition(pthread_cond_t *to) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(to, &monotonic);
  pthread_condattr_destroy(&monotonic);
  queue.changed = to;
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  if (!child) return;
  queue.first = NULL;
  queue.threads = queue.jobs = 0;
  set_condition(queue.changed == &conditions[0] ? &conditions[1] : &conditions[0]);
}

static bool is_working(void) {
  pthread_mutex_lock(&queue.lock);
  queue.ended = true;
  while (queue.first) unlist(queue.first);
  const bool working = queue.jobs > in_job; /* a job itself may call exit() */
  pthread_mutex_unlock(&queue.lock);
  return working;
}

static void at_end(void) {
  at_patience patience = {0};
  while (is_working() && at_patience_nap(&patience)) continue;
}

static void begin(void) {
  static at_fork_watch watch = {.lock = &queue.lock, .after = after_fork};
  set_condition(&conditions[0]);
  at_fork_watch_add(&watch);
  at_exit_call(at_end);
}

/* ---- threads ---- */

/* Under the lock. False: a job forked, and this is the child, where this is no thread of the queue. */
static bool serve(group *g) {
  const unsigned generation = at_fork_generation_now();
  if (NICE[g->priority]) (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE[g->priority]); /* of this thread alone */
  while (g->listed && !is_outranked(g)) {
    queue.jobs++;
    in_job = true;
    const bool done = g->step(g->of);
    if (at_fork_generation_now() != generation) return false;
    in_job = false;
    queue.jobs--;
    if (done)
      pthread_cond_broadcast(queue.changed);
    else
      unlist(g);
  }
  g->threads--;
  pthread_cond_broadcast(queue.changed);
  return true;
}

static void *work(void *pointer) {
  group *g = pointer;
  bool here = true;
  pthread_mutex_lock(&queue.lock);
  while (g && (here = serve(g)))
    if ((g = first_short())) g->threads++;
  if (here) queue.threads--;
  pthread_mutex_unlock(&queue.lock);
  return NULL;
}

/* ---- calls ---- */

void at_compile_lock(void) {
  pthread_once(&once, begin);
  pthread_mutex_lock(&queue.lock);
}

void at_compile_unlock(void) {
  pthread_mutex_unlock(&queue.lock);
}

bool at_compile_start(group *g) {
  assert(at_is_locked(&queue.lock));
  if (queue.ended || g->cancelled) return false;
  if (!renew(g)->listed) list(g);
  while (g->threads < g->most && queue.threads < AT_COMPILE_THREADS && at_thread_start(NULL, work, g) == 0) {
    g->threads++;
    queue.threads++;
  }
  if (g->threads == 0 && queue.threads < AT_COMPILE_THREADS) unlist(g);
  return g->listed;
}

bool at_compile_is_busy(group *g) {
  return renew(g)->listed || g->threads > 0;
}

bool at_compile_wait_change(const struct timespec *until) {
  const int cancel = at_cancel_hold();
  const int error =
      until ? pthread_cond_timedwait(queue.changed, &queue.lock, until) : pthread_cond_wait(queue.changed, &queue.lock);
  at_cancel_let(cancel);
  return error == 0;
}

void at_compile_cancel(group *g) {
  at_compile_lock();
  g->cancelled = true;
  if (renew(g)->listed) unlist(g);
  at_compile_unlock();
}

void at_compile_wait(group *g) {
  at_compile_lock();
  while (at_compile_is_busy(g)) (void)at_compile_wait_change(NULL);
  at_compile_unlock();
}

/* ---- jobs that the caller waits for ---- */

typedef struct each {
  void (*job)(void *of, int i);
  void *of;
  int next, count;
} each;

static bool do_next(void *of) {
  each *e = of;
  if (e->next == e->count) return false;
  const int i = e->next++;
  at_compile_unlock();
  e->job(e->of, i);
  at_compile_lock();
  return true;
}

void at_compile_each(at_compile_priority priority, int threads, int count, void (*job)(void *of, int i), void *of) {
  const int wanted = threads < count ? threads : count, most = wanted < EACH_MOST ? wanted : EACH_MOST;
  each e = {.job = job, .of = of, .count = count};
  group g = {.priority = priority, .most = most - 1, .step = do_next, .of = &e};
  const int cancel = at_cancel_hold();
  at_compile_lock();
  (void)at_compile_start(&g);
  while (do_next(&e)) continue;
  at_compile_unlock();
  at_compile_cancel(&g);
  at_compile_wait(&g);
  at_cancel_let(cancel);
}
