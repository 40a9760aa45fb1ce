/* SPDX-License-Identifier: Apache-2.0
 * stream.h: streams (work in order) and events (points in a stream), with the meaning they have in CUDA.
 *
 * The host. Its default stream runs work inline, in the calling thread; a created stream runs it in order on a thread
 * of its own.
 *
 * Floating point. Threads of attune have the default environment: they round to nearest, keep denormals and do not trap,
 * whatever the program has set (fesetround, -ffast-math). So has the calling thread while it has a share of work that is
 * divided among threads, and while attune tunes, verifies or compiles: results and stored winners do not depend on which
 * thread did what, or on who called first. Each call leaves the caller's environment as it was. What one thread does
 * alone on the host's default stream obeys the environment of the calling thread. Libraries that attune opens are opened,
 * and start their threads, in the default environment; one that the program has opened before is as the program made it.
 *
 * Threads. A stream is used by one thread at a time, except the host's default stream, which many may use at once. An
 * event is recorded by one thread at a time; outside of captures others may ask and wait for it meanwhile. A handle is
 * destroyed when no other call uses it. Calls that make a handle, and those that only ask what one is, may come from
 * any thread. */
#ifndef ATTUNE_STREAM_H
#define ATTUNE_STREAM_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A new stream of `device` into *out; on CUDA a non-blocking one. The caller destroys it. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_stream_create(attune_stream **out, attune_device *device);

/* A handle for the program's own stream into *out: `native` is a cudaStream_t of `device` (NULL: the legacy default
 * stream). attune does not own the stream, which must outlive the handle; the caller destroys the handle. Errors:
 * INVALID_ARGUMENT, also for a stream of another device; UNSUPPORTED on the host. */
ATTUNE_API attune_status attune_stream_wrap(attune_stream **out, attune_device *device, void *native);

/* The default stream of `device` (CUDA: the legacy default stream). Borrowed, never destroyed; NULL for a NULL device.
 */
ATTUNE_API attune_stream *attune_stream_default(attune_device *device);

/* A stream of the device's pool into *out. There are 32 for each device and priority, made when first needed and handed
 * out in turn, so two callers may get the same one. Priority 0 is normal, and lower numbers are more urgent (CUDA:
 * clamped to what the device has; the host keeps 0 to -7 and ignores the order). Borrowed; never destroyed by the caller. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_stream_from_pool(attune_stream **out, attune_device *device, int priority);

/* The priorities that the device tells apart: *out_least is the normal one, 0, *out_greatest the most urgent, a lower
 * number; both 0 where all are the same. Either may be NULL. Creates a context on CUDA. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_priority_range(attune_device *device, int *out_least, int *out_greatest);

/* The stream's priority: 0 is normal, lower is more urgent; 0 for NULL and for a stream of the program. */
ATTUNE_API int attune_stream_priority(const attune_stream *stream);

/* The calling thread's current stream of `device`: the one it set, else the default stream. It lets the parts of a
 * program agree on a stream; attune itself never looks at it. Borrowed; NULL for a NULL device. */
ATTUNE_API attune_stream *attune_stream_current(attune_device *device);

/* Makes `stream` the calling thread's current one of its device. The stream must live as long as it is current; if this
 * thread destroys it, the default stream is current again. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_stream_set_current(attune_stream *stream);

/* Waits for the stream's work, then releases the handle, and the CUDA stream if attune made it. Does nothing for NULL,
 * a default stream and a stream of the pool. If a capture began on the stream, it ends and what it wrote down is
 * dropped; a stream that joined a capture is released when the capture ends. */
ATTUNE_API void attune_stream_destroy(attune_stream *stream);

/* The cudaStream_t; NULL on the host. Borrowed.
 *
 * On capability 9.0 and later many of attune's kernels let the next kernel of the stream begin before they are done: NVIDIA's
 * programmatic dependent launch. That means nothing to what is launched as usual. A kernel of the program that is launched
 * as a dependent one (cudaLaunchAttributeProgrammaticStreamSerialization) must call cudaGridDependencySynchronize before it
 * reads or writes what any earlier work in the stream writes or reads, not only that of the kernel in front of it. */
ATTUNE_API void *attune_stream_native(const attune_stream *stream);

