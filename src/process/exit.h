/* SPDX-License-Identifier: Apache-2.0
 * exit.h: the end of the process. Threads of the program and of attune may still work while exit() takes libraries
 * down: what must not be met by that is stopped first. */
#ifndef AT_EXIT_H
#define AT_EXIT_H

#include <stdbool.h>
#include <stdint.h>

/* Attune sees exit() from now on. Called at its first use, long before it opens a library.
 *
 * Attune also registers its function with atexit when it is loaded, and a child of fork inherits that: atexit takes a
 * lock of the C library that another thread may hold at the fork (exit() often does), and the child never gets it. */
void at_exit_watch(void);

/* Registers attune's function again, in a child too, so that it runs before those that a vendor's library has
 * registered since. */
void at_exit_renew(void);

/* As at_exit_renew, for a caller that holds off libraries and forks (at_loading_try), or right after a vendor's library
 * has called atexit itself: does not wait for a fork. */
void at_exit_renew_inside(void);

/* After a library has been opened, and attune's function registered: whether exit() has begun. A library registers exit
 * functions while it is opened, and exit() in another thread may have called them all by now; attune's is the next, so
 * a few milliseconds tell. */
bool at_exit_took_over(void);

/* exit() calls fn, once, before the destructors and exit functions of every library that is loaded by now. `fn` takes
 * no lock that a thread could hold for long, and calls no CUDA. */
void at_exit_call(void (*fn)(void));

/* True from the moment when exit() begins to do so: what attune opens or measures from now on is of no use. */
bool at_exit_begun(void);

/* Waiting for work of other threads that must end, such as a product in flight: for as long as the process computes,
 * and ten seconds more. Start with {0}. */
typedef struct at_patience {
  int64_t start_ns, window_ns, cpu_ns, idle_ns;
} at_patience;

/* One nap; false when no thread computes any more, so that what is waited for will never end. */
bool at_patience_nap(at_patience *patience);

#endif
