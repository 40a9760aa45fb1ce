/* SPDX-License-Identifier: Apache-2.0
 * orphan_pools.c: pools without a holder, such as those of destroyed graphs. When all work that may use what is
 * free of such a pool is done, its free segments serve the requests of other pools, the next graph's before all; so
 * programs that make and destroy graphs for ever do not grow. */
#include "src/memory/malloc/stream_cache.h"

#include <stdlib.h>

/* Free segments of these go back and do not stay. */
static bool goes_back(const at_allocator *allocator, const attune_pool *pool) {
  return pool->own_allocator || at_allocator_is_direct(allocator);
}

/* Whether what is free of the pool may be given to the device or to the program's allocator now. */
static bool may_release(const at_allocator *allocator, const attune_pool *pool) {
  return pool->references == 0 && allocator->captures == 0 && goes_back(allocator, pool);
}

void at_pool_release_abandoned(at_allocator *allocator, attune_pool *pool) {
  if (may_release(allocator, pool)) (void)at_segments_release_pool(allocator, pool);
}

void at_pool_drop(at_allocator *allocator, attune_pool *pool) {
  if (--pool->references > 0) return;
  at_pool_abandon(allocator, pool);
  at_pools_record_abandoned(allocator);
  at_pool_release_abandoned(allocator, pool);
  at_pools_reap(allocator);
}

static bool has_free_segment(const attune_pool *pool) {
  for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
    for (const at_segment *segment = heap->segments; segment; segment = segment->next)
      if (at_segment_is_free(segment)) return true;
  return false;
}

/* The lock is given up with each pool, so the search starts over. */
void at_pools_release_abandoned(at_allocator *allocator) {
  for (attune_pool *pool = allocator->common.next; pool;) {
    if (may_release(allocator, pool) && has_free_segment(pool)) {
      (void)at_segments_release_pool(allocator, pool);
      pool = allocator->common.next;
    } else {
      pool = pool->next;
    }
  }
  at_pools_reap(allocator);
}

/* ---- until no work uses it ---- */

static bool is_captured(at_stream_cache *cache) {
  return cache && cache->life == AT_STREAM_CACHE_OPEN && at_stream_capturing(cache->stream);
}

/* A stream without work in flight needs no event. */
static bool is_busy(at_stream_cache *cache) {
  if (!cache || cache->life == AT_STREAM_CACHE_CLOSED) return false;
  return cache->life != AT_STREAM_CACHE_OPEN ||
         cache->stream->device->backend.stream->query(cache->stream) != ATTUNE_OK;
}

/* One event for each stream that the pool's blocks were freed on, and one for that of the latest replay: replays of
 * graphs with one pool run one after the other. False: not now, in a capture or without memory for it. */
static bool record_events(at_allocator *allocator, attune_pool *pool) {
  at_stream_cache *replayed = atomic_load(&pool->replayed);
  if (is_captured(replayed)) return false;
  for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
    if (is_captured(heap->cache)) return false;
  for (const at_heap *heap = pool->heaps;; heap = heap->next) {
    at_stream_cache *cache = heap ? heap->cache : replayed;
    if (is_busy(cache)) {
      at_use *use = malloc(sizeof *use);
      if (!use) return false; /* the events recorded so far are waited for in vain, no more */
      *use = (at_use){.pool = pool};
      at_pending_wait(allocator, cache, use);
    }
    if (!heap) return true;
  }
}