/* The cublasHandle_t that attune calls the vendor's library with on this stream, into *out, made if there is none:
 * stream and workspace are set, arithmetic is strict, scalars are the host's. Borrowed until the stream is destroyed;
 * used by the thread that uses the stream, while the stream's device is that thread's current one (cudaSetDevice), as
 * cuBLAS wants it. Attune sets arithmetic and workspace again at its next call; what else the program sets it sets back,
 * and asks for the handle again before it sets something anew. The library is the one of `attune devices`. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host), NOT_FOUND (no cuBLAS), OUT_OF_MEMORY,
 * DEVICE_ERROR. */
ATTUNE_API attune_status attune_stream_blas(attune_stream *stream, void **out);

/* The stream's device. Borrowed; NULL for NULL. */
ATTUNE_API attune_device *attune_stream_device(const attune_stream *stream);

/* OK when all work given to the stream is done, NOT_READY when not. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING.
 */
ATTUNE_API attune_status attune_stream_query(attune_stream *stream);

/* Waits for all work given to the stream. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_stream_synchronize(attune_stream *stream);

/* Work given to `stream` from now on waits for the latest record of `event`, if there is one. Both must be of one
 * kind of device. An event recorded in a capture makes the stream join that capture; if the stream is in a capture
 * already, any other event breaks it. Errors: INVALID_ARGUMENT (also: recorded in a capture that is over),
 * DEVICE_ERROR, CAPTURING (it broke a capture), UNSUPPORTED (a default stream cannot join). Allowed in capture. */
ATTUNE_API attune_status attune_stream_wait_event(attune_stream *stream, attune_event *event);

/* Work given to `stream` from now on waits for all work given to `other` so far, as by an event recorded there and
 * waited for here. The same stream twice does nothing. Errors: those of attune_event_create, attune_event_record and
 * attune_stream_wait_event. Allowed in capture: `stream` joins the capture that `other` is in. */
ATTUNE_API attune_status attune_stream_wait_stream(attune_stream *stream, attune_stream *other);

/* A function that runs in stream order. */
typedef void (*attune_call_fn)(void *user);

/* Runs fn(user) on a CPU thread once all earlier work of `stream` is done; later work waits until fn returns. On the
 * host's default stream it runs at once, in the calling thread; else on a thread of attune (host) or of the driver
 * (CUDA). In a capture it becomes part of the graph and runs in each replay. `user` must live until fn has run, or as
 * long as the graph; attune does not free it. fn has no status: it notes its own failures in `user`.
 *
 * fn must not wait for work of any stream, give work to the stream that runs it, or replay, reset or destroy the graph
 * that it is part of. On the host a call that waits for the stream that runs it, or gives it more than the 256 pieces
 * that a stream holds, fails with INVALID_ARGUMENT, and attune_stream_destroy of it does nothing; a wait for another
 * stream that waits for this one never ends. On CUDA fn must call no CUDA function, and of attune only what uses no CUDA
 * device. On the host it may call attune, for example GEMMs on the host's default stream. It never runs if the device
 * was lost before, or if an earlier failure keeps the stream from reaching it.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY (in a capture), DEVICE_ERROR, UNSUPPORTED. Allowed in capture. */
ATTUNE_API attune_status attune_stream_call(attune_stream *stream, attune_call_fn fn, void *user);

/* Options of an event; start from ATTUNE_EVENT_OPTIONS_INIT. */
typedef struct attune_event_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  int no_timing;    /* nonzero: cheaper, and attune_event_elapsed_ns refuses it */
  int blocking;     /* nonzero: attune_event_synchronize sleeps instead of spinning */
  int interprocess; /* nonzero: attune_event_ipc_export may hand it to other processes; needs no_timing. CUDA only */
  /* Nonzero: records of it and waits for it in a capture become nodes of the graph and do not make a stream join the
   * capture. Each replay does them. A replay's record replaces the latest one at the moment that the replay is given to
   * its stream; a replay's wait is for the record that is the latest at that moment. Outside of captures the event is
   * like others; it must outlive the graph. On the host such a record is reached when the whole replay is done, but its
   * time is that of the record. */
  int external;
} attune_event_options;

