/* SPDX-License-Identifier: Apache-2.0
 * precompile.c: see precompile.h. Threads take kernels from the problems of a window that begins at the first problem that was
 * not given out; what a problem needs is listed by a thread too, just before. */
#include "tuning/compile/precompile.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "src/host/threads.h"
#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/floating.h"

enum { WINDOW = 64, THREADS_MOST = 64, NICE = 19 };

static const uint64_t THREAD_BYTES = (uint64_t)512 << 20; /* a compiler at work takes less */

typedef enum listing { UNLISTED, BEING_LISTED, LISTED } listing;

typedef struct wanted {
  char *text; /* constant */
  const at_op *op;
  uint64_t *problem; /* folded; NULL: it cannot be read */
  listing listed;
  at_precompile_kernel *kernels; /* by rank */
  size_t count, next, left;      /* of them: all, begun, not done */
  bool given;
} wanted;

struct attune_precompile {
  attune_tuner *tuner;
  attune_device *device;
  unsigned generation;  /* of the process that made it */
  at_proven *proven;    /* constant */
  pthread_mutex_t lock; /* guards all below, and the problems; held for a moment */
  pthread_cond_t changed;
  wanted *problems;
  size_t count, first; /* the first that was not given */
  bool stopped;        /* no more is begun */
  int running;         /* threads that are not at their end */
  size_t compiled, there, failed;
  pthread_t threads[THREADS_MOST];
  int started;
  attune_precompile *older; /* precompile.c's list of all */
};

int at_precompile_threads(int cpus, uint64_t free_bytes, size_t work) {
  uint64_t most = cpus > 1 ? (uint64_t)cpus - 1 : 1;
  if (free_bytes > 0 && free_bytes / THREAD_BYTES < most) most = free_bytes / THREAD_BYTES;
  if (most > work) most = work;
  return most < 1 ? 1 : most > THREADS_MOST ? THREADS_MOST : (int)most;
}

/* ---- the end of the process: the compiler must not be met by the end of its library ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; a leaf */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static attune_precompile *all;

static int running_in_all(void) {
  int running = 0;
  pthread_mutex_lock(&all_lock);
  for (attune_precompile *a = all; a; a = a->older) {
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    running += a->running;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
  }
  pthread_mutex_unlock(&all_lock);
  return running;
}

static void at_end(void) {
  at_patience patience = {0};
  while (running_in_all() > 0 && at_patience_nap(&patience)) continue;
}

/* In running_in_all's order. */
static void before_fork(void *unused) {
  (void)unused;
  pthread_mutex_lock(&all_lock);
  for (attune_precompile *a = all; a; a = a->older) pthread_mutex_lock(&a->lock);
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  for (attune_precompile *a = all; a; a = a->older) {
    if (child) a->started = a->running = 0; /* their threads are in the parent */
    pthread_mutex_unlock(&a->lock);
  }
  if (child) all = NULL;
  pthread_mutex_unlock(&all_lock);
}

static void begin_all(void) {
  static at_fork_watch watch = {.before = before_fork, .after = after_fork};
  at_fork_watch_add(&watch);
  at_exit_call(at_end);
}

static void enlist(attune_precompile *a) {
  pthread_once(&once, begin_all);
  pthread_mutex_lock(&all_lock);
  a->older = all;
  all = a;
  pthread_mutex_unlock(&all_lock);
}

static void delist(const attune_precompile *a) {
  pthread_mutex_lock(&all_lock);
  attune_precompile **link = &all;
  while (*link && *link != a) link = &(*link)->older;
  if (*link) *link = a->older;
  pthread_mutex_unlock(&all_lock);
}

/* ---- what a thread does; from here to at_work under the lock ---- */

static size_t window_end(const attune_precompile *a) {
  return a->count - a->first > WINDOW ? a->first + WINDOW : a->count;
}

static bool is_ready(const wanted *w) {
  return w->listed == LISTED && w->left == 0;
}

/* The lock is given up meanwhile. */
static void list_one(attune_precompile *a, wanted *w) {
  at_precompile_kernel *kernels = NULL;
  size_t count = 0;
  w->listed = BEING_LISTED;
  pthread_mutex_unlock(&a->lock);
  if (w->problem) count = at_precompile_list(&kernels, w->op, w->problem, w->text, a->device, a->proven);
  pthread_mutex_lock(&a->lock);
  w->kernels = kernels;
  w->count = count;
  w->left = a->stopped ? 0 : count;
  w->listed = LISTED;
  pthread_cond_broadcast(&a->changed);
}

