/* SPDX-License-Identifier: Apache-2.0
 * stream.h: streams (work in order) and events (points in a stream), with CUDA's semantics.
 *
 * The host. Its default stream runs work inline, in the calling thread; each created stream runs its work in order on a
 * thread of its own.
 *
 * Floating point. attune's threads use the default environment: round to nearest, denormals kept, no traps, whatever
 * the program has set (fesetround, -ffast-math). The calling thread does too while it runs its share of work divided
 * among threads, and while attune tunes, verifies or compiles, so results and stored winners do not depend on which
 * thread did what or which called first. Each call restores the caller's environment. Work that one thread does alone
 * on the host's default stream uses the calling thread's environment. Libraries that attune opens are opened, and start
 * their threads, in the default environment; a library that the program opened before keeps the environment the program
 * gave it.
 *
 * Threads. A stream is used by one thread at a time, except the host's default stream, which many may use at once. An
 * event is recorded by one thread at a time; outside captures, others may query it and wait for it at the same time. A
 * handle may be destroyed only when no other call uses it. Functions that create a handle or only read its properties
 * may be called from any thread. */
#ifndef ATTUNE_STREAM_H
#define ATTUNE_STREAM_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a stream on `device` and stores it in *out; on CUDA a non-blocking one. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_stream_create(attune_stream **out, attune_device *device);

/* Wraps the program's own stream in a handle, into *out: `native` is a cudaStream_t of `device` (NULL: the legacy
 * default stream). attune does not own the stream, which must outlive the handle; the caller destroys the handle.
 * Errors: INVALID_ARGUMENT (also: a stream of another device), UNSUPPORTED (the host), OUT_OF_MEMORY, DEVICE_ERROR. Any
 * thread. */
ATTUNE_API attune_status attune_stream_wrap(attune_stream **out, attune_device *device, void *native);

/* Returns the default stream of `device` (CUDA: the legacy default stream). Borrowed, never destroyed; NULL for a NULL
 * device. Any thread. */
ATTUNE_API attune_stream *attune_stream_default(attune_device *device);

/* Stores a stream of the device's pool in *out. The pool has 32 streams per priority, created when first needed and
 * handed out round-robin, so two callers may get the same one. Priority 0 is normal, and lower numbers are more urgent
 * (CUDA: clamped to the device's range; the host keeps 0 to -7 but ignores the order). Borrowed; never destroyed by the
 * caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_stream_from_pool(attune_stream **out, attune_device *device, int priority);

/* Stores the range of priorities that the device distinguishes: *out_least is the normal one, 0, *out_greatest the most
 * urgent, a lower number; both 0 if it has only one. Either may be NULL. Creates a context on CUDA. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_priority_range(attune_device *device, int *out_least, int *out_greatest);

/* Returns the stream's priority: 0 is normal, lower is more urgent; 0 for NULL and for a wrapped stream. Any thread. */
ATTUNE_API int attune_stream_priority(const attune_stream *stream);

/* Returns the calling thread's current stream of `device`: the one it set, or the default stream. It lets parts of a
 * program agree on a stream; attune itself never uses it. Borrowed; NULL for a NULL device. */
ATTUNE_API attune_stream *attune_stream_current(attune_device *device);

/* Makes `stream` the calling thread's current stream of its device. The stream must live as long as it is current; if
 * this thread destroys it, the default stream becomes current again. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_stream_set_current(attune_stream *stream);

/* Waits for the stream's work, then releases the handle, and the CUDA stream if attune created it. Does nothing for
 * NULL, a default stream or a pool stream. A capture that began on the stream ends and is discarded; a stream that
 * joined a capture is released when the capture ends. */
ATTUNE_API void attune_stream_destroy(attune_stream *stream);

/* Returns the cudaStream_t; NULL on the host. Borrowed.
 *
 * On capability 9.0 and later many of attune's kernels let the stream's next kernel start before they are done:
 * NVIDIA's programmatic dependent launch. Normal launches are not affected. A kernel of the program that is launched as
 * a dependent one (cudaLaunchAttributeProgrammaticStreamSerialization) must call cudaGridDependencySynchronize before
 * it reads or writes anything that any earlier work in the stream writes or reads, not only that of the preceding
 * kernel. */
ATTUNE_API void *attune_stream_native(const attune_stream *stream);

