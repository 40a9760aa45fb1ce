/* SPDX-License-Identifier: Apache-2.0
 * exit.c: what is called when the process ends, and how long it may wait. */
#include "src/process/exit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/support.h"
#include "src/process/fork.h"
#include "src/process/loading.h"

#define MOST_CALLS 8
#define NAP_SHORT_NS 20000
#define NAP_LONG_NS 2000000
#define WINDOW_NS 200000000 /* how often CPU time is looked at */
#define IDLE_NS 10000000000

static _Atomic(void (*)(void)) calls[MOST_CALLS];
static atomic_bool in_use, begun;

/* Asked for again with each function, so that it comes before what the latest library asked for. */
static void run_calls(void) {
  if (!atomic_load(&in_use) || atomic_exchange(&begun, true)) return;
  if (at_loading_hold()) at_loading_release(); /* what is being opened is whole first; nothing else will be */
  for (int i = MOST_CALLS; i-- > 0;) {
    void (*fn)(void) = atomic_load(&calls[i]);
    if (fn) fn();
  }
}

__attribute__((constructor)) static void ask_early(void) {
  (void)atexit(run_calls);
}

void at_exit_renew_inside(void) {
  if (!at_exit_begun()) (void)atexit(run_calls);
}

/* Held: no fork can happen in here, whose child would inherit the lock of the C library. */
void at_exit_renew(void) {
  if (!at_loading_hold()) return;
  at_exit_renew_inside();
  at_loading_release();
}

bool at_exit_took_over(void) {
  for (int naps = 0; naps < 4 && !at_exit_begun(); naps++) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  return at_exit_begun();
}

void at_exit_watch(void) {
  at_loading_stay();
  atomic_store(&in_use, true);
  if (at_fork_generation_now() == 0) at_exit_renew();
}

void at_exit_call(void (*fn)(void)) {
  for (int i = 0; i < MOST_CALLS; i++) {
    void (*there)(void) = NULL;
    if (atomic_compare_exchange_strong(&calls[i], &there, fn) || there == fn) break;
  }
  at_exit_watch();
}

bool at_exit_begun(void) {
  return atomic_load_explicit(&begun, memory_order_acquire);
}

static int64_t cpu_ns(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (int64_t)used.tv_sec * 1000000000 + (int64_t)used.tv_nsec;
}

/* A process that was stopped in between has waited for one window, not for all that time. */
static bool look(at_patience *p, int64_t now) {
  const int64_t used = cpu_ns(), passed = now - p->window_ns;
  const bool idle = p->window_ns != 0 && used - p->cpu_ns < passed / 50;
  p->idle_ns = idle ? p->idle_ns + WINDOW_NS : 0;
  p->window_ns = now;
  p->cpu_ns = used;
  return p->idle_ns < IDLE_NS;
}

bool at_patience_nap(at_patience *p) {
  const int64_t now = at_now_ns();
  if (p->start_ns == 0) p->start_ns = now;
  if (now - p->window_ns >= WINDOW_NS && !look(p, now)) return false;
  int64_t nap_ns = (now - p->start_ns) / 16;
  if (nap_ns < NAP_SHORT_NS) nap_ns = NAP_SHORT_NS;
  if (nap_ns > NAP_LONG_NS) nap_ns = NAP_LONG_NS;
  nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
  return true;
}