/* Nobody wants what is left: the search makes it itself. */
static void give_up(attune_precompile *a) {
  a->stopped = true;
  for (size_t i = 0; i < a->count; i++) a->problems[i].listed = LISTED, a->problems[i].left = 0;
  pthread_cond_broadcast(&a->changed);
}

/* The lock is given up meanwhile. A cache that keeps nothing makes all of it useless. */
static void compile_one(attune_precompile *a, wanted *w) {
  const at_precompile_kernel *k = &w->kernels[w->next++];
  bool made = false;
  pthread_mutex_unlock(&a->lock);
  const attune_status status =
      k->implementation->compile(k->implementation, w->problem, a->device, &k->configuration, &made);
  pthread_mutex_lock(&a->lock);
  a->compiled += status == ATTUNE_OK && made;
  a->there += status == ATTUNE_OK && !made;
  a->failed += status != ATTUNE_OK;
  if (w->left > 0) w->left--;
  if (status == ATTUNE_IO_ERROR || status == ATTUNE_DEVICE_ERROR)
    give_up(a);
  else
    pthread_cond_broadcast(&a->changed);
}

/* The problem of the window whose next kernel is wanted first; NULL: none is. */
static wanted *first_wanted(const attune_precompile *a) {
  wanted *best = NULL;
  for (size_t i = a->first; i < window_end(a); i++) {
    wanted *w = &a->problems[i];
    if (w->listed != LISTED || w->given || w->next == w->count) continue;
    if (!best || w->kernels[w->next].rank < best->kernels[best->next].rank) best = w;
  }
  return best;
}

static wanted *first_unlisted(const attune_precompile *a) {
  for (size_t i = a->first; i < window_end(a); i++)
    if (a->problems[i].listed == UNLISTED) return &a->problems[i];
  return NULL;
}

/* One step; waits where there is none now. False: there will be none. */
static bool step(attune_precompile *a) {
  if (a->stopped || a->first == a->count) return false;
  wanted *w = first_unlisted(a);
  if (w) {
    list_one(a, w);
  } else if ((w = first_wanted(a))) {
    compile_one(a, w);
  } else {
    bool more = window_end(a) < a->count;
    for (size_t i = a->first; i < window_end(a); i++) more = more || a->problems[i].listed == BEING_LISTED;
    if (!more) return false;
    pthread_cond_wait(&a->changed, &a->lock);
  }
  return true;
}

static void *at_work(void *pointer) {
  attune_precompile *a = pointer;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone */
  pthread_mutex_lock(&a->lock);
  while (step(a)) continue;
  a->running--;
  pthread_cond_broadcast(&a->changed);
  pthread_mutex_unlock(&a->lock);
  return NULL;
}

/* ---- start and end ---- */

/* Where memory is short fewer problems are known, and those are compiled when they are measured. */
static void read_problem(wanted *w, attune_tuner *tuner, attune_device *device, const char *text) {
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  char *folded = malloc(AT_PROBLEM_CHARS);
  const at_op *op = text ? at_tuner_op(tuner, text) : NULL;
  if (op && folded && op->problem->parse(text, bytes) == ATTUNE_OK) {
    op->problem->fold(bytes, device);
    const size_t size = (at_problem_bytes(op, bytes) + 7) / 8 * 8;
    w->op = op;
    if (op->problem->format(bytes, folded, AT_PROBLEM_CHARS) == ATTUNE_OK && (w->text = strdup(folded)) &&
        (w->problem = malloc(size)))
      memcpy(w->problem, bytes, size);
  }
  free(folded);
}

static void release(attune_precompile *a) {
  for (size_t i = 0; a->problems && i < a->count; i++) {
    free(a->problems[i].text);
    free(a->problems[i].problem);
    free(a->problems[i].kernels);
  }
  at_proven_free(a->proven);
  free(a->problems);
  free(a);
}

static uint64_t free_memory(void) {
  attune_device *host = NULL;
  uint64_t available = 0, total = 0;
  if (attune_device_get(&host, "host") != ATTUNE_OK ||
      host->backend.memory->info(host, &available, &total) != ATTUNE_OK)
    return 0;
  return available;
}

/* Where none starts, nothing is compiled ahead. */
static void start_threads(attune_precompile *a) {
  const int wanted_threads = at_precompile_threads(at_cpu_count(), free_memory(), a->count * WINDOW);
  pthread_mutex_lock(&a->lock);
  while (a->started < wanted_threads && at_thread_start(&a->threads[a->started], at_work, a) == 0) a->started++;
  a->running = a->started;
  if (a->started == 0) give_up(a);
  pthread_mutex_unlock(&a->lock);
}

