/* SPDX-License-Identifier: Apache-2.0
 * device_lock.h: one search at a time on a device among the threads of this process; among processes device_lease.h has
 * the turns. */
#ifndef AT_TUNE_DEVICE_LOCK_H
#define AT_TUNE_DEVICE_LOCK_H

#include "src/base/support.h"

/* A search of this process is waited for, however long it takes; one that waits for another process until the deadline
 * (0: also however long). False: it was not locked. *waited: it had to wait. */
bool at_tune_lock(const attune_device *device, int64_t deadline_ns, bool *waited);
void at_tune_unlock(const attune_device *device);

/* The thread that has the lock begins, or ends, to wait for another process. */
void at_tune_lock_waits(const attune_device *device, bool waits);

#endif
