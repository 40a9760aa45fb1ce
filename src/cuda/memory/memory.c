/* SPDX-License-Identifier: Apache-2.0
 * memory.c: how much memory a device has, page-locked host memory, memory of other processes. Each call is made in the
 * relaxed capture mode: another thread's capture is not broken by it. */
#include "src/cuda/memory/memory.h"

#include <string.h>

#include "src/cuda/context/state.h"
#include "src/process/vendor.h"
#include "src/stream/sync_debug.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == 64, "attune_memory_handle has room for a handle of CUDA");

static attune_status leave(at_cuda_scope *scope, attune_device *device, cudaError_t error, const char *what) {
  attune_status status = at_cuda_check(device, error, what);
  at_cuda_leave(scope);
  return status;
}

attune_status at_cuda_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total) {
  at_cuda_scope scope;
  size_t available = 0, total = 0;
  *out_free = *out_total = 0;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = leave(&scope, device, cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  *out_free = available;
  *out_total = total;
  return status;
}

attune_status at_cuda_async_check(attune_device *device) {
  int has = 0;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return at_vendor_refuse();
  const cudaError_t error = cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device->ordinal);
  if (error != cudaSuccess) (void)cudaGetLastError();
  at_vendor_leave();
  return error == cudaSuccess && has ? ATTUNE_OK : at_unsupported(device, "stream-ordered allocator in the driver");
}

attune_status at_cuda_alloc_async(attune_stream *stream, void **out, size_t bytes) {
  at_cuda_scope scope;
  *out = NULL;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  return leave(&scope, stream->device, cudaMallocAsync(out, bytes, at_cuda_native(stream)), "cudaMallocAsync");
}

attune_status at_cuda_free_async(attune_stream *stream, void *pointer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  return leave(&scope, stream->device, cudaFreeAsync(pointer, at_cuda_native(stream)), "cudaFreeAsync");
}

/* Portable: every device of the process copies from it at full speed. */
attune_status at_cuda_pinned_alloc(attune_device *device, void **out, size_t bytes) {
  at_cuda_scope scope;
  *out = NULL;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  return leave(&scope, device, cudaHostAlloc(out, bytes, cudaHostAllocPortable), "cudaHostAlloc");
}

attune_status at_cuda_pinned_free(attune_device *device, void *pointer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  at_sync_waits(device, "returning pinned memory waits for the device's work");
  return leave(&scope, device, cudaFreeHost(pointer), "cudaFreeHost");
}

attune_status at_cuda_ipc_export(attune_device *device, void *base, unsigned char out_handle[64]) {
  at_cuda_scope scope;
  cudaIpcMemHandle_t handle;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = leave(&scope, device, cudaIpcGetMemHandle(&handle, base), "cudaIpcGetMemHandle");
  if (status == ATTUNE_OK) memcpy(out_handle, &handle, sizeof handle);
  return status;
}

attune_status at_cuda_ipc_open(attune_device *device, const unsigned char handle[64], void **out_base) {
  at_cuda_scope scope;
  cudaIpcMemHandle_t native;
  memcpy(&native, handle, sizeof native);
  *out_base = NULL;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = cudaIpcOpenMemHandle(out_base, native, cudaIpcMemLazyEnablePeerAccess);
  return leave(&scope, device, error, "cudaIpcOpenMemHandle");
}

attune_status at_cuda_ipc_close(attune_device *device, void *base) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  return leave(&scope, device, cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle");
}