/* The defaults. */
#define ATTUNE_EVENT_OPTIONS_INIT \
  { sizeof(attune_event_options), 0, 0, 0, 0 }

/* A new event of `device` into *out; options NULL: the defaults, an event with times. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, UNSUPPORTED (interprocess on the host). */
ATTUNE_API attune_status attune_event_create(attune_event **out, attune_device *device,
                                             const attune_event_options *options);

/* An event in a form that another process of the machine can open. Plain bytes: send them as they are. */
typedef struct attune_event_ipc {
  unsigned char bytes[64];
} attune_event_ipc;

/* Fills *out for an event made with `interprocess`. The event must live as long as other processes use it. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (the host), DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_ipc_export(attune_event *event, attune_event_ipc *out);

/* Opens another process's event into *out; `device` is the same GPU. The caller destroys it. Errors: INVALID_ARGUMENT
 * (also: not a handle, or one of this process), UNSUPPORTED (the host), DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_ipc_open(attune_event **out, attune_device *device,
                                               const attune_event_ipc *handle);

/* A handle for the program's own cudaEvent_t into *out. The event must outlive the handle, which the caller destroys.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED on the host. */
ATTUNE_API attune_status attune_event_wrap(attune_event **out, attune_device *device, void *native);

/* Releases the handle. Waits already given to streams stay valid. NULL does nothing. */
ATTUNE_API void attune_event_destroy(attune_event *event);

/* The cudaEvent_t; NULL on the host. Borrowed. */
ATTUNE_API void *attune_event_native(const attune_event *event);

/* Marks the current end of `stream`'s work; a later record replaces it. Errors: INVALID_ARGUMENT, DEVICE_ERROR.
 * Allowed in capture. */
ATTUNE_API attune_status attune_event_record(attune_event *event, attune_stream *stream);

/* OK when the latest record was reached (or none was made), NOT_READY when not. Errors: INVALID_ARGUMENT, DEVICE_ERROR,
 * CAPTURING (the latest record is part of a capture, so it never happens as such). */
ATTUNE_API attune_status attune_event_query(attune_event *event);

/* Waits until the latest record is reached. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (as above). */
ATTUNE_API attune_status attune_event_synchronize(attune_event *event);

/* What attune does when a call must wait for a device although the program did not ask it to wait. That happens when
 * memory is copied from or to pageable host memory; when memory goes back to the system (also in attune_graph_destroy);
 * when no memory is left but what other streams still use; and when a stream is destroyed with work in flight. Tuning
 * waits too, but there the mode asks for it. */
typedef enum attune_sync_debug {
  ATTUNE_SYNC_DEBUG_OFF = 0,
  ATTUNE_SYNC_DEBUG_WARN = 1,
  ATTUNE_SYNC_DEBUG_ERROR = 2
} attune_sync_debug;

/* Sets this for the whole process. Off is the default. Warn: the log has a warning. Error: a copy does nothing and
 * returns BUSY; the others wait, and the log has an error. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_set_sync_debug(attune_sync_debug mode);

/* The current setting. Any thread. */
ATTUNE_API attune_sync_debug attune_get_sync_debug(void);

/* Nonzero: each call that gives work to a stream waits until it is done and returns what failed in it, so that an error
 * is told by the call that made it. attune_stream_call does not wait, as its function may wait for this thread; nor do
 * records of events and waits for them. For the whole process, not in captures; off is the default. Unlike
 * CUDA_LAUNCH_BLOCKING it concerns attune's calls only and may change at any time. The race check sees no order in
 * these waits. Any thread. */
ATTUNE_API attune_status attune_set_launch_blocking(int on);

/* The current setting. Any thread. */
ATTUNE_API int attune_get_launch_blocking(void);

/* Nanoseconds from `start` to `stop` into *out_ns; resolution about 500 ns on CUDA, 1 ns on the host. Both must be
 * recorded. Errors: INVALID_ARGUMENT (not recorded, or without timing), NOT_READY (not reached), DEVICE_ERROR,
 * CAPTURING (recorded in a capture). */
ATTUNE_API attune_status attune_event_elapsed_ns(double *out_ns, attune_event *start, attune_event *stop);

#ifdef __cplusplus
}
#endif
#endif
