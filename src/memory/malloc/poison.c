/* SPDX-License-Identifier: Apache-2.0
 * poison.c: freed memory gets a pattern, so that what is used after the free is seen: on the host when the memory is
 * used again, on any device by the nonsense it computes. */
#include "src/memory/malloc/allocator.h"

#include "src/stream/capture.h"

#include <string.h>

bool at_poison_waits(const at_block *block) {
  const at_stream_cache *cache = atomic_load_explicit(&((at_block *)(uintptr_t)block)->cache, memory_order_relaxed);
  if (!cache->allocator->options.poison || cache->life == AT_STREAM_CACHE_CLOSED) return false;
  if (cache->life == AT_STREAM_CACHE_CLOSING) return true;
  if (!at_stream_capturing(cache->stream)) return false;
  const at_capture *capture = cache->stream->capture;
  return !capture || capture->pool != block->segment->heap->pool;
}

/* After the block's own stream is done with it. Memory of a stream that is gone is idle: the host writes it at once. */
void at_poison_fill(at_block *block) {
  at_stream_cache *cache = atomic_load_explicit(&block->cache, memory_order_relaxed);
  attune_device *device = cache->allocator->device;
  if (cache->life == AT_STREAM_CACHE_OPEN)
    (void)device->backend.memory->fill(cache->stream, at_block_pointer(block), AT_POISON, block->size);
  else if (device->backend.kind == ATTUNE_DEVICE_HOST)
    memset(at_block_pointer(block), AT_POISON, block->size);
}

attune_status at_poison_check(const at_block *block, attune_stream *stream) {
  if (stream->device->backend.kind != ATTUNE_DEVICE_HOST || at_stream_capturing(stream)) return ATTUNE_OK;
  AT_TRY(stream->device->backend.stream->synchronize(stream));
  const unsigned char *bytes = at_block_pointer(block);
  if (bytes[0] == AT_POISON && memcmp(bytes, bytes + 1, block->size - 1) == 0) return ATTUNE_OK;
  size_t at = 0;
  while (bytes[at] == AT_POISON) at++;
  return at_fail(
      ATTUNE_BAD_DATA,
      "byte %zu of %zu at %p on %s was written to after the memory was freed; it is 0x%02x, should be 0x%02x", at,
      block->size, at_block_pointer(block), stream->device->name, bytes[at], AT_POISON);
}
