/* SPDX-License-Identifier: Apache-2.0
 * limit.h: what the calling thread may still use: time and stack.
 *
 * Until when what a thread does may go on. A search with a hard limit sets it; whatever may take long within
 * it (operands, the trusted result, comparisons, rounds) does its work in parts and looks at it between two. */
#ifndef AT_LIMIT_H
#define AT_LIMIT_H

#include "src/base/support.h"

#define AT_NO_LIMIT INT64_MAX

/* By so much a search may pass its limit for what its result needs: the first rounds, and as much again to verify. */
#define AT_LIMIT_GRACE_NS 100000000

/* Sets the calling thread's limit, a time of at_now_ns; returns the one that it had. At first there is none. */
int64_t at_limit_set(int64_t until_ns);

/* The calling thread's limit. What other threads do for it is given this. */
int64_t at_limit_of(void);

/* Returns the time left in ns, at least 0; infinity: there is no limit. */
double at_limit_left_ns(void);

/* OK while there is time; else BUDGET_EXHAUSTED, with a message. */
attune_status at_limit_look(void);

/* As at_limit_look, for a step of about this length: it is not begun unless there is time for all of it. */
attune_status at_limit_afford(double ns);

/* --- its stack, asked where a call is slow anyway; tuner.h says what is needed --- */

/* Bytes that must be left: for a problem's first call, for the first call of an expression, for tuning on the host
 * and on a GPU, where a compiler runs on the same stack. Measured (tests/src/process/test_stack.c) and rounded up. */
enum {
  AT_STACK_CALL = 24 << 10,
  AT_STACK_EXPRESSION = 52 << 10,
  AT_STACK_TUNE = 96 << 10,
  AT_STACK_TUNE_CUDA = 192 << 10
};

/* OUT_OF_MEMORY when fewer than `bytes` are left; `what` begins the message: "tuning". The first call of a thread
 * asks the system, later ones cost nanoseconds. On a stack that the system does not know (fibers) all is well. */
attune_status at_stack_check(size_t bytes, const char *what);

#endif
