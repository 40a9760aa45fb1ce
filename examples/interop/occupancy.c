/* SPDX-License-Identifier: Apache-2.0
 * occupancy.c: a kernel of the program's: its attributes, how many blocks fit, and its launch on attune's stream,
 * between work of attune and a call of the host's. */
#include "examples/interop/kernels.h"

#include <cuda.h>

_Static_assert(_Generic((cudaFunction_t)NULL, CUfunction : 1, default : 0), "the driver's functions are the runtime's");

static void CUDART_CB count_call(void *user) {
  ++*(int *)user;
}

int main(void) {
  enum { COUNT = 100000, THREADS = 256 };
  attune_stream *stream = interop_begin();
  const cudaKernel_t kernel = kernels_load(KERNELS_HEAD KERNEL_TWICE, "twice");
  struct cudaFuncAttributes about;
  attune_device_details details = {0};
  int blocks = 0, same = 0, count = COUNT;
  size_t shared = 0;

  CUDA(cudaFuncGetAttributes(&about, (const void *)kernel));
  MUST(about.numRegs > 0 && about.maxThreadsPerBlock >= THREADS);
  CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel, THREADS, 0));
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, (const void *)kernel, THREADS, 0,
                                                              cudaOccupancyDefault));
  CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, (const void *)kernel, 1, THREADS));
  OK(attune_device_get_details(interop_device, &details));
  MUST(blocks > 0 && blocks == same && blocks * THREADS <= details.threads_per_processor);
  MUST(shared > 0 && (int64_t)shared <= details.shared_per_block_optin);

  float *memory = interop_numbers(stream, COUNT, 3.0f);
  void *arguments[] = {&memory, &count};
  const dim3 grid = {(COUNT + THREADS - 1) / THREADS, 1, 1}, block = {THREADS, 1, 1};
  CUDA(cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0, interop_native(stream)));
  const cudaHostFn_t call = count_call; /* what cudaLaunchHostFunc takes, attune_stream_call takes too */
  int calls = 0;
  OK(attune_stream_call(stream, call, &calls));
  interop_check(stream, memory, COUNT, 3.0f, 2.0f);
  MUST(calls == 1);
  OK(attune_free(memory, stream));
  return interop_end(stream, "kernels and their occupancy");
}
