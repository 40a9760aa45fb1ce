/* SPDX-License-Identifier: Apache-2.0
 * tune.h: one problem's tuning from start to commit. */
#ifndef AT_TUNE_H
#define AT_TUNE_H

#include <attune/tools.h>

#include "tuning/measure/sampler.h"
#include "tuning/tuner/winner.h"

/* Searches for the problem (folded for the device) now and commits the winner, unless a complete one is known and not
 * `force`. budget_ns 0: the tuner's. A budget, given or the tuner's, is also the longest to wait for others that
 * measure: then BUSY. `out` may be NULL. */
attune_status at_tune_problem(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              double budget_ns, bool force, attune_decision *out);

/* The same for a call of an operation, which waits for another process no longer than some ten milliseconds. */
attune_status at_tune_call(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                           attune_decision *out);

/* OUT_OF_MEMORY: the calling thread's stack is too small to measure on the device. */
attune_status at_tune_check_stack(const attune_device *device);

/* Calls fn with the device's timer, in turn with every other measurement on the device; its status. */
attune_status at_with_timer(attune_tuner *tuner, attune_device *device,
                            attune_status (*fn)(void *user, at_timer *timer), void *user);

/* device_lock.c: one search at a time on a device among the threads of this process; among processes device_lease.h has
 * the turns. */

/* A search of this process is waited for, however long it takes; one that waits for another process until the deadline
 * (0: also however long). False: it was not locked. *waited: it had to wait. */
bool at_tune_lock(const attune_device *device, int64_t deadline_ns, bool *waited);
void at_tune_unlock(const attune_device *device);

/* The thread that has the lock begins, or ends, to wait for another process. */
void at_tune_lock_waits(const attune_device *device, bool waits);

/* revalidate.c: runs the winner `stored` and the default side by side for `budget_ns` (0: as long as is sensible), each
 * round at another placement of the operands, and tries the winner on fresh data. Fills *out. Errors: NOT_FOUND (this
 * build or machine does not have the winner), OUT_OF_MEMORY, DEVICE_ERROR. */
attune_status at_revalidate(attune_recheck *out, at_timer *timer, const at_op *op, const void *problem,
                            attune_measure measure, const attune_decision *stored, double budget_ns);

#endif
