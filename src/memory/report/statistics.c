/* SPDX-License-Identifier: Apache-2.0
 * statistics.c: the counters. What programs hold is counted by the stream caches, without a shared cache line. Their
 * sums are exact; for the peaks time is cut into epochs, each ended by a slow path: a stream cache keeps the epoch's
 * peak, and the sum of those, at least the true peak and exact for one stream, counts. */
#include "src/base/struct_size.h"
#include "src/memory/malloc/stream_cache.h"

#include <string.h>

/* Sums over the stream caches, by place in a figure's array. */
typedef struct sums {
  uint64_t current[3], total[3], high[3];
} sums;

static void sum_up(const at_allocator *allocator, int which, sums *out) {
  uint64_t epoch = AT_LOAD(allocator->epoch);
  *out = (sums){{0}, {0}, {0}};
  for (const at_stream_cache *cache = allocator->caches; cache; cache = cache->next) {
    bool fresh = AT_LOAD(cache->epoch) == epoch;
    uint64_t both = 0;
    for (int small = 0; small < 2; small++) {
      const at_stream_cache_counter *counter = &cache->counters[which][small];
      int place = small ? ATTUNE_MEMORY_SMALL : ATTUNE_MEMORY_LARGE;
      uint64_t current = AT_LOAD(counter->current);
      both += current;
      out->current[place] += current;
      out->total[place] += AT_LOAD(counter->total);
      out->high[place] += fresh ? AT_LOAD(counter->high) : current;
    }
    out->high[ATTUNE_MEMORY_ALL] += fresh ? AT_LOAD(cache->high_all[which]) : both;
  }
  out->current[ATTUNE_MEMORY_ALL] = out->current[ATTUNE_MEMORY_SMALL] + out->current[ATTUNE_MEMORY_LARGE];
  out->total[ATTUNE_MEMORY_ALL] = out->total[ATTUNE_MEMORY_SMALL] + out->total[ATTUNE_MEMORY_LARGE];
}

static void raise_peak(attune_memory_figure *figure, uint64_t value) {
  if (value > figure->peak) figure->peak = value;
}

void at_statistics_epoch(at_allocator *allocator) {
  sums s;
  for (int which = 0; which < AT_COUNTS; which++) {
    sum_up(allocator, which, &s);
    for (int i = 0; i < 3; i++) {
      raise_peak(&allocator->held[which][i], s.high[i]);
      if (which == AT_COUNT_ALLOCATIONS) raise_peak(&allocator->active[i], s.high[i] + allocator->pending[i].current);
      if (which == AT_COUNT_BYTES)
        raise_peak(&allocator->active_bytes[i], s.high[i] + allocator->pending_bytes[i].current);
    }
  }
  atomic_fetch_add_explicit(&allocator->epoch, 1, memory_order_relaxed);
}

/* Counters since ever, peaks since their reset. */
static void gather_held(const at_allocator *allocator, attune_memory_statistics *out) {
  attune_memory_figure *const figures[AT_COUNTS] = {out->allocation, out->allocated_bytes, out->requested_bytes};
  sums s;
  for (int which = 0; which < AT_COUNTS; which++) {
    sum_up(allocator, which, &s);
    for (int i = 0; i < 3; i++)
      figures[which][i] =
          (attune_memory_figure){s.current[i], allocator->held[which][i].peak, s.total[i], s.total[i] - s.current[i]};
  }
  for (int i = 0; i < 3; i++) {
    const attune_memory_figure *held = &out->allocation[i], *bytes = &out->allocated_bytes[i];
    uint64_t wait = allocator->pending[i].current, wait_bytes = allocator->pending_bytes[i].current;
    out->active[i] =
        (attune_memory_figure){held->current + wait, allocator->active[i].peak, held->allocated, held->freed - wait};
    out->active_bytes[i] = (attune_memory_figure){bytes->current + wait_bytes, allocator->active_bytes[i].peak,
                                                  bytes->allocated, bytes->freed - wait_bytes};
  }
}

/* What was counted before the last reset is kept in the allocator's figures, in `allocated` and `freed`. */
static void subtract(attune_memory_figure out[3], const attune_memory_figure base[3]) {
  for (int i = 0; i < 3; i++) {
    out[i].allocated -= base[i].allocated;
    out[i].freed -= base[i].freed;
  }
}

