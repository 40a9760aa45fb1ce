/* SPDX-License-Identifier: Apache-2.0
 * device_sync.c: waits for the work of a device without cudaDeviceSynchronize, which breaks every capture under way in
 * the process: stream by stream, of those that attune has. Nothing else can use memory of attune's. */
#include "src/cuda/context/state.h"

#include <stdlib.h>

#include "src/process/vendor.h"

void at_cuda_stream_enlist(attune_stream *stream) {
  at_cuda_device *device = at_cuda_device_of(stream->device);
  at_cuda_stream *state = at_cuda_stream_of(stream);
  state->stream = stream;
  pthread_mutex_lock(&device->streams_lock);
  state->next = device->streams;
  if (state->next) state->next->previous = state;
  device->streams = state;
  pthread_mutex_unlock(&device->streams_lock);
}

void at_cuda_stream_delist(attune_stream *stream) {
  at_cuda_device *device = at_cuda_device_of(stream->device);
  at_cuda_stream *state = at_cuda_stream_of(stream);
  pthread_mutex_lock(&device->streams_lock);
  if (state->next) state->next->previous = state->previous;
  if (state->previous)
    state->previous->next = state->next;
  else
    device->streams = state->next;
  pthread_mutex_unlock(&device->streams_lock);
}

/* Marks the end of what the stream was given. NULL: it is idle, or in a capture, whose work is not running; what came
 * before that cannot be marked: *all becomes false. */
static cudaError_t mark(const attune_stream *stream, cudaEvent_t *out, bool *all) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  *out = NULL;
  cudaError_t error = cudaStreamIsCapturing(at_cuda_native(stream), &capture);
  if (error == cudaErrorStreamCaptureImplicit) { /* the legacy stream, while another is captured */
    (void)cudaGetLastError();
    *all = false;
    return cudaSuccess;
  }
  if (capture != cudaStreamCaptureStatusNone) *all = false;
  if (error != cudaSuccess || capture != cudaStreamCaptureStatusNone) return error;
  error = cudaStreamQuery(at_cuda_native(stream));
  if (error != cudaErrorNotReady) return error;
  (void)cudaGetLastError();
  error = cudaEventCreateWithFlags(out, cudaEventDisableTiming);
  return error == cudaSuccess ? cudaEventRecord(*out, at_cuda_native(stream)) : error;
}

typedef struct mark_list {
  struct mark_list *next;
  cudaEvent_t event;
} mark_list;

/* Marks are made with the lock held, so that no stream is destroyed, and waited for without it. */
static cudaError_t mark_all(at_cuda_device *device, mark_list **out, bool *all) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&device->streams_lock);
  for (const at_cuda_stream *state = device->streams; state && error == cudaSuccess; state = state->next) {
    cudaEvent_t event = NULL;
    error = mark(state->stream, &event, all);
    mark_list *made = event ? malloc(sizeof *made) : NULL;
    if (made) {
      *made = (mark_list){.next = *out, .event = event};
      *out = made;
    } else if (event) {
      at_vendor_wait_begin();
      error = cudaEventSynchronize(event);
      at_vendor_wait_end();
      (void)cudaEventDestroy(event);
    }
  }
  pthread_mutex_unlock(&device->streams_lock);
  return error;
}

attune_status at_cuda_wait_all_streams(attune_device *device, bool *all) {
  at_cuda_scope scope;
  mark_list *marks = NULL;
  *all = true;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = mark_all(at_cuda_device_of(device), &marks, all);
  while (marks) {
    mark_list *next = marks->next;
    at_vendor_wait_begin();
    const cudaError_t waited = cudaEventSynchronize(marks->event);
    at_vendor_wait_end();
    if (error == cudaSuccess) error = waited;
    (void)cudaEventDestroy(marks->event);
    free(marks);
    marks = next;
  }
  attune_status status = at_cuda_check(device, error, "waiting for the streams");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_wait_streams(attune_device *device) {
  bool all = false;
  return at_cuda_wait_all_streams(device, &all);
}
