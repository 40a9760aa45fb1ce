/* SPDX-License-Identifier: Apache-2.0
 * guard.c: one call in many is timed. When the median of a window is above the default's time, the next calls run the
 * default and are timed too, for the machine may be slower as a whole; only when the team loses such a comparison twice
 * in a row it is set aside. Calls between samples cost one addition more. */
#include "tuning/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "src/host/threads.h"
#include "tuning/statistics.h"

enum {
  WINDOW = 15,
  WARM = 2, /* calls of the default before its window: its threads may be asleep */
  EVERY_FIRST = 16,
  EVERY_MOST = 1024, /* one call in so many is timed: the first number at the start, more each time that all is well */
  STRIKES = 2
};
static const double SLOWER = 1.03;         /* than the default, beyond the noise of two medians */
static const int64_t SETTLE_NS = 40000000; /* a library's threads spin on for so long after a call of the default */

typedef struct at_guard {
  at_launch_fn launch; /* the winner's */
  at_plan *fallback;   /* the default */
  int threads;         /* of the winner */
  _Atomic bool aside;
  _Atomic bool comparing; /* calls run the default */
  _Atomic uint32_t calls, every;
  pthread_mutex_t lock; /* guards the rest; calls only try it */
  double reference_ns, winner_ns, default_ns;
  double samples[WINDOW];
  int count, strikes;
  int64_t settled_ns;
  char problem[AT_SHOWN_CHARS]; /* constant: for the log */
} at_guard;

static void next_window(at_guard *g, bool comparing, uint32_t every) {
  g->count = comparing ? -WARM : 0;
  atomic_store_explicit(&g->every, every, memory_order_relaxed);
  atomic_store_explicit(&g->comparing, comparing, memory_order_relaxed);
}

static uint32_t rarer(const at_guard *g) {
  const uint32_t every = atomic_load_explicit(&g->every, memory_order_relaxed);
  return every < EVERY_MOST ? 2 * every : EVERY_MOST;
}

/* A window of the winner is full: all is well, or the default must show what it takes now. */
static void judge_winner(at_guard *g) {
  g->winner_ns = at_median(g->samples, WINDOW);
  const bool slow = g->winner_ns > g->reference_ns;
  if (!slow) g->strikes = 0;
  next_window(g, slow, slow ? EVERY_FIRST : rarer(g));
}

/* A window of the default is full. True: the team is set aside. */
static bool judge_both(at_guard *g) {
  g->default_ns = at_median(g->samples, WINDOW);
  const bool slower = g->winner_ns > SLOWER * g->default_ns;
  g->strikes = slower ? g->strikes + 1 : 0;
  if (!slower) g->reference_ns = g->default_ns; /* the machine is slower than it was, and both are */
  g->settled_ns = at_now_ns() + SETTLE_NS;
  next_window(g, false, slower ? EVERY_FIRST : rarer(g));
  if (g->strikes < STRIKES) return false;
  atomic_store_explicit(&g->aside, true, memory_order_release);
  return true;
}

/* A timed call. Threads that come at once lose their sample: nobody waits here. */
static void note(at_guard *g, const at_plan *plan, bool of_default, int64_t start_ns, int64_t end_ns) {
  bool set_aside = false;
  if (pthread_mutex_trylock(&g->lock) != 0) return;
  const bool fits = of_default == atomic_load_explicit(&g->comparing, memory_order_relaxed) && !g->aside &&
                    (of_default || start_ns > g->settled_ns);
  if (fits) {
    if (g->count >= 0) g->samples[g->count] = (double)(end_ns - start_ns);
    if (++g->count == WINDOW) {
      if (of_default)
        set_aside = judge_both(g);
      else
        judge_winner(g);
    }
  }
  const double winner_ns = g->winner_ns, default_ns = g->default_ns;
  pthread_mutex_unlock(&g->lock);
  if (set_aside)
    at_log(ATTUNE_LOG_WARNING, "%s: %s %s takes %.1f us here and the default %.1f us: set aside by this tuner",
           g->problem, plan->implementation->name, plan->configuration.text, winner_ns * 1e-3, default_ns * 1e-3);
}

static bool replaced(const at_guard *g) {
  return atomic_load_explicit(&((at_guard *)(uintptr_t)g)->aside, memory_order_relaxed) || at_cpu_count() < g->threads;
}