/* Stores in *out the cublasHandle_t that attune uses on this stream, created if there is none: stream and workspace are
 * set, the math mode is strict, scalars are on the host. Borrowed until the stream is destroyed; used by the thread
 * that uses the stream, while the stream's device is that thread's current one (cudaSetDevice), as cuBLAS requires.
 * attune sets math mode and workspace again at its next call; the program must restore anything else that it changes,
 * and fetch the handle again before each change. The library is the one listed by `attune devices`. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (the host), NOT_FOUND (no cuBLAS), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_stream_blas(attune_stream *stream, void **out);

/* Returns the stream's device. Borrowed; NULL for NULL. Any thread. */
ATTUNE_API attune_device *attune_stream_device(const attune_stream *stream);

/* Returns OK if all work given to the stream is done, NOT_READY if not. Errors: INVALID_ARGUMENT, DEVICE_ERROR,
 * CAPTURING (the stream is being captured). */
ATTUNE_API attune_status attune_stream_query(attune_stream *stream);

/* Waits for all work given to the stream. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (as above). */
ATTUNE_API attune_status attune_stream_synchronize(attune_stream *stream);

/* Makes work given to `stream` from now on wait for the latest record of `event`, if there is one. Both must be of one
 * kind of device. An event recorded in a capture makes the stream join that capture; if the stream is in a capture
 * already, any other event breaks it. Errors: INVALID_ARGUMENT (also: recorded in a capture that is over),
 * DEVICE_ERROR, CAPTURING (it broke a capture), UNSUPPORTED (a default stream cannot join). Allowed in capture. */
ATTUNE_API attune_status attune_stream_wait_event(attune_stream *stream, attune_event *event);

/* Makes work given to `stream` from now on wait for all work given to `other` so far, like an event recorded on `other`
 * and waited for on `stream`. Does nothing if both are the same stream. Errors: those of attune_event_create,
 * attune_event_record and attune_stream_wait_event. Allowed in capture: `stream` joins the capture that `other` is
 * in. */
ATTUNE_API attune_status attune_stream_wait_stream(attune_stream *stream, attune_stream *other);

/* A function that runs in stream order. */
typedef void (*attune_call_fn)(void *user);

/* Runs fn(user) on a CPU thread once all earlier work of `stream` is done; later work waits until fn returns. On the
 * host's default stream it runs at once, in the calling thread; otherwise on a thread of attune (host) or of the driver
 * (CUDA). In a capture it becomes part of the graph and runs in each replay. `user` must live until fn has run, or as
 * long as the graph; attune does not free it. fn returns no status: it reports its own failures through `user`.
 *
 * fn must not wait for work of any stream, give work to the stream that runs it, or replay, reset or destroy the graph
 * that it is part of. On the host, a call from fn that waits for its own stream, or gives it more than the 256 pieces
 * of work that a stream holds, fails with INVALID_ARGUMENT, and attune_stream_destroy of it does nothing; waiting for
 * another stream that waits for this one deadlocks. On CUDA fn must not call CUDA functions, nor attune functions that
 * use a CUDA device. On the host it may call attune, for example GEMMs on the host's default stream. fn never runs if
 * the device was lost before, or if an earlier failure keeps the stream from reaching it.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY (in a capture), DEVICE_ERROR, UNSUPPORTED. Allowed in capture. */
ATTUNE_API attune_status attune_stream_call(attune_stream *stream, attune_call_fn fn, void *user);

/* Options of an event; start from ATTUNE_EVENT_OPTIONS_INIT. */
typedef struct attune_event_options {
  size_t size;      /* sizeof this struct, or 0 (types.h) */
  int no_timing;    /* nonzero: cheaper, but not valid for attune_event_elapsed_ns */
  int blocking;     /* nonzero: attune_event_synchronize sleeps instead of spinning */
  int interprocess; /* nonzero: may be exported with attune_event_ipc_export; needs no_timing. CUDA only */
  /* Nonzero: in a capture, recording it and waiting for it become nodes of the graph and do not make a stream join the
   * capture. Each replay executes them. A replay's record replaces the latest one when the replay is given to its
   * stream; a replay's wait is for the latest record at that moment. Outside captures the event behaves like any other;
   * it must outlive the graph. On the host such a record is reached when the whole replay is done, but carries its own
   * time. */
  int external;
} attune_event_options;

