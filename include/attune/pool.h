/* SPDX-License-Identifier: Apache-2.0
 * pool.h: pools of memory beside a device's common one. What is allocated while a stream uses a pool comes from that
 * pool's own segments, and goes back to them. A graph has a pool for what is allocated in its capture. */
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
  size_t size; /* sizeof this struct, or 0 (types.h) */
  const attune_allocator *allocator; /* where segments come from, copied; NULL: the device */
  int use_on_out_of_memory; /* 1: when the device has no more, the common pool's requests are served from here */
  int no_split;             /* 1: a block serves one request, however small */
  /* Segments are managed memory with this advice, which is copied; NULL: they are not. They may be more than the device
   * has, count against the device's limit if there is one, and go back to the device when the pool is destroyed. */
  const attune_managed_options *managed;
} attune_pool_options;
/* The defaults. */
#define ATTUNE_POOL_OPTIONS_INIT \
  { sizeof(attune_pool_options), NULL, 0, 0, NULL }

/* A new pool of `device` into *out; options NULL: the defaults. The caller destroys it. Errors: INVALID_ARGUMENT (also:
 * both allocator and managed), UNSUPPORTED (the device has no managed memory, or takes no advice for it),
 * OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_pool_create(attune_pool **out, attune_device *device,
                                            const attune_pool_options *options);

/* Releases the handle. Memory from the pool stays valid until it is freed. Free segments serve other requests of the
 * device, once the work that used them is done. Segments of the pool's own allocator go back to it instead: after a
 * wait for the device or, if a capture is under way, when that ends. NULL does nothing. Any thread. */
ATTUNE_API void attune_pool_destroy(attune_pool *pool);

/* From now on, until attune_pool_end, attune_alloc on `stream` takes from `pool`. Begin and end nest up to 8 deep.
 * While attune_graph captures the stream, memory comes from the graph's pool all the same. The end of the stream ends
 * what was begun on it. Errors: INVALID_ARGUMENT
 * (another device's pool), BUSY (nested too deep), OUT_OF_MEMORY. The thread that uses the stream. */
ATTUNE_API attune_status attune_pool_begin(attune_pool *pool, attune_stream *stream);

/* Ends the latest begin on `stream`, which was with the same pool. Errors: INVALID_ARGUMENT (no begin, or with another
 * pool), OUT_OF_MEMORY. The thread that uses the stream. */
ATTUNE_API attune_status attune_pool_end(attune_pool *pool, attune_stream *stream);

/* What a pool has. */
typedef struct attune_pool_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  uint64_t id[2]; /* {n, 0}: the n-th of attune_pool_create; {0, n}: the n-th that a graph made; as in snapshots */
  int holders;    /* handles, graphs and attune_pool_begin; 0: nobody, what is left of it serves other requests */
  uint64_t reserved_bytes, allocated_bytes; /* taken from the device; of these, what the program holds */
  size_t segments;
} attune_pool_info;

/* Fills *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_pool_get_info(attune_pool *pool, attune_pool_info *out);

/* Called with a pool; *info is valid during the call only. A nonzero return ends the walk. */
typedef int (*attune_pool_fn)(void *user, const attune_pool_info *info);

/* Calls fn with each pool of the device, the program's and the graphs', the oldest first, but not with the common one;
 * all of one moment. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread; fn may make calls of attune. */
ATTUNE_API attune_status attune_memory_each_pool(attune_device *device, attune_pool_fn fn, void *user);

/* attune_memory_snapshot with the segments of this pool alone; the history is the device's. The caller releases *out
 * with free(). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_pool_snapshot(char **out, attune_pool *pool);

/* How many bytes the pool has taken, and how many of them the program holds; either may be NULL. Errors:
 * INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_pool_bytes(attune_pool *pool, uint64_t *out_reserved, uint64_t *out_allocated);

#ifdef __cplusplus
}
#endif
#endif
