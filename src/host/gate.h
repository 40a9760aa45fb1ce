/* SPDX-License-Identifier: Apache-2.0
 * gate.h: a word that threads wait for to change: they spin for a while, then sleep. */
#ifndef AT_HOST_GATE_H
#define AT_HOST_GATE_H

#include <stdatomic.h>
#include <stdint.h>

/* How long to spin is learned: twice what it took lately, and hardly at all when it takes longer than spinning pays, for
 * then the spinning only burns what the others need. Zeros are a gate. */
typedef struct at_gate {
  atomic_uint word;
  atomic_uint sleepers;
  _Atomic int64_t patience_ns; /* to spin at most; 0: nothing is known yet */
} at_gate;

/* Changes the word and wakes who sleeps. */
void at_gate_open(at_gate *g);

/* Returns the word when it is no longer `old`, or `old` after most_ns and more; 0: no end. */
unsigned at_gate_wait(at_gate *g, unsigned old, int64_t most_ns);

/* As new. Nobody waits. */
void at_gate_reset(at_gate *g);

#endif
