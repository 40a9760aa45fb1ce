/* SPDX-License-Identifier: Apache-2.0
 * precompile.c: see precompile.h. Threads of the compile queue take kernels from the problems of a window that begins
 * at the first problem that was not given out; what a problem needs is listed by a thread too, just before. */
#include "tuning/compile/precompile.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "src/process/compile_queue.h"

enum { WINDOW = 64, THREADS_MOST = 64 };

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

/* `tuner`, `device` and `proven` are constant; the lock of the compile queue guards the rest. */
struct attune_precompile {
  attune_tuner *tuner;
  attune_device *device;
  at_proven *proven;
  wanted *problems;
  size_t count, first; /* the first that was not given */
  bool given_up;       /* nothing more is begun */
  at_compile_group group;
};

int at_precompile_threads(int cpus, uint64_t free_bytes, size_t work) {
  uint64_t most = cpus > 1 ? (uint64_t)cpus - 1 : 1;
  if (free_bytes > 0 && free_bytes / THREAD_BYTES < most) most = free_bytes / THREAD_BYTES;
  if (most > work) most = work;
  return most < 1 ? 1 : most > THREADS_MOST ? THREADS_MOST : (int)most;
}

/* ---- what a thread does: under the lock ---- */

static size_t window_end(const attune_precompile *a) {
  return a->count - a->first > WINDOW ? a->first + WINDOW : a->count;
}

static bool is_ready(const wanted *w) {
  return w->listed == LISTED && w->left == 0;
}

/* Releases the lock while it lists. Threads that found nothing to do may have something now. */
static void list_one(attune_precompile *a, wanted *w) {
  at_precompile_kernel *kernels = NULL;
  size_t count = 0;
  w->listed = BEING_LISTED;
  at_compile_unlock();
  if (w->problem) count = at_precompile_list(&kernels, w->op, w->problem, w->text, a->device, a->proven);
  at_compile_lock();
  w->kernels = kernels;
  w->count = count;
  w->left = a->given_up ? 0 : count;
  w->listed = LISTED;
  (void)at_compile_start(&a->group);
}

/* The rest is not compiled ahead: the search does it. */
static void give_up(attune_precompile *a) {
  a->given_up = true;
  for (size_t i = 0; i < a->count; i++) a->problems[i].listed = LISTED, a->problems[i].left = 0;
}

/* Releases the lock while it compiles. A cache that keeps nothing makes all of it useless. */
static void compile_one(attune_precompile *a, wanted *w) {
  const at_precompile_kernel *k = &w->kernels[w->next++];
  bool made = false;
  at_compile_unlock();
  const attune_status status =
      k->implementation->compile(k->implementation, w->problem, a->device, &k->configuration, &made);
  at_compile_lock();
  if (w->left > 0) w->left--;
  if (status == ATTUNE_IO_ERROR || status == ATTUNE_DEVICE_ERROR) give_up(a);
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

static bool step(void *of) {
  attune_precompile *a = of;
  wanted *w = a->given_up ? NULL : first_unlisted(a);
  if (w)
    list_one(a, w);
  else if (!a->given_up && (w = first_wanted(a)))
    compile_one(a, w);
  return w != NULL;
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

/* Where no thread starts, nothing is compiled ahead. */
static void start_threads(attune_precompile *a) {
  const int threads = at_precompile_threads(at_cpu_count(), free_memory(), a->count * WINDOW);
  a->group = (at_compile_group){.priority = AT_COMPILE_PRECOMPILE, .most = threads, .step = step, .of = a};
  at_compile_lock();
  if (!at_compile_start(&a->group)) give_up(a);
  at_compile_unlock();
}

attune_status attune_precompile_start(attune_precompile **out, attune_tuner *tuner, attune_device *device,
                                      const char *const *problems, size_t count) {
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
  at_compile_cancel(&a->group);
  at_compile_wait(&a->group);
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
  if (!a || !out) return AT_INVALID("%s is NULL; should be given", a ? "out" : "ahead");
  if (!(wait_ms >= 0.0)) return AT_INVALID("wait_ms is %g; should be 0 or more", wait_ms);
  const struct timespec until = time_in(wait_ms);
  at_compile_lock();
  size_t next = pick(a, false);
  while (next == SIZE_MAX && a->first < a->count && wait_ms > 0.0 && at_compile_is_busy(&a->group) &&
         at_compile_wait_change(&until))
    next = pick(a, false);
  if (next == SIZE_MAX) next = pick(a, any || !at_compile_is_busy(&a->group));
  const bool none = a->first == a->count;
  const size_t end = window_end(a);
  if (next != SIZE_MAX) {
    a->problems[next].given = true;
    while (a->first < a->count && a->problems[a->first].given) a->first++;
  }
  if (window_end(a) > end && !a->given_up) (void)at_compile_start(&a->group);
  at_compile_unlock();
  if (none) return at_fail(ATTUNE_NOT_FOUND, "every problem has been returned");
  if (next == SIZE_MAX) return at_fail(ATTUNE_BUSY, "no problem has all its kernels compiled yet; call again");
  *out = next;
  return ATTUNE_OK;
}
