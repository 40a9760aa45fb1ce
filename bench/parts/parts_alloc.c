/* SPDX-License-Identifier: Apache-2.0
 * parts_alloc.c: alloc + free of a block that is cached, by one thread and by eight, beside the C library and, on CUDA,
 * cudaMallocAsync from the device's default pool, which keeps what is freed. bench_alloc measures the memory. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/parts/parts.h"

#ifdef BENCH_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

enum { PAIRS = 2000, LONG = 10 };

typedef struct allocating {
  attune_device *device;
  bool (*pairs)(void *stream, size_t bytes); /* PAIRS of them; false: one failed */
  void *(*open)(attune_device *device);
  void (*close)(void *stream);
  size_t bytes;
  int threads;
  void *streams[8];
} allocating;

static attune_status make(void *arg) {
  allocating *a = arg;
  for (int i = 0; i < a->threads && a->open; i++) a->streams[i] = a->open(a->device);
  return ATTUNE_OK;
}

static bool work(void *arg, int thread) {
  const allocating *a = arg;
  return a->pairs(a->streams[thread], a->bytes);
}

/* Long enough that starting the threads does not show. */
static bool long_work(void *arg, int thread) {
  bool good = true;
  for (int i = 0; i < LONG; i++) good &= work(arg, thread);
  return good;
}

static void drop(void *arg) {
  allocating *a = arg;
  for (int i = 0; i < a->threads && a->close; i++) a->close(a->streams[i]);
}

static void *open_stream(attune_device *device) {
  attune_stream *stream = NULL;
  bench_check(attune_stream_create(&stream, device), "attune_stream_create");
  return stream;
}

static void close_stream(void *stream) {
  attune_stream_destroy(stream);
}

static bool attune_pairs(void *stream, size_t bytes) {
  bool good = true;
  for (int i = 0; i < PAIRS; i++) {
    void *p = NULL;
    good &= attune_alloc(&p, stream, bytes) == ATTUNE_OK && attune_free(p, stream) == ATTUNE_OK;
  }
  return good;
}

static bool malloc_pairs(void *stream, size_t bytes) {
  bool good = true;
  (void)stream;
  for (int i = 0; i < PAIRS; i++) {
    void *p = malloc(bytes);
    __asm__ volatile("" : : "r"(p) : "memory"); /* or the compiler leaves both out */
    good &= p != NULL;
    free(p);
  }
  return good;
}

#ifdef BENCH_WITH_CUDA
static void *open_cuda(attune_device *device) {
  const int ordinal = bench_ordinal(device);
  cudaStream_t stream = NULL;
  cudaMemPool_t pool = NULL;
  unsigned long long keep = UINT64_MAX;
  if (cudaSetDevice(ordinal) != cudaSuccess ||
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaDeviceGetDefaultMemPool(&pool, ordinal) != cudaSuccess ||
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) != cudaSuccess)
    bench_die("CUDA's pool cannot be set up");
  return stream;
}

static void close_cuda(void *stream) {
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

static bool cuda_pairs(void *stream, size_t bytes) {
  bool good = true;
  for (int i = 0; i < PAIRS; i++) {
    void *p = NULL;
    good &= cudaMallocAsync(&p, bytes, stream) == cudaSuccess && cudaFreeAsync(p, stream) == cudaSuccess;
  }
  return good;
}
#endif

void parts_alloc(attune_bench *bench, attune_device *device) {
  static const size_t sizes[] = {4096, (size_t)1 << 20, (size_t)64 << 20};
  for (int threads = 1; threads <= 8; threads *= 8)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      char name[96];
      snprintf(name, sizeof name, "alloc/%s/%zu bytes, %d thread%s", attune_device_name(device), sizes[i], threads,
               threads > 1 ? "s" : "");
      allocating a = {.device = device,
                      .pairs = attune_pairs,
                      .open = open_stream,
                      .close = close_stream,
                      .bytes = sizes[i],
                      .threads = threads};
      part_case c = {.name = name,
                     .set_up = make,
                     .tear_down = drop,
                     .repeats = threads > 1 ? PAIRS * LONG : PAIRS,
                     .work = threads > 1 ? long_work : work,
                     .threads = threads > 1 ? threads : 0};
      parts_add(bench, &c, &a, sizeof a);
      c.peer_of = name;
      c.name = "malloc";
      a.pairs = malloc_pairs, a.open = NULL, a.close = NULL;
      parts_add(bench, &c, &a, sizeof a);
#ifdef BENCH_WITH_CUDA
      if (!bench_is_cuda(device)) continue;
      c.name = "cudaMallocAsync";
      a.pairs = cuda_pairs, a.open = open_cuda, a.close = close_cuda;
      parts_add(bench, &c, &a, sizeof a);
#endif
    }
}