static attune_status call(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_guard *g = plan->guard;
  if (AT_UNLIKELY(replaced(g))) return g->fallback->launch(g->fallback, operands, stream);
  const bool comparing = atomic_load_explicit(&g->comparing, memory_order_relaxed);
  const uint32_t number = atomic_fetch_add_explicit(&g->calls, 1, memory_order_relaxed),
                 every = atomic_load_explicit(&g->every, memory_order_relaxed);
  if (AT_LIKELY(!comparing && number % every != 0)) return g->launch(plan, operands, stream);
  const at_plan *runs = comparing ? g->fallback : plan;
  const int64_t start_ns = at_now_ns();
  const attune_status status = (comparing ? runs->launch : g->launch)(runs, operands, stream);
  if (status == ATTUNE_OK) note(g, plan, comparing, start_ns, at_now_ns());
  return status;
}

typedef struct work {
  const at_plan *plan;
  uint64_t operands[AT_OPERANDS_BYTES / 8];
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  (void)call(w->plan, w->operands, attune_stream_default(w->plan->device));
}

/* On a stream with a thread of its own the call is timed there. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  if (!stream->state) return call(plan, operands, stream);
  work w = {.plan = plan};
  memcpy(w.operands, operands, plan->op->operands_bytes);
  return at_host_submit(stream, run, &w, offsetof(work, operands) + plan->op->operands_bytes);
}

/* The default as it is called through attune; NULL: it is the plan itself, or cannot be had. */
static at_plan *default_of(const at_plan *plan) {
  const at_implementation *base = at_registry_default(plan->op, plan->problem, plan->device);
  at_configuration configuration = {""};
  at_plan *out = NULL;
  if (!base || base->configurations(plan->problem, plan->device, &configuration, 1) < 1) return NULL;
  if (base == plan->implementation && strcmp(configuration.text, plan->configuration.text) == 0) return NULL;
  return at_plan_create(&out, plan->op, base, &configuration, plan->problem, plan->device) == ATTUNE_OK ? out : NULL;
}

/* With the plan that owns it. */
static void release(at_plan *plan) {
  at_guard *g = plan->guard;
  if (plan->borrowed) return;
  at_plan_destroy(g->fallback);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

void at_guard_attach(at_plan *plan, const attune_decision *decision) {
  int64_t threads = 1;
  if (plan->device->properties.kind != ATTUNE_DEVICE_HOST || plan->op->deterministic(plan->problem) ||
      !at_configuration_get(&plan->configuration, "threads", &threads) || threads < 2)
    return;
  at_guard *g = calloc(1, sizeof *g);
  at_plan *fallback = g ? default_of(plan) : NULL;
  if (!fallback) {
    free(g);
    return;
  }
  g->launch = plan->launch;
  g->fallback = fallback;
  g->threads = (int)threads;
  g->reference_ns = decision->default_time_ns;
  atomic_init(&g->every, EVERY_FIRST);
  (void)at_shown(g->problem, decision->problem);
  pthread_mutex_init(&g->lock, NULL);
  plan->guard = g;
  plan->launch = launch;
  plan->release = release;
}

void at_guard_renew(const at_plan *plan, const attune_decision *decision) {
  at_guard *g = plan->guard;
  if (!g) return;
  pthread_mutex_lock(&g->lock);
  g->reference_ns = decision->default_time_ns;
  g->strikes = 0;
  next_window(g, false, EVERY_FIRST);
  atomic_store_explicit(&g->aside, false, memory_order_release);
  pthread_mutex_unlock(&g->lock);
}

void at_guard_tell(const at_plan *plan, attune_decision *d) {
  at_guard *g = plan->guard;
  if (!g || !replaced(g)) return;
  const bool aside = atomic_load_explicit(&g->aside, memory_order_acquire);
  pthread_mutex_lock(&g->lock);
  const double winner_ns = g->winner_ns, default_ns = g->default_ns;
  pthread_mutex_unlock(&g->lock);
  at_copy_text(d->runner_up, sizeof d->runner_up, d->implementation);
  at_copy_text(d->runner_up_configuration, sizeof d->runner_up_configuration, d->configuration);
  d->runner_up_time_ns = aside ? winner_ns : d->time_ns;
  at_copy_text(d->implementation, sizeof d->implementation, g->fallback->implementation->name);
  d->implementation_version = g->fallback->implementation->version;
  at_copy_text(d->configuration, sizeof d->configuration, g->fallback->configuration.text);
  if (aside) d->default_time_ns = default_ns;
  d->time_ns = d->default_time_ns;
  d->source = ATTUNE_SOURCE_DEFAULT;
  if (aside)
    snprintf(d->note, sizeof d->note, "the winner is set aside by this tuner: it took %.1f us, the default %.1f us",
             winner_ns * 1e-3, default_ns * 1e-3);
  else
    snprintf(d->note, sizeof d->note, "the winner needs %d threads; %d may be used now", g->threads, at_cpu_count());
}
