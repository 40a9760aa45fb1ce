/* SPDX-License-Identifier: Apache-2.0
 * stream.h: streams (work in order) and events (points in a stream), with the meaning they have in CUDA.
 *
 * A stream is used by one thread at a time; the host's default stream may be used by many at once. On the host the default
 * stream runs work inline in the calling thread; a created stream runs it in order on a thread of its own. */
#ifndef ATTUNE_STREAM_H
#define ATTUNE_STREAM_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A new stream of `device` into *out; on CUDA a non-blocking one. The caller destroys it.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_stream_create(attune_stream **out, attune_device *device);

/* Uses the program's own stream: `native` is a cudaStream_t of `device` (NULL: the legacy default stream). attune does not
 * own it; it must outlive the handle, which the caller destroys. Errors: INVALID_ARGUMENT, UNSUPPORTED on the host. */
ATTUNE_API attune_status attune_stream_wrap(attune_stream **out, attune_device *device, void *native);

/* The default stream of `device` (CUDA: the legacy default stream). Borrowed, never destroyed; NULL for a NULL device. */
ATTUNE_API attune_stream *attune_stream_default(attune_device *device);

/* Waits for the stream's work, then releases the handle (and the CUDA stream, if attune made it). NULL and a default
 * stream are left alone. */
ATTUNE_API void attune_stream_destroy(attune_stream *stream);

/* The cudaStream_t; NULL on the host. Borrowed. */
ATTUNE_API void *attune_stream_native(const attune_stream *stream);

/* The stream's device. Borrowed; NULL for NULL. */
ATTUNE_API attune_device *attune_stream_device(const attune_stream *stream);

/* OK when all work given to the stream is done, NOT_READY when not. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_stream_query(attune_stream *stream);

/* Waits for all work given to the stream. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_stream_synchronize(attune_stream *stream);

/* Work given to `stream` from now on waits for `event` (its latest record; none: no wait). The two share a device kind.
 * Errors: INVALID_ARGUMENT, DEVICE_ERROR. Allowed in capture. */
ATTUNE_API attune_status attune_stream_wait_event(attune_stream *stream, attune_event *event);

/* A new timing event of `device` into *out. The caller destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_create(attune_event **out, attune_device *device);

/* Uses the program's own cudaEvent_t, which must outlive the handle. Errors: INVALID_ARGUMENT, UNSUPPORTED on the host. */
ATTUNE_API attune_status attune_event_wrap(attune_event **out, attune_device *device, void *native);

/* Releases the handle; waits that were already given to streams stay valid. NULL is left alone. */
ATTUNE_API void attune_event_destroy(attune_event *event);

/* The cudaEvent_t; NULL on the host. Borrowed. */
ATTUNE_API void *attune_event_native(const attune_event *event);

/* Marks the present end of `stream`'s work; a later record replaces it. Errors: INVALID_ARGUMENT, DEVICE_ERROR.
 * Allowed in capture. */
ATTUNE_API attune_status attune_event_record(attune_event *event, attune_stream *stream);

/* OK when the latest record was reached (or none was made), NOT_READY when not. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_query(attune_event *event);

/* Waits until the latest record is reached. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_synchronize(attune_event *event);

/* Nanoseconds from `start` to `stop` into *out_ns; resolution about 500 ns on CUDA, 1 ns on the host. Both must be recorded.
 * Errors: INVALID_ARGUMENT (not recorded), NOT_READY (not reached), DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_elapsed_ns(double *out_ns, attune_event *start, attune_event *stop);

#ifdef __cplusplus
}
#endif
#endif
