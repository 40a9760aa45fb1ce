/* SPDX-License-Identifier: Apache-2.0
 * segments.c: memory taken from the device and given back to it. */
#include "src/memory/malloc/tree.h"
#include "src/stream/sync_debug.h"

#include <stdlib.h>

static size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

static const attune_allocator *own_allocator(const at_allocator *allocator, const attune_pool *pool) {
  if (pool->own_allocator) return &pool->raw;
  return allocator->has_own ? &allocator->own : NULL;
}

static size_t segment_bytes(const at_memory_options *options, size_t size) {
  if (size <= AT_SMALL_REQUEST) return AT_SMALL_SEGMENT;
  if (size < AT_LARGE_REQUEST && size <= options->large_segment) return options->large_segment;
  return round_up(size, AT_SEGMENT_UNIT);
}

/* A heap that has much already gets more at a time: in few and large segments more neighbours merge, so less of them
 * is lost in pieces. Not where blocks are not split, nor for the program's allocator, which is asked for what is
 * needed. */
static size_t grown_bytes(const at_allocator *allocator, const at_request *request, size_t least) {
  size_t grown = request->heap->large_bytes / 8 / AT_SEGMENT_UNIT * AT_SEGMENT_UNIT;
  if (grown > AT_GROWN_SEGMENT) grown = AT_GROWN_SEGMENT;
  bool split = grown < allocator->options.max_split && !request->pool->no_split;
  if (!split || own_allocator(allocator, request->pool) || request->size <= AT_SMALL_REQUEST) return least;
  return grown > least ? grown : least;
}

/* How a plain segment is taken: with no cache, for the request alone, from the driver's stream-ordered allocator. In a
 * capture what is freed may serve again, and the driver's memory would be a node of the graph. */
typedef struct manner {
  bool direct, exact, async;
} manner;

static manner manner_of(const at_allocator *allocator, const at_request *request) {
  const bool direct = at_allocator_is_direct(allocator), exact = direct && allocator->captures == 0;
  return (manner){direct, exact, exact && allocator->options.async && !own_allocator(allocator, request->pool)};
}

/* Without the lock. */
static attune_status take_raw(at_allocator *allocator, const at_request *request, size_t bytes, bool async,
                              void **out) {
  attune_device *device = allocator->device;
  const attune_allocator *own = own_allocator(allocator, request->pool);
  *out = NULL;
  if (request->pool->managed) return at_managed_take(request->pool->managed, device, out, bytes);
  if (async) return device->backend.async->alloc(request->stream, out, bytes);
  if (!own) return device->backend.memory->alloc(device, out, bytes);
  *out = own->alloc(own->user, bytes, device, request->stream);
  if (*out) return ATTUNE_OK;
  return at_fail(ATTUNE_OUT_OF_MEMORY, "the program's allocator has no memory for %zu bytes on %s", bytes,
                 device->name);
}

static void link_segment(at_heap *heap, at_segment *segment) {
  segment->heap = heap;
  segment->previous = NULL;
  segment->next = heap->segments;
  if (segment->next) segment->next->previous = segment;
  heap->segments = segment;
  if (!segment->small) heap->large_bytes += segment->bytes;
}

static void unlink_segment(at_segment *segment) {
  if (segment->next) segment->next->previous = segment->previous;
  if (segment->previous)
    segment->previous->next = segment->next;
  else
    segment->heap->segments = segment->next;
  if (!segment->small) segment->heap->large_bytes -= segment->bytes;
}

static void enter_segment(at_allocator *allocator, const at_request *request, at_segment *segment, at_block *block) {
  block->small = segment->small;
  block->plain = request->pool == &allocator->common && !segment->exact;
  block->size = segment->bytes;
  block->segment = segment;
  atomic_store_explicit(&block->cache, request->cache, memory_order_relaxed);
  at_block_set_state(block, AT_BLOCK_LEAVING);
  segment->first = block;
  link_segment(request->heap, segment);
  at_annotate_segment(allocator, segment);
  at_address_table_insert(&block->entry, (uintptr_t)segment->base);
  at_figure_add(allocator->segments, segment->small, 1);
  at_figure_add(allocator->reserved_bytes, segment->small, segment->bytes);
  allocator->device_allocs++;
  if (segment->bytes >= allocator->options.max_split) at_figure_add_one(&allocator->oversize_segments, 1);
  (void)at_history_add(allocator, AT_ACTION_SEGMENT_ALLOC, (uintptr_t)segment->base, segment->bytes, request->cache);
}

/* Lock held, but not while the device is asked. */
static attune_status take_reserved(at_allocator *allocator, const at_request *request, size_t bytes, manner how,
                                   void **out) {
  if (!at_reserve(allocator, bytes)) return ATTUNE_OUT_OF_MEMORY;
  pthread_mutex_unlock(&allocator->lock);
  attune_status status = take_raw(allocator, request, bytes, how.async, out);
  pthread_mutex_lock(&allocator->lock);
  if (status != ATTUNE_OK) at_unreserve(allocator, bytes);
  return status;
}

