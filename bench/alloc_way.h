/* SPDX-License-Identifier: Apache-2.0
 * alloc_way.h: a way to allocate and free, which bench_alloc times. */
#ifndef BENCH_ALLOC_WAY_H
#define BENCH_ALLOC_WAY_H

#include <attune/attune.h>

/* A context for each thread. `pair` returns nonzero when it failed. */
typedef struct alloc_way {
  const char *name;
  void *(*open)(attune_device *device);
  int (*pair)(void *context, size_t bytes);
  void (*close)(void *context);
} alloc_way;

#ifdef BENCH_WITH_CUDA
extern const alloc_way alloc_cuda_way; /* alloc_cuda.c: cudaMallocAsync */
#endif

#endif
