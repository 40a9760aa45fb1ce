/* SPDX-License-Identifier: Apache-2.0
 * cblas_thread_setting.c: see cblas_thread_setting.h. There are two ways in. Calls that want the setting as it is go
 * the short one: their thread notes that it is inside (src/process/in_flight.h), which costs a store. All others, and
 * all while there are any, change the state, which is one word: bits 0..15 calls inside by this way, 16..31 their
 * thread count, then the flags below. Who bars the gate to those of the short way waits for them to leave. */
#include "ops/gemm/host/cblas/cblas_thread_setting.h"

#include <limits.h>

#include "src/base/support.h"
#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/floating.h"
#include "src/process/in_flight.h"

#define INSIDE(state) ((state)&0xffffu)
#define THREADS(state) ((int)(((state) >> 16) & 0xffffu))
#define ALTERED ((uint64_t)1 << 32) /* the setting differs from `previous` and must be put back */
#define CLOSED ((uint64_t)1 << 33)  /* one thread changes the setting */
#define WAITING ((uint64_t)1 << 34) /* waiters > 0: no thread joins past them, and changes are signalled */
#define MIXED ((uint64_t)1 << 35) /* threads want several counts: none takes the short way, which makes changes slow */
#define ENDED ((uint64_t)1 << 36) /* by the process's end: no thread enters any more */
#define LIMITED ((uint64_t)1 << 37) /* to `most` calls: none takes the short way, which does not count them */
#define HOLD ((uint64_t)1 << 40)    /* one hold, for a fork: no thread enters while there is any */
#define HELD ((uint64_t)0xffff << 40)
#define LASTING (WAITING | MIXED | HELD | ENDED | LIMITED) /* what opening a closed gate leaves alone */
#define FREE(state) (((state) & ~((uint64_t)0xffff << 16)) == 0)

enum { CALM = 1000 }; /* calls by the long way without a change, after which the short one is open again */

static _Thread_local at_visitor visitor;
static atomic_int slots_most = INT_MAX; /* the lowest `most` of the gates: threads whose slot lies behind it use none */

static int one_thread(void) {
  return 1;
}

void at_cblas_thread_setting_init(at_cblas_thread_setting *gate, int (*get_threads)(void), void (*set_threads)(int)) {
  gate->get_threads = set_threads ? get_threads : one_thread;
  gate->set_threads = set_threads;
  atomic_init(&gate->setting, NULL);
  atomic_init(&gate->state, 0);
  atomic_init(&gate->calm, 0);
  gate->previous = 0;
  gate->most = 0;
  gate->waiters = 0;
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_cond_init(&gate->changed, NULL);
}

void at_cblas_thread_setting_limit(at_cblas_thread_setting *gate, int most) {
  gate->most = most;
  atomic_store(&gate->state, LIMITED);
}

void at_cblas_thread_setting_bound(at_cblas_thread_setting *gate, int most) {
  gate->most = most;
  if (most < atomic_load(&slots_most)) atomic_store(&slots_most, most);
}

/* Opens a closed gate with `state`; only the thread that closed it calls this. Returns true when a thread waits for
 * the news. */
static bool open_gate(at_cblas_thread_setting *gate, uint64_t state) {
  uint64_t old = atomic_load_explicit(&gate->state, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&gate->state, &old, state | (old & LASTING), memory_order_acq_rel,
                                                memory_order_relaxed)) {}
  return (old & WAITING) != 0;
}

static void signal_waiters(at_cblas_thread_setting *gate) {
  pthread_mutex_lock(&gate->mutex);
  pthread_cond_broadcast(&gate->changed);
  pthread_mutex_unlock(&gate->mutex);
}

/* BLIS returns -1 for a count that was never set, and means 1; it must not be set to -1: its next call would abort. */
static int effective(int threads) {
  return threads > 1 ? threads : 1;
}

static int threads_now(const at_cblas_thread_setting *gate) {
  const volatile int *setting = atomic_load_explicit(&gate->setting, memory_order_relaxed);
  return effective(setting ? *setting : gate->get_threads());
}

static void check_setting(at_cblas_thread_setting *gate) {
  const volatile int *setting = atomic_load_explicit(&gate->setting, memory_order_relaxed);
  if (setting && effective(*setting) != effective(gate->get_threads()))
    atomic_store_explicit(&gate->setting, NULL, memory_order_relaxed);
}

