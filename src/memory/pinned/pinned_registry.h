/* SPDX-License-Identifier: Apache-2.0
 * pinned_registry.h: the list of what a program had pinned where it is. */
#ifndef AT_MEMORY_PINNED_REGISTRY_H
#define AT_MEMORY_PINNED_REGISTRY_H

#include <attune/pinned.h>

#include <stdbool.h>

typedef struct at_pinned_registry {
  struct at_pinned_registry *next;
  uintptr_t begin;
  size_t bytes;
  attune_device *device;
  bool pinned; /* false: just being pinned, or no more */
} at_pinned_registry;

/* Takes a place in the list, before the system is asked: of two threads one is refused. */
attune_status at_pinned_registry_claim(at_pinned_registry *wanted);

/* The one that begins at the pointer, which is no longer pinned for others then. */
attune_status at_pinned_registry_release(at_pinned_registry **out, const void *pointer);

/* at_pinned_lock is held. */
void at_pinned_registry_drop(at_pinned_registry *gone);

#endif
