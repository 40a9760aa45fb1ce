/* SPDX-License-Identifier: Apache-2.0
 * pool.h: memory pools in addition to a device's common one. Allocations made while a stream uses a pool come from that
 * pool's own segments and return to them. A graph has a pool for the allocations in its capture. */
#ifndef ATTUNE_POOL_H
#define ATTUNE_POOL_H

#include <attune/managed.h>
#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of memory. */
typedef struct attune_pool attune_pool;

/* Options of a pool; start from ATTUNE_POOL_OPTIONS_INIT. */
typedef struct attune_pool_options {
  size_t size;                       /* sizeof this struct, or 0 (types.h) */
  const attune_allocator *allocator; /* allocates the segments, copied; NULL: the device */
  int use_on_out_of_memory; /* 1: when the device has no more memory, this pool serves the common pool's requests */
  int no_split;             /* 1: a block serves one request, however small */
  /* Not NULL: segments are managed memory with this advice, which is copied. They may exceed the device's memory, count
   * against the device's limit if there is one, and are returned to the device when the pool is destroyed. */
  const attune_managed_options *managed;
} attune_pool_options;
/* The defaults. */
#define ATTUNE_POOL_OPTIONS_INIT \
  { sizeof(attune_pool_options), NULL, 0, 0, NULL }

/* Creates a pool of `device` in *out; options NULL: the defaults. The caller destroys it. Errors: INVALID_ARGUMENT
 * (also: both allocator and managed), UNSUPPORTED (the device has no managed memory, or takes no advice for it),
 * OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_pool_create(attune_pool **out, attune_device *device,
                                            const attune_pool_options *options);

/* Releases the handle. Memory from the pool stays valid until it is freed. Free segments serve other requests of the
 * device once the work that used them is done. Segments of the pool's own allocator are returned to it instead: after a
 * wait for the device or, during a capture, when that ends. NULL does nothing. Any thread. */
ATTUNE_API void attune_pool_destroy(attune_pool *pool);

/* Makes attune_alloc on `stream` take memory from `pool` until attune_pool_end. Begin and end nest up to 8 deep. While
 * attune_graph captures the stream, memory still comes from the graph's pool. Destroying the stream ends its begins.
 * Errors: INVALID_ARGUMENT (another device's pool), BUSY (nested too deep), OUT_OF_MEMORY. The thread that uses the
 * stream. */
ATTUNE_API attune_status attune_pool_begin(attune_pool *pool, attune_stream *stream);

/* Ends the latest begin on `stream`, which must have been with the same pool. Errors: INVALID_ARGUMENT (no begin, or
 * with another pool), OUT_OF_MEMORY. The thread that uses the stream. */
ATTUNE_API attune_status attune_pool_end(attune_pool *pool, attune_stream *stream);

/* State of a pool. */
typedef struct attune_pool_info {
  size_t size;    /* sizeof this struct, or 0 (types.h) */
  uint64_t id[2]; /* {n, 0}: the n-th of attune_pool_create; {0, n}: the n-th created by a graph; as in snapshots */
  int holders;    /* references by handles, graphs and attune_pool_begin; 0: orphaned, its remaining memory serves other
                     requests */
  uint64_t reserved_bytes, allocated_bytes; /* taken from the device; of these, held by the program */
  size_t segments;
} attune_pool_info;

/* Fills *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_pool_get_info(attune_pool *pool, attune_pool_info *out);

/* Called with a pool; *info is valid only during the call. A nonzero return ends the iteration. */
typedef int (*attune_pool_fn)(void *user, const attune_pool_info *info);

/* Calls fn with each pool of the device, the program's and the graphs', oldest first, except the common one; all as of
 * one moment. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread; fn may make calls of attune. */
ATTUNE_API attune_status attune_memory_each_pool(attune_device *device, attune_pool_fn fn, void *user);

/* Like attune_memory_snapshot, but with only this pool's segments; the history is the device's. The caller releases
 * *out with free(). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_pool_snapshot(char **out, attune_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