void at_cblas_thread_setting_show(at_cblas_thread_setting *gate, const volatile int *setting) {
  if (!gate->set_threads) return;
  atomic_store_explicit(&gate->setting, setting, memory_order_relaxed);
  check_setting(gate);
}

/* The library may start threads for it. */
static void set(const at_cblas_thread_setting *gate, int threads) {
  const at_floating floating = at_floating_enter();
  gate->set_threads(threads);
  at_floating_leave(&floating);
}

typedef enum entry { ENTERED, ENTERED_SIGNAL, REFUSED, OVER } entry;

/* The gate was closed to change the setting: when no thread is inside by the short way, it is changed. Threads whose
 * calls want different counts now will do so again. */
static entry change(at_cblas_thread_setting *gate, int threads) {
  const bool mixed = at_in_flight_others_live(&visitor);
  at_patience patience = {0};
  at_in_flight_barrier(&visitor);
  while (at_in_flight_others(&visitor, gate)) (void)at_patience_nap(&patience);
  atomic_store_explicit(&gate->calm, 0, memory_order_relaxed);
  gate->previous = effective(gate->get_threads());
  set(gate, threads);
  check_setting(gate);
  return open_gate(gate, 1u | (uint64_t)threads << 16 | ALTERED | (mixed ? MIXED : 0)) ? ENTERED_SIGNAL : ENTERED;
}

/* A signal handler goes in beyond the limit: the call that it interrupts waits for it. */
static bool is_full(const at_cblas_thread_setting *gate, uint64_t state) {
  return INSIDE(state) == 0xffffu || (gate->most && INSIDE(state) >= (unsigned)gate->most && visitor.calls <= 1);
}

/* One attempt by the long way; `barred` are the flags that keep this thread out. ENTERED_SIGNAL: entered, and waiters
 * must be told. OVER: the process ends. */
static entry try_enter(at_cblas_thread_setting *gate, int threads, uint64_t barred) {
  uint64_t state = atomic_load_explicit(&gate->state, memory_order_relaxed);
  for (;;) {
    if (state & ENDED) return OVER;
    if ((state & barred) != 0 || is_full(gate, state)) return REFUSED;
    if (INSIDE(state) != 0) {
      if (THREADS(state) != threads) return REFUSED;
      if (atomic_compare_exchange_weak_explicit(&gate->state, &state, state + 1, memory_order_acquire,
                                                memory_order_relaxed))
        return ENTERED;
    } else if (effective(gate->get_threads()) ==
               threads) { /* while no thread is inside, only the program changes the setting */
      const uint64_t calm =
          (state & MIXED) && atomic_fetch_add_explicit(&gate->calm, 1, memory_order_relaxed) < CALM ? MIXED : 0;
      uint64_t next = 1u | (uint64_t)threads << 16 | (state & ((LASTING & ~MIXED) | CLOSED)) | calm;
      if (atomic_compare_exchange_weak_explicit(&gate->state, &state, next, memory_order_acquire, memory_order_relaxed))
        return (next & WAITING) != 0 ? ENTERED_SIGNAL : ENTERED;
    } else if (atomic_compare_exchange_weak_explicit(&gate->state, &state, state | CLOSED, memory_order_seq_cst,
                                                     memory_order_relaxed)) {
      return change(gate, threads);
    }
  }
}

static entry wait_to_enter(at_cblas_thread_setting *gate, int threads) {
  entry result;
  pthread_mutex_lock(&gate->mutex);
  gate->waiters++;
  atomic_fetch_or(&gate->state, WAITING);
  while ((result = try_enter(gate, threads, CLOSED | HELD)) == REFUSED) at_wait(&gate->changed, &gate->mutex);
  if (--gate->waiters == 0) atomic_fetch_and(&gate->state, ~WAITING);
  pthread_cond_broadcast(&gate->changed); /* others may join */
  pthread_mutex_unlock(&gate->mutex);
  return result;
}

/* As long as each thread has one of `most` slots, no more than these are inside. The first thread without one makes all
 * take the long way, after those of the short way have left. */
static void ask_for_slot(at_cblas_thread_setting *gate) {
  if (!visitor.asked) at_in_flight_ask(&visitor, atomic_load(&slots_most));
  if (visitor.slot || !gate->most || visitor.calls > 1 || (atomic_load(&gate->state) & LIMITED)) return;
  at_cblas_thread_setting_hold(gate);
  atomic_fetch_or(&gate->state, LIMITED);
  at_cblas_thread_setting_release(gate);
}

