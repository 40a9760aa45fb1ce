/* SPDX-License-Identifier: Apache-2.0
 * malloc_slow.c: the slow path of a request and what is tried in turn. */
#include "src/memory/malloc/stream_cache.h"

#include "src/stream/capture.h"
#include "src/trace/instrument.h"

#include <stdio.h>

static size_t round_block(size_t bytes) {
  return (bytes + AT_BLOCK_BYTES - 1) / AT_BLOCK_BYTES * AT_BLOCK_BYTES;
}

size_t at_allocator_round(const at_memory_options *options, size_t bytes) {
  if (!options->any_division || bytes <= AT_BLOCK_BYTES) return round_block(bytes);
  int exponent = 63 - __builtin_clzll((unsigned long long)bytes);
  size_t divisions = exponent < (int)sizeof options->divisions ? options->divisions[exponent] : 1;
  size_t step = divisions > 1 ? ((size_t)1 << exponent) / divisions : AT_BLOCK_BYTES;
  return step <= AT_BLOCK_BYTES ? round_block(bytes) : (bytes + step - 1) / step * step;
}

/* Which pool serves the stream now. */
static attune_status route(at_allocator *allocator, at_request *request) {
  attune_stream *stream = request->stream;
  at_stream_cache *cache = request->cache;
  request->pool = &allocator->common;
  if (cache->depth > 0) request->pool = cache->pools[cache->depth - 1];
  if (stream->capture && stream->capture->pool)
    request->pool = stream->capture->pool;
  else if (cache->capture_pool)
    request->pool = cache->capture_pool;
  else if (at_stream_capturing(stream))
    return at_fail(
        ATTUNE_CAPTURING,
        "memory cannot be allocated while the program captures the stream; allocate it before, or use attune_graph");
  request->heap = at_heap_of(allocator, request->pool, cache);
  return request->heap ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a pool");
}

/* Best fit, with all that is free by now. */
static at_block *take_cached(at_allocator *allocator, const at_request *request) {
  at_memory_catch_up(allocator, false);
  if (request->pool == &allocator->common) at_stream_cache_flush(allocator, request->cache);
  return at_heap_take(allocator, request->heap, request->size);
}

/* The program's functions run without the lock, and may free. */
static at_block *ask_program(at_allocator *allocator, const at_request *request) {
  for (int i = 0; i < allocator->callback_count; i++) {
    attune_memory_callback callback = allocator->callbacks[i];
    void *user = allocator->callback_users[i];
    pthread_mutex_unlock(&allocator->lock);
    int freed = callback(user, allocator->device, request->bytes);
    pthread_mutex_lock(&allocator->lock);
    at_block *block = freed ? take_cached(allocator, request) : NULL;
    if (block) return block;
  }
  return NULL;
}

/* Above the threshold old cached segments go until there is room below it for the request. */
static void collect(at_allocator *allocator, const at_request *request) {
  double above = allocator->options.collect_above;
  if (above <= 0.0 || allocator->limit == UINT64_MAX || allocator->captures > 0 ||
      at_device_runs_here(allocator->device))
    return;
  uint64_t threshold = (uint64_t)(above * (double)allocator->limit);
  if (allocator->reserved + request->size > threshold)
    (void)at_memory_release_oldest(allocator, allocator->reserved + request->size - threshold);
}

static at_block *take_from_other_pools(at_allocator *allocator, const at_request *request) {
  if (request->pool != &allocator->common) return NULL;
  for (attune_pool *pool = allocator->common.next; pool; pool = pool->next) {
    if (!pool->use_on_oom) continue;
    for (at_heap *heap = pool->heaps; heap; heap = heap->next) {
      at_block *block = heap->cache == request->cache ? at_heap_take(allocator, heap, request->size) : NULL;
      if (block) return block;
    }
  }
  return NULL;
}

