/* SPDX-License-Identifier: Apache-2.0
 * allocation_watch.c: allocations whose end is watched. They carry a tag, and take the slow path when they are
 * freed, which takes the tag away. */
#include "src/memory/malloc/allocation_watch.h"

#include "src/memory/malloc/stream_cache.h"

at_segment *at_segment_around(at_allocator *allocator, uintptr_t address) {
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next) {
        size_t bytes = at_segment_expandable(segment) ? segment->reserved : segment->bytes;
        if (address - (uintptr_t)segment->base < bytes) return segment;
      }
  return NULL;
}

static at_block *block_around(at_allocator *allocator, uintptr_t address) {
  const at_segment *segment = at_segment_around(allocator, address);
  at_block *block = segment ? segment->first : NULL;
  while (block && address - at_block_address(block) >= block->size) block = block->next;
  return block;
}

bool at_allocation_watch_note(at_allocation_watch *out, attune_device *device, const void *address) {
  static _Atomic uint64_t tags;
  at_allocator *allocator = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
  if (!allocator) return false;
  pthread_mutex_lock(&allocator->lock);
  at_block *block = block_around(allocator, (uintptr_t)address);
  bool held = false;
  if (block && block->segment->heap->pool->id[1] == 0) {
    at_stream_cache *cache = atomic_load_explicit(&block->cache, memory_order_relaxed);
    at_stream_cache_lock(cache); /* the fast path reads `plain` with it */
    held = at_block_get_state(block) == AT_BLOCK_LIVE;
    if (held) block->plain = false;
    at_stream_cache_unlock(cache);
  }
  if (held && block->tag == 0) block->tag = atomic_fetch_add(&tags, 1) + 1;
  if (held) *out = (at_allocation_watch){.base = at_block_address(block), .tag = block->tag};
  pthread_mutex_unlock(&allocator->lock);
  return held;
}

bool at_allocation_watch_check(attune_device *device, const at_allocation_watch *noted) {
  at_allocator *allocator = device->memory;
  pthread_mutex_lock(&allocator->lock);
  at_block *block = (at_block *)at_address_table_find_surely(noted->base);
  const bool alive = block && block->entry.kind == AT_ENTRY_BLOCK && block->tag == noted->tag &&
                     at_block_get_state(block) == AT_BLOCK_LIVE;
  pthread_mutex_unlock(&allocator->lock);
  return alive;
}

void at_allocation_watch_end(const at_allocator *allocator, at_block *block) {
  if (block->tag == 0) return;
  block->tag = 0;
  block->plain = block->segment->heap->pool == &allocator->common && !block->segment->exact;
}