static at_visitor *enter_long(at_cblas_thread_setting *gate, int threads) {
  ask_for_slot(gate);
  entry result = try_enter(gate, threads, CLOSED | HELD | WAITING);
  if (result == ENTERED_SIGNAL) signal_waiters(gate);
  if (result == REFUSED) result = wait_to_enter(gate, threads);
  if (result == OVER) visitor.calls--;
  return result != OVER ? &visitor : NULL;
}

at_visitor *at_cblas_thread_setting_enter(at_cblas_thread_setting *gate, int threads) {
  at_visitor *mine = &visitor;
  if (gate->set_threads == NULL) threads = 1;
  /* Counted before: a signal handler between the two waits for no call that it interrupts, and goes the long way. */
  if (AT_UNLIKELY(mine->calls++ != 0 || !mine->slot)) return enter_long(gate, threads);
  at_in_flight_enter(mine, gate);
  if (AT_LIKELY(FREE(atomic_load_explicit(&gate->state, memory_order_acquire)) && threads_now(gate) == threads))
    return mine;
  at_in_flight_leave(mine);
  return enter_long(gate, threads);
}

static void leave_long(at_cblas_thread_setting *gate) {
  uint64_t state = atomic_load_explicit(&gate->state, memory_order_relaxed);
  while (INSIDE(state) != 0) { /* none: it came in before a fork, and this is the child */
    bool restore = INSIDE(state) == 1 && (state & ALTERED) != 0;
    uint64_t next = restore ? state | CLOSED : state - 1;
    if (!atomic_compare_exchange_weak_explicit(&gate->state, &state, next, memory_order_acq_rel, memory_order_relaxed))
      continue;
    bool signal = (state & WAITING) != 0;
    if (restore) {
      set(gate, gate->previous);
      signal = open_gate(gate, 0);
    }
    if (signal) signal_waiters(gate);
    return;
  }
}

void at_cblas_thread_setting_leave_as(at_cblas_thread_setting *gate, at_visitor *mine) {
  if (AT_LIKELY(mine->calls == 1 && at_in_flight_is(mine, gate)))
    at_in_flight_leave(mine);
  else
    leave_long(gate);
  mine->calls--;
}

void at_cblas_thread_setting_leave(at_cblas_thread_setting *gate) {
  at_cblas_thread_setting_leave_as(gate, &visitor);
}

/* Of this thread, by the long way. */
static unsigned own_calls(void) {
  const bool by_short = visitor.slot && atomic_load_explicit(&visitor.slot->gate, memory_order_relaxed);
  return visitor.calls - (by_short && visitor.calls > 0);
}

/* After the gate was barred. */
static void wait_until_empty(at_cblas_thread_setting *gate) {
  at_patience patience = {0};
  at_in_flight_barrier(&visitor);
  for (;;) {
    const uint64_t state = atomic_load(&gate->state);
    if (INSIDE(state) <= own_calls() && (!(state & CLOSED) || visitor.calls) && !at_in_flight_others(&visitor, gate))
      return;
    if (!at_patience_nap(&patience)) return;
  }
}

void at_cblas_thread_setting_hold(at_cblas_thread_setting *gate) {
  atomic_fetch_add(&gate->state, HOLD);
  wait_until_empty(gate);
}

void at_cblas_thread_setting_release(at_cblas_thread_setting *gate) {
  if (atomic_fetch_sub(&gate->state, HOLD) & WAITING) signal_waiters(gate);
}

/* Waiting threads are not woken: they would only be in the way. What waits on a stream's thread waits until the end;
 * but a thread that holds the mutex may be the one that exits in a signal handler. */
void at_cblas_thread_setting_end(at_cblas_thread_setting *gate) {
  const uint64_t state = atomic_fetch_or(&gate->state, ENDED);
  wait_until_empty(gate);
  if ((state & WAITING) && pthread_mutex_trylock(&gate->mutex) == 0) {
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
  }
}

void at_cblas_thread_setting_after_fork(at_cblas_thread_setting *gate) {
  const uint64_t state = atomic_load(&gate->state);
  const int previous = gate->previous, most = gate->most;
  at_in_flight_after_fork();
  const volatile int *setting = atomic_load(&gate->setting);
  at_cblas_thread_setting_init(gate, gate->get_threads, gate->set_threads);
  gate->most = most;
  atomic_store(&gate->state, state & (ENDED | LIMITED));
  if ((state & ALTERED) != 0) set(gate, previous);
  if (setting) at_cblas_thread_setting_show(gate, setting);
}
