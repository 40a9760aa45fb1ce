/* SPDX-License-Identifier: Apache-2.0
 * futex_word.h: a word that threads wait for to change: they spin for a while, then sleep. */
#ifndef AT_HOST_FUTEX_WORD_H
#define AT_HOST_FUTEX_WORD_H

#include <stdatomic.h>
#include <stdint.h>

/* How long to spin is learned: twice what it took lately, and hardly at all when it takes longer than spinning pays,
 * for then the spinning only burns what the others need. Zeros are a gate. */
typedef struct at_futex_word {
  atomic_uint word;
  atomic_uint sleepers;
  _Atomic int64_t patience_ns; /* to spin at most; 0: nothing is known yet */
} at_futex_word;

/* Changes the word and wakes all waiters. */
void at_futex_word_open(at_futex_word *g);

/* Returns the word when it is no longer `old`, or `old` after most_ns and more; 0: no end. */
unsigned at_futex_word_wait(at_futex_word *g, unsigned old, int64_t most_ns);

/* As new. Nobody waits. */
void at_futex_word_reset(at_futex_word *g);

#endif
