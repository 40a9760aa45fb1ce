/* SPDX-License-Identifier: Apache-2.0
 * alloc_cuda.c: the peer on CUDA: cudaMallocAsync and cudaFreeAsync from the device's default pool, which keeps what is
 * freed. */
#include "bench/alloc_way.h"
#include "bench/tool.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

typedef struct peer {
  int device;
  cudaStream_t stream;
} peer;

static int ordinal_of(const attune_device *device) {
  return atoi(attune_device_name(device) + sizeof "cuda:" - 1);
}

static void *open_peer(attune_device *device) {
  peer *p = malloc(sizeof *p);
  cudaMemPool_t pool = NULL;
  unsigned long long keep = UINT64_MAX;
  if (!p) bench_die("no memory");
  p->device = ordinal_of(device);
  if (cudaSetDevice(p->device) != cudaSuccess ||
      cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaDeviceGetDefaultMemPool(&pool, p->device) != cudaSuccess ||
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) != cudaSuccess)
    bench_die("CUDA's pool cannot be set up");
  return p;
}

static int pair(void *context, size_t bytes) {
  peer *p = context;
  void *memory = NULL;
  return cudaMallocAsync(&memory, bytes, p->stream) != cudaSuccess || cudaFreeAsync(memory, p->stream) != cudaSuccess;
}

static void close_peer(void *context) {
  peer *p = context;
  (void)cudaStreamSynchronize(p->stream);
  (void)cudaStreamDestroy(p->stream);
  free(p);
}

const alloc_way alloc_cuda_way = {"cudaMallocAsync + cudaFreeAsync", open_peer, pair, close_peer};
