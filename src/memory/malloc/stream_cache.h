/* SPDX-License-Identifier: Apache-2.0
 * stream_cache.h: the fast path's pieces: a stream cache's lock, its bins, its counters. */
#ifndef AT_MEMORY_STREAM_CACHE_H
#define AT_MEMORY_STREAM_CACHE_H

#include "src/host/spin.h"
#include "src/memory/malloc/allocator.h"

#define AT_LOAD(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define AT_STORE(x, value) atomic_store_explicit(&(x), (value), memory_order_relaxed)

/* Uncontended, except for a default stream that threads share: held for some nanoseconds. */
static inline void at_stream_cache_lock(at_stream_cache *cache) {
  unsigned turns = 0;
  while (AT_UNLIKELY(atomic_exchange_explicit(&cache->lock, 1, memory_order_acquire) != 0)) {
    while (atomic_load_explicit(&cache->lock, memory_order_relaxed) != 0) {
      at_pause();
      if (++turns % 64 == 0) sched_yield(); /* its holder may have lost the core */
    }
  }
}

static inline void at_stream_cache_unlock(at_stream_cache *cache) {
  atomic_store_explicit(&cache->lock, 0, memory_order_release);
}

static inline unsigned at_bin_index(size_t size) {
  return (unsigned)(((uint64_t)(size / AT_BLOCK_BYTES) * UINT64_C(0x9e3779b97f4a7c15)) >> 57);
}

/* Takes a block of exactly this size; NULL: none. Two bins may have the size, in neighbouring slots of a cache line.
 * Cache locked. */
static inline at_block *at_stream_cache_pop(at_stream_cache *cache, size_t size) {
  at_bin *bin = &cache->bins[at_bin_index(size)];
  if (bin->size != size) bin = &cache->bins[at_bin_index(size) ^ 1];
  at_block *block = bin->size == size ? bin->top : NULL;
  if (block) bin->top = block->link;
  return block;
}

/* False when both bins have blocks of other sizes. Cache locked. */
static inline bool at_stream_cache_push(at_stream_cache *cache, at_block *block) {
  unsigned index = at_bin_index(block->rounded), other = index ^ 1;
  at_bin *bin = &cache->bins[index];
  if (bin->size != block->rounded && (cache->bins[other].size == block->rounded || bin->top))
    bin = &cache->bins[index = other];
  if (bin->size != block->rounded) {
    if (bin->top) return false;
    bin->size = block->rounded;
  }
  block->link = bin->top;
  bin->top = block;
  cache->used[index / 64] |= UINT64_C(1) << (index % 64);
  return true;
}

static inline void at_counter_add(at_stream_cache *cache, int which, bool small, uint64_t amount) {
  at_stream_cache_counter *counter = &cache->counters[which][small];
  uint64_t now = AT_LOAD(counter->current) + amount;
  AT_STORE(counter->current, now);
  AT_STORE(counter->total, AT_LOAD(counter->total) + amount);
  if (now > AT_LOAD(counter->high)) AT_STORE(counter->high, now);
  uint64_t all = now + AT_LOAD(cache->counters[which][!small].current);
  if (all > AT_LOAD(cache->high_all[which])) AT_STORE(cache->high_all[which], all);
}

static inline void at_counter_sub(at_stream_cache *cache, int which, bool small, uint64_t amount) {
  at_stream_cache_counter *counter = &cache->counters[which][small];
  AT_STORE(counter->current, AT_LOAD(counter->current) - amount);
}

/* The cache's high marks begin again with the allocator's epoch. Cache locked. */
static inline void at_stream_cache_begin_epoch(at_stream_cache *cache, uint64_t epoch) {
  for (int which = 0; which < AT_COUNTS; which++) {
    at_stream_cache_counter *counters = cache->counters[which];
    for (int pool = 0; pool < 2; pool++) AT_STORE(counters[pool].high, AT_LOAD(counters[pool].current));
    AT_STORE(cache->high_all[which], AT_LOAD(counters[0].current) + AT_LOAD(counters[1].current));
  }
  AT_STORE(cache->epoch, epoch);
}

/* Before any change of the counters. Cache locked. */
static inline void at_stream_cache_meet_epoch(at_stream_cache *cache) {
  uint64_t epoch = AT_LOAD(cache->allocator->epoch);
  if (AT_UNLIKELY(AT_LOAD(cache->epoch) != epoch)) at_stream_cache_begin_epoch(cache, epoch);
}

/* Cache locked. */
static inline void at_stream_cache_add(at_stream_cache *cache, bool small, size_t size, size_t requested) {
  at_stream_cache_meet_epoch(cache);
  at_counter_add(cache, AT_COUNT_ALLOCATIONS, small, 1);
  at_counter_add(cache, AT_COUNT_BYTES, small, size);
  at_counter_add(cache, AT_COUNT_REQUESTED, small, requested);
}

static inline void at_stream_cache_sub(at_stream_cache *cache, bool small, size_t size, size_t requested) {
  at_stream_cache_meet_epoch(cache);
  at_counter_sub(cache, AT_COUNT_ALLOCATIONS, small, 1);
  at_counter_sub(cache, AT_COUNT_BYTES, small, size);
  at_counter_sub(cache, AT_COUNT_REQUESTED, small, requested);
}

#endif
