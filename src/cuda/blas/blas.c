/* SPDX-License-Identifier: Apache-2.0
 * blas.c: cuBLAS and cuBLASLt handles and the workspaces of streams. One cuBLAS handle a stream: a stream is used by
 * one thread at a time (the legacy default stream too), and results repeat bitwise only with a workspace that is the
 * stream's. */
#include "src/cuda/blas/blas.h"

#include <attune/tuner.h>

#include <stdlib.h>

#include "src/cuda/context/state.h"
#include "src/process/vendor.h"

static attune_status new_workspace(attune_stream *stream, size_t bytes) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  if (state->workspace && stream->device->backend.stream->capturing(stream))
    return at_fail(ATTUNE_CAPTURING,
                   "a workspace of %zu bytes cannot be allocated in a capture; run the call once before the capture",
                   bytes);
  at_cuda_retired *old = NULL;
  if (state->workspace && !(old = malloc(sizeof *old)))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes", bytes);
  void *workspace = NULL;
  attune_status status = stream->device->backend.memory->alloc(stream->device, &workspace, bytes);
  if (status != ATTUNE_OK) {
    free(old);
    return status;
  }
  if (old) {
    *old = (at_cuda_retired){.next = state->retired, .workspace = state->workspace};
    state->retired = old;
  }
  state->workspace = workspace;
  state->workspace_bytes = bytes;
  state->blas_bytes = SIZE_MAX;
  return ATTUNE_OK;
}

/* Given back in stream order: later work of the capture may have it, as it may have any other memory that was freed. */
void at_cuda_blas_leave_capture(attune_stream *stream) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  if (state->capture_workspace) (void)attune_free(state->capture_workspace, stream);
  state->capture_workspace = NULL;
  state->capture_bytes = 0;
  state->blas_capture = NULL;
  state->blas_bytes = SIZE_MAX;
}

static attune_status capture_workspace(attune_stream *stream, size_t bytes, void **out) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  if (bytes > state->capture_bytes) {
    void *larger = NULL;
    AT_TRY(attune_alloc(&larger, stream, bytes));
    if (state->capture_workspace) (void)attune_free(state->capture_workspace, stream);
    state->capture_workspace = larger;
    state->capture_bytes = bytes;
    state->blas_bytes = SIZE_MAX;
  }
  *out = state->capture_workspace;
  return ATTUNE_OK;
}

attune_status at_cuda_workspace(attune_stream *stream, size_t bytes, void **out) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  *out = NULL;
  if (bytes == 0) return ATTUNE_OK;
  if (AT_UNLIKELY(stream->capture != NULL)) return capture_workspace(stream, bytes, out);
  if (AT_UNLIKELY(bytes > state->workspace_bytes)) {
    size_t size = bytes > ATTUNE_WORKSPACE_DEFAULT ? bytes : ATTUNE_WORKSPACE_DEFAULT;
    AT_TRY(new_workspace(stream, size));
  }
  *out = state->workspace;
  return ATTUNE_OK;
}

/* cublasSetStream takes the workspace away again, so it comes first and only once. */
static attune_status new_handle(attune_stream *stream) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  attune_device *device = stream->device;
  cublasHandle_t handle = NULL;
  enum cudaStreamCaptureMode mode;
  attune_status status = at_cublas_open();
  if (status != ATTUNE_OK) return status;
  at_cuda_relax(&mode);
  const bool taken = at_cuda_blas_take(stream);
  if (taken)
    handle = state->blas;
  else
    status = at_cublas_check(device, at_cublas.cublasCreate(&handle), "cublasCreate");
  if (status == ATTUNE_OK)
    status = at_cublas_check(device, at_cublas.cublasSetStream(handle, at_cuda_native(stream)), "cublasSetStream");
  if (status == ATTUNE_OK)
    status = at_cublas_check(device, at_cublas.cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST),
                             "cublasSetPointerMode");
  if (status == ATTUNE_OK)
    status = at_cublas_check(device, at_cublas.cublasSetMathMode(handle, AT_CUDA_STRICT_MATH), "cublasSetMathMode");
  at_cuda_restore(mode);
  state->blas = handle;
  if (status != ATTUNE_OK) {
    at_cuda_blas_keep(stream);
    return status;
  }
  state->math = AT_CUDA_STRICT_MATH;
  state->blas_bytes = SIZE_MAX;
  return ATTUNE_OK;
}

