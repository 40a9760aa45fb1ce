/* SPDX-License-Identifier: Apache-2.0
 * pinned_cache.h: the cache of pinned memory, as its parts see it: pinned.c hands out, pinned_view.c tells. */
#ifndef AT_MEMORY_PINNED_CACHE_H
#define AT_MEMORY_PINNED_CACHE_H

#include <attune/pinned.h>

#include "src/memory/allocator.h"

#define AT_PINNED_CLASSES 48

typedef struct at_pinned_use {
  struct at_pinned_use *next;
  at_front *front;
  attune_event *event;
  bool recorded; /* after the free; not in a capture, whose end it then waits for */
} at_pinned_use;

/* Never given back, see at_entry: the memory may be, the block stays for another. */
typedef struct at_pinned_block {
  at_entry entry;
  struct at_pinned_block *next; /* of one list: free of its class, waiting, spare */
  struct at_pinned_block *made; /* the one made before */
  attune_device *device;
  size_t size, requested;
  uint64_t recorded; /* its record in the history; 0: none */
  bool live;
  at_pinned_use *uses;
} at_pinned_block;

typedef struct at_pinned_cache {
  at_pinned_block *free[AT_PINNED_CLASSES];
  at_pinned_block *waiting;
  attune_pinned_statistics statistics;
  at_history *history; /* NULL: off */
} at_pinned_cache;

static inline uintptr_t at_pinned_address(const at_pinned_block *block) {
  return atomic_load(&((at_pinned_block *)(uintptr_t)block)->entry.address);
}

/* UNSUPPORTED where the device has none. */
attune_status at_pinned_check(const attune_device *device);
/* The device's cache, with what is done taken back, and all blocks ever made. Lock held. */
at_pinned_cache *at_pinned_cache_of(const attune_device *device);
const at_pinned_block *at_pinned_blocks(void);

#endif
