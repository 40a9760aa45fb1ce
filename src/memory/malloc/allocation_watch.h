/* SPDX-License-Identifier: Apache-2.0
 * allocation_watch.h: whether an allocation is still the one that it was. */
#ifndef AT_MEMORY_ALLOCATION_WATCH_H
#define AT_MEMORY_ALLOCATION_WATCH_H

#include "src/base/backend.h"

/* An allocation that was held when it was noted. */
typedef struct at_allocation_watch {
  uintptr_t base;
  uint64_t tag; /* no other allocation ever has it */
} at_allocation_watch;

/* Notes the allocation around the address; false: it is none of attune_alloc on the device, or of a graph's pool. */
bool at_allocation_watch_note(at_allocation_watch *out, attune_device *device, const void *address);

/* False: it was freed since. */
bool at_allocation_watch_check(attune_device *device, const at_allocation_watch *noted);

#endif
