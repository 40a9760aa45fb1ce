/* SPDX-License-Identifier: Apache-2.0
 * sync_debug.c: tells the program where attune waits for a device unasked. */
#include "src/stream/sync_debug.h"

#include <stdatomic.h>

static atomic_int sync_mode;

attune_status attune_set_sync_debug(attune_sync_debug mode) {
  if ((int)mode < ATTUNE_SYNC_DEBUG_OFF || mode > ATTUNE_SYNC_DEBUG_ERROR)
    return AT_INVALID("mode is %d; should be off (0), warn (1) or error (2)", (int)mode);
  atomic_store_explicit(&sync_mode, (int)mode, memory_order_relaxed);
  return ATTUNE_OK;
}

attune_sync_debug attune_get_sync_debug(void) {
  return (attune_sync_debug)atomic_load_explicit(&sync_mode, memory_order_relaxed);
}

bool at_sync_debug_on(void) {
  return AT_UNLIKELY(attune_get_sync_debug() != ATTUNE_SYNC_DEBUG_OFF);
}

attune_status at_sync_check(const attune_device *device, const char *what) {
  const attune_sync_debug mode = attune_get_sync_debug();
  if (AT_LIKELY(mode == ATTUNE_SYNC_DEBUG_OFF)) return ATTUNE_OK;
  if (mode == ATTUNE_SYNC_DEBUG_ERROR)
    return at_fail(ATTUNE_BUSY, "implicit synchronization on %s: %s; attune_set_sync_debug made it an error",
                   device->name, what);
  at_log(ATTUNE_LOG_WARNING, "implicit synchronization on %s: %s", device->name, what);
  return ATTUNE_OK;
}

void at_sync_waits(const attune_device *device, const char *what) {
  const attune_sync_debug mode = attune_get_sync_debug();
  if (AT_LIKELY(mode == ATTUNE_SYNC_DEBUG_OFF)) return;
  at_log(mode == ATTUNE_SYNC_DEBUG_ERROR ? ATTUNE_LOG_ERROR : ATTUNE_LOG_WARNING, "implicit synchronization on %s: %s",
         device->name, what);
}
