/* SPDX-License-Identifier: Apache-2.0
 * malloc.c: attune_alloc and attune_free: the fast path through the stream's cache, the slow path of a free. */
#include "src/memory/malloc/stream_cache.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

/* True when the cache may serve the stream: nothing asks for the slow path, and the program does not capture its own
 * stream behind our back. */
static inline bool is_fast(at_stream_cache *cache, attune_stream *stream) {
  unsigned flags = atomic_load_explicit(&cache->flags, memory_order_relaxed);
  if (AT_LIKELY(flags == 0)) return true;
  return flags == AT_STREAM_CACHE_FOREIGN && !at_stream_capturing(stream);
}

attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes) {
  AT_REQUIRE_AS(out, "point to a pointer");
  *out = NULL;
  AT_REQUIRE_STREAM(stream);
  if (AT_UNLIKELY(bytes == 0)) return ATTUNE_OK;
  at_stream_cache *cache = __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE);
  if (AT_UNLIKELY(!cache) && !(cache = at_stream_cache_of(stream))) return ATTUNE_OUT_OF_MEMORY;
  at_allocator *allocator = cache->allocator;
  bool usual =
      AT_LOAD(allocator->plain_rounding) && bytes <= PTRDIFF_MAX && !(AT_LOAD(allocator->epoch) & AT_EPOCH_LOST);
  if (AT_LIKELY(usual && is_fast(cache, stream))) {
    size_t size = (bytes + AT_BLOCK_BYTES - 1) & ~(AT_BLOCK_BYTES - 1);
    at_stream_cache_lock(cache);
    at_block *block = at_stream_cache_pop(cache, size);
    if (AT_LIKELY(block != NULL)) {
      block->requested = bytes;
      at_stream_cache_add(cache, block->small, block->size, bytes);
      at_block_set_state(block, AT_BLOCK_LIVE);
      at_stream_cache_unlock(cache);
      *out = at_block_pointer(block);
      return ATTUNE_OK;
    }
    at_stream_cache_unlock(cache);
  }
  return at_allocator_alloc(out, stream, cache, bytes);
}

/* Into the cache it came from; false: the slow path must look at it. A pointer that is wrong fails one of the
 * conditions. */
static inline bool free_fast(uintptr_t address, at_stream_cache *cache, at_block *block) {
  bool done = false;
  at_stream_cache_lock(cache);
  if (AT_LIKELY(at_block_get_state(block) == AT_BLOCK_LIVE && at_block_address(block) == address && block->plain &&
                !block->uses && at_stream_cache_push(cache, block))) {
    at_stream_cache_sub(cache, block->small, block->size, block->requested);
    at_block_set_state(block, AT_BLOCK_BINNED);
    done = true;
  }
  at_stream_cache_unlock(cache);
  return done;
}

/* The live block of a pointer, with its allocator locked; else nothing is locked. `stream` may be NULL. */
static attune_status lock_block(at_block **out, const void *pointer, const attune_stream *stream) {
  uintptr_t address = (uintptr_t)pointer;
  at_entry *entry = at_address_table_find_surely(address);
  if (entry && entry->kind == AT_ENTRY_PINNED)
    return AT_INVALID("%p is pinned host memory; should be passed to attune_pinned_free", pointer);
  at_block *block = (at_block *)entry;
  at_stream_cache *cache = block ? atomic_load_explicit(&block->cache, memory_order_relaxed) : NULL;
  at_allocator *allocator = cache ? cache->allocator : stream ? at_allocator_of(stream->device) : NULL;
  if (!allocator) return at_explain_foreign(NULL, address);
  if (stream && stream->device != allocator->device)
    return AT_INVALID("%p is memory of %s, stream is of %s; should be of the same device", pointer,
                      allocator->device->name, stream->device->name);
  pthread_mutex_lock(&allocator->lock);
  attune_status status = at_allocator_check(allocator);
  bool live = block && at_block_address(block) == address && at_block_get_state(block) == AT_BLOCK_LIVE;
  if (status == ATTUNE_OK && live) {
    *out = block;
    return ATTUNE_OK;
  }
  pthread_mutex_unlock(&allocator->lock);
  if (status == ATTUNE_OK) status = at_explain_pointer(allocator, address);
  return status == ATTUNE_NOT_FOUND ? at_explain_foreign(allocator->device, address) : status;
}

/* Lock held; the cache's is taken, for the fast path reads the list. Its own stream needs no entry. */
static attune_status add_use(at_block *block, at_stream_cache *user) {
  at_stream_cache *cache = atomic_load_explicit(&block->cache, memory_order_relaxed);
  if (cache == user) return ATTUNE_OK;
  for (const at_use *use = block->uses; use; use = use->next)
    if (use->cache == user) return ATTUNE_OK;
  at_use *use = malloc(sizeof *use);
  if (!use) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record the use of memory by a stream");
  at_stream_cache_lock(cache);
  *use = (at_use){.next = block->uses, .cache = user, .block = block};
  block->uses = use;
  at_stream_cache_unlock(cache);
  return ATTUNE_OK;
}

/* Lock held. Of two threads that free the same pointer one gets it. */
static bool claim(at_block *block, at_stream_cache *owner) {
  at_stream_cache_lock(owner);
  bool mine = at_block_get_state(block) == AT_BLOCK_LIVE;
  if (mine) {
    at_block_set_state(block, AT_BLOCK_PENDING);
    at_stream_cache_sub(owner, block->small, block->size, block->requested);
  }
  at_stream_cache_unlock(owner);
  return mine;
}