attune_status attune_precompile_start(attune_precompile **out, attune_tuner *tuner, attune_device *device,
                                      const char *const *problems, size_t count) {
  pthread_condattr_t monotonic;
  AT_REQUIRE(out, tuner, device);
  if (count) AT_REQUIRE(problems);
  const at_message kept = at_message_keep();
  at_tuner_open(tuner);
  *out = NULL;
  attune_precompile *a = calloc(1, sizeof *a);
  if (a) a->problems = calloc(count ? count : 1, sizeof *a->problems);
  if (!a || !a->problems) {
    free(a);
    return at_message_settle(&kept, at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu problems", count));
  }
  a->tuner = tuner;
  a->device = device;
  a->count = count;
  a->generation = at_fork_generation();
  pthread_mutex_init(&a->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&a->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  enlist(a);
  if (device->properties.kind == ATTUNE_DEVICE_HOST || count == 0) {
    give_up(a);
  } else {
    a->proven = at_proven_read(tuner);
    for (size_t i = 0; i < count; i++) read_problem(&a->problems[i], tuner, device, problems[i]);
    start_threads(a);
  }
  *out = a;
  return at_message_settle(&kept, ATTUNE_OK);
}

void attune_precompile_stop(attune_precompile *a) {
  if (!a) return;
  pthread_mutex_lock(&a->lock);
  a->stopped = true;
  pthread_cond_broadcast(&a->changed);
  pthread_mutex_unlock(&a->lock);
  const int cancel = at_cancel_hold();
  for (int i = 0; i < a->started; i++) (void)pthread_join(a->threads[i], NULL);
  at_cancel_let(cancel);
  delist(a);
  if (a->generation == at_fork_generation()) pthread_cond_destroy(&a->changed); /* else others wait for it, elsewhere */
  pthread_mutex_destroy(&a->lock);
  release(a);
}

/* ---- what is measured next ---- */

/* The first that is ready or, with `any`, the first; SIZE_MAX: none. Under the lock. */
static size_t pick(const attune_precompile *a, bool any) {
  for (size_t i = a->first; i < a->count; i++)
    if (!a->problems[i].given && (any || is_ready(&a->problems[i]))) return i;
  return SIZE_MAX;
}

static struct timespec time_in(double ms) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  const int64_t ns = at.tv_nsec + (int64_t)((ms < 1e9 ? ms : 1e9) * 1e6);
  return (struct timespec){.tv_sec = at.tv_sec + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

attune_status attune_precompile_next(attune_precompile *a, double wait_ms, int any, size_t *out) {
  if (!a || !out) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given", a ? "out" : "ahead");
  if (!(wait_ms >= 0.0)) return at_fail(ATTUNE_INVALID_ARGUMENT, "wait_ms is %g; should be 0 or more", wait_ms);
  const struct timespec until = time_in(wait_ms);
  const int cancel = at_cancel_hold();
  pthread_mutex_lock(&a->lock);
  size_t next = pick(a, false);
  while (next == SIZE_MAX && a->first < a->count && wait_ms > 0.0 && a->running > 0 &&
         pthread_cond_timedwait(&a->changed, &a->lock, &until) != ETIMEDOUT)
    next = pick(a, false);
  if (next == SIZE_MAX) next = pick(a, any || a->running == 0);
  const bool none = a->first == a->count;
  if (next != SIZE_MAX) {
    a->problems[next].given = true;
    while (a->first < a->count && a->problems[a->first].given) a->first++;
    pthread_cond_broadcast(&a->changed);
  }
  pthread_mutex_unlock(&a->lock);
  at_cancel_let(cancel);
  if (none) return at_fail(ATTUNE_NOT_FOUND, "every problem was given");
  if (next == SIZE_MAX) return at_fail(ATTUNE_BUSY, "the kernels of no problem are compiled yet; ask again");
  *out = next;
  return ATTUNE_OK;
}

void attune_precompile_counts(const attune_precompile *ahead, size_t *compiled, size_t *there, size_t *failed) {
  attune_precompile *a = (attune_precompile *)(uintptr_t)ahead;
  if (a) pthread_mutex_lock(&a->lock);
  if (compiled) *compiled = a ? a->compiled : 0;
  if (there) *there = a ? a->there : 0;
  if (failed) *failed = a ? a->failed : 0;
  if (a) pthread_mutex_unlock(&a->lock);
}
