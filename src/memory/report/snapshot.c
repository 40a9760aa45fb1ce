/* SPDX-License-Identifier: Apache-2.0
 * snapshot.c: what the memory of a device looks like, with the words of PyTorch's snapshots. */
#include "src/memory/report/snapshot_file.h"

#include "src/memory/malloc/stream_cache.h"

/* Blocks side by side that have memory: all of a plain segment, or one of the mapped stretches of an expandable one.
 * The visualiser counts the blocks' addresses from the start of their segment, so each stretch is a segment to it. */
typedef struct stretch {
  at_block *first, *end; /* end: behind the last one, or NULL */
  size_t total, allocated, active, requested;
} stretch;

static bool is_active(at_block_state state) {
  return state == AT_BLOCK_LIVE || state == AT_BLOCK_PENDING;
}

/* The first stretch from `block` on; false: there is none. */
static bool find_stretch(at_block *block, stretch *out) {
  while (block && block->seen_state == AT_BLOCK_UNMAPPED) block = block->next;
  *out = (stretch){.first = block};
  for (; block && block->seen_state != AT_BLOCK_UNMAPPED; block = block->next) {
    const at_block_state state = block->seen_state;
    out->total += block->size;
    if (state == AT_BLOCK_LIVE) out->allocated += block->size;
    if (!is_active(state)) continue;
    out->active += block->size;
    out->requested += block->seen_requested;
  }
  out->end = block;
  return out->first != NULL;
}

static void write_block(const at_history *history, const at_block *block, at_backtrace_names *names, at_json *out) {
  const at_block_state state = block->seen_state;
  const at_snapshot_block seen = {
      .address = at_block_address(block),
      .bytes = block->size,
      .requested = is_active(state) ? block->seen_requested : 0,
      .state = state == AT_BLOCK_LIVE      ? "active_allocated"
               : state == AT_BLOCK_PENDING ? "active_pending_free"
                                           : "inactive",
      .history = history,
      .recorded = is_active(state) ? block->recorded : 0,
  };
  at_snapshot_block_write(&seen, names, out);
}

static void write_stretch(const at_segment *segment, const stretch *blocks, int number, at_backtrace_names *names,
                          at_json *out) {
  const attune_pool *pool = segment->heap->pool;
  const at_snapshot_segment seen = {.device = number,
                                    .address = at_block_address(blocks->first),
                                    .total = blocks->total,
                                    .allocated = blocks->allocated,
                                    .active = blocks->active,
                                    .requested = blocks->requested,
                                    .stream = segment->heap->cache->id,
                                    .pool = {pool->id[0], pool->id[1]},
                                    .type = segment->small ? "small" : "large",
                                    .expandable = at_segment_expandable(segment)};
  at_snapshot_segment_open(&seen, out);
  for (const at_block *block = blocks->first; block != blocks->end; block = block->next)
    write_block(pool->allocator->history, block, names, out);
  at_snapshot_segment_close(out);
}

static void see_blocks(at_segment *segment) {
  for (at_block *block = segment->first; block; block = block->next) {
    block->seen_state = at_block_get_state(block);
    block->seen_requested = block->requested;
  }
}

/* What the program holds changes with the cache's lock alone: all of them are held for the moment that the snapshot is
 * of. It is written without them. */
static void see_all(at_allocator *allocator) {
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) at_stream_cache_lock(cache);
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next) see_blocks(segment);
  for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) at_stream_cache_unlock(cache);
}

/* only: of that pool; NULL: of all. */
static void write_all(const at_allocator *allocator, const attune_pool *only, int number, at_backtrace_names *names,
                      at_json *out) {
  for (const attune_pool *pool = only ? only : &allocator->common; pool; pool = only ? NULL : pool->next)
    for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (const at_segment *segment = heap->segments; segment; segment = segment->next) {
        stretch blocks;
        for (at_block *block = segment->first; find_stretch(block, &blocks); block = blocks.end)
          write_stretch(segment, &blocks, number, names, out);
      }
}

/* In the order of fork.c. */
static void lock(attune_device *const *devices, int count) {
  for (int i = 0; i < count; i++) pthread_mutex_lock(&at_allocator_of(devices[i])->lock);
}

static void unlock(attune_device *const *devices, int count) {
  for (int i = count - 1; i >= 0; i--) pthread_mutex_unlock(&at_allocator_of(devices[i])->lock);
}

static void note(attune_device *device) {
  (void)at_history_add(at_allocator_of(device), AT_ACTION_SNAPSHOT, 0, 0, NULL);
}

static void want_names(attune_device *device, at_backtrace_names *names) {
  at_history_want_names(at_allocator_of(device)->history, names);
}

static void write_segments(attune_device *device, const attune_pool *only, int number, at_backtrace_names *names,
                           at_json *out) {
  at_allocator *allocator = at_allocator_of(device);
  at_stream_cache_flush_all(allocator);
  at_memory_catch_up(allocator, false);
  see_all(allocator);
  write_all(allocator, only, number, names, out);
}

static void write_history(attune_device *device, at_backtrace_names *names, at_json *out) {
  at_history_write(at_allocator_of(device)->history, names, out);
}

/* -1 stands for "none", as PyTorch has it. */
static void write_settings(attune_device *device, at_json *out) {
  const at_allocator *allocator = at_allocator_of(device);
  const at_memory_options *options = &allocator->options;
  at_json_object(out, NULL);
  at_json_number(out, "max_split_size", options->max_split == SIZE_MAX ? -1 : (int64_t)options->max_split);
  at_json_number(out, "max_non_split_rounding_size", (int64_t)options->max_non_split_rounding);
  at_json_real(out, "garbage_collection_threshold", options->collect_above, 6);
  at_json_truth(out, "expandable_segments", options->expandable);
  at_json_number(out, "large_segment_size", (int64_t)options->large_segment);
  at_json_word(out, "backend", at_allocator_backend(allocator));
  at_json_truth(out, "poison", options->poison);
  at_json_truth(out, "nvtx", options->nvtx);
  at_json_object_end(out);
}

/* With memory of attune, or once it had some. */
static bool is_there(attune_device *device) {
  return __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE) != NULL;
}

static attune_status prepare(attune_device *device) {
  return at_allocator_of(device) ? ATTUNE_OK : ATTUNE_OUT_OF_MEMORY;
}

static const at_snapshot_source source = {.is_there = is_there,
                                          .prepare = prepare,
                                          .lock = lock,
                                          .unlock = unlock,
                                          .note = note,
                                          .want_names = want_names,
                                          .write_segments = write_segments,
                                          .write_history = write_history,
                                          .write_settings = write_settings};

attune_status attune_memory_snapshot(char **out, attune_device *device) {
  size_t bytes = 0;
  AT_REQUIRE_AS(out, "point to a text");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  return at_snapshot_make(out, &bytes, &source, device, NULL);
}

attune_status attune_pool_snapshot(char **out, attune_pool *pool) {
  size_t bytes = 0;
  AT_REQUIRE_AS(out, "point to a text");
  *out = NULL;
  AT_REQUIRE_AS(pool, "be a pool from attune_pool_create");
  return at_snapshot_make(out, &bytes, &source, pool->allocator->device, pool);
}

attune_status attune_memory_snapshot_save(const char *path, attune_device *device) {
  return at_snapshot_save(path, &source, device);
}
