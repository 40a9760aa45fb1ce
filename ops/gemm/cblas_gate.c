/* SPDX-License-Identifier: Apache-2.0
 * cblas_gate.c: see cblas_gate.h. The state is one word, so that joining and leaving are one atomic step each while
 * nobody waits: bits 0..15 calls inside, 16..31 their thread count, then the flags below. */
#include "ops/gemm/cblas_gate.h"

#include <stdbool.h>

#define INSIDE(state) ((state)&0xffffu)
#define THREADS(state) ((int)(((state) >> 16) & 0xffffu))
#define ALTERED ((uint64_t)1 << 32) /* the setting differs from `previous` and must be put back */
#define CLOSED ((uint64_t)1 << 33)  /* one thread changes the setting */
#define WAITING ((uint64_t)1 << 34) /* waiters > 0: nobody joins past them, and changes are signalled */

void at_cblas_gate_init(at_cblas_gate *gate, int (*get_threads)(void), void (*set_threads)(int)) {
  gate->get_threads = get_threads;
  gate->set_threads = set_threads;
  atomic_init(&gate->state, 0);
  gate->previous = 0;
  gate->waiters = 0;
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_cond_init(&gate->changed, NULL);
}

/* Opens a closed gate with `state`; only the thread that closed it calls this. Returns true when somebody waits for
 * the news. */
static bool open_gate(at_cblas_gate *gate, uint64_t state) {
  uint64_t old = atomic_load_explicit(&gate->state, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&gate->state, &old, state | (old & WAITING), memory_order_acq_rel,
                                                memory_order_relaxed)) {}
  return (old & WAITING) != 0;
}

static void signal_waiters(at_cblas_gate *gate) {
  pthread_mutex_lock(&gate->mutex);
  pthread_cond_broadcast(&gate->changed);
  pthread_mutex_unlock(&gate->mutex);
}

/* BLIS says -1 for a count that nobody set, and means 1; it must not be set to -1: its next call would abort. */
static int effective(int threads) {
  return threads > 1 ? threads : 1;
}

typedef enum entry { ENTERED, ENTERED_SIGNAL, REFUSED } entry;

/* One attempt; `barred` are the flags that keep this thread out. ENTERED_SIGNAL: entered, and waiters must be told. */
static entry try_enter(at_cblas_gate *gate, int threads, uint64_t barred) {
  uint64_t state = atomic_load_explicit(&gate->state, memory_order_relaxed);
  for (;;) {
    if ((state & barred) != 0 || INSIDE(state) == 0xffffu) return REFUSED;
    if (INSIDE(state) != 0) {
      if (THREADS(state) != threads) return REFUSED;
      if (atomic_compare_exchange_weak_explicit(&gate->state, &state, state + 1, memory_order_acquire,
                                                memory_order_relaxed))
        return ENTERED;
    } else if (effective(gate->get_threads()) ==
               threads) { /* while nobody is inside, only the program changes the setting */
      uint64_t next = 1u | (uint64_t)threads << 16 | (state & (WAITING | CLOSED));
      if (atomic_compare_exchange_weak_explicit(&gate->state, &state, next, memory_order_acquire, memory_order_relaxed))
        return (next & WAITING) != 0 ? ENTERED_SIGNAL : ENTERED;
    } else if (atomic_compare_exchange_weak_explicit(&gate->state, &state, state | CLOSED, memory_order_acquire,
                                                     memory_order_relaxed)) {
      gate->previous = effective(gate->get_threads());
      gate->set_threads(threads);
      return open_gate(gate, 1u | (uint64_t)threads << 16 | ALTERED) ? ENTERED_SIGNAL : ENTERED;
    }
  }
}

void at_cblas_gate_enter(at_cblas_gate *gate, int threads) {
  if (gate->set_threads == NULL) return;
  entry result = try_enter(gate, threads, CLOSED | WAITING);
  if (result == ENTERED_SIGNAL) signal_waiters(gate);
  if (result != REFUSED) return;
  pthread_mutex_lock(&gate->mutex);
  gate->waiters++;
  atomic_fetch_or(&gate->state, WAITING);
  while ((result = try_enter(gate, threads, CLOSED)) == REFUSED) pthread_cond_wait(&gate->changed, &gate->mutex);
  if (--gate->waiters == 0) atomic_fetch_and(&gate->state, ~WAITING);
  pthread_cond_broadcast(&gate->changed); /* others may join */
  pthread_mutex_unlock(&gate->mutex);
}

void at_cblas_gate_leave(at_cblas_gate *gate) {
  if (gate->set_threads == NULL) return;
  uint64_t state = atomic_load_explicit(&gate->state, memory_order_relaxed);
  for (;;) {
    bool restore = INSIDE(state) == 1 && (state & ALTERED) != 0;
    uint64_t next = restore ? state | CLOSED : state - 1;
    if (!atomic_compare_exchange_weak_explicit(&gate->state, &state, next, memory_order_acq_rel, memory_order_relaxed))
      continue;
    bool signal = (state & WAITING) != 0;
    if (restore) {
      gate->set_threads(gate->previous);
      signal = open_gate(gate, 0);
    }
    if (signal) signal_waiters(gate);
    return;
  }
}

void at_cblas_gate_after_fork(at_cblas_gate *gate) {
  if (gate->set_threads == NULL) return;
  uint64_t state = atomic_load(&gate->state);
  int previous = gate->previous;
  at_cblas_gate_init(gate, gate->get_threads, gate->set_threads);
  if ((state & ALTERED) != 0) gate->set_threads(previous);
}
