/* SPDX-License-Identifier: Apache-2.0
 * spin.h: waiting without sleeping, for times shorter than a sleep and a wake-up cost. */
#ifndef AT_HOST_SPIN_H
#define AT_HOST_SPIN_H

#include "src/support.h"

#include <sched.h>

/* Tells the core that the thread only waits. */
static inline void at_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#define AT_SPIN_YIELD_NS 5000

/* A spin of at most limit_ns; after AT_SPIN_YIELD_NS it offers the core to others, who may be the ones waited for. */
typedef struct at_spin {
  int64_t limit_ns, start_ns;
  unsigned turns;
} at_spin;

/* One turn; false when the time is over. The clock is read every 32nd turn only. */
static inline bool at_spin_turn(at_spin *spin) {
  if (spin->limit_ns <= 0) return false;
  at_pause();
  if (++spin->turns % 32 != 0) return true;
  int64_t now = at_now_ns();
  if (spin->start_ns == 0) spin->start_ns = now;
  if (now - spin->start_ns > spin->limit_ns) return false;
  if (now - spin->start_ns > AT_SPIN_YIELD_NS) sched_yield();
  return true;
}

#endif
