/* SPDX-License-Identifier: Apache-2.0
 * caches.c: fills a cache with unrelated memory. */
#include "tools/bench/caches.h"

#include <string.h>

#include "src/base/backend.h"

static const uint64_t LEAST = (uint64_t)8 << 20, MOST = (uint64_t)1 << 30;
#define LINE 64u

size_t at_caches_bytes(const attune_device *device) {
  attune_device *host = NULL;
  if (!device && attune_device_get(&host, "host") == ATTUNE_OK) device = host;
  const uint64_t bytes = device ? 2 * device->properties.cache_bytes : LEAST;
  return (size_t)(bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes);
}

void *at_caches_memory(size_t bytes) {
  void *out = at_alloc_large(bytes);
  if (out) memset(out, 1, bytes);
  return out;
}

/* Clean lines leave a cache at no cost, so lines are read; the sum goes back so that none is left out. */
void at_caches_empty(void *memory, size_t bytes) {
  volatile unsigned char *at = memory;
  unsigned char sum = 0;
  for (size_t i = 0; i < bytes; i += LINE) sum = (unsigned char)(sum + at[i]);
  at[0] = sum;
}
