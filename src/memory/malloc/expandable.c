/* SPDX-License-Identifier: Apache-2.0
 * expandable.c: segments that grow and shrink in place: addresses are reserved once, memory is mapped where requests
 * need it, so that freed neighbours of any age merge. Each stretch without memory is an UNMAPPED block of the segment.
 */
#include "src/memory/malloc/ipc_pages.h"
#include "src/stream/sync_debug.h"

#include <stdlib.h>

static size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/* Addresses for a bit more than the whole device, since no two blocks of a segment lie apart. */
static attune_status make_segment(at_allocator *allocator, const at_request *request, at_segment **out) {
  attune_device *device = allocator->device;
  bool small = at_heap_prefers_small(request->heap, request->size);
  size_t granularity = 0;
  attune_status status = device->backend.vm->granularity(device, &granularity);
  if (status != ATTUNE_OK) return status;
  size_t granule = round_up(small ? AT_SMALL_SEGMENT : allocator->options.large_segment, granularity);
  size_t reserved = round_up((size_t)(device->properties.memory_bytes / 8 * 9), granule);
  at_segment *segment = calloc(1, sizeof *segment);
  uint64_t *handles = calloc(reserved / granule, sizeof *handles);
  at_block *block = at_block_new(allocator);
  void *base = NULL;
  if (segment && handles && block)
    status = device->backend.vm->reserve(device, &base, reserved);
  else
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a segment");
  if (status != ATTUNE_OK) {
    if (block) at_block_drop(allocator, block);
    free(handles);
    free(segment);
    return status;
  }
  *segment = (at_segment){.heap = request->heap,
                          .base = base,
                          .reserved = reserved,
                          .granule = granule,
                          .handles = handles,
                          .first = block,
                          .small = small,
                          .next = request->heap->segments};
  if (segment->next) segment->next->previous = segment;
  request->heap->segments = segment;
  block->small = small;
  block->plain = request->pool == &allocator->common;
  block->size = reserved;
  block->segment = segment;
  atomic_store_explicit(&block->cache, request->cache, memory_order_relaxed);
  at_block_set_state(block, AT_BLOCK_UNMAPPED);
  at_address_table_insert(&block->entry, (uintptr_t)base);
  at_figure_add(allocator->segments, small, 1);
  *out = segment;
  return ATTUNE_OK;
}

static size_t cached_size(at_block *block) {
  return block && at_block_get_state(block) == AT_BLOCK_CACHED ? block->size : 0;
}

/* The first stretch without memory that makes, with the free blocks next to it, room for the request. */
static at_block *find_room(const at_request *request) {
  bool small = at_heap_prefers_small(request->heap, request->size);
  for (at_segment *segment = request->heap->segments; segment; segment = segment->next) {
    if (!at_segment_expandable(segment) || segment->small != small) continue;
    for (at_block *block = segment->first; block; block = block->next)
      if (at_block_get_state(block) == AT_BLOCK_UNMAPPED &&
          block->size + cached_size(block->previous) + cached_size(block->next) >= request->size)
        return block;
  }
  return NULL;
}

static size_t granule_of(const at_segment *segment, const at_block *block) {
  return (at_block_address(block) - (uintptr_t)segment->base) / segment->granule;
}

/* The segment has this much more, or less. */
static void count_mapped(at_segment *segment, size_t more, size_t less) {
  at_heap *heap = segment->heap;
  segment->bytes = segment->bytes + more - less;
  if (segment->small) return;
  heap->large_bytes = heap->large_bytes + more - less;
  heap->wide = segment->bytes >= AT_WIDE_GRANULES * segment->granule;
}

/* Without the lock; the block is LEAVING, so only this thread has its granules. */
static attune_status map(attune_device *device, at_segment *segment, const at_block *block) {
  size_t first = granule_of(segment, block), count = block->size / segment->granule;
  for (size_t i = 0; i < count; i++) {
    attune_status status = device->backend.vm->map(device, segment->base + (first + i) * segment->granule,
                                                   segment->granule, &segment->handles[first + i]);
    if (status == ATTUNE_OK) continue;
    while (i-- > 0) {
      (void)device->backend.vm->unmap(device, segment->base + (first + i) * segment->granule, segment->granule,
                                      segment->handles[first + i]);
      segment->handles[first + i] = 0;
    }
    return status;
  }
  return ATTUNE_OK;
}

/* Without the lock. Stops at the first granule that the device does not take back, as on a lost device: its handle
 * stays. */
static void unmap(attune_device *device, at_segment *segment, const at_block *block) {
  size_t first = granule_of(segment, block), count = block->size / segment->granule;
  at_ipc_forget(segment, first, count);
  for (size_t i = first; i < first + count; i++) {
    if (device->backend.vm->unmap(device, segment->base + i * segment->granule, segment->granule,
                                  segment->handles[i]) != ATTUNE_OK)
      return;
    segment->handles[i] = 0;
  }
}

/* What was not unmapped is free memory again. False: that is all of the block. */
static bool keep_mapped(at_allocator *allocator, at_block *block) {
  at_segment *segment = block->segment;
  size_t first = granule_of(segment, block), count = block->size / segment->granule, gone = 0;
  while (gone < count && segment->handles[first + gone] == 0) gone++;
  if (gone == count) return true;
  at_block *rest = gone > 0 ? at_block_cut(allocator, block, gone * segment->granule) : block;
  if (!rest) return false; /* no memory to tell the two apart: the block stays out of use */
  (void)at_block_cache(allocator, rest);
  return gone > 0;
}

