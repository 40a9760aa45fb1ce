/* SPDX-License-Identifier: Apache-2.0
 * managed.h: managed memory, which CPU and GPUs access at one address and which migrates to where it is used, so that
 * there may be more of it than a GPU has. Allocate it from a pool made with attune_pool_options.managed (pool.h). These
 * calls say in advance where it will be needed; they change no contents and are never required for correct results.
 *
 * On the host device all memory is used only by the CPU: such a pool is an ordinary one, advice is checked and has no
 * effect, and a prefetch faults the pages in, so that the first access does not wait for that. */
#ifndef ATTUNE_MANAGED_H
#define ATTUNE_MANAGED_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Advice for managed memory; start from ATTUNE_MANAGED_OPTIONS_INIT. Devices are CUDA devices, or the host device for
 * the CPU. */
typedef struct attune_managed_options {
  size_t size;                       /* sizeof this struct, or 0 (types.h) */
  attune_device *preferred;          /* preferred location of the pages; NULL: none */
  int read_mostly;                   /* 1: each reading device gets a copy of its own; a write discards the copies */
  attune_device *const *accessed_by; /* these keep it mapped wherever it is, so that their accesses do not fault */
  int accessed_by_count;
} attune_managed_options;

/* No advice. */
#define ATTUNE_MANAGED_OPTIONS_INIT \
  { sizeof(attune_managed_options), NULL, 0, NULL, 0 }

/* The maximum number of devices in attune_managed_options.accessed_by. */
#define ATTUNE_MANAGED_DEVICES 16

/* Sets this advice for `bytes` bytes of managed memory of `device`, replacing all earlier advice; it applies to whole
 * pages, so also to other data in the first and the last page. Errors: INVALID_ARGUMENT (also: not managed memory,
 * which is not checked on the host), UNSUPPORTED (the device cannot use such memory concurrently with the CPU),
 * DEVICE_ERROR. Any thread; allowed in capture, but not captured. */
ATTUNE_API attune_status attune_managed_advise(attune_device *device, void *pointer, size_t bytes,
                                               const attune_managed_options *advice);

/* Migrates the memory to `to`, a CUDA device or the host device, in the order of `stream`. On a stream of the host
 * device, any memory is accepted, and nothing moves. Errors: INVALID_ARGUMENT (also: not managed memory), UNSUPPORTED
 * (as above), CAPTURING (not allowed in capture), DEVICE_ERROR. The thread that uses the stream. */
ATTUNE_API attune_status attune_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);

/* Current advice of memory. Devices are borrowed. */
typedef struct attune_managed_state {
  size_t size;               /* sizeof this struct, or 0 (types.h) */
  attune_device *preferred;  /* NULL: none, or not the same for the whole range */
  int read_mostly;           /* 1: the whole range is */
  attune_device *prefetched; /* last prefetch destination; NULL: none, or not the same for the whole range */
  attune_device *accessed_by[ATTUNE_MANAGED_DEVICES];
  int accessed_by_count;
} attune_managed_state;

/* Fills *out for `bytes` bytes of managed memory of `device`. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host device,
 * which keeps no advice), DEVICE_ERROR. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_managed_get_state(attune_managed_state *out, attune_device *device, const void *pointer,
                                                  size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
