/* SPDX-License-Identifier: Apache-2.0
 * allocator.c: the allocator of a device: made at first use, its settings, the slow path of a request and what is tried
 * in turn. */
#include "src/memory/tree.h"

#include "src/capture.h"
#include "src/fork.h"
#include "src/memory/front.h"
#include "src/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_settings(at_allocator *allocator) {
  char text[1024];
  at_memory_options_default(&allocator->options);
  allocator->options_status = at_settings_alloc(text, sizeof text);
  if (allocator->options_status == ATTUNE_OK)
    allocator->options_status = at_memory_options_parse(&allocator->options, text, "ATTUNE_ALLOC");
  if (!allocator->device->backend->vm_map) allocator->options.expandable = false;
  if (!allocator->device->backend->note_segment) allocator->options.nvtx = false;
  if (allocator->options_status != ATTUNE_OK)
    (void)at_copy_text(allocator->options_message, sizeof allocator->options_message, attune_last_message());
}

at_allocator *at_allocator_of(attune_device *device) {
  at_allocator *allocator = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
  if (AT_LIKELY(allocator != NULL)) return allocator;
  at_allocator *made = calloc(1, sizeof *made);
  if (!made) {
    (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the allocator of %s", device->name);
    return NULL;
  }
  made->device = device;
  made->generation = at_fork_generation();
  made->limit = UINT64_MAX;
  made->common.allocator = made;
  made->common.references = 1;
  pthread_mutex_init(&made->lock, NULL);
  read_settings(made);
  at_allocator_apply(made);
  at_memory_watch_fork();
  if (__atomic_compare_exchange_n(&device->memory, &allocator, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  pthread_mutex_destroy(&made->lock);
  free(made);
  return allocator;
}

/* What follows from the settings. */
void at_allocator_apply(at_allocator *allocator) {
  const at_memory_options *options = &allocator->options;
  atomic_store(&allocator->plain_rounding, !options->any_division);
  if (options->fraction > 0.0)
    allocator->limit = (uint64_t)(options->fraction * (double)allocator->device->properties.memory_bytes);
  at_allocator_flag(allocator, AT_FRONT_SLOW,
                    options->no_cache || options->poison || options->nvtx || allocator->has_own ||
                        allocator->history != NULL);
}

unsigned at_allocator_flags(const at_allocator *allocator) {
  const at_memory_options *options = &allocator->options;
  unsigned flags = 0;
  if (options->no_cache || options->poison || options->nvtx || allocator->has_own || allocator->history)
    flags |= AT_FRONT_SLOW;
  if (allocator->captures > 0) flags |= AT_FRONT_CAPTURE;
  if (allocator->options_status != ATTUNE_OK || allocator->generation != at_fork_generation()) flags |= AT_FRONT_SLOW;
  return flags;
}

void at_allocator_flag(at_allocator *allocator, unsigned flag, bool on) {
  for (at_front *front = allocator->fronts; front; front = front->next) {
    if (on)
      atomic_fetch_or(&front->flags, flag);
    else
      atomic_fetch_and(&front->flags, ~flag);
  }
}

attune_status at_allocator_check(at_allocator *allocator) {
  const attune_device *device = allocator->device;
  if (allocator->options_status != ATTUNE_OK)
    return at_fail(allocator->options_status, "%s", allocator->options_message);
  if (atomic_load(&allocator->lost))
    return at_fail(ATTUNE_DEVICE_ERROR, "%s is lost; the process must be started anew", device->name);
  if (allocator->generation == at_fork_generation()) return ATTUNE_OK;
  if (device->backend->kind != ATTUNE_DEVICE_HOST)
    return at_fail(ATTUNE_DEVICE_ERROR,
                   "%s was used before fork; its memory cannot be used in the child, start a process anew",
                   device->name);
  at_pending_forget(allocator);
  allocator->generation = at_fork_generation();
  return ATTUNE_OK;
}

/* A stream of the parent has no thread in the child: its memory must not be handed out as if its work would be done. */
static attune_status check_front(at_front *front) {
  if (!(atomic_load(&front->flags) & AT_FRONT_FORKED)) return ATTUNE_OK;
  attune_status status = front->stream->device->backend->stream_synchronize(front->stream);
  if (status == ATTUNE_OK) atomic_fetch_and(&front->flags, ~(unsigned)AT_FRONT_FORKED);
  return status;
}

void at_memory_device_lost(attune_device *device) {
  at_allocator *allocator = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
  if (!allocator) return;
  atomic_store(&allocator->lost, true);
  atomic_fetch_or(&allocator->epoch, AT_EPOCH_LOST);
}

bool at_allocator_is_empty(at_allocator *allocator) {
  for (const attune_pool *pool = &allocator->common; pool; pool = pool->next) {
    if (pool->leaving > 0) return false;
    for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (const at_segment *segment = heap->segments; segment; segment = segment->next)
        if (segment->bytes > 0) return false;
  }
  return true;
}

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
  at_front *front = request->front;
  request->pool = &allocator->common;
  if (front->depth > 0) request->pool = front->pools[front->depth - 1];
  if (stream->capture && stream->capture->pool)
    request->pool = stream->capture->pool;
  else if (front->capture_pool)
    request->pool = front->capture_pool;
  else if (at_stream_capturing(stream))
    return at_fail(
        ATTUNE_CAPTURING,
        "memory cannot be allocated while the program captures the stream; allocate before, or use attune_graph");
  request->heap = at_heap_of(allocator, request->pool, front);
  return request->heap ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of a pool");
}

/* Best fit, with all that is free by now. */
static at_block *take_cached(at_allocator *allocator, const at_request *request) {
  at_pending_process(allocator, false);
  if (request->pool == &allocator->common) at_front_flush(allocator, request->front);
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
  if (above <= 0.0 || allocator->limit == UINT64_MAX || allocator->captures > 0) return;
  uint64_t threshold = (uint64_t)(above * (double)allocator->limit);
  if (allocator->reserved + request->size > threshold)
    (void)at_segments_release_oldest(allocator, allocator->reserved + request->size - threshold);
}

static at_block *take_from_other_pools(at_allocator *allocator, const at_request *request) {
  if (request->pool != &allocator->common) return NULL;
  for (attune_pool *pool = allocator->common.next; pool; pool = pool->next) {
    if (!pool->use_on_oom) continue;
    for (at_heap *heap = pool->heaps; heap; heap = heap->next) {
      at_block *block = heap->front == request->front ? at_heap_take(allocator, heap, request->size) : NULL;
      if (block) return block;
    }
  }
  return NULL;
}

/* The last steps give back what is cached: nothing is given back in a capture. */
static attune_status add_or_make_room(at_allocator *allocator, const at_request *request, at_block **out) {
  attune_status status = at_segment_add(allocator, request, out);
  if (status != ATTUNE_OUT_OF_MEMORY) return status;
  if (allocator->captures == 0 && at_segments_release_oversize(allocator, request))
    status = at_segment_add(allocator, request, out);
  if (status != ATTUNE_OUT_OF_MEMORY) return status;
  *out = take_from_other_pools(allocator, request);
  if (*out) return ATTUNE_OK;
  if (allocator->captures > 0) return status;
  at_pending_process(allocator, true);
  *out = take_cached(allocator, request);
  if (*out) return ATTUNE_OK;
  allocator->retries++;
  (void)at_segments_release(allocator);
  return at_segment_add(allocator, request, out);
}

static attune_status find_block(at_allocator *allocator, const at_request *request, at_block **out) {
  bool direct = allocator->options.no_cache || allocator->has_own;
  *out = NULL;
  if (!direct || allocator->captures > 0) *out = take_cached(allocator, request);
  if (!*out) *out = ask_program(allocator, request);
  if (*out) return ATTUNE_OK;
  collect(allocator, request);
  *out = direct ? NULL : at_segment_adopt(allocator, request);
  return *out ? ATTUNE_OK : add_or_make_room(allocator, request, out);
}

/* What is more than all of the device's memory is not tried: it would cost the cache and get nothing. */
static bool can_ever_fit(const at_allocator *allocator, const at_request *request) {
  if (request->bytes > PTRDIFF_MAX / 4) return false;
  if (allocator->has_own || request->pool->own_allocator) return true;
  uint64_t most = allocator->device->properties.memory_bytes; /* 0: not known */
  return most == 0 || request->size <= most;
}

static uint64_t held_now(const at_allocator *allocator, int which) {
  uint64_t sum = 0;
  for (const at_front *front = allocator->fronts; front; front = front->next)
    sum += AT_LOAD(front->counters[which][0].current) + AT_LOAD(front->counters[which][1].current);
  return sum;
}

/* Who asked, what is where, and what the device has left. */
static attune_status fail_request(at_allocator *allocator, const at_request *request) {
  uint64_t held = held_now(allocator, AT_COUNT_BYTES), reserved = allocator->reserved, limit = allocator->limit;
  uint64_t waiting = allocator->pending_bytes[0].current, available = 0, total = 0;
  uint64_t front = request->front->id;
  const char *kind = request->pool == &allocator->common ? "the common pool"
                     : request->pool->id[1]              ? "a graph's pool"
                                                         : "a pool of the program";
  attune_device *device = allocator->device;
  char text[64] = "";
  allocator->failures++;
  if (limit != UINT64_MAX) snprintf(text, sizeof text, ", limit %llu", (unsigned long long)limit);
  const bool capture = allocator->captures > 0;
  pthread_mutex_unlock(&allocator->lock);
  if (device->backend->memory_info) (void)device->backend->memory_info(device, &available, &total);
  pthread_mutex_lock(&allocator->lock);
  at_history_add(allocator, AT_ACTION_OOM, (uintptr_t)available, request->bytes, request->front);
  if (!can_ever_fit(allocator, request))
    return at_fail(ATTUNE_OUT_OF_MEMORY,
                   "bytes is %zu, more than the %llu that %s has in all; nothing was given back for it", request->bytes,
                   (unsigned long long)device->properties.memory_bytes, device->name);
  return at_fail(ATTUNE_OUT_OF_MEMORY,
                 "no memory for %zu bytes on %s (stream %llu, %s%s): %llu bytes are allocated, %llu cached, %llu of "
                 "them freed but in use by "
                 "other streams%s; the device has %llu of %llu free",
                 request->bytes, device->name, (unsigned long long)front, kind,
                 capture ? ", in a capture: nothing cached can be given back" : "", (unsigned long long)held,
                 (unsigned long long)(reserved > held ? reserved - held : 0), (unsigned long long)waiting, text,
                 (unsigned long long)available, (unsigned long long)total);
}

static void hand_out(at_allocator *allocator, const at_request *request, at_block *block) {
  block->rounded = request->size;
  block->requested = request->bytes;
  block->uses = NULL;
  at_front_count_alloc(request->front, block->small, block->size, request->bytes);
  if (block->size >= allocator->options.max_split) {
    at_figure_add_one(&allocator->oversize_allocations, 1);
    block->plain = false; /* so that the slow path sees its end too */
  }
  at_annotate_block(allocator, block);
  at_history_add(allocator, AT_ACTION_ALLOC, at_block_address(block), request->size, request->front);
  at_block_set_state(block, AT_BLOCK_LIVE);
}

/* The lock is held, but not while the memory is looked at. */
static attune_status check_poison(at_allocator *allocator, const at_request *request, at_block *block) {
  if (!allocator->options.poison || allocator->options.no_cache) return ATTUNE_OK;
  pthread_mutex_unlock(&allocator->lock);
  attune_status status = at_poison_check(block, request->stream);
  pthread_mutex_lock(&allocator->lock);
  if (status == ATTUNE_OK) return status;
  at_poison_fill(block);
  (void)at_block_cache(allocator, block);
  return status;
}

attune_status at_allocator_alloc(void **out, attune_stream *stream, at_front *front, size_t bytes) {
  at_allocator *allocator = front->allocator;
  at_request request = {.stream = stream, .front = front, .pool = &allocator->common, .bytes = bytes};
  at_block *block = NULL;
  if (bytes > PTRDIFF_MAX)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "bytes is %zu, which is the negative number %zd made a size; should be 0 or more", bytes,
                   (ssize_t)bytes);
  pthread_mutex_lock(&allocator->lock);
  attune_status status = at_allocator_check(allocator);
  if (status == ATTUNE_OK) status = check_front(front);
  if (status == ATTUNE_OK) status = route(allocator, &request);
  if (status == ATTUNE_OK) {
    at_statistics_epoch(allocator);
    request.size = bytes <= PTRDIFF_MAX / 4 ? at_allocator_round(&allocator->options, bytes) : bytes;
    status = can_ever_fit(allocator, &request) ? find_block(allocator, &request, &block) : ATTUNE_OUT_OF_MEMORY;
    if (status == ATTUNE_OUT_OF_MEMORY) status = fail_request(allocator, &request);
  }
  if (status == ATTUNE_OK) status = check_poison(allocator, &request, block);
  if (status == ATTUNE_OK) {
    hand_out(allocator, &request, block);
    *out = at_block_pointer(block);
  }
  pthread_mutex_unlock(&allocator->lock);
  return status;
}
