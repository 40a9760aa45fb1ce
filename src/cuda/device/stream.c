/* SPDX-License-Identifier: Apache-2.0
 * stream.c: CUDA streams and events, attune's own and the program's. */
#include "src/cuda/context/state.h"

#include "src/process/fork.h"
#include "src/process/vendor.h"

#include <stdlib.h>
#include <string.h>

attune_status at_cuda_stream_priorities(attune_device *device, int *out_least, int *out_greatest) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = cudaDeviceGetStreamPriorityRange(out_least, out_greatest);
  attune_status status = at_cuda_check(device, error, "cudaDeviceGetStreamPriorityRange");
  at_cuda_leave(&scope);
  return status;
}

/* In a child of fork CUDA is not asked. */
static attune_status check_home(const attune_stream *stream) {
  if (stream->owned || at_cuda_device_of(stream->device)->generation != at_fork_generation_now()) return ATTUNE_OK;
  const attune_device *home = at_cuda_stream_home(stream->native);
  if (!home || home == stream->device) return ATTUNE_OK;
  return AT_INVALID("native is a stream of %s; should be a stream of %s, or device should be %s", home->name,
                    stream->device->name, home->name);
}

/* Touches the device only to make a stream of its own: wrapping creates no context. */
attune_status at_cuda_stream_open(attune_stream *stream) {
  const attune_status allowed = check_home(stream);
  if (allowed != ATTUNE_OK) return allowed;
  at_cuda_stream *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stream of %s", stream->device->name);
  stream->state = state;
  if (!stream->owned) {
    at_cuda_stream_enlist(stream);
    return ATTUNE_OK;
  }
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status == ATTUNE_OK) {
    cudaStream_t native = NULL;
    cudaError_t error = cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, stream->priority);
    status = at_cuda_check(stream->device, error, "cudaStreamCreateWithPriority");
    stream->native = native;
    at_cuda_leave(&scope);
  }
  if (status != ATTUNE_OK) {
    free(state);
    stream->state = NULL;
    return status;
  }
  at_cuda_stream_enlist(stream);
  return ATTUNE_OK;
}

static void close_after_work(attune_stream *stream) {
  at_vendor_wait_begin();
  const cudaError_t error = cudaStreamSynchronize(at_cuda_native(stream));
  at_vendor_wait_end();
  (void)at_cuda_check(stream->device, error, "cudaStreamSynchronize");
}

/* On a lost device only host memory is released; the rest went with the context. */
void at_cuda_stream_close(attune_stream *stream) {
  at_cuda_scope scope;
  if (at_cuda_enter_relaxed(&scope, stream->device) == ATTUNE_OK) {
    if (at_cuda_stream_capturing(stream)) /* the program's capture; what ran before it may still run */
      atomic_store(&at_cuda_device_of(stream->device)->untracked, true);
    else
      close_after_work(stream);
    at_cuda_stream_delist(stream);
    at_cuda_blas_close(stream);
    if (stream->owned)
      (void)at_cuda_check(stream->device, cudaStreamDestroy(at_cuda_native(stream)), "cudaStreamDestroy");
    at_cuda_leave(&scope);
  } else if (at_cuda_check_fork(stream->device) == ATTUNE_OK) {
    at_cuda_stream_delist(stream);
  }
  at_cuda_stream *state = at_cuda_stream_of(stream);
  while (state && state->retired) {
    at_cuda_retired *next = state->retired->next;
    free(state->retired);
    state->retired = next;
  }
  free(state);
  stream->state = NULL;
  stream->native = NULL;
}

/* The legacy stream answers with an error while another stream's capture forbids its use: that counts as capturing. */
bool at_cuda_stream_capturing(attune_stream *stream) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return false;
  const cudaError_t error = cudaStreamIsCapturing(at_cuda_native(stream), &capture);
  if (AT_UNLIKELY(error != cudaSuccess)) (void)at_cuda_check(stream->device, error, "cudaStreamIsCapturing");
  at_vendor_leave();
  if (AT_LIKELY(error == cudaSuccess)) return capture != cudaStreamCaptureStatusNone;
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

/* Streams of the program that cudaStreamCreate made, and the one that each thread has. */
bool at_cuda_stream_joins(const attune_stream *stream) {
  at_cuda_scope scope;
  unsigned flags = cudaStreamNonBlocking;
  const at_message kept = at_message_keep();
  if (at_cuda_enter_relaxed(&scope, stream->device) == ATTUNE_OK) {
    if (cudaStreamGetFlags(at_cuda_native(stream), &flags) != cudaSuccess) (void)cudaGetLastError();
    at_cuda_leave(&scope);
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
  return !(flags & cudaStreamNonBlocking);
}

/* A query or a wait inside a capture would break the capture, so it is refused before CUDA sees it. */
static attune_status wait_or_query(attune_stream *stream, cudaError_t (*call)(cudaStream_t), const char *what) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (at_cuda_stream_capturing(stream)) {
    status = at_fail(ATTUNE_CAPTURING, "%s: the stream is being captured; end the capture first", what);
  } else {
    at_vendor_wait_begin();
    const cudaError_t error = call(at_cuda_native(stream));
    at_vendor_wait_end();
    status = at_cuda_check(stream->device, error, what);
  }
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_stream_query(attune_stream *stream) {
  return wait_or_query(stream, cudaStreamQuery, "cudaStreamQuery");
}

attune_status at_cuda_stream_synchronize(attune_stream *stream) {
  return wait_or_query(stream, cudaStreamSynchronize, "cudaStreamSynchronize");
}

/* The driver runs fn on a thread of its own, which may call nothing of CUDA. */
attune_status at_cuda_stream_call(attune_stream *stream, attune_call_fn fn, void *user) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status =
      at_cuda_check(stream->device, cudaLaunchHostFunc(at_cuda_native(stream), fn, user), "cudaLaunchHostFunc");
  at_cuda_leave(&scope);
  return status;
}

