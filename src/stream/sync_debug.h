/* SPDX-License-Identifier: Apache-2.0
 * sync_debug.h: for whoever waits. */
#ifndef AT_SYNC_DEBUG_H
#define AT_SYNC_DEBUG_H

#include "src/base/backend.h"

/* A call is about to wait for the device although the program did not ask for it (attune_set_sync_debug).
 * at_sync_check: BUSY when that is to be an error; `what` is the call and its reason, "attune_copy waits for pageable
 * host memory". at_sync_waits: for calls that cannot fail. Not under a lock: it logs. */
attune_status at_sync_check(const attune_device *device, const char *what);
void at_sync_waits(const attune_device *device, const char *what);

/* False: reports are off, so callers need not find out whether they would wait. */
bool at_sync_debug_on(void);

#endif
