/* SPDX-License-Identifier: Apache-2.0
 * virtual_memory.c: addresses reserved apart from the memory behind them. The driver's own calls, got from it at run
 * time: a program with attune starts on a machine without a driver. Their results have the numbers of the runtime's
 * errors. */
#include <cuda.h>

#include "src/cuda/memory.h"
#include "src/cuda/state.h"

#include <pthread.h>

typedef struct driver_calls {
  CUresult (*granularity)(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option);
  CUresult (*reserve)(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr address, unsigned long long flags);
  CUresult (*release)(CUdeviceptr address, size_t size);
  CUresult (*create)(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags);
  CUresult (*destroy)(CUmemGenericAllocationHandle handle);
  CUresult (*map)(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
  CUresult (*unmap)(CUdeviceptr address, size_t size);
  CUresult (*access)(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count);
} driver_calls;

static pthread_once_t calls_once = PTHREAD_ONCE_INIT;
static driver_calls calls; /* constant after calls_once */
static bool calls_found;

/* All of them exist since CUDA 10.2. */
static bool find_call(void *out, const char *name) {
  void *call = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaError_t error = cudaGetDriverEntryPointByVersion(name, &call, 10020, cudaEnableDefault, &found);
#else
  cudaError_t error = cudaGetDriverEntryPoint(name, &call, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) (void)cudaGetLastError();
  *(void **)out = call;
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess && call;
}

static void find_calls(void) {
  calls_found = find_call(&calls.granularity, "cuMemGetAllocationGranularity") &&
                find_call(&calls.reserve, "cuMemAddressReserve") && find_call(&calls.release, "cuMemAddressFree") &&
                find_call(&calls.create, "cuMemCreate") && find_call(&calls.destroy, "cuMemRelease") &&
                find_call(&calls.map, "cuMemMap") && find_call(&calls.unmap, "cuMemUnmap") &&
                find_call(&calls.access, "cuMemSetAccess");
}

static CUmemAllocationProp memory_of(const attune_device *device) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device->ordinal;
  return prop;
}

static attune_status check(attune_device *device, CUresult result, const char *what) {
  return at_cuda_check(device, (cudaError_t)(int)result, what);
}

typedef struct call_scope {
  at_cuda_scope scope;
  enum cudaStreamCaptureMode mode;
} call_scope;

static attune_status enter(call_scope *scope, attune_device *device) {
  pthread_once(&calls_once, find_calls);
  if (!calls_found) return at_fail(ATTUNE_UNSUPPORTED, "the driver of %s has no virtual memory", device->name);
  attune_status status = at_cuda_enter(&scope->scope, device);
  if (status == ATTUNE_OK) at_cuda_relax(&scope->mode);
  return status;
}

static void leave(const call_scope *scope) {
  at_cuda_scope inner = scope->scope;
  at_cuda_restore(scope->mode);
  at_cuda_leave(&inner);
}

attune_status at_cuda_vm_granularity(attune_device *device, size_t *out) {
  call_scope scope;
  attune_status status = enter(&scope, device);
  if (status != ATTUNE_OK) return status;
  CUmemAllocationProp prop = memory_of(device);
  status = check(device, calls.granularity(out, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "cuMemGetAllocationGranularity");
  leave(&scope);
  return status;
}

/* cudaFree(NULL) makes the device's context, which the driver's calls need and would not make. */
attune_status at_cuda_vm_reserve(attune_device *device, void **out, size_t bytes) {
  call_scope scope;
  CUdeviceptr base = 0;
  *out = NULL;
  attune_status status = enter(&scope, device);
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(device, cudaFree(NULL), "cudaFree");
  if (status == ATTUNE_OK) status = check(device, calls.reserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve");
  if (status == ATTUNE_OK) *out = (void *)(uintptr_t)base;
  leave(&scope);
  return status;
}

void at_cuda_vm_release(attune_device *device, void *base, size_t bytes) {
  call_scope scope;
  if (enter(&scope, device) != ATTUNE_OK) return;
  (void)check(device, calls.release((CUdeviceptr)(uintptr_t)base, bytes), "cuMemAddressFree");
  leave(&scope);
}

/* What was made before a step failed is taken back. */
attune_status at_cuda_vm_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle) {
  call_scope scope;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
  CUmemGenericAllocationHandle handle = 0;
  attune_status status = enter(&scope, device);
  if (status != ATTUNE_OK) return status;
  CUmemAllocationProp prop = memory_of(device);
  CUmemAccessDesc desc = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  status = check(device, calls.create(&handle, bytes, &prop, 0), "cuMemCreate");
  if (status == ATTUNE_OK) {
    status = check(device, calls.map(at, bytes, 0, handle, 0), "cuMemMap");
    if (status == ATTUNE_OK) {
      status = check(device, calls.access(at, bytes, &desc, 1), "cuMemSetAccess");
      if (status != ATTUNE_OK) (void)calls.unmap(at, bytes);
    }
    if (status != ATTUNE_OK) (void)calls.destroy(handle);
  }
  leave(&scope);
  *out_handle = (uint64_t)handle;
  return status;
}

/* Unlike cudaFree, cuMemUnmap does not wait for the work that uses the memory. */
attune_status at_cuda_vm_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  call_scope scope;
  attune_status status = enter(&scope, device);
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(device, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (status == ATTUNE_OK) status = check(device, calls.unmap((CUdeviceptr)(uintptr_t)address, bytes), "cuMemUnmap");
  if (status == ATTUNE_OK) status = check(device, calls.destroy((CUmemGenericAllocationHandle)handle), "cuMemRelease");
  leave(&scope);
  return status;
}
