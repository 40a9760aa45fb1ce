/* SPDX-License-Identifier: Apache-2.0
 * tune.h: one problem's tuning from start to commit. */
#ifndef AT_TUNE_H
#define AT_TUNE_H

#include "tuning/tuner/winner.h"

/* Searches for the problem (folded for the device) now and commits the winner, unless a complete one is known and not
 * `force`. budget_ns 0: the tuner's. A budget, given or the tuner's, is also the longest to wait for others that measure:
 * then BUSY. `out` may be NULL. */
attune_status at_tune_problem(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              double budget_ns, bool force, attune_decision *out);

/* The same for a call of an operation, which waits for another process no longer than some ten milliseconds. */
attune_status at_tune_call(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                           attune_decision *out);

/* OUT_OF_MEMORY: the calling thread's stack is too small to measure on the device. */
attune_status at_tune_check_stack(const attune_device *device);

/* Calls fn with the device's profiler, in turn with every other measurement on the device; its status. */
attune_status at_with_profiler(attune_tuner *tuner, attune_device *device,
                               attune_status (*fn)(void *user, at_timer *profiler), void *user);

#endif