static attune_status take_segment(at_allocator *allocator, const at_request *request, manner how, void **out,
                                  size_t *out_bytes) {
  size_t least = how.exact    ? request->bytes
                 : how.direct ? request->size
                              : segment_bytes(&allocator->options, request->size);
  size_t bytes = how.direct ? least : grown_bytes(allocator, request, least);
  attune_status status = take_reserved(allocator, request, bytes, how, out);
  if (status == ATTUNE_OUT_OF_MEMORY && bytes > least)
    status = take_reserved(allocator, request, bytes = least, how, out);
  *out_bytes = bytes;
  return status;
}

static attune_status add_plain(at_allocator *allocator, const at_request *request, at_block **out) {
  at_segment *segment = calloc(1, sizeof *segment);
  at_block *block = segment ? at_block_new(allocator) : NULL;
  if (!block) {
    free(segment);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a segment");
  }
  void *base = NULL;
  size_t bytes = 0;
  const manner how = manner_of(allocator, request);
  attune_status status = take_segment(allocator, request, how, &base, &bytes);
  if (status != ATTUNE_OK) {
    at_block_drop(allocator, block);
    free(segment);
    return status;
  }
  *segment = (at_segment){
      .base = base, .bytes = bytes, .small = request->size <= AT_SMALL_REQUEST, .exact = how.exact, .async = how.async};
  enter_segment(allocator, request, segment, block);
  if (!how.direct) {
    if (allocator->options.poison && !at_stream_capturing(request->stream)) at_poison_fill(block);
    at_block_trim(allocator, block, request->size);
  }
  *out = block;
  return ATTUNE_OK;
}

attune_status at_segment_add(at_allocator *allocator, const at_request *request, at_block **out) {
  *out = NULL;
  if (!allocator->options.expandable || allocator->options.nvtx || request->pool->own_allocator ||
      at_allocator_is_direct(allocator))
    return add_plain(allocator, request, out);
  bool possible = true;
  attune_status status = at_expandable_grow(allocator, request, out, &possible);
  return possible ? status : add_plain(allocator, request, out);
}

static bool is_whole(const at_block *block) {
  return !at_block_is_piece(block) && !at_segment_expandable(block->segment);
}

at_block *at_segment_adopt(at_allocator *allocator, const at_request *request) {
  bool small = request->size <= AT_SMALL_REQUEST;
  for (at_heap *heap = request->pool->heaps; heap; heap = heap->next) {
    if (heap->cache->life != AT_STREAM_CACHE_CLOSED) continue;
    at_block *block = at_tree_find(&heap->trees[small], request->size);
    if (!block || !is_whole(block) || !at_block_may_serve(&allocator->options, block, request->size)) continue;
    at_block_uncache(allocator, block);
    at_block_set_state(block, AT_BLOCK_LEAVING);
    atomic_store_explicit(&block->cache, request->cache, memory_order_relaxed);
    at_segment_move(block->segment, request);
    at_block_trim(allocator, block, request->size);
    return block;
  }
  return NULL;
}

void at_segment_move(at_segment *segment, const at_request *request) {
  at_heap *heap = request->heap;
  unlink_segment(segment);
  link_segment(heap, segment);
  if (at_segment_expandable(segment) && !segment->small)
    heap->wide = segment->bytes >= AT_WIDE_GRANULES * segment->granule;
}

/* Takes a whole free segment out of its heap and puts it before `list`. */
static at_segment *take_out(at_allocator *allocator, at_block *block, at_segment *list) {
  at_segment *segment = block->segment;
  at_block_uncache(allocator, block);
  at_block_set_state(block, AT_BLOCK_LEAVING);
  unlink_segment(segment);
  segment->heap->pool->leaving++;
  segment->next = list;
  return segment;
}

/* Without the lock. What a pool of the program's own got is given back after the device's work; the device's allocator
 * of the program works in stream order, but not the host's, which has nothing to tell the order by; the backend waits
 * by itself. */
static void give_raw(at_allocator *allocator, const at_segment *segment, bool *waited) {
  attune_device *device = allocator->device;
  const attune_pool *pool = segment->heap->pool;
  const attune_allocator *own = own_allocator(allocator, pool);
  if (segment->given) return;
  if (pool->managed && !*waited) (void)device->backend.device->wait_streams(device);
  if (pool->managed) *waited = true;
  if (!own || pool->managed) {
    (void)device->backend.memory->free(device,
                                       segment->base); /* it fails on a lost device only: nothing is left to do */
    return;
  }
  const bool waits = pool->own_allocator || device->backend.kind == ATTUNE_DEVICE_HOST;
  if (waits && !*waited) (void)device->backend.device->wait_streams(device);
  if (waits) *waited = true;
  own->free(own->user, segment->base, segment->bytes, device, segment->told);
}

/* Lock held. From now until the segment is gone its stream stays open. */
static void begin_telling(const at_allocator *allocator, at_segment *segment) {
  at_stream_cache *cache = segment->heap->cache;
  if (cache->life != AT_STREAM_CACHE_OPEN || !own_allocator(allocator, segment->heap->pool)) return;
  segment->told = cache->stream;
  cache->told++;
}

