/* SPDX-License-Identifier: Apache-2.0
 * stream_cache.c: stream caches: made for a stream at its first use, emptied into heaps, closed with the stream. */
#include "src/memory/malloc/stream_cache.h"

#include <stdlib.h>
#include <time.h>

/* A closed cache whose work is done, for a new stream: what it cached is used again. Lock held. */
static at_stream_cache *reuse_closed(at_allocator *allocator) {
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next)
    if (cache->life == AT_STREAM_CACHE_CLOSED) return cache;
  return NULL;
}

/* Lock held. */
static at_stream_cache *make_cache(at_allocator *allocator) {
  at_stream_cache *cache = NULL;
  if (posix_memalign((void **)&cache, 128, sizeof *cache) != 0) return NULL;
  *cache = (at_stream_cache){.allocator = allocator, .id = allocator->cache_count, .life = AT_STREAM_CACHE_CLOSED};
  cache->waiting_end = &cache->waiting;
  cache->heap = at_heap_of(allocator, &allocator->common, cache);
  if (!cache->heap) {
    free(cache);
    return NULL;
  }
  allocator->cache_count++;
  cache->next = allocator->caches;
  allocator->caches = cache;
  return cache;
}

/* Lock held. */
static at_stream_cache *open_cache(at_allocator *allocator, attune_stream *stream) {
  at_stream_cache *cache = reuse_closed(allocator);
  if (!cache) cache = make_cache(allocator);
  if (!cache) return NULL;
  cache->stream = stream;
  cache->life = AT_STREAM_CACHE_OPEN;
  cache->capturing = false;
  cache->capture_pool = NULL;
  cache->depth = 0;
  unsigned flags = at_allocator_flags(allocator);
  if (!stream->owned) flags |= AT_STREAM_CACHE_FOREIGN;
  atomic_store(&cache->flags, flags);
  __atomic_store_n(&stream->memory, cache, __ATOMIC_RELEASE);
  return cache;
}

at_stream_cache *at_stream_cache_of(attune_stream *stream) {
  at_stream_cache *cache = __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE);
  if (AT_LIKELY(cache != NULL)) return cache;
  at_allocator *allocator = at_allocator_of(stream->device);
  if (!allocator) return NULL;
  pthread_mutex_lock(&allocator->lock);
  cache =
      __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE); /* a default stream may have been used by another thread */
  if (!cache) cache = open_cache(allocator, stream);
  pthread_mutex_unlock(&allocator->lock);
  if (!cache) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a stream");
  return cache;
}

at_heap *at_heap_of(at_allocator *allocator, attune_pool *pool, at_stream_cache *cache) {
  (void)allocator;
  for (at_heap *heap = pool->heaps; heap; heap = heap->next)
    if (heap->cache == cache) return heap;
  at_heap *heap = calloc(1, sizeof *heap);
  if (!heap) return NULL;
  *heap = (at_heap){.next = pool->heaps, .pool = pool, .cache = cache};
  pool->heaps = heap;
  return heap;
}

/* All blocks of the bins as one list. Cache locked. */
static at_block *take_all(at_stream_cache *cache) {
  at_block *all = NULL;
  for (size_t word = 0; word < AT_COUNT(cache->used); word++) {
    for (uint64_t used = cache->used[word]; used; used &= used - 1) {
      at_bin *bin = &cache->bins[word * 64 + (size_t)__builtin_ctzll(used)];
      while (bin->top) {
        at_block *block = bin->top;
        bin->top = block->link;
        block->link = all;
        all = block;
      }
    }
    cache->used[word] = 0;
  }
  return all;
}

void at_stream_cache_flush(at_allocator *allocator, at_stream_cache *cache) {
  at_stream_cache_lock(cache);
  at_block *block = take_all(cache);
  at_stream_cache_unlock(cache);
  while (block) {
    at_block *next = block->link;
    (void)at_block_cache(allocator, block);
    block = next;
  }
}

void at_stream_cache_flush_all(at_allocator *allocator) {
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) at_stream_cache_flush(allocator, cache);
}

void at_stream_cache_count_alloc(at_stream_cache *cache, bool small, size_t size, size_t requested) {
  at_stream_cache_lock(cache);
  at_stream_cache_add(cache, small, size, requested);
  at_stream_cache_unlock(cache);
}

/* From here on no event is recorded on the stream; what is freed while its last work runs waits for the end of the
 * closing. The stream is still there for those functions of the program, in other threads, that were told of it. */
void at_memory_stream_closing(attune_stream *stream) {
  static const struct timespec nap = {.tv_nsec = 50000};
  at_stream_cache *cache = stream->memory;
  if (!cache) return;
  pthread_mutex_lock(&cache->allocator->lock);
  cache->life = AT_STREAM_CACHE_CLOSING;
  while (cache->told > 0) {
    pthread_mutex_unlock(&cache->allocator->lock);
    nanosleep(&nap, NULL);
    pthread_mutex_lock(&cache->allocator->lock);
  }
  pthread_mutex_unlock(&cache->allocator->lock);
}

/* The stream's work is done: whatever waited for it waits no more. */
void at_memory_stream_closed(at_stream_cache *cache) {
  if (!cache) return;
  at_allocator *allocator = cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  at_stream_cache_flush(allocator, cache);
  while (cache->depth > 0) at_pool_drop(allocator, cache->pools[--cache->depth]); /* what was begun and not ended */
  atomic_fetch_and(&cache->flags, ~(unsigned)AT_STREAM_CACHE_POOL);
  cache->stream = NULL;
  cache->life = AT_STREAM_CACHE_CLOSED;
  at_memory_catch_up(allocator, false);
  pthread_mutex_unlock(&allocator->lock);
}
