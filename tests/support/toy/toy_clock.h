/* SPDX-License-Identifier: Apache-2.0
 * toy_clock.h: the toy operation on the virtual clock. Included once in a test. */
#ifndef AT_TEST_TOY_CLOCK_H
#define AT_TEST_TOY_CLOCK_H

#include <time.h>

#include "tests/support/toy/toy_op.h"
#include "tests/support/virtual_clock.h"

/* Watched launches leave others the time to overlap, the first ones a long time while none has. */
static inline void toy_let_overlap(void) {
  enum { FIRST = 300 };
  const long ns = toy_overlaps == 0 && toy_launches < FIRST ? 2000000 : 10000;
  (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* So much time has passed since `start`, on either clock. */
static inline void toy_pass_virtual(int64_t start, int64_t ns, int64_t cpus) {
  if (virtual_clock_runs && toy_watched) toy_let_overlap();
  if (virtual_clock_runs) virtual_clock_pass(ns, (double)cpus);
  while (at_now_ns() - start < ns) continue;
}

__attribute__((constructor)) static void toy_take_clock(void) {
  toy_pass = toy_pass_virtual;
}

#endif
