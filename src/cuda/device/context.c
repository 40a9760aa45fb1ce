/* SPDX-License-Identifier: Apache-2.0
 * context.c: whether a device is the thread's current one. Every call asks that, so the driver is asked, which answers
 * sooner than the runtime. */
#include <attune/tuner.h>

#include <cuda.h>

#include "src/cuda/blas/blas.h"
#include "src/cuda/context/state.h"
#include "src/process/fork.h"
#include "src/process/vendor.h"

bool at_cuda_driver_call_since(void *out, const char *name, unsigned version) {
  void *call = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  *(void **)out = NULL;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return false;
#if CUDART_VERSION >= 12050
  cudaError_t error = cudaGetDriverEntryPointByVersion(name, &call, version, cudaEnableDefault, &found);
#else
  (void)version;
  cudaError_t error = cudaGetDriverEntryPoint(name, &call, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) (void)cudaGetLastError();
  at_vendor_leave();
  *(void **)out = call;
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess && call;
}

bool at_cuda_driver_call(void *out, const char *name) {
  return at_cuda_driver_call_since(out, name, 10020);
}

attune_device *at_cuda_device_at(int ordinal) {
  attune_device *device = NULL;
  const int count = attune_device_count();
  for (int i = 0; i < count; i++)
    if (attune_device_at(&device, i) == ATTUNE_OK && device->backend.kind == ATTUNE_DEVICE_CUDA &&
        device->ordinal == ordinal)
      return device;
  return NULL;
}

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static struct driver {
  CUresult (*current)(CUcontext *out);
  CUresult (*primary_state)(CUdevice device, unsigned *flags, int *active);
  CUresult (*retain)(CUcontext *out, CUdevice device);
  CUresult (*release)(CUdevice device);
  CUresult (*set)(CUcontext context);
  CUresult (*of_stream)(CUstream stream, CUcontext *out);
  bool found;
} driver; /* constant after driver_once */

static void find_driver(void) {
  driver.found = at_cuda_driver_call(&driver.current, "cuCtxGetCurrent") &&
                 at_cuda_driver_call(&driver.primary_state, "cuDevicePrimaryCtxGetState") &&
                 at_cuda_driver_call(&driver.retain, "cuDevicePrimaryCtxRetain") &&
                 at_cuda_driver_call(&driver.release, "cuDevicePrimaryCtxRelease") &&
                 at_cuda_driver_call(&driver.set, "cuCtxSetCurrent") &&
                 at_cuda_driver_call(&driver.of_stream, "cuStreamGetCtx");
}

/* The device's primary context is the thread's: the quick way to know, and the usual case. Whoever made it current, the
 * program's own runtime too, the driver knows. A context that the program made itself is never remembered: another one
 * may get its address. */
bool at_cuda_is_current(const attune_device *device) {
  void *known = atomic_load_explicit(&at_cuda_device_of(device)->context, memory_order_acquire);
  CUcontext now = NULL;
  return known && driver.current(&now) == CUDA_SUCCESS && (void *)now == known;
}

/* One function, here, for each further one costs: after the last call of cuBLAS nearly every line of attune's code and
 * data has to come from the second cache. */
cublasHandle_t at_cuda_blas_at_once(attune_stream *stream, cublasMath_t math, size_t workspace) {
  const at_cuda_device *device = at_cuda_device_of(stream->device);
  const at_cuda_stream *state = at_cuda_stream_of(stream);
  const size_t bytes = workspace < ATTUNE_WORKSPACE_DEFAULT ? workspace : ATTUNE_WORKSPACE_DEFAULT;
  const void *known = atomic_load_explicit(&device->context, memory_order_acquire);
  CUcontext now = NULL;
  const bool set =
      state->blas && state->math == math && state->blas_bytes == bytes && state->blas_capture == stream->capture;
  const bool alive =
      device->generation == at_fork_generation_now() && atomic_load_explicit(&device->dead, memory_order_relaxed) == 0;
  if (AT_UNLIKELY(!set) || AT_UNLIKELY(!alive) || AT_UNLIKELY(!known)) return NULL;
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_LIBRARY))) return NULL;
  if (AT_LIKELY(driver.current(&now) == CUDA_SUCCESS && (const void *)now == known)) return state->blas;
  at_vendor_leave();
  return NULL;
}

void at_cuda_remember_context(const attune_device *device) {
  at_cuda_device *state = at_cuda_device_of(device);
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = NULL;
  enum cudaStreamCaptureMode mode;
  if (atomic_load_explicit(&state->context, memory_order_relaxed)) return;
  pthread_once(&driver_once, find_driver);
  if (!driver.found || driver.primary_state(device->ordinal, &flags, &active) != CUDA_SUCCESS || !active) return;
  at_cuda_relax(&mode);
  if (driver.retain(&primary, device->ordinal) == CUDA_SUCCESS) {
    (void)driver.release(device->ordinal);
    atomic_store_explicit(&state->context, (void *)primary, memory_order_release);
  }
  at_cuda_restore(mode);
}

/* In the primary context of its device attune's handles are valid, and in no other. */
void *at_cuda_foreign_context(int ordinal) {
  CUcontext now = NULL;
  unsigned flags = 0;
  int active = 0;
  pthread_once(&driver_once, find_driver);
  if (!driver.found || driver.current(&now) != CUDA_SUCCESS || !now) return NULL;
  const attune_device *device = at_cuda_device_at(ordinal);
  if (device) at_cuda_remember_context(device);
  if (device && (void *)now == atomic_load_explicit(&at_cuda_device_of(device)->context, memory_order_acquire))
    return NULL;
  if (device || driver.primary_state(ordinal, &flags, &active) != CUDA_SUCCESS || !active) return (void *)now;
  CUcontext primary = NULL; /* of a GPU that attune does not know */
  if (driver.retain(&primary, ordinal) != CUDA_SUCCESS) return (void *)now;
  (void)driver.release(ordinal);
  return primary == now ? NULL : (void *)now;
}

/* Only a stream that was made can be of another device; NULL, cudaStreamLegacy (1) and cudaStreamPerThread (2) are
 * whatever device is current. */
attune_device *at_cuda_stream_home(void *native) {
  enum { FIRST_MADE = 3 };
  CUcontext context = NULL;
  enum cudaStreamCaptureMode mode;
  pthread_once(&driver_once, find_driver);
  if ((uintptr_t)native < FIRST_MADE || !driver.found || !at_vendor_enter(AT_VENDOR_DRIVER)) return NULL;
  at_cuda_relax(&mode);
  const CUresult result = driver.of_stream((CUstream)native, &context);
  at_cuda_restore(mode);
  at_vendor_leave();
  if (result != CUDA_SUCCESS || !context) return NULL;
  const int count = attune_device_count();
  for (int i = 0; i < count; i++) {
    attune_device *device = NULL;
    if (attune_device_at(&device, i) != ATTUNE_OK || device->backend.kind != ATTUNE_DEVICE_CUDA) continue;
    at_cuda_remember_context(device);
    if ((void *)context == atomic_load_explicit(&at_cuda_device_of(device)->context, memory_order_acquire))
      return device;
  }
  return NULL;
}

void at_cuda_set_context(void *context) {
  (void)driver.set((CUcontext)context);
}
