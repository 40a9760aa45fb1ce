/* SPDX-License-Identifier: Apache-2.0
 * explain.c: why no call accepts a pointer: it is inside an allocation, already freed, of another device, or unknown.
 */
#include "src/memory/malloc/stream_cache.h"

/* Blocks that are free merge, so where one of them began is no longer known. */
static attune_status explain_free(const at_block *block, uintptr_t address, const char *name) {
  if (address % AT_BLOCK_BYTES != 0)
    return AT_INVALID(
        "%p on %s lies in free memory, where no allocation can begin; should be a pointer from attune_alloc",
        (void *)address, name);
  if (address == at_block_address(block))
    return AT_INVALID("%p on %s was already freed, and is cached for the next request; should be freed once",
                      (void *)address, name);
  return AT_INVALID("%p on %s was already freed, or never allocated: it lies in %zu bytes of free memory; should be a "
                    "pointer from attune_alloc, freed once",
                    (void *)address, name, block->size);
}

/* The fast path changes it with the cache's lock alone. */
static size_t requested_of(at_block *block) {
  at_stream_cache *cache = atomic_load_explicit(&block->cache, memory_order_relaxed);
  at_stream_cache_lock(cache);
  const size_t requested = block->requested;
  at_stream_cache_unlock(cache);
  return requested;
}

/* In which of the ways the block at the address is no allocation that begins there. Lock held. */
static attune_status explain_block(at_block *block, uintptr_t address, const char *name) {
  size_t offset = address - at_block_address(block);
  switch (at_block_get_state(block)) {
  case AT_BLOCK_LIVE:
    return AT_INVALID(
        "%p lies %zu bytes inside the allocation of %zu bytes that begins at %p on %s; should be its start",
        (void *)address, offset, requested_of(block), at_block_pointer(block), name);
  case AT_BLOCK_PENDING:
    return AT_INVALID("%p lies %zu bytes inside memory of %s that was already freed and that another stream still "
                      "uses; should be freed once, by its start",
                      (void *)address, offset, name);
  case AT_BLOCK_UNMAPPED:
    return AT_INVALID("%p on %s was already freed, or never allocated: there is no memory at that address now; should "
                      "be a pointer from attune_alloc, freed once",
                      (void *)address, name);
  default: return explain_free(block, address, name);
  }
}

attune_status at_explain_pointer(at_allocator *allocator, uintptr_t address) {
  pthread_mutex_lock(&allocator->lock);
  at_segment *segment = at_segment_around(allocator, address);
  attune_status status = ATTUNE_NOT_FOUND;
  if (segment) {
    at_block *block = segment->first;
    while (address - at_block_address(block) >= block->size) block = block->next;
    status = explain_block(block, address, allocator->device->name);
  }
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

attune_status at_explain_foreign(const attune_device *device, uintptr_t address) {
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *other = NULL;
    if (attune_device_at(&other, i) != ATTUNE_OK || other == device) continue;
    at_allocator *allocator = __atomic_load_n(&other->memory, __ATOMIC_ACQUIRE);
    if (!allocator) continue;
    pthread_mutex_lock(&allocator->lock);
    bool its = at_segment_around(allocator, address) != NULL;
    pthread_mutex_unlock(&allocator->lock);
    if (its && device)
      return AT_INVALID("%p is memory of %s, stream is of %s; should be of the same device", (void *)address,
                        other->name, device->name);
    if (its) return at_explain_pointer(allocator, address);
  }
  return at_fail(ATTUNE_NOT_FOUND, "%p is not memory of attune%s%s; should be a pointer from attune_alloc",
                 (void *)address, device ? " on " : "", device ? device->name : "");
}
