/* SPDX-License-Identifier: Apache-2.0
 * pinned_cache.h: the cache of pinned memory, as its parts see it: pinned.c hands out, pinned_view.c tells. */
#ifndef AT_MEMORY_PINNED_CACHE_H
#define AT_MEMORY_PINNED_CACHE_H

#include <attune/pinned.h>

#include "src/memory/malloc/allocator.h"

#define AT_PINNED_CLASSES 48

typedef struct at_pinned_use {
  struct at_pinned_use *next;
  at_stream_cache *stream_cache;
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
  bool registered; /* memory of the process, pinned where it is */
  bool cut;        /* from the reserved segment: it does not go back */
  at_pinned_use *uses;
} at_pinned_block;

typedef struct at_pinned_cache {
  at_pinned_block *free[AT_PINNED_CLASSES];
  at_pinned_block *waiting;
  at_pinned_block *leaving; /* too large to be kept: they go back when the lock can be given up */
  char *reserved;           /* the reserved segment; NULL: none */
  size_t reserved_bytes, reserved_used;
  bool reserving; /* a thread asks for it */
  attune_pinned_statistics statistics;
  at_history *history; /* NULL: off */
} at_pinned_cache;

static inline uintptr_t at_pinned_address(const at_pinned_block *block) {
  return atomic_load(&((at_pinned_block *)(uintptr_t)block)->entry.address);
}

/* pinned_alloc.c: memory from the system, and back. Without the lock. `form` says how: `registered` is filled in. */
typedef struct at_pinned_form {
  bool use_register;
  int threads;
  size_t segment, most_kept, most_round;
} at_pinned_form;
at_pinned_form at_pinned_form_of(attune_device *device); /* the settings of the device's memory */
attune_status at_pinned_take(attune_device *device, const at_pinned_form *form, void **out, size_t bytes);
attune_status at_pinned_give(attune_device *device, void *memory, size_t bytes, bool registered);

/* UNSUPPORTED where the device has none. */
attune_status at_pinned_check(const attune_device *device);
/* The device's cache, with what is done taken back, and all blocks ever made. Lock held. */
at_pinned_cache *at_pinned_cache_of(const attune_device *device);
const at_pinned_block *at_pinned_blocks(void);

#endif
