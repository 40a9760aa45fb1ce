/* SPDX-License-Identifier: Apache-2.0
 * spin.h: waiting without sleeping, for times shorter than a sleep and a wake-up cost. */
#ifndef AT_HOST_SPIN_H
#define AT_HOST_SPIN_H

#include "src/base/support.h"

/* Tells the core that the thread only waits. */
static inline void at_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* A spin of at most limit_ns. It does not offer the core to others in between (sched_yield): a Linux that takes time
 * away from who yields lets it wait for milliseconds afterwards, when it has work. */
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
  return now - spin->start_ns <= spin->limit_ns;
}

#endif
