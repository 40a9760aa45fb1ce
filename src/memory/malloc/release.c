/* SPDX-License-Identifier: Apache-2.0
 * release.c: gives free memory back, also what fronts keep. */
#include "src/memory/malloc/allocator.h"

uint64_t at_memory_release(at_allocator *allocator) {
  at_stream_cache_flush_all(allocator);
  const uint64_t bytes = at_segments_release(allocator);
  at_pools_reap(allocator);
  return bytes;
}

uint64_t at_memory_release_oldest(at_allocator *allocator, uint64_t bytes) {
  at_stream_cache_flush_all(allocator);
  return at_segments_release_oldest(allocator, bytes);
}
