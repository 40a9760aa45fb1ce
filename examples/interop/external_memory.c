/* SPDX-License-Identifier: Apache-2.0
 * external_memory.c: memory that another library exports as a file descriptor, imported by CUDA and used by attune.
 * Vulkan is the usual exporter; here it is the driver's own virtual memory, so that no graphics is needed. */
#include "examples/interop/interop.h"

#include <cuda.h>
#include <string.h>
#include <unistd.h>

static void *find(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
#else
  CUDA(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  MUST(found == cudaDriverEntryPointSuccess && function);
  return function;
}

/* Memory as a descriptor. */
static int give(size_t *bytes) {
  CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) = NULL;
  CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long) = NULL;
  CUresult (*export)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long) = NULL;
  *(void **)&granularity = find("cuMemGetAllocationGranularity");
  *(void **)&create = find("cuMemCreate");
  *(void **)&export = find("cuMemExportToShareableHandle");
  CUmemAllocationProp about;
  CUmemGenericAllocationHandle handle = 0;
  int descriptor = -1;
  memset(&about, 0, sizeof about);
  about.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  about.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  about.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (granularity(bytes, &about, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
      create(&handle, *bytes, &about, 0) != CUDA_SUCCESS ||
      export(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
    interop_skip("the driver gives no memory as a descriptor");
  return descriptor;
}

int main(void) {
  enum { COUNT = 1000 };
  attune_stream *stream = interop_begin();
  size_t bytes = 0;
  struct cudaExternalMemoryHandleDesc about;
  struct cudaExternalMemoryBufferDesc all;
  cudaExternalMemory_t memory = NULL;
  void *buffer = NULL;
  memset(&about, 0, sizeof about);
  memset(&all, 0, sizeof all);
  about.type = cudaExternalMemoryHandleTypeOpaqueFd;
  about.handle.fd = give(&bytes);
  about.size = all.size = bytes;
  CUDA(cudaImportExternalMemory(&memory, &about)); /* the descriptor is CUDA's from here on */
  CUDA(cudaExternalMemoryGetMappedBuffer(&buffer, memory, &all));

  float *numbers = interop_numbers(stream, COUNT, 4.0f);
  OK(attune_fill(stream, buffer, 0, bytes));
  OK(attune_copy(stream, buffer, numbers, COUNT * sizeof(float)));
  interop_check(stream, buffer, COUNT, 4.0f, 1.0f);
  OK(attune_stream_synchronize(stream));
  CUDA(cudaFree(buffer));
  CUDA(cudaDestroyExternalMemory(memory));
  OK(attune_free(numbers, stream));
  return interop_end(stream, "external memory");
}
