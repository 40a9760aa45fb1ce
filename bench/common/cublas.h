/* SPDX-License-Identifier: Apache-2.0
 * cublas.h: what the programs beside cuBLAS share: its types for a problem, its call, and samples of calls that are
 * replayed as graphs. What cannot go on ends the program with a message. */
#ifndef BENCH_CUBLAS_H
#define BENCH_CUBLAS_H

#include <attune/attune.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>

void bench_cuda_must(cudaError_t error, const char *what);
void bench_cublas_must(cublasStatus_t status, const char *what);

cudaDataType_t bench_cublas_type(attune_dtype dtype);
cublasOperation_t bench_cublas_operation(attune_transpose trans);
cublasComputeType_t bench_cublas_compute(const attune_gemm_problem *g);
/* Of the type that the problem is scaled in. */
const void *bench_cublas_one(const attune_gemm_problem *g);
const void *bench_cublas_zero(const attune_gemm_problem *g);

/* "CUDA 13.0, driver 13.0, cuBLAS 13.1.0" */
void bench_cuda_libraries(char *out, size_t size);

/* A handle on the stream, with this workspace. */
cublasHandle_t bench_cublas_open(cudaStream_t stream, void *workspace, size_t bytes);
/* Partial sums in the output type are what strict forbids. */
void bench_cublas_obey(cublasHandle_t handle, const attune_gemm_problem *g);
/* cublasGemmEx, its strided batch, or of arrays of pointers in device memory cublasGemmBatchedEx, of a problem that
 * cuBLAS can do (bench_problem.gemm). */
cublasStatus_t bench_cublas_gemm(cublasHandle_t handle, const attune_gemm_problem *g, const void *a, const void *b,
                                 void *d, cublasGemmAlgo_t algorithm);

/* --- calls replayed as graphs, one graph for each window of operands --- */

enum { BENCH_WINDOWS_MOST = 128 };

typedef struct bench_windows {
  cudaGraphExec_t graphs[BENCH_WINDOWS_MOST];
  int count;
} bench_windows;

/* Captures `calls` calls of give(arg, set) over the sets from `first` on, of `sets` in all, round and round; NULL: it
 * cannot be captured. */
cudaGraphExec_t bench_capture(cudaStream_t stream, bool (*give)(void *arg, int set), void *arg, int first, int calls,
                              int sets);
void bench_windows_drop(bench_windows *windows);
/* Queues the window whose turn it is; *turn moves on. */
void bench_windows_replay(const bench_windows *windows, unsigned *turn, cudaStream_t stream);
/* Nanoseconds between two events; waits for the second. */
double bench_between(cudaEvent_t start, cudaEvent_t stop);
/* Of one replay behind an untimed one, so that no launch cost shows. */
double bench_windows_time(const bench_windows *windows, unsigned *turn, cudaStream_t stream, cudaEvent_t start,
                          cudaEvent_t stop);

#endif
