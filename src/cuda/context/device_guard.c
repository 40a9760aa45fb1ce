/* SPDX-License-Identifier: Apache-2.0
 * device_guard.c: around every call of CUDA: the device made current and given back, what a capture forbids allowed for
 * a moment, and errors turned into statuses. */
#include "src/cuda/context/state.h"

#include "src/process/fork.h"
#include "src/process/vendor.h"

/* After one of these every call of the process on the device fails: the context is lost. Numbers, because the name of
 * the last one is newer than the oldest toolkit. */
static bool is_sticky(cudaError_t error) {
  static const int sticky[] = {700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
  for (size_t i = 0; i < AT_COUNT(sticky); i++)
    if ((int)error == sticky[i]) return true;
  return false;
}

static attune_status status_of(cudaError_t error) {
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread) return ATTUNE_CAPTURING;
  switch ((int)error) {
  case cudaErrorMemoryAllocation: return ATTUNE_OUT_OF_MEMORY;
  case cudaErrorNotReady: return ATTUNE_NOT_READY;
  case cudaErrorInvalidValue:
  case cudaErrorInvalidResourceHandle:
  case cudaErrorInvalidDevicePointer: return ATTUNE_INVALID_ARGUMENT;
  case cudaErrorNotSupported: return ATTUNE_UNSUPPORTED;
  default: return ATTUNE_DEVICE_ERROR;
  }
}

static attune_status fail_dead(attune_device *device, int error) {
  at_cuda_device *state = at_cuda_device_of(device);
  const char *by = atomic_load_explicit(&state->named, memory_order_acquire) ? state->seen_by : "another thread's call";
  (void)at_fail(ATTUNE_DEVICE_ERROR,
                "%s has been lost since %s reported %s (%s): earlier work of this process failed; restart the process",
                device->name, by, cudaGetErrorName((cudaError_t)error), cudaGetErrorString((cudaError_t)error));
  return at_fail_cuda(ATTUNE_DEVICE_ERROR, error);
}

/* The call that sees the fault first seldom made it: kernels run long after their launch. */
static attune_status lose(attune_device *device, cudaError_t error, const char *what) {
  at_cuda_device *state = at_cuda_device_of(device);
  int alive = 0;
  if (!atomic_compare_exchange_strong(&state->dead, &alive, (int)error)) return fail_dead(device, alive);
  (void)at_copy_text(state->seen_by, sizeof state->seen_by, what);
  atomic_store_explicit(&state->named, true, memory_order_release);
  at_memory_device_lost(device);
  at_log(ATTUNE_LOG_ERROR, "%s: %s makes %s unusable in this process", what, cudaGetErrorName(error), device->name);
  (void)at_fail(ATTUNE_DEVICE_ERROR,
                "%s reports %s (%s): work that this process submitted earlier failed, and %s is the first call to "
                "notice; the device can no longer be used: restart the process",
                device->name, cudaGetErrorName(error), cudaGetErrorString(error), what);
  return at_fail_cuda(ATTUNE_DEVICE_ERROR, (int)error);
}

attune_status at_cuda_check(attune_device *device, cudaError_t error, const char *what) {
  if (AT_LIKELY(error == cudaSuccess)) return ATTUNE_OK;
  (void)cudaGetLastError(); /* leave no stale error behind in the caller's thread */
  if (is_sticky(error)) return lose(device, error, what);
  (void)at_fail(status_of(error), "%s on %s: %s (%s)", what, device->name, cudaGetErrorName(error),
                cudaGetErrorString(error));
  return at_fail_cuda(status_of(error), (int)error);
}

attune_status at_cuda_check_number(attune_device *device, int error, const char *what) {
  return at_cuda_check(device, (cudaError_t)error, what);
}

/* The sticky error that the current device is in; cudaSuccess: none. The stream asked is the thread's own default one,
 * which nothing of attune runs on, and is left alone while the program captures it. */
static cudaError_t sticky_error(void) {
  enum cudaStreamCaptureMode mode;
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaGetLastError();
  if (is_sticky(error)) return error;
  at_cuda_relax(&mode);
  error = cudaStreamIsCapturing(cudaStreamPerThread, &capture);
  if (error == cudaSuccess && capture == cudaStreamCaptureStatusNone) error = cudaStreamQuery(cudaStreamPerThread);
  size_t available = 0, total = 0;
  if (!is_sticky(error)) error = cudaMemGetInfo(&available, &total);
  (void)cudaGetLastError();
  at_cuda_restore(mode);
  return is_sticky(error) ? error : cudaSuccess;
}

