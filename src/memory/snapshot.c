/* SPDX-License-Identifier: Apache-2.0
 * snapshot.c: what the memory of a device looks like: as JSON with the words of PyTorch's snapshots, and as a table for
 * people. */
#include "src/memory/front.h"
#include "src/memory/text.h"

#include <stdio.h>

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

static void write_blocks(const stretch *blocks, at_text *out) {
  const char *comma = "";
  for (at_block *block = blocks->first; block != blocks->end; block = block->next) {
    const at_block_state state = block->seen_state;
    const char *word = state == AT_BLOCK_LIVE      ? "active_allocated"
                       : state == AT_BLOCK_PENDING ? "active_pending_free"
                                                   : "inactive";
    at_text_add(out, "%s{\"address\":%llu,\"size\":%zu,\"requested_size\":%zu,\"state\":\"%s\",\"frames\":[]}", comma,
                (unsigned long long)at_block_address(block), block->size, is_active(state) ? block->seen_requested : 0,
                word);
    comma = ",";
  }
}

static void write_stretch(const at_segment *segment, const stretch *blocks, int device, at_text *out) {
  const attune_pool *pool = segment->heap->pool;
  at_text_add(out,
              "{\"device\":%d,\"address\":%llu,\"total_size\":%zu,\"allocated_size\":%zu,\"active_size\":%zu,"
              "\"requested_size\":%zu,\"stream\":%llu,\"segment_type\":\"%s\",\"segment_pool_id\":[%llu,%llu],"
              "\"is_expandable\":%s,\"frames\":[],\"blocks\":[",
              device, (unsigned long long)at_block_address(blocks->first), blocks->total, blocks->allocated,
              blocks->active, blocks->requested, (unsigned long long)segment->heap->front->id,
              segment->small ? "small" : "large", (unsigned long long)pool->id[0], (unsigned long long)pool->id[1],
              at_segment_expandable(segment) ? "true" : "false");
  write_blocks(blocks, out);
  at_text_add(out, "]}");
}