static attune_status set_workspace(attune_stream *stream, size_t bytes) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  void *workspace = NULL;
  attune_status status = at_cuda_workspace(stream, bytes, &workspace);
  if (status == ATTUNE_OK)
    status = at_cublas_check(stream->device, at_cublas.cublasSetWorkspace(state->blas, workspace, bytes),
                             "cublasSetWorkspace");
  if (status != ATTUNE_OK) return status;
  state->blas_bytes = bytes;
  state->blas_capture = stream->capture;
  return ATTUNE_OK;
}

static attune_status handle_in_mode(attune_stream *stream, cublasMath_t math, size_t bytes) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  attune_status status = at_vendor_gone() ? at_vendor_refuse() : ATTUNE_OK;
  if (status == ATTUNE_OK && !state->blas) status = new_handle(stream);
  if (status == ATTUNE_OK && state->math != math) {
    status = at_cublas_check(stream->device, at_cublas.cublasSetMathMode(state->blas, math), "cublasSetMathMode");
    if (status == ATTUNE_OK) state->math = math;
  }
  if (status == ATTUNE_OK && (state->blas_bytes != bytes || state->blas_capture != stream->capture))
    status = set_workspace(stream, bytes);
  return status;
}

attune_status at_cuda_blas_mode(attune_stream *stream, cublasMath_t math, size_t workspace, cublasHandle_t *out) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  size_t bytes = workspace < ATTUNE_WORKSPACE_DEFAULT ? workspace : ATTUNE_WORKSPACE_DEFAULT;
  if (AT_UNLIKELY(!state->blas || state->math != math || state->blas_bytes != bytes ||
                  state->blas_capture != stream->capture || at_vendor_gone())) {
    at_cuda_scope scope;
    AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
    attune_status status = handle_in_mode(stream, math, bytes);
    at_cuda_leave(&scope);
    if (status != ATTUNE_OK) return status;
  }
  *out = state->blas;
  return ATTUNE_OK;
}

attune_status at_cuda_blas(attune_stream *stream, cublasHandle_t *out) {
  return at_cuda_blas_mode(stream, AT_CUDA_STRICT_MATH, ATTUNE_WORKSPACE_DEFAULT, out);
}

static attune_status new_lt_handle(attune_device *device, cublasLtHandle_t *out) {
  at_cuda_scope scope;
  AT_TRY(at_cublas_open());
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cublas_check(device, at_cublas.cublasLtCreate(out), "cublasLtCreate");
  at_cuda_leave(&scope);
  return status;
}

/* Of two threads that make the first handle at once, one gives its own up. */
attune_status at_cuda_blaslt(attune_device *device, cublasLtHandle_t *out) {
  at_cuda_device *state = at_cuda_device_of(device);
  *out = NULL;
  if (at_vendor_gone()) return at_vendor_refuse();
  cublasLtHandle_t shared = atomic_load_explicit(&state->lt, memory_order_acquire);
  if (AT_UNLIKELY(!shared)) {
    cublasLtHandle_t made = NULL;
    AT_TRY(new_lt_handle(device, &made));
    if (atomic_compare_exchange_strong(&state->lt, &shared, made)) {
      shared = made;
    } else if (at_vendor_enter(AT_VENDOR_LIBRARY)) {
      (void)at_cublas.cublasLtDestroy(made);
      at_vendor_leave();
    }
  }
  *out = shared;
  return ATTUNE_OK;
}

void at_cuda_blas_close(attune_stream *stream) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  attune_device *device = stream->device;
  at_cuda_blas_keep(stream);
  if (state->workspace) (void)device->backend.memory->free(device, state->workspace);
  state->workspace = NULL;
  for (at_cuda_retired *old = state->retired; old; old = old->next)
    (void)device->backend.memory->free(device, old->workspace);
}
