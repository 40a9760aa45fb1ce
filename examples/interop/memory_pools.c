/* SPDX-License-Identifier: Apache-2.0
 * memory_pools.c: the driver's own pools of memory (cudaMallocAsync and its kin) on attune's stream, and attune's work
 * on their memory; and memory of the host that CUDA made. */
#include "examples/interop/interop.h"

enum { COUNT = 1 << 16, BYTES = COUNT * (int)sizeof(float) };

static cudaMemPool_t make_pool(void) {
  cudaMemPool_t pool = NULL;
  struct cudaMemPoolProps about = {.allocType = cudaMemAllocationTypePinned,
                                   .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
  CUDA(cudaMemPoolCreate(&pool, &about));
  uint64_t keep = UINT64_MAX;
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return pool;
}

/* Memory of the host that is written in whole lines, seen by the device under another name or the same. */
static void of_the_host(attune_stream *stream, const float *source) {
  void *host = NULL, *device = NULL;
  unsigned flags = 0;
  CUDA(cudaHostAlloc(&host, BYTES, cudaHostAllocWriteCombined | cudaHostAllocMapped));
  CUDA(cudaHostGetFlags(&flags, host));
  MUST(flags & cudaHostAllocWriteCombined);
  CUDA(cudaHostGetDevicePointer(&device, host, 0));
  OK(attune_copy(stream, device, source, BYTES));
  interop_check(stream, host, COUNT, 1.0f, 1.0f);
  CUDA(cudaFreeHost(host));
}

int main(void) {
  attune_stream *stream = interop_begin();
  cudaStream_t native = interop_native(stream);
  cudaMemPool_t pool = make_pool(), usual = NULL, set = NULL;
  float *source = interop_numbers(stream, COUNT, 1.0f);
  void *pooled = NULL, *plain = NULL;

  CUDA(cudaMallocFromPoolAsync(&pooled, BYTES, pool, native));
  CUDA(cudaMallocAsync(&plain, BYTES, native));
  OK(attune_copy(stream, pooled, source, BYTES));
  OK(attune_copy(stream, plain, pooled, BYTES));
  interop_check(stream, plain, COUNT, 1.0f, 1.0f);
  OK(attune_fill(stream, pooled, 0, BYTES));
  CUDA(cudaFreeAsync(pooled, native));
  CUDA(cudaFreeAsync(plain, native));
  OK(attune_stream_synchronize(stream));

  uint64_t used = 1, reserved = 0;
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  MUST(used == 0 && reserved >= BYTES);
  CUDA(cudaMemPoolTrimTo(pool, 0));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  MUST(reserved == 0);

  /* The device's pool may be changed: attune takes nothing from it. */
  CUDA(cudaDeviceGetDefaultMemPool(&usual, 0));
  CUDA(cudaDeviceSetMemPool(0, pool));
  CUDA(cudaDeviceGetMemPool(&set, 0));
  MUST(set == pool);
  float *after = interop_numbers(stream, COUNT, 3.0f);
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  MUST(reserved == 0);
  CUDA(cudaDeviceSetMemPool(0, usual));
  enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
  struct cudaMemLocation here = {.type = cudaMemLocationTypeDevice, .id = 0};
  CUDA(cudaMemPoolGetAccess(&flags, pool, &here));
  MUST(flags == cudaMemAccessFlagsProtReadWrite);

  of_the_host(stream, source);
  CUDA(cudaMemPoolDestroy(pool));
  OK(attune_free(after, stream));
  OK(attune_free(source, stream));
  return interop_end(stream, "the driver's memory pools");
}
