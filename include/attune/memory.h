/* SPDX-License-Identifier: Apache-2.0
 * memory.h: memory of a device, copies and fills. Any pointer that the device can reach may be used with attune; these calls
 * are for programs that have no allocator of their own. */
#ifndef ATTUNE_MEMORY_H
#define ATTUNE_MEMORY_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `bytes` of memory of the stream's device into *out, aligned to 256 bytes, contents undefined; bytes = 0 gives NULL. Ready for
 * work on every stream. The caller frees it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes);

/* Frees memory of attune_alloc after the work already given to `stream`; other streams must be done with it. NULL is left
 * alone. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_free(void *pointer, attune_stream *stream);

/* Copies `bytes` from `source` to `destination` in stream order; either may be host or device memory of the stream's device;
 * the ranges must not overlap. Pageable host memory may make the call wait. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);

/* Sets `bytes` bytes at `destination` to `value` (0-255) in stream order. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
