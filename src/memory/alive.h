/* SPDX-License-Identifier: Apache-2.0
 * alive.h: whether an allocation is still the one that it was. */
#ifndef AT_MEMORY_ALIVE_H
#define AT_MEMORY_ALIVE_H

#include "src/backend.h"

/* An allocation that was held when it was noted. */
typedef struct at_alive {
  uintptr_t base;
  uint64_t tag; /* no other allocation ever has it */
} at_alive;

/* Notes the allocation around the address; false: it is none of attune_alloc on the device, or of a graph's pool. */
bool at_alive_note(at_alive *out, attune_device *device, const void *address);

/* False: it was freed since. */
bool at_alive_check(attune_device *device, const at_alive *noted);

#endif
