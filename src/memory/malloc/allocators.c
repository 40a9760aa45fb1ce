/* SPDX-License-Identifier: Apache-2.0
 * allocators.c: the allocator of each device: made at first use, its settings, and whether it can be used. */
#include "src/memory/malloc/allocator.h"

#include "src/base/settings.h"
#include "src/process/fork.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

const char *at_allocator_backend(const at_allocator *allocator) {
  if (allocator->has_own) return "program";
  return allocator->options.async ? "cudaMallocAsync" : allocator->options.no_cache ? "none" : "caching";
}

bool at_async_possible(attune_device *device) {
  return device->backend.async && device->backend.async->check(device) == ATTUNE_OK;
}

static void read_settings(at_allocator *allocator) {
  char text[1024];
  at_memory_options_default(&allocator->options);
  allocator->options_status = at_settings_alloc(text, sizeof text);
  if (allocator->options_status == ATTUNE_OK)
    allocator->options_status = at_memory_options_parse(&allocator->options, text, "ATTUNE_ALLOC");
  if (!allocator->device->backend.vm) allocator->options.expandable = false;
  if (!allocator->device->backend.notes) allocator->options.nvtx = false;
  if (!at_async_possible(allocator->device)) allocator->options.async = false;
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
  at_memory_options_tell();
  at_allocator_apply(made);
  allocator = at_memory_publish(made);
  if (allocator == made) return made;
  pthread_mutex_destroy(&made->lock);
  free(made);
  return allocator;
}

/* Applies the settings. */
void at_allocator_apply(at_allocator *allocator) {
  const at_memory_options *options = &allocator->options;
  atomic_store(&allocator->plain_rounding, !options->any_division);
  if (options->fraction > 0.0)
    allocator->limit = (uint64_t)(options->fraction * (double)allocator->device->properties.memory_bytes);
  at_allocator_flag(allocator, AT_STREAM_CACHE_SLOW,
                    at_allocator_is_direct(allocator) || options->poison || options->nvtx ||
                        allocator->history != NULL || at_instrumented_races());
}

void at_memory_watch(void) {
  attune_device *device = NULL;
  for (int i = 0; i < attune_device_count() && attune_device_at(&device, i) == ATTUNE_OK; i++) {
    at_allocator *allocator = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
    if (!allocator) continue;
    pthread_mutex_lock(&allocator->lock);
    at_allocator_apply(allocator);
    pthread_mutex_unlock(&allocator->lock);
  }
}

unsigned at_allocator_flags(const at_allocator *allocator) {
  const at_memory_options *options = &allocator->options;
  unsigned flags = 0;
  if (at_allocator_is_direct(allocator) || options->poison || options->nvtx || allocator->history ||
      at_instrumented_races())
    flags |= AT_STREAM_CACHE_SLOW;
  if (allocator->captures > 0) flags |= AT_STREAM_CACHE_CAPTURE;
  if (allocator->options_status != ATTUNE_OK || allocator->generation != at_fork_generation())
    flags |= AT_STREAM_CACHE_SLOW;
  return flags;
}

void at_allocator_flag(at_allocator *allocator, unsigned flag, bool on) {
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) {
    if (on)
      atomic_fetch_or(&cache->flags, flag);
    else
      atomic_fetch_and(&cache->flags, ~flag);
  }
}

attune_status at_allocator_check(at_allocator *allocator) {
  const attune_device *device = allocator->device;
  if (allocator->options_status != ATTUNE_OK)
    return at_fail(allocator->options_status, "%s", allocator->options_message);
  if (atomic_load(&allocator->lost))
    return at_fail(ATTUNE_DEVICE_ERROR, "%s is lost; restart the process", device->name);
  if (allocator->generation == at_fork_generation()) return ATTUNE_OK;
  if (device->backend.kind != ATTUNE_DEVICE_HOST)
    return at_fail(ATTUNE_DEVICE_ERROR,
                   "%s was used before fork, and its memory cannot be used in the child; start a new process",
                   device->name);
  at_pending_forget(allocator);
  allocator->generation = at_fork_generation();
  return ATTUNE_OK;
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

attune_status at_allocator_enter(at_allocator **out, attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  *out = at_allocator_of(device);
  if (!*out) return ATTUNE_OUT_OF_MEMORY;
  pthread_mutex_lock(&(*out)->lock);
  return ATTUNE_OK;
}