/* The defaults. */
#define ATTUNE_EVENT_OPTIONS_INIT \
  { sizeof(attune_event_options), 0, 0, 0, 0 }

/* Creates an event of `device` and stores it in *out; options NULL: the defaults, an event with timing. The caller
 * destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, UNSUPPORTED (interprocess on the host). Any
 * thread. */
ATTUNE_API attune_status attune_event_create(attune_event **out, attune_device *device,
                                             const attune_event_options *options);

/* A handle to an event for another process of this machine to open. Plain bytes, which may be sent in any way. */
typedef struct attune_event_ipc {
  unsigned char bytes[64];
} attune_event_ipc;

/* Fills *out for an event made with `interprocess`. The event must live as long as other processes use it. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (the host), DEVICE_ERROR. */
ATTUNE_API attune_status attune_event_ipc_export(attune_event *event, attune_event_ipc *out);

/* Opens another process's event into *out; `device` must be the same GPU. It has no timing. The caller destroys it.
 * Errors: INVALID_ARGUMENT (also: not a handle, or one of this process), UNSUPPORTED (the host), OUT_OF_MEMORY,
 * DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_event_ipc_open(attune_event **out, attune_device *device,
                                               const attune_event_ipc *handle);

/* Wraps the program's own cudaEvent_t in a handle, into *out. The event must outlive the handle, which the caller
 * destroys. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_event_wrap(attune_event **out, attune_device *device, void *native);

/* Releases the handle. Waits already given to streams stay valid. NULL does nothing. */
ATTUNE_API void attune_event_destroy(attune_event *event);

/* Returns the cudaEvent_t; NULL on the host. Borrowed. Any thread. */
ATTUNE_API void *attune_event_native(const attune_event *event);

/* Records the current end of `stream`'s work; a later record replaces it. Both must be of one device. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Allowed in capture. */
ATTUNE_API attune_status attune_event_record(attune_event *event, attune_stream *stream);

/* Returns OK if the latest record was reached or there is none, NOT_READY if not. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, CAPTURING (the latest record is part of a capture and is never reached). */
ATTUNE_API attune_status attune_event_query(attune_event *event);

/* Waits until the latest record is reached. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (as above). */
ATTUNE_API attune_status attune_event_synchronize(attune_event *event);

/* What attune does when a call must wait for a device without the program asking for it: when memory is copied from or
 * to pageable host memory; when memory is returned to the system (also in attune_graph_destroy); when the only memory
 * left is still used by other streams; and when a stream is destroyed with work in flight. Waits for tuning do not
 * count, since the mode asks for them. */
typedef enum attune_sync_debug {
  ATTUNE_SYNC_DEBUG_OFF = 0,
  ATTUNE_SYNC_DEBUG_WARN = 1,
  ATTUNE_SYNC_DEBUG_ERROR = 2
} attune_sync_debug;

/* Sets this for the whole process; off is the default. Warn: logs a warning. Error: a copy does nothing and returns
 * BUSY; the other calls wait and log an error. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_set_sync_debug(attune_sync_debug mode);

/* Returns the current setting. Any thread. */
ATTUNE_API attune_sync_debug attune_get_sync_debug(void);

/* Nonzero: each call that gives work to a stream waits until it is done and returns its failure, so that an error is
 * reported by the call that caused it. attune_stream_call does not wait, as its function may wait for this thread; nor
 * do event records and waits. Applies to the whole process, not in captures; off is the default. Unlike
 * CUDA_LAUNCH_BLOCKING it affects attune's calls only and may change at any time. The race check does not count these
 * waits as ordering. Any thread. */
ATTUNE_API attune_status attune_set_launch_blocking(int on);

/* Returns the current setting. Any thread. */
ATTUNE_API int attune_get_launch_blocking(void);

/* Stores the nanoseconds from `start` to `stop` in *out_ns; resolution about 500 ns on CUDA, 1 ns on the host. Both
 * must be recorded and of one device. Errors: INVALID_ARGUMENT (not recorded, without timing, or of two devices),
 * NOT_READY (not reached), DEVICE_ERROR, CAPTURING (recorded in a capture). */
ATTUNE_API attune_status attune_event_elapsed_ns(double *out_ns, attune_event *start, attune_event *stop);

#ifdef __cplusplus
}
#endif
#endif
