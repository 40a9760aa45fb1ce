/* SPDX-License-Identifier: Apache-2.0
 * cublas.c: cuBLAS for a problem, and samples of calls that are replayed as graphs. */
#include "bench/common/cublas.h"

#include <cublasLt.h>
#include <stdio.h>

#include "bench/common/problem.h"
#include "bench/common/tool.h"

void bench_cuda_must(cudaError_t error, const char *what) {
  if (error != cudaSuccess) bench_die("%s: %s (%s)", what, cudaGetErrorName(error), cudaGetErrorString(error));
}

void bench_cublas_must(cublasStatus_t status, const char *what) {
  if (status != CUBLAS_STATUS_SUCCESS) bench_die("%s: %s", what, cublasGetStatusString(status));
}

cudaDataType_t bench_cublas_type(attune_dtype dtype) {
  if (dtype == ATTUNE_F64) return CUDA_R_64F;
  if (dtype == ATTUNE_F32) return CUDA_R_32F;
  if (dtype == ATTUNE_C64) return CUDA_C_32F;
  if (dtype == ATTUNE_C128) return CUDA_C_64F;
  return dtype == ATTUNE_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

static bool reduced(const attune_gemm_problem *g) {
  return g->contract.accuracy == ATTUNE_REDUCED;
}

cublasComputeType_t bench_cublas_compute(const attune_gemm_problem *g) {
  if (bench_part(g->dtype) == ATTUNE_F64) return CUBLAS_COMPUTE_64F;
  return bench_part(g->dtype) == ATTUNE_F32 && reduced(g) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

const void *bench_cublas_one(const attune_gemm_problem *g) {
  static const _Alignas(16) double one[2] = {1.0};
  static const float one_f32[2] = {1.0f};
  return bench_part(g->dtype) == ATTUNE_F64 ? (const void *)one : one_f32;
}

const void *bench_cublas_zero(const attune_gemm_problem *g) {
  static const _Alignas(16) double zero[2] = {0.0};
  static const float zero_f32[2] = {0.0f};
  return bench_part(g->dtype) == ATTUNE_F64 ? (const void *)zero : zero_f32;
}

void bench_cuda_libraries(char *out, size_t size) {
  int runtime = 0, driver = 0;
  const size_t blas = cublasLtGetVersion();
  bench_cuda_must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  bench_cuda_must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  snprintf(out, size, "CUDA %d.%d, driver %d.%d, cuBLAS %zu.%zu.%zu", runtime / 1000, runtime % 1000 / 10,
           driver / 1000, driver % 1000 / 10, blas / 10000, blas / 100 % 100, blas % 100);
}

cublasHandle_t bench_cublas_open(cudaStream_t stream, void *workspace, size_t bytes) {
  cublasHandle_t handle = NULL;
  bench_cublas_must(cublasCreate(&handle), "cublasCreate");
  bench_cublas_must(cublasSetStream(handle, stream), "cublasSetStream");
  bench_cublas_must(cublasSetWorkspace(handle, workspace, bytes), "cublasSetWorkspace");
  return handle;
}

void bench_cublas_obey(cublasHandle_t handle, const attune_gemm_problem *g) {
  const cublasMath_t mode = reduced(g) ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  bench_cublas_must(cublasSetMathMode(handle, mode), "cublasSetMathMode");
}

cublasOperation_t bench_cublas_operation(attune_transpose trans) {
  return trans == ATTUNE_N ? CUBLAS_OP_N : trans == ATTUNE_T ? CUBLAS_OP_T : CUBLAS_OP_C;
}

cublasStatus_t bench_cublas_gemm(cublasHandle_t handle, const attune_gemm_problem *g, const void *a, const void *b,
                                 void *d, cublasGemmAlgo_t algorithm) {
  const cublasOperation_t ta = bench_cublas_operation(g->trans_a), tb = bench_cublas_operation(g->trans_b);
  const cudaDataType_t in = bench_cublas_type(g->dtype), out = bench_cublas_type(g->dtype_out);
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;
  const void *one = bench_cublas_one(g), *zero = bench_cublas_zero(g);
  if (g->pointers)
    return cublasGemmBatchedEx(handle, ta, tb, m, n, k, one, a, in, lda, b, in, ldb, zero, d, out, ldd, (int)g->batch,
                               bench_cublas_compute(g), algorithm);
  if (g->batch == 1)
    return cublasGemmEx(handle, ta, tb, m, n, k, one, a, in, lda, b, in, ldb, zero, d, out, ldd,
                        bench_cublas_compute(g), algorithm);
  return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, one, a, in, lda, g->stride_a, b, in, ldb, g->stride_b,
                                    zero, d, out, ldd, g->stride_d, (int)g->batch, bench_cublas_compute(g), algorithm);
}

cudaGraphExec_t bench_capture(cudaStream_t stream, bool (*give)(void *arg, int set), void *arg, int first, int calls,
                              int sets) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  bool good = true;
  bench_cuda_must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < calls && good; i++) good = give(arg, (first + i) % sets);
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (good && ended == cudaSuccess && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess)
    bench_cuda_must(cudaGraphUpload(exec, stream), "cudaGraphUpload");
  if (graph) cudaGraphDestroy(graph);
  (void)cudaGetLastError(); /* a refused capture leaves its error behind */
  return exec;
}

void bench_windows_drop(bench_windows *windows) {
  for (int i = 0; i < windows->count; i++)
    bench_cuda_must(cudaGraphExecDestroy(windows->graphs[i]), "cudaGraphExecDestroy");
  windows->count = 0;
}

void bench_windows_replay(const bench_windows *windows, unsigned *turn, cudaStream_t stream) {
  bench_cuda_must(cudaGraphLaunch(windows->graphs[(*turn)++ % (unsigned)windows->count], stream), "cudaGraphLaunch");
}

double bench_between(cudaEvent_t start, cudaEvent_t stop) {
  float ms = 0.0f;
  bench_cuda_must(cudaEventSynchronize(stop), "cudaEventSynchronize");
  bench_cuda_must(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
  return (double)ms * 1e6;
}

double bench_windows_time(const bench_windows *windows, unsigned *turn, cudaStream_t stream, cudaEvent_t start,
                          cudaEvent_t stop) {
  bench_windows_replay(windows, turn, stream);
  bench_cuda_must(cudaEventRecord(start, stream), "cudaEventRecord");
  bench_windows_replay(windows, turn, stream);
  bench_cuda_must(cudaEventRecord(stop, stream), "cudaEventRecord");
  return bench_between(start, stop);
}
