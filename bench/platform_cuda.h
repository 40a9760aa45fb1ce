/* SPDX-License-Identifier: Apache-2.0
 * platform_cuda.h: what the CUDA peers share with the timing of the CUDA platform. */
#ifndef BENCH_PLATFORM_CUDA_H
#define BENCH_PLATFORM_CUDA_H

#include "bench/bench.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#define BENCH_MAX_WINDOWS 128

typedef struct bench_lt {
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t choice;
} bench_lt;

typedef struct bench_cuda {
  cudaStream_t stream; /* the program's own, wrapped for attune */
  cudaEvent_t start, stop;
  cublasHandle_t blas[2]; /* of the default and of AUTOTUNE, which keeps its winners in the handle */
  cublasLtHandle_t lt_handle;
  bench_lt lt;
  void *workspace;
  cudaGraphExec_t graphs[BENCH_WAYS][BENCH_MAX_WINDOWS];
  int windows[BENCH_WAYS]; /* 0: timed eagerly */
  const bench_sets *sets;
  int calls;
  unsigned turn; /* the next window, over all ways, so that consecutive samples never meet the same sets */
} bench_cuda;

/* False, with a message on standard error, when a call failed. */
bool bench_cuda_ok(cudaError_t error, const char *what);
bool bench_blas_ok(cublasStatus_t status, const char *what);

/* peers_cuda.c: adds the peers' ways. They have the workspace that attune's contract allows, and the same math mode. */
void bench_cuda_peers_open(bench_platform *platform);
void bench_cuda_peers_close(bench_platform *platform);

#endif
