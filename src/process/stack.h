/* SPDX-License-Identifier: Apache-2.0
 * stack.h: whether the calling thread's stack has room for what a call does on it. Asked where a call is slow anyway;
 * tuner.h says what is needed. */
#ifndef AT_STACK_H
#define AT_STACK_H

#include <stddef.h>

#include <attune/status.h>

/* Bytes that must be left: for a problem's first call, for the first call of an expression, for tuning on the host
 * and on a GPU, where a compiler runs on the same stack. Measured (tests/src/base/test_stack.c) and rounded up. */
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