/* Lock held; the block is still live. A stream that is gone has done its work. */
static void note_free(const at_block *block, attune_stream *stream) {
  attune_stream *after[AT_INSTRUMENT_USES + 2] = {stream};
  const at_stream_cache *owner = atomic_load_explicit(&block->cache, memory_order_relaxed);
  int count = 1;
  if (owner->life == AT_STREAM_CACHE_OPEN) after[count++] = owner->stream;
  for (const at_use *use = block->uses; use && count < (int)AT_COUNT(after); use = use->next)
    if (use->cache->life == AT_STREAM_CACHE_OPEN) after[count++] = use->cache->stream;
  at_instrument_free("attune_free", stream, at_block_pointer(block), block->rounded, after, count);
}

/* Lock held. Makes the live block this call's to free, after the work of the stream too. */
static attune_status take_block(at_allocator *allocator, at_block *block, at_stream_cache *user,
                                attune_stream *stream) {
  AT_TRY(add_use(block, user));
  at_statistics_epoch(allocator);
  if (claim(block, atomic_load_explicit(&block->cache, memory_order_relaxed))) return ATTUNE_OK;
  return AT_INVALID("%p on %s was already freed by another thread; should be freed once", at_block_pointer(block),
                    stream->device->name);
}

/* Lock held. The block is cached, at once or when other streams have used it. */
static void retire(at_allocator *allocator, at_block *block) {
  const at_stream_cache *owner = atomic_load_explicit(&block->cache, memory_order_relaxed);
  if (block->size >= allocator->options.max_split) at_figure_sub_one(&allocator->oversize_allocations, 1);
  (void)at_history_add(allocator, AT_ACTION_FREE_REQUESTED, at_block_address(block), block->rounded, owner);
  if (block->uses || at_poison_waits(block))
    at_pending_add(allocator, block);
  else
    at_pending_complete(allocator, block);
}

/* Lock held. Returns memory to the device where the settings, an exact segment or an orphaned pool keep none cached. */
static void trim(at_allocator *allocator, attune_pool *pool, bool exact) {
  if (at_allocator_is_direct(allocator) && allocator->captures == 0)
    (void)at_memory_release(allocator);
  else if (exact && allocator->captures == 0)
    at_segments_release_exact(allocator);
  else if (pool->references == 0)
    at_pool_release_abandoned(allocator, pool);
}

static attune_status free_slowly(void *pointer, attune_stream *stream) {
  at_block *block = NULL;
  at_stream_cache *user = at_stream_cache_of(stream);
  if (!user) return ATTUNE_OUT_OF_MEMORY;
  AT_TRY(lock_block(&block, pointer, stream));
  at_allocator *allocator = atomic_load_explicit(&block->cache, memory_order_relaxed)->allocator;
  attune_pool *pool = block->segment->heap->pool;
  const bool exact = block->segment->exact;
  const attune_status status = take_block(allocator, block, user, stream);
  const bool watched = status == ATTUNE_OK && at_instrumented_races();
  if (status == ATTUNE_OK) at_allocation_watch_end(allocator, block);
  if (watched) note_free(block, stream);
  if (status == ATTUNE_OK) {
    retire(allocator, block);
    trim(allocator, pool, exact);
  }
  pthread_mutex_unlock(&allocator->lock);
  if (watched) at_instrument_tell();
  return status;
}

attune_status attune_free(void *pointer, attune_stream *stream) {
  if (!pointer) return ATTUNE_OK;
  AT_REQUIRE_STREAM(stream);
  at_stream_cache *cache = __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE);
  at_block *block = (at_block *)at_address_table_find((uintptr_t)pointer);
  if (AT_LIKELY(cache && block && block->entry.kind == AT_ENTRY_BLOCK)) {
    bool own = atomic_load_explicit(&block->cache, memory_order_relaxed) == cache;
    bool usual = !(AT_LOAD(cache->allocator->epoch) & AT_EPOCH_LOST);
    if (AT_LIKELY(own && usual && is_fast(cache, stream)) && AT_LIKELY(free_fast((uintptr_t)pointer, cache, block)))
      return ATTUNE_OK;
  }
  return free_slowly(pointer, stream);
}

attune_status attune_record_use(void *pointer, attune_stream *stream) {
  at_block *block = NULL;
  AT_REQUIRE_AS(pointer, "be a pointer from attune_alloc");
  AT_REQUIRE_STREAM(stream);
  at_stream_cache *user = at_stream_cache_of(stream);
  if (!user) return ATTUNE_OUT_OF_MEMORY;
  AT_TRY(lock_block(&block, pointer, stream));
  attune_status status = add_use(block, user);
  pthread_mutex_unlock(&user->allocator->lock);
  return status;
}

attune_status attune_memory_range(const void *pointer, void **out_base, size_t *out_bytes) {
  at_block *block = NULL;
  AT_REQUIRE_AS(pointer, "be a pointer from attune_alloc");
  AT_TRY(lock_block(&block, pointer, NULL));
  if (out_base) *out_base = at_block_pointer(block);
  if (out_bytes) *out_bytes = block->rounded;
  pthread_mutex_unlock(&atomic_load_explicit(&block->cache, memory_order_relaxed)->allocator->lock);
  return ATTUNE_OK;
}
