/* SPDX-License-Identifier: Apache-2.0
 * pool.c: pools other than the common one, and the effects of a capture on the allocator. */
#include "src/base/struct_size.h"
#include "src/memory/malloc/stream_cache.h"

#include "src/stream/capture.h"

#include <stdlib.h>

/* A device's pools lie in a list behind the common one. */
static attune_status make_pool(attune_pool **out, attune_device *device, const attune_pool *form, bool graph) {
  *out = NULL;
  at_allocator *allocator = at_allocator_of(device);
  attune_pool *pool = allocator ? malloc(sizeof *pool) : NULL;
  if (!pool) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a pool of %s", device->name);
  *pool = *form;
  pool->allocator = allocator;
  pool->references = 1;
  pthread_mutex_lock(&allocator->lock);
  if (graph)
    pool->id[1] = ++allocator->graph_count;
  else
    pool->id[0] = ++allocator->pool_count;
  pool->next = allocator->common.next;
  allocator->common.next = pool;
  pthread_mutex_unlock(&allocator->lock);
  *out = pool;
  return ATTUNE_OK;
}

attune_status at_pool_create_private(attune_pool **out, attune_device *device) {
  return make_pool(out, device, &(attune_pool){0}, true);
}

static attune_status take_allocator(attune_pool *form, const attune_allocator *allocator) {
  attune_status status = AT_TAKE(&form->raw, allocator);
  if (status != ATTUNE_OK || (form->raw.alloc && form->raw.free)) return status;
  return AT_INVALID("allocator has no %s function; should have both", form->raw.alloc ? "free" : "alloc");
}

attune_status attune_pool_create(attune_pool **out, attune_device *device, const attune_pool_options *options) {
  AT_REQUIRE_AS(out, "point to a pool");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  attune_pool_options full;
  AT_TRY(AT_TAKE(&full, options));
  attune_pool form = {.use_on_oom = full.use_on_out_of_memory != 0, .no_split = full.no_split != 0};
  if (full.allocator) AT_TRY(take_allocator(&form, full.allocator));
  if (full.managed && full.allocator)
    return AT_INVALID("options has both allocator and managed; one of them should be NULL");
  if (full.managed) AT_TRY(at_managed_make(&form.managed, device, full.managed));
  form.own_allocator = full.allocator || full.managed;
  attune_status status = make_pool(out, device, &form, false);
  if (status != ATTUNE_OK) free(form.managed);
  return status;
}

attune_device *at_pool_device(const attune_pool *pool) {
  return pool->allocator->device;
}

void at_pool_retain(attune_pool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->allocator->lock);
  pool->references++;
  pthread_mutex_unlock(&pool->allocator->lock);
}

void at_pool_release(attune_pool *pool) {
  if (!pool) return;
  at_allocator *allocator = pool->allocator;
  pthread_mutex_lock(&allocator->lock);
  at_pool_drop(allocator, pool);
  pthread_mutex_unlock(&allocator->lock);
}

attune_status at_pool_replay(attune_pool *pool, attune_stream *stream) {
  if (!pool) return ATTUNE_OK;
  at_stream_cache *cache = at_stream_cache_of(stream);
  if (AT_UNLIKELY(!cache)) return ATTUNE_OUT_OF_MEMORY;
  if (AT_LOAD(pool->replayed) != cache) AT_STORE(pool->replayed, cache);
  return ATTUNE_OK;
}

void attune_pool_destroy(attune_pool *pool) {
  at_pool_release(pool);
}

static attune_status check_pair(const attune_pool *pool, const attune_stream *stream) {
  AT_REQUIRE_AS(pool, "be a pool from attune_pool_create");
  AT_REQUIRE_STREAM(stream);
  if (stream->device == pool->allocator->device) return ATTUNE_OK;
  return AT_INVALID("pool is of device %s, stream of %s; should be of the same device", pool->allocator->device->name,
                    stream->device->name);
}

static void set_flag(at_stream_cache *cache, unsigned flag, bool on) {
  if (on)
    atomic_fetch_or(&cache->flags, flag);
  else
    atomic_fetch_and(&cache->flags, ~flag);
}

attune_status attune_pool_begin(attune_pool *pool, attune_stream *stream) {
  AT_TRY(check_pair(pool, stream));
  at_stream_cache *cache = at_stream_cache_of(stream);
  if (!cache) return ATTUNE_OUT_OF_MEMORY;
  at_allocator *allocator = cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  bool fits = cache->depth < AT_POOL_DEPTH;
  if (fits) {
    cache->pools[cache->depth++] = pool;
    pool->references++;
    set_flag(cache, AT_STREAM_CACHE_POOL, true);
  }
  pthread_mutex_unlock(&allocator->lock);
  if (fits) return ATTUNE_OK;
  return at_fail(ATTUNE_BUSY, "the stream already uses %d pools; should be at most %d, nested", AT_POOL_DEPTH,
                 AT_POOL_DEPTH);
}

attune_status attune_pool_end(attune_pool *pool, attune_stream *stream) {
  AT_TRY(check_pair(pool, stream));
  at_stream_cache *cache = at_stream_cache_of(stream);
  if (!cache) return ATTUNE_OUT_OF_MEMORY;
  at_allocator *allocator = cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  int depth = cache->depth;
  bool begun = depth > 0 && cache->pools[depth - 1] == pool;
  if (begun) {
    if (--cache->depth == 0) set_flag(cache, AT_STREAM_CACHE_POOL, false);
    at_pool_drop(allocator, pool);
  }
  pthread_mutex_unlock(&allocator->lock);
  if (begun) return ATTUNE_OK;
  if (depth == 0) return AT_INVALID("stream uses no pool; call attune_pool_begin first, once for each end");
  return AT_INVALID("pool is not the one that the stream uses; should be that of the latest attune_pool_begin");
}

/* The pool is held by the graph too, but a failed capture may let go of it first. */
attune_status at_memory_capture_begin(attune_stream *stream, attune_pool *pool) {
  at_stream_cache *cache = at_stream_cache_of(stream);
  if (!cache) return ATTUNE_OUT_OF_MEMORY;
  at_allocator *allocator = cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  attune_status status = at_allocator_check(allocator);
  if (status == ATTUNE_OK && cache->capturing)
    status = at_fail(ATTUNE_CAPTURING, "the stream is already being captured; end that capture first");
  if (status == ATTUNE_OK) {
    at_memory_catch_up(allocator, false);
    cache->capturing = true;
    cache->capture_pool = pool;
    if (pool) pool->references++;
    if (allocator->captures++ == 0) at_allocator_flag(allocator, AT_STREAM_CACHE_CAPTURE, true);
  }
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

void at_memory_capture_end(attune_stream *stream) {
  at_stream_cache *cache = __atomic_load_n(&stream->memory, __ATOMIC_ACQUIRE);
  if (!cache) return;
  at_allocator *allocator = cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  if (cache->capturing) {
    attune_pool *pool = cache->capture_pool;
    cache->capturing = false;
    cache->capture_pool = NULL;
    const bool last = --allocator->captures == 0;
    if (last) {
      at_allocator_flag(allocator, AT_STREAM_CACHE_CAPTURE, false);
      at_pending_record_deferred(allocator);
    }
    if (pool) at_pool_drop(allocator, pool);
    if (last) at_pools_release_abandoned(allocator);
  }
  pthread_mutex_unlock(&allocator->lock);
}
