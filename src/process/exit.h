/* SPDX-License-Identifier: Apache-2.0
 * exit.h: the end of the process. Threads of the program and of attune may still work while exit() takes libraries
 * down: what must not be met by that is stopped first. */
#ifndef AT_EXIT_H
#define AT_EXIT_H

#include <stdbool.h>
#include <stdint.h>

/* Attune sees exit() from now on. Called at its first use, long before it opens a library.
 *
 * exit() is asked when attune is loaded, too, and a child of fork has what its parent asked: asking takes a lock of the
 * C library which another thread may have held at the fork (exit() itself often does), and which the child then never
 * gets. */
void at_exit_watch(void);

/* Asks exit() again, in a child too, so that attune's functions come before those that a library of a vendor has asked
 * for since. */
void at_exit_renew(void);

/* The same, unless a library is being opened or a fork is under way just now: then false. */
bool at_exit_try_renew(void);

/* As at_exit_renew, where a vendor's library has just taken the C library's lock itself: waits for no fork. */
void at_exit_renew_inside(void);

/* exit() calls fn, once, before the destructors and exit functions of every library that is loaded by now. `fn` takes no
 * lock that a thread could hold for long, and calls no CUDA. */
void at_exit_call(void (*fn)(void));

/* True from the moment when exit() begins to do so: what attune opens or measures from now on is of no use. */
bool at_exit_begun(void);

/* Waiting for work of other threads that must end, such as a product in flight: for as long as the process computes,
 * and ten seconds more. Start with {0}. */
typedef struct at_patience {
  int64_t start_ns, window_ns, cpu_ns, idle_ns;
} at_patience;

/* One nap; false when nobody computes any more, so that what is waited for will never end. */
bool at_patience_nap(at_patience *patience);

#endif