attune_status at_cublas_check(attune_device *device, cublasStatus_t status, const char *what) {
  if (AT_LIKELY(status == CUBLAS_STATUS_SUCCESS)) return ATTUNE_OK;
  const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
                       status == CUBLAS_STATUS_INVALID_VALUE;
  const cudaError_t error = refused ? cudaGetLastError() : sticky_error();
  if (is_sticky(error)) return at_cuda_check(device, error, what);
  const attune_status result = refused                                ? ATTUNE_UNSUPPORTED
                               : status == CUBLAS_STATUS_ALLOC_FAILED ? ATTUNE_OUT_OF_MEMORY
                                                                      : ATTUNE_DEVICE_ERROR;
  return at_fail(result, "%s on %s: %s", what, device->name, at_cublas.cublasGetStatusName(status));
}

attune_status at_cuda_check_fork(const attune_device *device) {
  if (AT_LIKELY(at_cuda_device_of(device)->generation == at_fork_generation_now())) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR,
                 "%s was opened before fork and cannot be used in the child; start a new process (posix_spawn, exec)",
                 device->name);
}

static attune_status make_current(at_cuda_scope *scope, attune_device *device) {
  scope->previous = -1;
  scope->relaxed = false;
  scope->context = NULL;
  attune_status status = at_cuda_check_fork(device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  int dead = atomic_load_explicit(&at_cuda_device_of(device)->dead, memory_order_relaxed);
  if (AT_UNLIKELY(dead != 0)) return fail_dead(device, dead);
  if (AT_LIKELY(at_cuda_is_current(device))) return ATTUNE_OK;
  int current = -1;
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess) at_cuda_remember_context(device);
  void *foreign = error == cudaSuccess ? at_cuda_foreign_context(current) : NULL;
  if (error == cudaSuccess && current == device->ordinal && !foreign) return ATTUNE_OK;
  if (error == cudaSuccess) error = cudaSetDevice(device->ordinal);
  if (error == cudaSuccess) scope->previous = current;
  scope->context = foreign;
  return at_cuda_check(device, error, "cudaSetDevice");
}

attune_status at_cuda_enter(at_cuda_scope *scope, attune_device *device) {
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return at_vendor_refuse();
  const attune_status status = make_current(scope, device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) at_vendor_leave();
  return status;
}

/* Relaxed first: a device that becomes current may get its context by that. In a child of fork CUDA is not called at
 * all. */
attune_status at_cuda_enter_relaxed(at_cuda_scope *scope, attune_device *device) {
  enum cudaStreamCaptureMode mode;
  attune_status status = at_cuda_check_fork(device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return at_vendor_refuse();
  at_cuda_relax(&mode);
  status = make_current(scope, device);
  if (status == ATTUNE_OK) {
    scope->relaxed = true;
    scope->mode = mode;
  } else {
    at_cuda_restore(mode);
    at_vendor_leave();
  }
  return status;
}

void at_cuda_leave(at_cuda_scope *scope) {
  if (AT_UNLIKELY(scope->context != NULL))
    at_cuda_set_context(scope->context);
  else if (AT_UNLIKELY(scope->previous >= 0) && cudaSetDevice(scope->previous) != cudaSuccess)
    (void)cudaGetLastError();
  if (scope->relaxed) at_cuda_restore(scope->mode);
  at_vendor_leave();
}

/* --- what a capture of another thread forbids, for a moment --- */

void at_cuda_relax(enum cudaStreamCaptureMode *saved) {
  *saved = cudaStreamCaptureModeGlobal; /* a thread's first mode */
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return;
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
    *saved = mode;
  else
    (void)cudaGetLastError();
  at_vendor_leave();
}

void at_cuda_restore(enum cudaStreamCaptureMode saved) {
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return;
  if (cudaThreadExchangeStreamCaptureMode(&saved) != cudaSuccess) (void)cudaGetLastError();
  at_vendor_leave();
}