/* CUDA takes the flags in captures only. */
static bool is_external(attune_stream *stream, const attune_event *event) {
  return event->options.external && at_cuda_stream_capturing(stream);
}

attune_status at_cuda_stream_wait(attune_stream *stream, attune_event *event) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  const unsigned flags = is_external(stream, event) ? cudaEventWaitExternal : cudaEventWaitDefault;
  cudaError_t error = cudaStreamWaitEvent(at_cuda_native(stream), (cudaEvent_t)event->native, flags);
  attune_status status = at_cuda_check(stream->device, error, "cudaStreamWaitEvent");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_event_open(attune_event *event) {
  if (!event->owned) return ATTUNE_OK;
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, event->device));
  cudaEvent_t native = NULL;
  unsigned flags = cudaEventDefault;
  if (event->options.no_timing) flags |= cudaEventDisableTiming;
  if (event->options.blocking) flags |= cudaEventBlockingSync;
  if (event->options.interprocess) flags |= cudaEventInterprocess;
  attune_status status =
      at_cuda_check(event->device, cudaEventCreateWithFlags(&native, flags), "cudaEventCreateWithFlags");
  event->native = native;
  at_cuda_leave(&scope);
  return status;
}

void at_cuda_event_close(attune_event *event) {
  at_cuda_scope scope;
  if (!event->owned || at_cuda_enter_relaxed(&scope, event->device) != ATTUNE_OK) return;
  (void)at_cuda_check(event->device, cudaEventDestroy((cudaEvent_t)event->native), "cudaEventDestroy");
  event->native = NULL;
  at_cuda_leave(&scope);
}

attune_status at_cuda_event_record(attune_event *event, attune_stream *stream) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  const unsigned flags = is_external(stream, event) ? cudaEventRecordExternal : cudaEventRecordDefault;
  cudaError_t error = cudaEventRecordWithFlags((cudaEvent_t)event->native, at_cuda_native(stream), flags);
  attune_status status = at_cuda_check(stream->device, error, "cudaEventRecordWithFlags");
  at_cuda_leave(&scope);
  return status;
}

static attune_status on_event(attune_event *event, cudaError_t (*call)(cudaEvent_t), const char *what) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, event->device));
  at_vendor_wait_begin();
  const cudaError_t error = call((cudaEvent_t)event->native);
  at_vendor_wait_end();
  attune_status status = at_cuda_check(event->device, error, what);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_event_query(attune_event *event) {
  return on_event(event, cudaEventQuery, "cudaEventQuery");
}

attune_status at_cuda_event_synchronize(attune_event *event) {
  return on_event(event, cudaEventSynchronize, "cudaEventSynchronize");
}

attune_status at_cuda_event_elapsed(double *out_ns, attune_event *start, attune_event *stop) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, start->device));
  float milliseconds = 0;
  cudaError_t error = cudaEventElapsedTime(&milliseconds, (cudaEvent_t)start->native, (cudaEvent_t)stop->native);
  attune_status status = at_cuda_check(start->device, error, "cudaEventElapsedTime");
  if (error == cudaErrorInvalidResourceHandle)
    status = AT_INVALID("start or stop was never recorded, or is the program's and has no timing; should be recorded "
                        "on a stream, and created without cudaEventDisableTiming");
  if (status == ATTUNE_OK) *out_ns = (double)milliseconds * 1e6;
  at_cuda_leave(&scope);
  return status;
}

_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(attune_event_ipc), "a handle must fit into attune_event_ipc");

attune_status at_cuda_event_export(attune_event *event, attune_event_ipc *out) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, event->device);
  if (status != ATTUNE_OK) return status;
  cudaIpcEventHandle_t handle;
  status =
      at_cuda_check(event->device, cudaIpcGetEventHandle(&handle, (cudaEvent_t)event->native), "cudaIpcGetEventHandle");
  if (status == ATTUNE_OK) memcpy(out, &handle, sizeof *out);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_event_import(attune_event *event, const attune_event_ipc *words) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, event->device));
  cudaIpcEventHandle_t handle;
  cudaEvent_t native = NULL;
  memcpy(&handle, words, sizeof handle);
  attune_status status =
      at_cuda_check(event->device, cudaIpcOpenEventHandle(&native, handle), "cudaIpcOpenEventHandle");
  event->native = native;
  at_cuda_leave(&scope);
  return status;
}
