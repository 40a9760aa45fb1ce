/* SPDX-License-Identifier: Apache-2.0
 * managed.h: managed memory, which CPU and GPUs use under one address and which moves to where it is used, so that
 * there may be more of it than a GPU has. A pool made with attune_pool_options.managed gives it (pool.h). These calls
 * say ahead where it will be wanted; they change no contents and are never needed for right results.
 *
 * On the host device all memory is used by the CPU alone: such a pool is a plain one, advice is checked and has no
 * effect, and a prefetch makes the pages present, so that who uses them first does not wait for that. */
#ifndef ATTUNE_MANAGED_H
#define ATTUNE_MANAGED_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Advice for managed memory; start from ATTUNE_MANAGED_OPTIONS_INIT. Devices are CUDA devices, or the host device for
 * the CPU. */
typedef struct attune_managed_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_device *preferred;          /* pages best lie there; NULL: no such place */
  int read_mostly;                   /* 1: devices that read it get copies of their own; a write drops them */
  attune_device *const *accessed_by; /* these keep a mapping of it wherever it lies, so that their use is no fault */
  int accessed_by_count;
} attune_managed_options;

/* No advice. */
#define ATTUNE_MANAGED_OPTIONS_INIT \
  { sizeof(attune_managed_options), NULL, 0, NULL, 0 }

/* The most devices in attune_managed_options.accessed_by. */
#define ATTUNE_MANAGED_DEVICES 16

/* Gives `bytes` bytes of managed memory of `device` this advice, in place of all that they had; whole pages, so also
 * what shares the first and the last page. Errors: INVALID_ARGUMENT (also: not managed memory, which
 * the host does not look at), UNSUPPORTED (the device
 * cannot use such memory beside the CPU), DEVICE_ERROR. Any thread; in capture too, and not captured. */
ATTUNE_API attune_status attune_managed_advise(attune_device *device, void *pointer, size_t bytes,
                                               const attune_managed_options *advice);

/* Moves the memory to `to`, a CUDA device or the host device, in the order of `stream`. On a stream of the host device,
 * where all memory is the host's, any memory will do, and nothing moves. Errors: INVALID_ARGUMENT (also: not managed
 * memory), UNSUPPORTED (as above), CAPTURING (not allowed in capture), DEVICE_ERROR. The thread that uses the
 * stream. */
ATTUNE_API attune_status attune_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);

/* The advice that memory has. Devices are borrowed. */
typedef struct attune_managed_state {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_device *preferred;  /* NULL: none, or not the same for all of it */
  int read_mostly;           /* 1: all of it is */
  attune_device *prefetched; /* where it was prefetched to last; NULL: nowhere, or not all of it to one place */
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