/* Also empties the stream caches: free blocks are then where the figures count them. Lock held. */
static void gather(at_allocator *allocator, attune_memory_statistics *out) {
  at_statistics_epoch(allocator);
  at_stream_cache_flush_all(allocator);
  *out = (attune_memory_statistics){.oversize_allocations = allocator->oversize_allocations,
                                    .oversize_segments = allocator->oversize_segments,
                                    .alloc_retries = allocator->retries,
                                    .out_of_memory = allocator->failures,
                                    .limit_rejections = allocator->rejections,
                                    .synchronizations = allocator->synchronizations,
                                    .device_allocs = allocator->device_allocs,
                                    .device_frees = allocator->device_frees,
                                    .limit_bytes = allocator->limit,
                                    .max_split_bytes = allocator->options.max_split};
  gather_held(allocator, out);
  memcpy(out->segment, allocator->segments, sizeof out->segment);
  memcpy(out->reserved_bytes, allocator->reserved_bytes, sizeof out->reserved_bytes);
  memcpy(out->inactive_split, allocator->pieces, sizeof out->inactive_split);
  memcpy(out->inactive_split_bytes, allocator->piece_bytes, sizeof out->inactive_split_bytes);
}

attune_status attune_memory_get_statistics(attune_device *device, attune_memory_statistics *out) {
  at_allocator *allocator = NULL;
  AT_REQUIRE_AS(out, "point to an attune_memory_statistics");
  attune_memory_statistics full = {0};
  AT_TRY(at_allocator_enter(&allocator, device));
  gather(allocator, &full);
  for (int which = 0; which < AT_COUNTS; which++)
    subtract(which == AT_COUNT_ALLOCATIONS ? full.allocation
             : which == AT_COUNT_BYTES     ? full.allocated_bytes
                                           : full.requested_bytes,
             allocator->held[which]);
  subtract(full.active, allocator->active);
  subtract(full.active_bytes, allocator->active_bytes);
  pthread_mutex_unlock(&allocator->lock);
  return AT_GIVE(out, &full);
}

/* Blocks in stream caches would be handed out unseen by the new peak, so they leave. */
attune_status attune_memory_reset_peaks(attune_device *device) {
  at_allocator *allocator = NULL;
  attune_memory_statistics now;
  AT_TRY(at_allocator_enter(&allocator, device));
  gather(allocator, &now);
  for (int i = 0; i < 3; i++) {
    allocator->held[AT_COUNT_ALLOCATIONS][i].peak = now.allocation[i].current;
    allocator->held[AT_COUNT_BYTES][i].peak = now.allocated_bytes[i].current;
    allocator->held[AT_COUNT_REQUESTED][i].peak = now.requested_bytes[i].current;
    allocator->active[i].peak = now.active[i].current;
    allocator->active_bytes[i].peak = now.active_bytes[i].current;
    allocator->segments[i].peak = allocator->segments[i].current;
    allocator->reserved_bytes[i].peak = allocator->reserved_bytes[i].current;
    allocator->pieces[i].peak = allocator->pieces[i].current;
    allocator->piece_bytes[i].peak = allocator->piece_bytes[i].current;
  }
  allocator->oversize_allocations.peak = allocator->oversize_allocations.current;
  allocator->oversize_segments.peak = allocator->oversize_segments.current;
  pthread_mutex_unlock(&allocator->lock);
  return ATTUNE_OK;
}

static void set_base(attune_memory_figure base[3], const attune_memory_figure now[3]) {
  for (int i = 0; i < 3; i++) {
    base[i].allocated = now[i].allocated;
    base[i].freed = now[i].freed;
  }
}

static void set_zero(attune_memory_figure *figures, int count) {
  for (int i = 0; i < count; i++) figures[i].allocated = figures[i].freed = 0;
}

attune_status attune_memory_reset_accumulated(attune_device *device) {
  at_allocator *allocator = NULL;
  attune_memory_statistics now;
  AT_TRY(at_allocator_enter(&allocator, device));
  gather(allocator, &now);
  set_base(allocator->held[AT_COUNT_ALLOCATIONS], now.allocation);
  set_base(allocator->held[AT_COUNT_BYTES], now.allocated_bytes);
  set_base(allocator->held[AT_COUNT_REQUESTED], now.requested_bytes);
  set_base(allocator->active, now.active);
  set_base(allocator->active_bytes, now.active_bytes);
  set_zero(allocator->segments, 3);
  set_zero(allocator->reserved_bytes, 3);
  set_zero(allocator->pieces, 3);
  set_zero(allocator->piece_bytes, 3);
  set_zero(&allocator->oversize_allocations, 1);
  set_zero(&allocator->oversize_segments, 1);
  allocator->retries = allocator->failures = allocator->rejections = allocator->synchronizations = 0;
  allocator->device_allocs = allocator->device_frees = 0;
  pthread_mutex_unlock(&allocator->lock);
  return ATTUNE_OK;
}
