/* SPDX-License-Identifier: Apache-2.0
 * annotate.c: tells memory checkers and profilers (NVTX) of segments and of what the program holds in them, so that a
 * use after free inside the cache is found as one of memory given back would be. With the lock held. */
#include "src/memory/malloc/allocator.h"

/* Of memory of the device itself, which tools know. A graph replays into its pool also where memory was freed in its
 * capture: its segments stay open as a whole. */
void at_annotate_segment(at_allocator *allocator, at_segment *segment) {
  const attune_pool *pool = segment->heap->pool;
  if (!allocator->options.nvtx || allocator->options.no_cache || allocator->has_own || pool->own_allocator) return;
  if (pool->id[1] == 0)
    segment->note = allocator->device->backend.notes->segment(allocator->device, segment->base, segment->bytes);
}

void at_annotate_segment_gone(at_allocator *allocator, at_segment *segment) {
  if (segment->note) allocator->device->backend.notes->forget_segment(allocator->device, segment->note);
  segment->note = NULL;
}

void at_annotate_block(at_allocator *allocator, const at_block *block) {
  attune_device *device = allocator->device;
  void *note = block->segment->note;
  if (note) device->backend.notes->block(device, note, at_block_pointer(block), block->rounded);
}

/* What the block's own stream was given before the free may run still, and is no use after free: it is waited for, but
 * in a capture. Other streams are done. A failure shows itself to the device's next user. */
static void wait_for_work(at_allocator *allocator, const at_stream_cache *cache) {
  if (cache->life != AT_STREAM_CACHE_OPEN || at_stream_capturing(cache->stream)) return;
  const at_message kept = at_message_keep();
  if (allocator->device->backend.stream->synchronize(cache->stream) != ATTUNE_OK)
    (void)at_message_settle(&kept, ATTUNE_OK);
}

void at_annotate_block_gone(at_allocator *allocator, const at_block *block) {
  void *note = block->segment->note;
  if (!note) return;
  wait_for_work(allocator, atomic_load_explicit(&block->cache, memory_order_relaxed));
  allocator->device->backend.notes->forget_block(allocator->device, note, at_block_pointer(block));
}
