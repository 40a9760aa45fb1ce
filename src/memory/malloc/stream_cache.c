/* SPDX-License-Identifier: Apache-2.0
 * stream_cache.c: fronts: made for a stream at its first use, emptied into heaps, closed with the stream. */
#include "src/memory/malloc/stream_cache.h"

#include <stdlib.h>
#include <time.h>

/* A closed front whose work is done, for a new stream: what it cached is used again. Lock held. */
static at_stream_cache *reuse_closed(at_allocator *allocator) {
  for (at_stream_cache *front = allocator->fronts; front; front = front->next)
    if (front->life == AT_STREAM_CACHE_CLOSED) return front;
  return NULL;
}

/* Lock held. */
static at_stream_cache *make_front(at_allocator *allocator) {
  at_stream_cache *front = NULL;
  if (posix_memalign((void **)&front, 128, sizeof *front) != 0) return NULL;
  *front = (at_stream_cache){.allocator = allocator, .id = allocator->front_count, .life = AT_STREAM_CACHE_CLOSED};
  front->waiting_end = &front->waiting;
  front->heap = at_heap_of(allocator, &allocator->common, front);
  if (!front->heap) {
    free(front);
    return NULL;
  }
  allocator->front_count++;
  front->next = allocator->fronts;
  allocator->fronts = front;
  return front;
}

/* Lock held. */
static at_stream_cache *open_front(at_allocator *allocator, attune_stream *stream) {
  at_stream_cache *front = reuse_closed(allocator);
  if (!front) front = make_front(allocator);
  if (!front) return NULL;
  front->stream = stream;
  front->life = AT_STREAM_CACHE_OPEN;
  front->capturing = false;
  front->capture_pool = NULL;
  front->depth = 0;
  unsigned flags = at_allocator_flags(allocator);
  if (!stream->owned) flags |= AT_STREAM_CACHE_FOREIGN;
  atomic_store(&front->flags, flags);
  __atomic_store_n(&stream->memory, front, __ATOMIC_RELEASE);
  return front;
}

at_stream_cache *at_stream_cache_of(attune_stream *stream) {
  at_stream_cache *front = __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE);
  if (AT_LIKELY(front != NULL)) return front;
  at_allocator *allocator = at_allocator_of(stream->device);
  if (!allocator) return NULL;
  pthread_mutex_lock(&allocator->lock);
  front =
      __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE); /* a default stream may have been used by another thread */
  if (!front) front = open_front(allocator, stream);
  pthread_mutex_unlock(&allocator->lock);
  if (!front) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a stream");
  return front;
}

at_heap *at_heap_of(at_allocator *allocator, attune_pool *pool, at_stream_cache *front) {
  (void)allocator;
  for (at_heap *heap = pool->heaps; heap; heap = heap->next)
    if (heap->front == front) return heap;
  at_heap *heap = calloc(1, sizeof *heap);
  if (!heap) return NULL;
  *heap = (at_heap){.next = pool->heaps, .pool = pool, .front = front};
  pool->heaps = heap;
  return heap;
}

/* All blocks of the bins as one list. Front locked. */
static at_block *take_all(at_stream_cache *front) {
  at_block *all = NULL;
  for (size_t word = 0; word < AT_COUNT(front->used); word++) {
    for (uint64_t used = front->used[word]; used; used &= used - 1) {
      at_bin *bin = &front->bins[word * 64 + (size_t)__builtin_ctzll(used)];
      while (bin->top) {
        at_block *block = bin->top;
        bin->top = block->link;
        block->link = all;
        all = block;
      }
    }
    front->used[word] = 0;
  }
  return all;
}

void at_stream_cache_flush(at_allocator *allocator, at_stream_cache *front) {
  at_stream_cache_lock(front);
  at_block *block = take_all(front);
  at_stream_cache_unlock(front);
  while (block) {
    at_block *next = block->link;
    (void)at_block_cache(allocator, block);
    block = next;
  }
}

void at_stream_cache_flush_all(at_allocator *allocator) {
  for (at_stream_cache *front = allocator->fronts; front; front = front->next) at_stream_cache_flush(allocator, front);
}

void at_stream_cache_count_alloc(at_stream_cache *front, bool small, size_t size, size_t requested) {
  at_stream_cache_lock(front);
  at_stream_cache_add(front, small, size, requested);
  at_stream_cache_unlock(front);
}

/* From here on no event is recorded on the stream; what is freed while its last work runs waits for the end of the
 * closing. The stream is still there for those functions of the program, in other threads, that were told of it. */
void at_memory_stream_closing(attune_stream *stream) {
  static const struct timespec nap = {.tv_nsec = 50000};
  at_stream_cache *front = stream->memory;
  if (!front) return;
  pthread_mutex_lock(&front->allocator->lock);
  front->life = AT_STREAM_CACHE_CLOSING;
  while (front->told > 0) {
    pthread_mutex_unlock(&front->allocator->lock);
    nanosleep(&nap, NULL);
    pthread_mutex_lock(&front->allocator->lock);
  }
  pthread_mutex_unlock(&front->allocator->lock);
}

/* The stream's work is done: whatever waited for it waits no more. */
void at_memory_stream_closed(at_stream_cache *front) {
  if (!front) return;
  at_allocator *allocator = front->allocator;
  pthread_mutex_lock(&allocator->lock);
  at_stream_cache_flush(allocator, front);
  while (front->depth > 0) at_pool_drop(allocator, front->pools[--front->depth]); /* what was begun and not ended */
  atomic_fetch_and(&front->flags, ~(unsigned)AT_STREAM_CACHE_POOL);
  front->stream = NULL;
  front->life = AT_STREAM_CACHE_CLOSED;
  at_memory_catch_up(allocator, false);
  pthread_mutex_unlock(&allocator->lock);
}