void at_pools_record_abandoned(at_allocator *allocator) {
  if (allocator->captures > 0 || allocator->abandoned == 0) return;
  /* a query that is not ready leaves one; the caller's thread keeps its own */
  const at_message kept = at_message_keep();
  for (attune_pool *pool = allocator->common.next; pool && allocator->abandoned > 0; pool = pool->next) {
    if (pool->life != AT_POOL_ABANDONED || !record_events(allocator, pool)) continue;
    pool->life = pool->waits > 0 ? AT_POOL_WAITING : AT_POOL_IDLE;
    allocator->abandoned--;
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
}

/* ---- used again ---- */

/* A pool keeps what it takes for as long as it lives: it takes no segment much larger than one made for it. */
static bool is_too_large(const at_allocator *allocator, const at_request *request, const at_segment *segment) {
  size_t made = allocator->options.large_segment;
  if (made < request->size) made = request->size + AT_SEGMENT_UNIT;
  return request->pool != &allocator->common && segment->bytes > (request->pool->no_split ? made : 2 * made);
}

static bool fits_plain(const at_allocator *allocator, const at_request *request, const at_segment *segment) {
  return at_segment_is_free(segment) && segment->small == (request->size <= AT_SMALL_REQUEST) &&
         segment->bytes >= request->size && !is_too_large(allocator, request, segment) &&
         at_block_may_serve(&allocator->options, segment->first, request->size);
}

/* What was freed on the request's own stream alone is used again in that stream's order, but not by a capture: its
 * replays run elsewhere. */
static bool is_in_order(const attune_pool *pool, const at_request *request) {
  const at_stream_cache *replayed = atomic_load(&((attune_pool *)(uintptr_t)pool)->replayed);
  if (pool->references > 0 || request->stream->capture || request->cache->capture_pool) return false;
  if (replayed && replayed != request->cache) return false;
  for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
    if (heap->cache != request->cache) return false;
  return true;
}

/* A heap has one expandable segment of a kind: two would not merge what is free of them. */
static bool fits_expandable(const at_request *request, const at_segment *segment) {
  if (!at_segment_expandable(segment) || segment->small != at_heap_prefers_small(request->heap, request->size))
    return false;
  for (const at_segment *own = request->heap->segments; own; own = own->next)
    if (at_segment_expandable(own) && own->small == segment->small) return false;
  for (at_block *block = segment->first; block; block = block->next) {
    const at_block_state state = at_block_get_state(block);
    if (state != AT_BLOCK_CACHED && state != AT_BLOCK_UNMAPPED) return false;
  }
  return true;
}

/* The smallest that fits. */
static at_segment *find_segment(const at_allocator *allocator, const at_request *request) {
  at_segment *best = NULL;
  for (const attune_pool *pool = allocator->common.next; pool; pool = pool->next) {
    if (pool->own_allocator || (pool->life != AT_POOL_IDLE && !is_in_order(pool, request))) continue;
    for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next)
        if ((fits_plain(allocator, request, segment) || fits_expandable(request, segment)) &&
            (!best || segment->bytes < best->bytes))
          best = segment;
  }
  return best;
}

/* All of its blocks belong to the request's stream and pool from now on. No two free ones are neighbours. */
static void take_over(at_allocator *allocator, const at_request *request, at_segment *segment) {
  for (at_block *block = segment->first; block; block = block->next) {
    if (at_block_get_state(block) == AT_BLOCK_CACHED) {
      at_block_uncache(allocator, block);
      at_block_set_state(block, AT_BLOCK_LEAVING);
    }
    block->plain = request->pool == &allocator->common;
    atomic_store_explicit(&block->cache, request->cache, memory_order_relaxed);
  }
  at_segment_move(segment, request);
  for (at_block *block = segment->first; block; block = block->next) {
    if (at_block_get_state(block) != AT_BLOCK_LEAVING) continue;
    if (allocator->options.poison && !at_stream_capturing(request->stream)) at_poison_fill(block);
    (void)at_block_cache(allocator, block);
  }
}

at_block *at_pools_adopt(at_allocator *allocator, const at_request *request) {
  if (request->pool->own_allocator) return NULL;
  at_segment *segment = find_segment(allocator, request);
  if (!segment) return NULL;
  take_over(allocator, request, segment);
  return at_heap_take(allocator, request->heap, request->size);
}

/* ---- gone ---- */

static bool is_unmapped(const at_segment *segment) {
  return at_segment_expandable(segment) && at_block_get_state(segment->first) == AT_BLOCK_UNMAPPED &&
         !segment->first->next;
}

static bool is_empty(const attune_pool *pool) {
  if (pool->leaving > 0 || pool->waits > 0) return false;
  for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
    for (const at_segment *segment = heap->segments; segment; segment = segment->next)
      if (!is_unmapped(segment)) return false;
  return true;
}

static void free_pool(at_allocator *allocator, attune_pool *pool) {
  for (at_heap *heap = pool->heaps, *next; heap; heap = next) {
    next = heap->next;
    for (at_segment *segment = heap->segments, *after; segment; segment = after) {
      after = segment->next;
      at_expandable_destroy(allocator, segment);
    }
    free(heap);
  }
  if (pool->life == AT_POOL_ABANDONED) allocator->abandoned--;
  free(pool->managed);
  free(pool);
}

void at_pools_reap(at_allocator *allocator) {
  for (attune_pool **link = &allocator->common.next; *link;) {
    attune_pool *pool = *link;
    if (pool->references > 0 || !is_empty(pool)) {
      link = &pool->next;
      continue;
    }
    *link = pool->next;
    free_pool(allocator, pool);
  }
}

/* --- the steps of a pool without a holder: abandoned, then waiting for its events, then idle --- */

void at_pool_abandon(at_allocator *allocator, attune_pool *pool) {
  if (pool->references > 0 || pool->life == AT_POOL_ABANDONED) return;
  pool->life = AT_POOL_ABANDONED;
  allocator->abandoned++;
}

void at_pool_waits_less(attune_pool *pool) {
  if (--pool->waits == 0 && pool->life == AT_POOL_WAITING) pool->life = AT_POOL_IDLE;
}

void at_pools_forget(at_allocator *allocator) {
  for (attune_pool *pool = allocator->common.next; pool; pool = pool->next)
    if (pool->life == AT_POOL_ABANDONED) pool->life = AT_POOL_IDLE;
  allocator->abandoned = 0;
}
