/* SPDX-License-Identifier: Apache-2.0
 * caches.h: emptying the caches that a call would find its operands in. */
#ifndef AT_BENCH_CACHES_H
#define AT_BENCH_CACHES_H

#include <attune/device.h>

/* How much memory, read or written, leaves nothing else in the device's caches; NULL: the host's. */
size_t at_caches_bytes(const attune_device *device);

/* So much host memory, every page of its own; release it with free(). NULL when memory is short. */
void *at_caches_memory(size_t bytes);

/* Reads all of it, in the calling thread. */
void at_caches_empty(void *memory, size_t bytes);

#endif