static void write_segments(const at_allocator *allocator, at_text *out) {
  const char *comma = "";
  for (const attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (const at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (const at_segment *segment = heap->segments; segment; segment = segment->next) {
        stretch blocks;
        for (at_block *block = segment->first; find_stretch(block, &blocks); block = blocks.end) {
          at_text_add(out, "%s", comma);
          write_stretch(segment, &blocks, allocator->device->ordinal, out);
          comma = ",\n";
        }
      }
}

/* -1 stands for "none", as PyTorch has it. */
static void write_settings(const at_allocator *allocator, at_text *out) {
  const at_memory_options *options = &allocator->options;
  long long max_split = options->max_split == SIZE_MAX ? -1 : (long long)options->max_split;
  at_text_add(out,
              "{\"max_split_size\":%lld,\"max_non_split_rounding_size\":%zu,\"garbage_collection_threshold\":%.6f,"
              "\"expandable_segments\":%s,"
              "\"large_segment_size\":%zu,\"backend\":\"%s\",\"poison\":%s,\"nvtx\":%s}",
              max_split, options->max_non_split_rounding, options->collect_above,
              options->expandable ? "true" : "false", options->large_segment, options->no_cache ? "none" : "caching",
              options->poison ? "true" : "false", options->nvtx ? "true" : "false");
}

static void see_blocks(at_segment *segment) {
  for (at_block *block = segment->first; block; block = block->next) {
    block->seen_state = at_block_get_state(block);
    block->seen_requested = block->requested;
  }
}

/* What the program holds changes with the front's lock alone: all of them are held for the moment that the snapshot is
 * of. It is written without them. */
static void see_all(at_allocator *allocator) {
  for (at_front *front = allocator->fronts; front; front = front->next) at_front_lock(front);
  for (attune_pool *pool = &allocator->common; pool; pool = pool->next)
    for (at_heap *heap = pool->heaps; heap; heap = heap->next)
      for (at_segment *segment = heap->segments; segment; segment = segment->next) see_blocks(segment);
  for (at_front *front = allocator->fronts; front; front = front->next) at_front_unlock(front);
}

/* One list of history for each device up to this one, as the visualiser expects to find it under the device's number.
 */
attune_status attune_memory_snapshot(char **out, attune_device *device) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to a text");
  *out = NULL;
  if (!device) return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
  at_allocator *allocator = at_allocator_of(device);
  if (!allocator) return ATTUNE_OUT_OF_MEMORY;
  at_text text = {0};
  pthread_mutex_lock(&allocator->lock);
  at_front_flush_all(allocator);
  at_memory_catch_up(allocator, false);
  at_history_add(allocator, AT_ACTION_SNAPSHOT, 0, 0, NULL);
  see_all(allocator);
  at_text_add(&text, "{\"segments\":[");
  write_segments(allocator, &text);
  at_text_add(&text, "],\n\"device_traces\":[");
  for (int i = 0; i < device->ordinal; i++) at_text_add(&text, "[],");
  at_history_write(allocator, &text);
  at_text_add(&text, "],\n\"allocator_settings\":");
  write_settings(allocator, &text);
  at_text_add(&text, ",\n\"external_annotations\":[]}\n");
  pthread_mutex_unlock(&allocator->lock);
  return at_text_take(&text, out);
}

static void write_bytes(char out[16], uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < AT_COUNT(units); unit++) value /= 1024.0;
  snprintf(out, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void write_row(at_text *out, const char *name, const attune_memory_figure *figure, bool bytes) {
  char columns[4][16];
  const uint64_t values[4] = {figure->current, figure->peak, figure->allocated, figure->freed};
  for (int i = 0; i < 4; i++) {
    if (bytes)
      write_bytes(columns[i], values[i]);
    else
      snprintf(columns[i], sizeof columns[i], "%llu", (unsigned long long)values[i]);
  }
  at_text_add(out, "| %-22s | %12s | %12s | %12s | %12s |\n", name, columns[0], columns[1], columns[2], columns[3]);
}

static void write_rows(at_text *out, const char *name, const attune_memory_figure figures[3], bool bytes) {
  write_row(out, name, &figures[ATTUNE_MEMORY_ALL], bytes);
  write_row(out, "  large", &figures[ATTUNE_MEMORY_LARGE], bytes);
  write_row(out, "  small", &figures[ATTUNE_MEMORY_SMALL], bytes);
}

attune_status attune_memory_summary(char **out, attune_device *device) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to a text");
  *out = NULL;
  attune_memory_statistics s;
  attune_status status = attune_memory_get_statistics(device, &s);
  if (status != ATTUNE_OK) return status;
  at_text text = {0};
  at_text_add(&text, "memory of %s: %llu failed requests, %llu retries, %llu segments taken, %llu given back\n",
              device->name, (unsigned long long)s.out_of_memory, (unsigned long long)s.alloc_retries,
              (unsigned long long)s.device_allocs, (unsigned long long)s.device_frees);
  at_text_add(&text, "| %-22s | %12s | %12s | %12s | %12s |\n", "", "now", "peak", "allocated", "freed");
  at_text_add(&text, "|------------------------|--------------|--------------|--------------|--------------|\n");
  write_rows(&text, "allocated memory", s.allocated_bytes, true);
  write_rows(&text, "requested memory", s.requested_bytes, true);
  write_rows(&text, "active memory", s.active_bytes, true);
  write_rows(&text, "reserved memory", s.reserved_bytes, true);
  write_rows(&text, "free pieces' memory", s.inactive_split_bytes, true);
  write_rows(&text, "allocations", s.allocation, false);
  write_rows(&text, "active allocations", s.active, false);
  write_rows(&text, "segments", s.segment, false);
  write_rows(&text, "free pieces", s.inactive_split, false);
  write_row(&text, "oversize allocations", &s.oversize_allocations, false);
  write_row(&text, "oversize segments", &s.oversize_segments, false);
  return at_text_take(&text, out);
}
