/* SPDX-License-Identifier: Apache-2.0
 * registered.h: the list of what a program had pinned where it is. */
#ifndef AT_MEMORY_REGISTERED_H
#define AT_MEMORY_REGISTERED_H

#include <attune/pinned.h>

#include <stdbool.h>

typedef struct at_registered {
  struct at_registered *next;
  uintptr_t begin;
  size_t bytes;
  attune_device *device;
  bool pinned; /* false: just being pinned, or no more */
} at_registered;

/* Takes a place in the list, before the system is asked: of two threads one is refused. */
attune_status at_registered_claim(at_registered *wanted);

/* The one that begins at the pointer, which is no longer pinned for others then. */
attune_status at_registered_release(at_registered **out, const void *pointer);

/* at_pinned_lock is held. */
void at_registered_drop(at_registered *gone);

#endif
