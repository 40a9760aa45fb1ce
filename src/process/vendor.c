/* SPDX-License-Identifier: Apache-2.0
 * vendor.c: see vendor.h. A thread notes in its slot (in_flight.h) that it is inside; one without a slot is counted. */
#include "src/process/vendor.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "src/base/support.h"
#include "src/process/exit.h"
#include "src/process/exit_order.h"
#include "src/process/fork.h"
#include "src/process/in_flight.h"
#include "src/process/loading.h"

enum { OUTSIDE, INSIDE, WAITS };

#define WAIT_MOST_NS 1000000000    /* for threads that wait for a device */
#define INSIDE_MOST_NS 60000000000 /* for those inside: a compiler takes seconds */
enum { RENEWALS_MOST = 512 };

static _Thread_local at_visitor visitor;
static _Thread_local bool ends_process; /* this thread runs exit() */
static _Thread_local uint32_t entries;  /* of this thread, from outside */
static atomic_bool closed;
static atomic_bool given_up;          /* exit() went on although threads were inside: they begin no further call */
static atomic_int without_slot;       /* threads inside that have no slot */
static atomic_int waits_without_slot; /* of them, those that wait for a device */
static atomic_int renewals;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool by_slot(const at_visitor *mine) {
  return mine->slot && atomic_load_explicit(&mine->slot->vendor, memory_order_relaxed) != OUTSIDE;
}

static int others_without_slot(void) {
  return atomic_load(&without_slot) - atomic_load(&waits_without_slot) - (visitor.calls > 0 && !by_slot(&visitor));
}

static bool wait_for_others(int64_t waited_ns) {
  /* In this order: a thread that gets a slot is counted until it is inside by the slot. */
  if (others_without_slot() > 0 || at_in_flight_count(&visitor, INSIDE) > 0) return waited_ns < INSIDE_MOST_NS;
  return at_in_flight_count(&visitor, WAITS) + atomic_load(&waits_without_slot) > 0 && waited_ns < WAIT_MOST_NS;
}

static void close_gate(void) {
  const int64_t start = at_now_ns();
  at_patience patience = {0};
  ends_process = true;
  atomic_store(&closed, true);
  at_in_flight_barrier(&visitor);
  while (wait_for_others(at_now_ns() - start) && at_patience_nap(&patience)) continue;
  atomic_store(&given_up, true);
  at_in_flight_barrier(&visitor); /* one whose wait ended just before may have begun a call */
  while (wait_for_others(at_now_ns() - start) && at_patience_nap(&patience)) continue;
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  if (!child) return;
  at_in_flight_after_fork();
  atomic_store(&waits_without_slot, 0);
  atomic_store(&without_slot, visitor.calls > 0 && !by_slot(&visitor));
}

static void begin(void) {
  static at_fork_watch watch = {.after = after_fork};
  at_fork_watch_add(&watch);
  at_exit_call(close_gate);
}

void at_vendor_opened(void) {
  pthread_once(&once, begin);
  at_exit_order_keep();
  at_exit_renew();
  if (!at_exit_took_over()) return;
  atomic_store(&closed, true); /* the library may have lost what it needs: no call begins, nor one within a call */
  atomic_store(&given_up, true);
}

/* A library may load others in the middle of a call. attune looks for them after each thread's first call, 2nd, 4th,
 * 8th and so on, and registers its function again: theirs came after it until now. */
static void __attribute__((noinline)) renew(void) {
  if (atomic_load_explicit(&renewals, memory_order_relaxed) >= RENEWALS_MOST || at_exit_begun()) return;
  pthread_once(&once, begin);
  if (!at_loading_try()) { /* a library that is being opened is not looked at */
    entries--;             /* at its next call */
    return;
  }
  at_exit_order_keep();
  at_exit_renew_inside();
  at_loading_release();
  atomic_fetch_add(&renewals, 1);
}

/* Counted first, so that it is seen at any time. */
static void __attribute__((noinline)) enter_without_slot(at_visitor *mine) {
  atomic_fetch_add(&without_slot, 1);
  if (!mine->asked) at_in_flight_ask(mine, INT_MAX);
  if (!mine->slot) return;
  atomic_store(&mine->slot->vendor, INSIDE);
  atomic_fetch_sub(&without_slot, 1);
}

bool at_vendor_enter(at_vendor what) {
  at_visitor *mine = &visitor;
  if (mine->calls++ == 0) {
    if (AT_LIKELY(mine->slot != NULL)) {
      atomic_store_explicit(&mine->slot->vendor, INSIDE, memory_order_relaxed);
      atomic_signal_fence(memory_order_seq_cst); /* as at_in_flight_enter's */
    } else {
      enter_without_slot(mine);
    }
  } else if (!ends_process && AT_LIKELY(!atomic_load_explicit(&given_up, memory_order_acquire))) {
    return true; /* exit() waits for this thread until it leaves for good */
  }
  if (AT_LIKELY(!atomic_load_explicit(&closed, memory_order_acquire))) return true;
  if (ends_process && what == AT_VENDOR_DRIVER) return true;
  at_vendor_leave();
  return false;
}

void at_vendor_leave(void) {
  at_visitor *mine = &visitor;
  if (--mine->calls != 0) return;
  if (AT_LIKELY(by_slot(mine)))
    atomic_store_explicit(&mine->slot->vendor, OUTSIDE, memory_order_release);
  else
    atomic_fetch_sub(&without_slot, 1);
  entries++;
  if (AT_UNLIKELY((entries & (entries - 1)) == 0)) renew();
}

attune_status at_vendor_refuse(void) {
  return at_fail(ATTUNE_DEVICE_ERROR, "the process is exiting: device libraries are no longer called");
}

bool at_vendor_gone(void) {
  return AT_UNLIKELY(atomic_load_explicit(&closed, memory_order_relaxed)) && ends_process;
}

void at_vendor_wait_begin(void) {
  if (by_slot(&visitor))
    atomic_store(&visitor.slot->vendor, WAITS);
  else
    atomic_fetch_add(&waits_without_slot, 1);
}

void at_vendor_wait_end(void) {
  if (by_slot(&visitor))
    atomic_store(&visitor.slot->vendor, INSIDE);
  else
    atomic_fetch_sub(&waits_without_slot, 1);
}