static void end_telling(const at_segment *segment) {
  segment->heap->cache->told -= segment->told != NULL;
}

/* In the order of its stream, which cannot close while the lock is held; the driver only notes it. */
static bool give_async(at_segment *segment) {
  const at_stream_cache *cache = segment->heap->cache;
  if (!segment->async || cache->life != AT_STREAM_CACHE_OPEN) return false;
  return cache->stream->device->backend.async->free(cache->stream, segment->base) == ATTUNE_OK;
}

static uint64_t give_back(at_allocator *allocator, at_segment *list) {
  bool waited = false, all_async = true;
  uint64_t bytes = 0;
  if (!list) return 0;
  for (at_segment *segment = list; segment; segment = segment->next) {
    at_annotate_segment_gone(allocator, segment);
    at_address_table_remove(&segment->first->entry);
    segment->given = give_async(segment);
    begin_telling(allocator, segment);
    all_async = all_async && segment->given;
  }
  pthread_mutex_unlock(&allocator->lock);
  if (!all_async) at_sync_waits(allocator->device, "returning memory to the device waits for its work");
  for (at_segment *segment = list; segment; segment = segment->next) give_raw(allocator, segment, &waited);
  pthread_mutex_lock(&allocator->lock);
  while (list) {
    at_segment *next = list->next;
    at_figure_sub(allocator->segments, list->small, 1);
    at_figure_sub(allocator->reserved_bytes, list->small, list->bytes);
    at_unreserve(allocator, list->bytes);
    allocator->device_frees++;
    if (list->bytes >= allocator->options.max_split) at_figure_sub_one(&allocator->oversize_segments, 1);
    (void)at_history_add(allocator, AT_ACTION_SEGMENT_FREE, (uintptr_t)list->base, list->bytes, list->heap->cache);
    bytes += list->bytes;
    list->heap->pool->leaving--;
    end_telling(list);
    at_block_drop(allocator, list->first);
    free(list);
    list = next;
  }
  return bytes;
}

bool at_segment_is_free(const at_segment *segment) {
  return !at_segment_expandable(segment) && !segment->first->next &&
         at_block_get_state(segment->first) == AT_BLOCK_CACHED && !at_pool_is_held(segment->heap->pool);
}

/* The pool's free segments, before `list`. */
static at_segment *take_free(at_allocator *allocator, const attune_pool *pool, at_segment *list) {
  for (at_heap *heap = pool->heaps; heap; heap = heap->next)
    for (at_segment *segment = heap->segments, *next; segment; segment = next) {
      next = segment->next;
      if (at_segment_is_free(segment)) list = take_out(allocator, segment->first, list);
    }
  return list;
}

uint64_t at_segments_release_pool(at_allocator *allocator, attune_pool *pool) {
  return give_back(allocator, take_free(allocator, pool, NULL));
}

void at_segments_release_exact(at_allocator *allocator) {
  at_segment *list = NULL;
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments, *next; segment; segment = next) {
        next = segment->next;
        if (segment->exact && at_segment_is_free(segment)) list = take_out(allocator, segment->first, list);
      }
  (void)give_back(allocator, list);
}

uint64_t at_segments_release(at_allocator *allocator) {
  at_segment *list = NULL;
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next) list = take_free(allocator, pool, list);
  const uint64_t bytes = give_back(allocator, list);
  return bytes + at_expandable_shrink(allocator);
}

static at_segment *oldest_free(at_allocator *allocator) {
  at_segment *oldest = NULL;
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next)
        if (at_segment_is_free(segment) && (!oldest || segment->first->freed_at < oldest->first->freed_at))
          oldest = segment;
  return oldest;
}

uint64_t at_segments_release_oldest(at_allocator *allocator, uint64_t bytes) {
  at_segment *list = NULL;
  for (uint64_t taken = 0; taken < bytes; taken += list->bytes) {
    at_segment *segment = oldest_free(allocator);
    if (!segment) break;
    list = take_out(allocator, segment->first, list);
  }
  return give_back(allocator, list);
}

bool at_segments_release_oversize(at_allocator *allocator, const at_request *request) {
  size_t max_split = allocator->options.max_split;
  if (max_split == SIZE_MAX) return false;
  at_tree *tree = &request->heap->trees[0];
  at_segment *list = NULL;
  uint64_t taken = 0;
  at_block *block = at_tree_find(tree, request->size > max_split ? request->size : max_split);
  if (!block || block->size < request->size) block = at_tree_last(tree);
  while (block && taken < request->size && block->size >= max_split && is_whole(block)) {
    taken += block->size;
    list = take_out(allocator, block, list);
    block = at_tree_last(tree);
  }
  return give_back(allocator, list) >= request->size;
}

/* --- with what stream caches keep --- */

uint64_t at_memory_release(at_allocator *allocator) {
  at_stream_cache_flush_all(allocator);
  const uint64_t bytes = at_segments_release(allocator);
  at_pools_reap(allocator);
  return bytes;
}

uint64_t at_memory_release_oldest(at_allocator *allocator, uint64_t bytes) {
  at_stream_cache_flush_all(allocator);
  return at_segments_release_oldest(allocator, bytes);
}
