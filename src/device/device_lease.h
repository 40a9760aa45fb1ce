/* SPDX-License-Identifier: Apache-2.0
 * device_lease.h: one process measures on a device at a time. The lease is a lock on a file of the device that all
 * processes of this user share; the kernel releases it when its holder dies. A holder that does not renew it loses it:
 * one that is stopped (SIGSTOP, a debugger) to the first that has seen it so for AT_LEASE_STOPPED_MS, any other (a
 * frozen container) after AT_LEASE_LATE_MS. Waiting processes have an order; one that is stopped loses its place in it
 * at once, and one that is frozen after AT_LEASE_STOPPED_MS. Processes of other users are not kept away: what they
 * disturb shows in the samples. */
#ifndef AT_DEVICE_LEASE_H
#define AT_DEVICE_LEASE_H

#include "src/base/backend.h"

enum { AT_LEASE_STOPPED_MS = 2000, AT_LEASE_LATE_MS = 60000 };

/* The device's lease, or BUSY while another process has it or is waiting for it; the message names the process, and
 * since when it has the lease. Also OK if there is no safe folder for the file: then no process is kept away. One
 * thread at a time for a device; not again before the release. */
attune_status at_device_lease_try(attune_device *device);

/* As above, but waits for its turn: waiting processes come before one that has just released it. `wait` is called
 * between two looks, sleeps, and ends the waiting by a status that is not OK, which is returned. */
attune_status at_device_lease_acquire(attune_device *device, attune_status (*wait)(void *user), void *user);

/* Shows the others that the holder goes on: a few microseconds; some times a second while it measures. BUSY: it was too
 * late, and another process has had the lease in between. Then what was measured since the last renewal is of no use,
 * and the lease is to be released. OK without a lease. */
attune_status at_device_lease_renew(attune_device *device);

/* Does nothing without a lease. */
void at_device_lease_release(attune_device *device);

#endif