/* The last steps give back what is cached: nothing is given back in a capture, nor by a function that a stream runs. */
static attune_status add_or_make_room(at_allocator *allocator, const at_request *request, at_block **out) {
  attune_status status = at_segment_add(allocator, request, out);
  if (status != ATTUNE_OUT_OF_MEMORY) return status;
  const bool keeps = allocator->captures > 0 || at_device_runs_here(allocator->device);
  if (!keeps && at_segments_release_oversize(allocator, request)) status = at_segment_add(allocator, request, out);
  if (status != ATTUNE_OUT_OF_MEMORY) return status;
  *out = take_from_other_pools(allocator, request);
  if (*out) return ATTUNE_OK;
  if (keeps) return status;
  at_memory_catch_up(allocator, true);
  *out = take_cached(allocator, request);
  if (*out) return ATTUNE_OK;
  allocator->retries++;
  (void)at_memory_release(allocator);
  return at_segment_add(allocator, request, out);
}

static attune_status find_block(at_allocator *allocator, const at_request *request, at_block **out) {
  bool direct = at_allocator_is_direct(allocator);
  *out = NULL;
  if (!direct || allocator->captures > 0) *out = take_cached(allocator, request);
  if (!*out) *out = ask_program(allocator, request);
  if (*out) return ATTUNE_OK;
  collect(allocator, request);
  *out = direct ? NULL : at_segment_adopt(allocator, request);
  if (!direct && !*out) *out = at_pools_adopt(allocator, request);
  return *out ? ATTUNE_OK : add_or_make_room(allocator, request, out);
}

/* A request larger than the device's memory is not tried: it would empty the cache in vain. */
static bool can_ever_fit(const at_allocator *allocator, const at_request *request) {
  if (request->bytes > PTRDIFF_MAX / 4) return false;
  if (allocator->has_own || request->pool->own_allocator) return true;
  uint64_t most = allocator->device->properties.memory_bytes; /* 0: not known */
  return most == 0 || request->size <= most;
}

static uint64_t held_now(const at_allocator *allocator, int which) {
  uint64_t sum = 0;
  for (const at_stream_cache *cache = allocator->caches; cache; cache = cache->next)
    sum += AT_LOAD(cache->counters[which][0].current) + AT_LOAD(cache->counters[which][1].current);
  return sum;
}

/* Who asked, what is where, and what the device has left. */
static attune_status fail_request(at_allocator *allocator, const at_request *request, attune_memory_failure *out) {
  uint64_t held = held_now(allocator, AT_COUNT_BYTES), reserved = allocator->reserved, limit = allocator->limit;
  uint64_t waiting = allocator->pending_bytes[0].current, available = 0, total = 0;
  uint64_t cache = request->cache->id;
  const char *kind = request->pool == &allocator->common ? "the common pool"
                     : request->pool->id[1]              ? "a graph's pool"
                                                         : "a pool of the program";
  attune_device *device = allocator->device;
  char text[64] = "";
  allocator->failures++;
  if (at_reserve_refused()) allocator->rejections++;
  if (limit != UINT64_MAX) snprintf(text, sizeof text, ", limit %llu", (unsigned long long)limit);
  const char *keeps = allocator->captures > 0 ? ", in a capture: no cached memory can be returned"
                      : at_device_runs_here(allocator->device)
                          ? ", in a function of a stream: no cached memory can be returned"
                          : "";
  pthread_mutex_unlock(&allocator->lock);
  (void)device->backend.memory->info(device, &available, &total);
  pthread_mutex_lock(&allocator->lock);
  *out = (attune_memory_failure){.requested_bytes = request->bytes,
                                 .allocated_bytes = held,
                                 .reserved_bytes = reserved,
                                 .limit_bytes = limit,
                                 .free_bytes = available,
                                 .total_bytes = total};
  (void)at_history_add(allocator, AT_ACTION_OOM, (uintptr_t)available, request->bytes, request->cache);
  if (!can_ever_fit(allocator, request))
    return at_fail(ATTUNE_OUT_OF_MEMORY,
                   "bytes is %zu, more than the %llu in total on %s; no cached memory was returned for it",
                   request->bytes, (unsigned long long)device->properties.memory_bytes, device->name);
  if (allocator->has_own || request->pool->own_allocator)
    return at_fail(ATTUNE_OUT_OF_MEMORY,
                   "the program's allocator of %s has no memory for %zu bytes (stream %llu, %s%s): it holds %llu bytes "
                   "for attune%s",
                   device->name, request->bytes, (unsigned long long)cache, kind, keeps, (unsigned long long)reserved,
                   text);
  return at_fail(ATTUNE_OUT_OF_MEMORY,
                 "no memory for %zu bytes on %s (stream %llu, %s%s): %llu bytes are allocated, %llu cached, %llu of "
                 "them freed but in use by other streams%s; the device has %llu of %llu free",
                 request->bytes, device->name, (unsigned long long)cache, kind, keeps, (unsigned long long)held,
                 (unsigned long long)(reserved > held ? reserved - held : 0), (unsigned long long)waiting, text,
                 (unsigned long long)available, (unsigned long long)total);
}

