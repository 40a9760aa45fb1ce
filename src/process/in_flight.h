/* SPDX-License-Identifier: Apache-2.0
 * in_flight.h: which gate each thread of the process has gone into by the short way: with a plain store, and no atomic
 * step that costs more than the rest of a small product. There is a gate for libraries of vendors (vendor.h), and an
 * operation may have gates of its own; a thread may be in one of each kind.
 *
 * A caller stores the gate in its slot, then checks that it is open; a thread that closes the gate first closes it,
 * then looks into the slots. For one of the two to see the other, each needs a full barrier between its two steps:
 * the thread on its way in has none, but the one that bars has the kernel run one on every processor that is at work
 * for the process (membarrier). Where the kernel does not offer that there are no slots, and all go the long way. */
#ifndef AT_IN_FLIGHT_H
#define AT_IN_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct at_in_flight_slot {
  _Alignas(64) _Atomic(const void *) gate; /* NULL: inside of none */
  atomic_int vendor;                       /* 0: not in vendor.h's gate; what else there is, vendor.c says */
  atomic_bool taken;                       /* by a thread that lives */
} at_in_flight_slot;

/* A thread's own, one for each kind of gate; they share the thread's slot. */
typedef struct at_visitor {
  unsigned calls; /* into libraries under way: those that a signal handler of this thread must not wait for */
  bool asked;     /* for a slot */
  at_in_flight_slot *slot;
} at_visitor;

/* A slot for the calling thread, kept until it ends. None where too many live, `most` or more, or the kernel cannot
 * help. */
void at_in_flight_ask(at_visitor *mine, int most);

/* In `gate`, by this way, unless it turns out not to be free. */
static inline void at_in_flight_enter(at_visitor *mine, const void *gate) {
  atomic_store_explicit(&mine->slot->gate, gate, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst); /* the compiler's order; the processor's: see above */
}

static inline void at_in_flight_leave(at_visitor *mine) {
  atomic_store_explicit(&mine->slot->gate, NULL, memory_order_release);
}

static inline bool at_in_flight_is(const at_visitor *mine, const void *gate) {
  return mine->slot && atomic_load_explicit(&mine->slot->gate, memory_order_relaxed) == gate;
}

/* Have other threads than the calling one a slot? */
bool at_in_flight_others_live(const at_visitor *mine);

/* After the gate was barred: whoever comes from now on sees that; whoever is inside is seen by at_in_flight_others. */
void at_in_flight_barrier(const at_visitor *mine);

/* Is another thread inside of the gate? */
bool at_in_flight_others(const at_visitor *mine, const void *gate);

/* Other threads whose `vendor` is `value`. */
int at_in_flight_count(const at_visitor *mine, int value);

/* In a child after fork: the other threads are gone. */
void at_in_flight_after_fork(void);

#endif
