/* SPDX-License-Identifier: Apache-2.0
 * pointer.c: what CUDA knows of an address, and memory of the program pinned where it is. */
#include <cuda.h>
#include <pthread.h>

#include "src/cuda/context/state.h"
#include "src/cuda/memory/memory.h"

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static CUresult (*get_attribute)(void *out, CUpointer_attribute attribute, CUdeviceptr pointer);
static bool has_attribute; /* both constant after driver_once */

static void find_driver(void) {
  has_attribute = at_cuda_driver_call(&get_attribute, "cuPointerGetAttribute");
}

/* The allocation around the address; left as they were where the driver does not tell. */
static void find_range(attune_pointer_info *out, const void *pointer) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  pthread_once(&driver_once, find_driver);
  if (!has_attribute) return;
  const CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
  if (get_attribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS ||
      get_attribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != CUDA_SUCCESS)
    return;
  out->base = (void *)(uintptr_t)base;
  out->bytes = bytes;
}

/* Without a context CUDA has no memory to know of. */
attune_status at_cuda_pointer_info(attune_device *device, attune_pointer_info *out, const void *pointer) {
  static const attune_memory_kind kinds[] = {[cudaMemoryTypeUnregistered] = ATTUNE_KIND_UNKNOWN,
                                             [cudaMemoryTypeHost] = ATTUNE_KIND_PINNED,
                                             [cudaMemoryTypeDevice] = ATTUNE_KIND_DEVICE,
                                             [cudaMemoryTypeManaged] = ATTUNE_KIND_MANAGED};
  struct cudaPointerAttributes found;
  at_cuda_scope scope;
  if (at_cuda_check_fork(device) != ATTUNE_OK || !at_cuda_is_initialized(device)) return ATTUNE_OK;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  const cudaError_t error = cudaPointerGetAttributes(&found, pointer);
  if (error != cudaSuccess) (void)cudaGetLastError();
  if (error == cudaSuccess && (size_t)found.type < AT_COUNT(kinds)) out->kind = kinds[found.type];
  if (out->kind != ATTUNE_KIND_UNKNOWN) find_range(out, pointer);
  at_cuda_leave(&scope);
  if (out->kind != ATTUNE_KIND_UNKNOWN) out->device = at_cuda_device_at(found.device);
  return ATTUNE_OK;
}

/* Portable: for every device of the process. */
attune_status at_cuda_pinned_register(attune_device *device, void *pointer, size_t bytes) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  const cudaError_t error = cudaHostRegister(pointer, bytes, cudaHostRegisterPortable);
  attune_status status = at_cuda_check(device, error, "cudaHostRegister");
  at_cuda_leave(&scope);
  if (error == cudaErrorHostMemoryAlreadyRegistered)
    return AT_INVALID("part of the %zu bytes at %p is already pinned; should be pinned once", bytes, pointer);
  return status;
}

attune_status at_cuda_pinned_unregister(attune_device *device, void *pointer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cuda_check(device, cudaHostUnregister(pointer), "cudaHostUnregister");
  at_cuda_leave(&scope);
  return status;
}