static void become_unmapped(at_allocator *allocator, at_block *block) {
  at_block *previous = block->previous;
  at_block_set_state(block, AT_BLOCK_UNMAPPED);
  if (block->next && at_block_get_state(block->next) == AT_BLOCK_UNMAPPED)
    at_block_swallow(allocator, block, block->next);
  if (previous && at_block_get_state(previous) == AT_BLOCK_UNMAPPED) at_block_swallow(allocator, previous, block);
}

attune_status at_expandable_grow(at_allocator *allocator, const at_request *request, at_block **out, bool *possible) {
  at_block *block = find_room(request);
  at_segment *segment = block ? block->segment : NULL;
  attune_status status = ATTUNE_OK;
  if (!block) {
    if (request->size > allocator->device->properties.memory_bytes) return ATTUNE_OUT_OF_MEMORY;
    status = make_segment(allocator, request, &segment);
    if (status != ATTUNE_OK) {
      *possible = false;
      return status;
    }
    block = segment->first;
  }
  size_t before = cached_size(block->previous);
  size_t bytes = round_up(request->size > before ? request->size - before : 1, segment->granule);
  if (bytes > block->size) bytes = block->size;
  if (!at_reserve(allocator, bytes)) return ATTUNE_OUT_OF_MEMORY;
  if (bytes < block->size && !at_block_cut(allocator, block, bytes)) {
    at_unreserve(allocator, bytes);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a block");
  }
  at_block_set_state(block, AT_BLOCK_LEAVING);
  pthread_mutex_unlock(&allocator->lock);
  status = map(allocator->device, segment, block);
  pthread_mutex_lock(&allocator->lock);
  if (status != ATTUNE_OK) {
    at_unreserve(allocator, bytes);
    become_unmapped(allocator, block);
    return status;
  }
  count_mapped(segment, bytes, 0);
  at_figure_add(allocator->reserved_bytes, segment->small, bytes);
  allocator->device_allocs++;
  (void)at_history_add(allocator, AT_ACTION_SEGMENT_MAP, at_block_address(block), bytes, request->cache);
  if (allocator->options.poison && !at_stream_capturing(request->stream)) at_poison_fill(block);
  (void)at_block_cache(allocator, block);
  *out = at_heap_take(allocator, request->heap, request->size);
  return *out ? ATTUNE_OK
              : ATTUNE_OUT_OF_MEMORY; /* a neighbour was taken in between: the caller's next step tries again */
}

/* The whole granules of a cached block leave: it is cut to them, what lies before and after stays. NULL: none, or no
 * memory for the cuts. */
static at_block *take_granules(at_allocator *allocator, at_block *block) {
  at_segment *segment = block->segment;
  size_t offset = at_block_address(block) - (uintptr_t)segment->base;
  size_t first = round_up(offset, segment->granule), end = (offset + block->size) / segment->granule * segment->granule;
  if (first >= end) return NULL;
  size_t size = block->size;
  at_block *middle = block, *after = NULL;
  at_block_uncache(allocator, block);
  at_block_set_state(block, AT_BLOCK_LEAVING);
  if (first > offset) middle = at_block_cut(allocator, block, first - offset);
  if (middle && end < offset + size) {
    after = at_block_cut(allocator, middle, end - first);
    if (!after) {
      if (middle != block) at_block_swallow(allocator, block, middle);
      middle = NULL;
    }
  }
  if (middle != block) (void)at_block_cache(allocator, block);
  if (after) (void)at_block_cache(allocator, after);
  return middle;
}

static at_block *take_all_granules(at_allocator *allocator) {
  at_block *list = NULL;
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = at_pool_is_held(pool) ? NULL : pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next)
        for (at_block *block = at_segment_expandable(segment) ? segment->first : NULL; block; block = block->next) {
          at_block *taken = at_block_get_state(block) == AT_BLOCK_CACHED ? take_granules(allocator, block) : NULL;
          if (!taken) continue;
          taken->link = list;
          list = taken;
          block = taken;
        }
  return list;
}

uint64_t at_expandable_shrink(at_allocator *allocator) {
  at_block *list = take_all_granules(allocator);
  uint64_t bytes = 0;
  if (!list) return 0;
  pthread_mutex_unlock(&allocator->lock);
  at_sync_waits(allocator->device, "returning memory to the device waits for its work");
  for (at_block *block = list; block; block = block->link) unmap(allocator->device, block->segment, block);
  pthread_mutex_lock(&allocator->lock);
  while (list) {
    at_block *block = list;
    at_segment *segment = block->segment;
    list = block->link;
    if (!keep_mapped(allocator, block)) continue;
    bytes += block->size;
    count_mapped(segment, 0, block->size);
    at_unreserve(allocator, block->size);
    at_figure_sub(allocator->reserved_bytes, block->small, block->size);
    allocator->device_frees++;
    (void)at_history_add(allocator, AT_ACTION_SEGMENT_UNMAP, at_block_address(block), block->size,
                         segment->heap->cache);
    become_unmapped(allocator, block);
  }
  return bytes;
}

void at_expandable_destroy(at_allocator *allocator, at_segment *segment) {
  allocator->device->backend.vm->release(allocator->device, segment->base, segment->reserved);
  at_figure_sub(allocator->segments, segment->small, 1);
  at_block_drop(allocator, segment->first);
  free(segment->handles);
  free(segment);
}
