/* SPDX-License-Identifier: Apache-2.0
 * device_lease.h: one process measures on a device at a time. The lease is a lock on a file that all processes of this
 * user share, on the byte that the device's identity gives; the kernel releases it when its holder dies. Processes of
 * other users are not kept away: what they disturb shows in the samples. */
#ifndef AT_DEVICE_LEASE_H
#define AT_DEVICE_LEASE_H

#include "src/backend.h"

/* The device's lease, or BUSY while another process has it or is waiting for it. OK too where there is no safe folder
 * for the file: then nobody is kept away. One thread at a time for a device; not again before the release. */
attune_status at_device_lease_try(attune_device *device);

/* The same, and waits for its turn: those who wait come before one who has just released. `wait` is called between two
 * looks, sleeps, and ends the waiting by a status that is not OK, which is returned. */
attune_status at_device_lease_acquire(attune_device *device, attune_status (*wait)(void *user), void *user);

/* Does nothing without a lease. */
void at_device_lease_release(attune_device *device);

#endif
