/* SPDX-License-Identifier: Apache-2.0
 * guard.c: every call of a team is timed, and the time is summed: a stall of milliseconds in one call of a hundred may
 * cost more than the team gains in the others, so it is the mean that counts. When the mean of a window is above the
 * default's time, the next calls run the default and are timed too, for the machine may be slower as a whole; only when
 * the team loses such a comparison twice in a row it is set aside, for a time. After that it has another chance. A call
 * costs two looks at the processor's counter and one addition more. */
#include "tuning/plans/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cpu_count.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#include "tuning/store/decision.h"

enum { TEAM, COMPARING, ASIDE }; /* what runs: the winner; the default, to see what it takes; the default */

enum { CALLS_LEAST = 8, STRIKES = 2 };
/* Spent in calls. Where a team is more than the process's quota lasts for, all threads stop some time in each period of
 * the quota, a tenth of a second: a window has several of these, else it is chance who is seen to stop. */
static const double WINDOW_NS = 25e6, QUOTA_WINDOW_NS = 800e6;
static const double SLOWER = 1.05;    /* than the default, beyond the noise of two means */
static const double WARM_NS = 1e6;    /* of the default, before its window: its threads may be asleep */
static const double SETTLE_NS = 40e6; /* a library's threads spin on for so long after a call of the default */
static const double WAIT_NS = 1e9,    /* until the team has another chance, or the default shows again what it takes: */
    WAIT_MOST_NS = 64e9;              /* the first number at the start, twice as long each time */

/* Calls and ticks in one word, so that both are added at once. */
#define TICK_BITS 40
#define TICK_MASK ((UINT64_C(1) << TICK_BITS) - 1)

/* By then the length of a tick is known. */
#define FIRST_LOOK_TICKS (UINT64_C(1) << 20)

typedef struct at_guard {
  at_launch_fn launch; /* the winner's */
  at_plan *fallback;   /* the default */
  int threads;         /* of the winner */
  double window_ns;
  _Atomic int runs;
  _Atomic int64_t
      from; /* in ticks: calls that begin before do not count; while the team is aside: when it comes back */
  _Atomic uint64_t spent[2];    /* by the team and by the default in this window */
  _Atomic uint64_t enough;      /* ticks of a window */
  pthread_mutex_t lock;         /* guards the rest; calls only try it */
  int64_t first_tick, first_ns; /* both clocks when the guard began */
  double tick_ns;
  double stored_ns, reference_ns; /* the default's time when it was tuned, and as far as is known now */
  double winner_ns, default_ns;   /* the means of the latest windows */
  double wait_ns;                 /* the next wait */
  int64_t doubt_ns;               /* until then `reference_ns` holds, and after it the stored time again */
  int strikes;
  bool told;
} at_guard;

static void next_window(at_guard *g, int runs, int64_t now, double pause_ns) {
  atomic_store_explicit(&g->spent[0], 0, memory_order_relaxed);
  atomic_store_explicit(&g->spent[1], 0, memory_order_relaxed);
  atomic_store_explicit(&g->from, now + (int64_t)(pause_ns / g->tick_ns), memory_order_relaxed);
  atomic_store_explicit(&g->runs, runs, memory_order_release);
}

static double longer_wait(at_guard *g) {
  const double wait_ns = g->wait_ns;
  g->wait_ns = 2.0 * wait_ns < WAIT_MOST_NS ? 2.0 * wait_ns : WAIT_MOST_NS;
  return wait_ns;
}

/* A window of the winner is full: all is well, or the default must show what it takes now. */
static void judge_winner(at_guard *g, int64_t now, int64_t now_ns) {
  if (now_ns > g->doubt_ns) g->reference_ns = g->stored_ns;
  if (g->winner_ns > g->reference_ns) {
    next_window(g, COMPARING, now, WARM_NS);
    return;
  }
  g->strikes = 0;
  if ((double)(now_ns - g->doubt_ns) > g->wait_ns) g->wait_ns = WAIT_NS; /* well for long enough to forget the past */
  next_window(g, TEAM, now, 0.0);
}

/* A window of the default is full. The time for which the team is set aside; 0: it stays. */
static double judge_both(at_guard *g, int64_t now, int64_t now_ns) {
  const bool slower = g->winner_ns > SLOWER * g->default_ns;
  g->strikes = slower ? g->strikes + 1 : 0;
  double aside_ns = 0.0;
  if (!slower) { /* the machine is slower than it was, and both are */
    g->reference_ns = g->default_ns;
    g->doubt_ns = now_ns + (int64_t)longer_wait(g);
  }
  if (g->strikes >= STRIKES) {
    g->strikes = STRIKES - 1; /* its next chance is one comparison */
    aside_ns = longer_wait(g);
    g->doubt_ns = now_ns + (int64_t)aside_ns;
    g->reference_ns = g->stored_ns;
  }
  next_window(g, aside_ns > 0.0 ? ASIDE : TEAM, now, aside_ns > 0.0 ? aside_ns : SETTLE_NS);
  return aside_ns;
}

/* The two clocks side by side say what a tick is: the longer they run, the better. */
static void learn_tick(at_guard *g, int64_t now, int64_t now_ns) {
  if (now > g->first_tick && now_ns > g->first_ns)
    g->tick_ns = (double)(now_ns - g->first_ns) / (double)(now - g->first_tick);
  atomic_store_explicit(&g->enough, (uint64_t)(g->window_ns / g->tick_ns), memory_order_relaxed);
}