/* A segment for this request alone has exactly the requested size. */
static void hand_out(at_allocator *allocator, const at_request *request, at_block *block) {
  block->rounded = block->segment->exact ? block->size : request->size;
  block->requested = request->bytes;
  block->uses = NULL;
  at_stream_cache_count_alloc(request->cache, block->small, block->size, request->bytes);
  if (block->size >= allocator->options.max_split) {
    at_figure_add_one(&allocator->oversize_allocations, 1);
    block->plain = false; /* so that the slow path sees its end too */
  }
  at_annotate_block(allocator, block);
  block->recorded = at_history_add(allocator, AT_ACTION_ALLOC, at_block_address(block), block->rounded, request->cache);
  at_block_set_state(block, AT_BLOCK_LIVE);
}

/* The lock is held, but not while the memory is looked at. What was taken for the request alone was never freed. */
static attune_status check_poison(at_allocator *allocator, const at_request *request, at_block *block) {
  if (!allocator->options.poison || block->segment->exact) return ATTUNE_OK;
  pthread_mutex_unlock(&allocator->lock);
  attune_status status = at_poison_check(block, request->stream);
  pthread_mutex_lock(&allocator->lock);
  if (status == ATTUNE_OK) return status;
  at_poison_fill(block);
  (void)at_block_cache(allocator, block);
  return status;
}

/* A stream of the parent has no thread in the child: its memory must not be handed out as if its work would be done. */
static attune_status check_cache(at_stream_cache *cache) {
  if (!(atomic_load(&cache->flags) & AT_STREAM_CACHE_FORKED)) return ATTUNE_OK;
  attune_status status = cache->stream->device->backend.stream->synchronize(cache->stream);
  if (status == ATTUNE_OK) atomic_fetch_and(&cache->flags, ~(unsigned)AT_STREAM_CACHE_FORKED);
  return status;
}

attune_status at_allocator_alloc(void **out, attune_stream *stream, at_stream_cache *cache, size_t bytes) {
  at_allocator *allocator = cache->allocator;
  at_request request = {.stream = stream, .cache = cache, .pool = &allocator->common, .bytes = bytes};
  attune_memory_failure failure;
  bool failed = false;
  (void)at_reserve_refused(); /* of an earlier request */
  at_block *block = NULL;
  if (bytes > PTRDIFF_MAX)
    return AT_INVALID("bytes is %zu, which is %zd converted to size_t; should be 0 or more", bytes, (ssize_t)bytes);
  const at_message kept = at_message_keep(); /* room is made for what did not fit at first */
  pthread_mutex_lock(&allocator->lock);
  attune_status status = at_allocator_check(allocator);
  if (status == ATTUNE_OK) status = check_cache(cache);
  if (status == ATTUNE_OK) status = route(allocator, &request);
  if (status == ATTUNE_OK) {
    at_statistics_epoch(allocator);
    request.size = bytes <= PTRDIFF_MAX / 4 ? at_allocator_round(&allocator->options, bytes) : bytes;
    status = can_ever_fit(allocator, &request) ? find_block(allocator, &request, &block) : ATTUNE_OUT_OF_MEMORY;
    failed = status == ATTUNE_OUT_OF_MEMORY;
    if (failed) status = fail_request(allocator, &request, &failure);
  }
  if (status == ATTUNE_OK) status = check_poison(allocator, &request, block);
  if (status == ATTUNE_OK) {
    hand_out(allocator, &request, block);
    *out = at_block_pointer(block);
    if (at_instrumented_races()) at_instrument_alloc(stream, *out, block->rounded);
  }
  pthread_mutex_unlock(&allocator->lock);
  if (failed) at_observers_tell(allocator, &failure);
  return at_message_settle(&kept, status);
}
