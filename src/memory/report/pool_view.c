/* SPDX-License-Identifier: Apache-2.0
 * pool_view.c: what pools have. */
#include "src/base/struct_size.h"
#include "src/memory/malloc/allocator.h"

#include <stdlib.h>

/* Lock held. */
static attune_pool_info look(const attune_pool *pool) {
  attune_pool_info info = {.size = sizeof info, .id = {pool->id[0], pool->id[1]}, .holders = pool->references};
  for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
    for (const at_segment *segment = heap->segments; segment; segment = segment->next) {
      info.reserved_bytes += segment->bytes;
      if (segment->bytes > 0) info.segments++;
      for (at_block *block = segment->first; block; block = block->next)
        if (at_block_get_state(block) == AT_BLOCK_LIVE) info.allocated_bytes += block->size;
    }
  return info;
}

attune_status attune_pool_get_info(attune_pool *pool, attune_pool_info *out) {
  AT_REQUIRE_AS(out, "point to an attune_pool_info");
  AT_TRY(AT_CLEAR(out));
  AT_REQUIRE_AS(pool, "be a pool from attune_pool_create");
  pthread_mutex_lock(&pool->allocator->lock);
  const attune_pool_info full = look(pool);
  pthread_mutex_unlock(&pool->allocator->lock);
  return AT_GIVE(out, &full);
}

/* Pools other than the common one, the oldest first: the list has them the other way round. */
static attune_status list_pools(attune_pool_info **out, size_t *out_count, at_allocator *allocator) {
  size_t count = 0;
  pthread_mutex_lock(&allocator->lock);
  for (const attune_pool *pool = allocator->common.next; pool; pool = pool->next) count++;
  attune_pool_info *all = malloc((count ? count : 1) * sizeof *all);
  size_t at = count;
  for (const attune_pool *pool = allocator->common.next; all && pool; pool = pool->next) all[--at] = look(pool);
  pthread_mutex_unlock(&allocator->lock);
  *out = all;
  *out_count = count;
  return all ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a list of %zu pools", count);
}

attune_status attune_memory_each_pool(attune_device *device, attune_pool_fn fn, void *user) {
  attune_pool_info *all = NULL;
  size_t count = 0;
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(fn, "be a function");
  at_allocator *allocator = at_allocator_of(device);
  if (!allocator) return ATTUNE_OUT_OF_MEMORY;
  attune_status status = list_pools(&all, &count, allocator);
  for (size_t i = 0; status == ATTUNE_OK && i < count; i++)
    if (fn(user, &all[i])) break;
  free(all);
  return status;
}