static void log_aside(const at_plan *plan, bool told, double winner_ns, double default_ns, double aside_ns) {
  char *text = malloc(AT_PROBLEM_CHARS);
  if (text && plan->op->problem->format(plan->problem, text, AT_PROBLEM_CHARS) == ATTUNE_OK)
    at_log(told ? ATTUNE_LOG_INFO : ATTUNE_LOG_WARNING,
           "%s: %s %s takes %.1f us on average here, but the default %.1f us: set aside by this tuner for %.0f s", text,
           plan->implementation->name, plan->configuration.text, winner_ns * 1e-3, default_ns * 1e-3, aside_ns * 1e-9);
  free(text);
}

/* The window may be full. Threads that come at once leave it to one: none waits here. */
static void judge(at_guard *g, const at_plan *plan, int ran) {
  if (pthread_mutex_trylock(&g->lock) != 0) return;
  const int64_t now = at_ticks(), now_ns = at_now_ns();
  learn_tick(g, now, now_ns);
  const uint64_t spent = atomic_load_explicit(&g->spent[ran], memory_order_relaxed), calls = spent >> TICK_BITS,
                 ticks = spent & TICK_MASK;
  double aside_ns = 0.0;
  if (ran == atomic_load_explicit(&g->runs, memory_order_relaxed) && calls >= CALLS_LEAST &&
      ticks >= atomic_load_explicit(&g->enough, memory_order_relaxed)) {
    const double mean_ns = (double)ticks * g->tick_ns / (double)calls;
    if (ran == TEAM) {
      g->winner_ns = mean_ns;
      judge_winner(g, now, now_ns);
    } else {
      g->default_ns = mean_ns;
      aside_ns = judge_both(g, now, now_ns);
    }
  }
  const double winner_ns = g->winner_ns, default_ns = g->default_ns;
  const bool told = g->told;
  if (aside_ns > 0.0) g->told = true;
  pthread_mutex_unlock(&g->lock);
  if (aside_ns > 0.0) log_aside(plan, told, winner_ns, default_ns, aside_ns);
}

/* The team was set aside. False: not any longer. */
static bool still_aside(at_guard *g) {
  const int64_t now = at_ticks();
  if (now < atomic_load_explicit(&g->from, memory_order_relaxed) || pthread_mutex_trylock(&g->lock) != 0) return true;
  if (atomic_load_explicit(&g->runs, memory_order_relaxed) == ASIDE) next_window(g, TEAM, now, SETTLE_NS);
  pthread_mutex_unlock(&g->lock);
  return false;
}

static attune_status call(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_guard *g = plan->guard;
  int runs = atomic_load_explicit(&g->runs, memory_order_relaxed);
  if (AT_UNLIKELY(at_cpu_count() < g->threads || (runs == ASIDE && still_aside(g))))
    return g->fallback->launch(g->fallback, operands, stream);
  if (AT_UNLIKELY(runs == ASIDE)) runs = TEAM;
  const int64_t start = at_ticks();
  const attune_status status =
      AT_LIKELY(runs == TEAM) ? g->launch(plan, operands, stream) : g->fallback->launch(g->fallback, operands, stream);
  const int64_t ticks = at_ticks() - start;
  if (status != ATTUNE_OK || start < atomic_load_explicit(&g->from, memory_order_relaxed) || ticks < 0) return status;
  const uint64_t most = TICK_MASK / 4,
                 one = (UINT64_C(1) << TICK_BITS) | ((uint64_t)ticks < most ? (uint64_t)ticks : most);
  const uint64_t spent = one + atomic_fetch_add_explicit(&g->spent[runs], one, memory_order_relaxed);
  if (AT_UNLIKELY((spent & TICK_MASK) >= atomic_load_explicit(&g->enough, memory_order_relaxed))) judge(g, plan, runs);
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
  if (!base || base->configurations(base, plan->problem, plan->device, &configuration, 1) < 1) return NULL;
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
  if (plan->device->properties.kind != ATTUNE_DEVICE_HOST || plan->op->problem->deterministic(plan->problem) ||
      !at_configuration_get(&plan->configuration, "threads", &threads) ||
      (threads < 2 && decision->default_time_ns > 0.0))
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
  g->window_ns = (double)threads > at_cpu_share() ? QUOTA_WINDOW_NS : WINDOW_NS;
  g->stored_ns = g->reference_ns = decision->default_time_ns;
  g->wait_ns = WAIT_NS;
  g->tick_ns = 1.0;
  g->first_tick = at_ticks();
  g->first_ns = at_now_ns();
  atomic_init(&g->enough, FIRST_LOOK_TICKS);
  pthread_mutex_init(&g->lock, NULL);
  plan->guard = g;
  plan->launch = launch;
  plan->release = release;
}

void at_guard_renew(const at_plan *plan, const attune_decision *decision) {
  at_guard *g = plan->guard;
  if (!g) return;
  pthread_mutex_lock(&g->lock);
  g->stored_ns = g->reference_ns = decision->default_time_ns;
  g->wait_ns = WAIT_NS;
  g->strikes = 0;
  g->told = false;
  next_window(g, TEAM, at_ticks(), 0.0);
  pthread_mutex_unlock(&g->lock);
}

void at_guard_tell(const at_plan *plan, attune_decision *d) {
  at_guard *g = plan->guard;
  if (!g) return;
  const bool aside = atomic_load_explicit(&g->runs, memory_order_acquire) == ASIDE;
  if (!aside && at_cpu_count() >= g->threads) return;
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
    snprintf(d->note, sizeof d->note,
             "the winner is set aside by this tuner for a time: it took %.1f us on average, the default %.1f us",
             winner_ns * 1e-3, default_ns * 1e-3);
  else
    snprintf(d->note, sizeof d->note, "the winner needs %d threads, but only %d may be used now", g->threads,
             at_cpu_count());
}
