/* SPDX-License-Identifier: Apache-2.0
 * kernel_cache.h: compiled kernels in files, one a kernel, in a folder that only this user may write: they are native
 * code. Every failure is a miss. Nothing here needs CUDA or sets the thread's message. Any thread and any process at
 * once. */
#ifndef AT_CUDA_KERNEL_CACHE_H
#define AT_CUDA_KERNEL_CACHE_H

#include "src/base/support.h"

#define AT_KERNEL_CACHE_BYTES ((uint64_t)256 << 20)

/* The name of a kernel: a hash of all that its code depends on. */
typedef struct at_kernel_key {
  uint64_t low, high;
} at_kernel_key;

typedef struct at_kernel_cache {
  char folder[4096];  /* "": none, everything is a miss */
  uint64_t max_bytes; /* of all entries; above, those unused for longest are deleted */
} at_kernel_cache;

/* The key of these texts in this order; no two different lists have the same concatenation. */
at_kernel_key at_kernel_key_of(const char *const *parts, int count);

/* The entry's bytes into *out (to be freed) and *size; false: a miss. An entry that is damaged, foreign or writable by
 * others is deleted. */
bool at_kernel_cache_read(const at_kernel_cache *cache, at_kernel_key key, void **out, size_t *size);

/* Is there an entry of that key? It is not read: it may still be damaged. */
bool at_kernel_cache_has(const at_kernel_cache *cache, at_kernel_key key);

/* Stores an entry, making the folder if there is none, and deletes old ones above the bound. NULL when stored, else why
 * not, in words. */
const char *at_kernel_cache_write(const at_kernel_cache *cache, at_kernel_key key, const void *bytes, size_t size);

/* Deletes an entry that turned out to be of no use. */
void at_kernel_cache_remove(const at_kernel_cache *cache, at_kernel_key key);

#endif
