/* SPDX-License-Identifier: Apache-2.0
 * pending.c: freed blocks that other streams may still use. Each of those streams gets an event; the block is free when
 * all are reached. */
#include "src/base/array.h"
#include "src/memory/malloc/allocator.h"
#include "src/stream/sync_debug.h"

#include <stdlib.h>

static attune_event *take_event(at_allocator *allocator) {
  static const attune_event_options options = {.no_timing = 1};
  attune_event *event = NULL;
  if (allocator->event_count > 0) return allocator->events[--allocator->event_count];
  if (attune_event_create(&event, allocator->device, &options) != ATTUNE_OK) return NULL;
  event->unwatched = true;
  return event;
}

static void keep_event(at_allocator *allocator, attune_event *event) {
  if (!event) return;
  if (AT_ARRAY_ROOM(allocator->events, allocator->event_count, allocator->event_room))
    allocator->events[allocator->event_count++] = event;
  else
    attune_event_destroy(event);
}

void at_pending_complete(at_allocator *allocator, at_block *block) {
  attune_pool *pool = block->segment->heap->pool;
  at_stream_cache *cache = atomic_load_explicit(&block->cache, memory_order_relaxed);
  (void)at_history_add(allocator, AT_ACTION_FREE_COMPLETED, at_block_address(block), block->rounded, cache);
  if (allocator->options.poison && !block->segment->exact) at_poison_fill(block); /* an exact one goes back */
  at_annotate_block_gone(allocator, block);
  (void)at_block_cache(allocator, block);
  at_pool_abandon(allocator, pool);
}

static void defer(at_allocator *allocator, at_block *block) {
  block->link = allocator->deferred;
  allocator->deferred = block;
}

static void leave_pending(at_allocator *allocator, at_block *block) {
  if (at_poison_waits(block)) {
    defer(allocator, block);
    return;
  }
  at_figure_sub(allocator->pending, block->small, 1);
  at_figure_sub(allocator->pending_bytes, block->small, block->size);
  at_pending_complete(allocator, block);
}

void at_pending_wait(at_allocator *allocator, at_stream_cache *cache, at_use *use) {
  attune_event *event = cache->life == AT_STREAM_CACHE_OPEN ? take_event(allocator) : NULL;
  if (event && attune_event_record(event, cache->stream) != ATTUNE_OK) {
    keep_event(allocator, event);
    event = NULL; /* then the block waits for the end of the stream: nothing less is known to be enough */
  }
  *use = (at_use){.cache = cache, .block = use->block, .pool = use->pool, .event = event};
  *cache->waiting_end = use;
  cache->waiting_end = &use->next;
  if (use->block)
    use->block->waits++;
  else
    use->pool->waits++;
}

static bool is_captured(const at_use *uses) {
  for (const at_use *use = uses; use; use = use->next)
    if (use->cache->life == AT_STREAM_CACHE_OPEN && at_stream_capturing(use->cache->stream)) return true;
  return false;
}

static void record_events(at_allocator *allocator, at_block *block) {
  at_use *use = block->uses;
  block->uses = NULL;
  while (use) {
    at_use *next = use->next;
    if (use->cache->life == AT_STREAM_CACHE_CLOSED)
      free(use);
    else
      at_pending_wait(allocator, use->cache, use);
    use = next;
  }
  if (block->waits == 0) leave_pending(allocator, block);
}

/* Events recorded in a capture would become part of the graph and never be reached, so the block waits for the
 * capture's end first. */
void at_pending_add(at_allocator *allocator, at_block *block) {
  at_block_set_state(block, AT_BLOCK_PENDING);
  at_figure_add(allocator->pending, block->small, 1);
  at_figure_add(allocator->pending_bytes, block->small, block->size);
  if (allocator->captures > 0 || is_captured(block->uses))
    defer(allocator, block);
  else
    record_events(allocator, block);
}

void at_pending_record_deferred(at_allocator *allocator) {
  if (allocator->captures > 0) return;
  at_block *block = allocator->deferred;
  allocator->deferred = NULL;
  while (block) {
    at_block *next = block->link;
    if (is_captured(block->uses))
      defer(allocator, block);
    else
      record_events(allocator, block);
    block = next;
  }
}

static bool is_done(const at_use *use) {
  if (use->cache->life == AT_STREAM_CACHE_CLOSED) return true;
  return use->event && attune_event_query(use->event) == ATTUNE_OK;
}

static void finish(at_allocator *allocator, at_stream_cache *cache) {
  at_use *use = cache->waiting;
  cache->waiting = use->next;
  if (!cache->waiting) cache->waiting_end = &cache->waiting;
  keep_event(allocator, use->event);
  at_block *block = use->block;
  attune_pool *pool = use->pool;
  free(use);
  if (!block)
    at_pool_waits_less(pool);
  else if (--block->waits == 0)
    leave_pending(allocator, block);
}

static bool anything_waits(const at_allocator *allocator) {
  for (const at_stream_cache *cache = allocator->caches; cache; cache = cache->next)
    if (cache->waiting) return true;
  return false;
}

/* A query that is not ready leaves a message; the caller's thread keeps the one it had. */
static void process(at_allocator *allocator) {
  const at_message kept = at_message_keep();
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next)
    while (cache->waiting && is_done(cache->waiting)) finish(allocator, cache);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

void at_pending_finish(at_allocator *allocator, bool all) {
  if (!anything_waits(allocator)) return;
  if (all) {
    attune_device *device = allocator->device;
    pthread_mutex_unlock(&allocator->lock);
    at_sync_waits(device, "waiting for memory that other streams use");
    (void)device->backend.device->wait_streams(device); /* a device that fails says so to its next user */
    pthread_mutex_lock(&allocator->lock);
    allocator->synchronizations++;
  }
  process(allocator);
}

void at_pending_forget(at_allocator *allocator) {
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next)
    while (cache->waiting) finish(allocator, cache);
  at_block *block = allocator->deferred;
  allocator->deferred = NULL;
  while (block) {
    at_block *next = block->link;
    for (at_use *use = block->uses; use; use = block->uses) {
      block->uses = use->next;
      free(use);
    }
    leave_pending(allocator, block);
    block = next;
  }
  at_pools_forget(allocator);
}

void at_memory_catch_up(at_allocator *allocator, bool all) {
  if (allocator->captures > 0) return;
  if (allocator->deferred) at_pending_record_deferred(allocator);
  if (allocator->abandoned > 0) at_pools_record_abandoned(allocator);
  at_pending_finish(allocator, all);
}
