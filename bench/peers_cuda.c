/* SPDX-License-Identifier: Apache-2.0
 * peers_cuda.c: the peers on CUDA: cublasGemmEx by default and with CUBLAS_GEMM_AUTOTUNE, and cublasLt's first
 * heuristic, under the same contract as attune: compute type, reduced-precision reductions and workspace alike. */
#include "bench/platform_cuda.h"

#include <stdlib.h>

enum { VARIANT_DEFAULT, VARIANT_AUTOTUNE, VARIANT_LT };

#if CUBLAS_VERSION >= 130000
#define HAVE_AUTOTUNE 1
#else
#define HAVE_AUTOTUNE 0
#endif

static const double one_f64 = 1.0, zero_f64 = 0.0;
static const float one_f32 = 1.0f, zero_f32 = 0.0f;

static cudaDataType_t data_type(attune_dtype dtype) {
  if (dtype == ATTUNE_F64) return CUDA_R_64F;
  if (dtype == ATTUNE_F32) return CUDA_R_32F;
  return dtype == ATTUNE_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

static bool reduced(const attune_gemm_problem *g) {
  return g->contract.accuracy == ATTUNE_REDUCED;
}

static cublasComputeType_t compute_type(const attune_gemm_problem *g) {
  if (g->dtype == ATTUNE_F64) return CUBLAS_COMPUTE_64F;
  return g->dtype == ATTUNE_F32 && reduced(g) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static const void *one(const attune_gemm_problem *g) {
  return g->dtype == ATTUNE_F64 ? (const void *)&one_f64 : &one_f32;
}
static const void *zero(const attune_gemm_problem *g) {
  return g->dtype == ATTUNE_F64 ? (const void *)&zero_f64 : &zero_f32;
}
static cublasOperation_t operation(attune_transpose trans) {
  return trans == ATTUNE_T ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static bool fits_int(const attune_gemm_problem *g) {
  int64_t most = INT32_MAX;
  return g->m <= most && g->n <= most && g->k <= most && g->batch <= most && g->lda <= most && g->ldb <= most &&
         g->ldd <= most;
}

static bool blas_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  (void)example;
  bench_cuda *cuda = platform->state;
  /* Partial sums in the output type are what strict forbids. */
  cublasMath_t mode = reduced(&problem->gemm) ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return fits_int(&problem->gemm) &&
         bench_blas_ok(cublasSetMathMode(cuda->blas[way->variant], mode), "cublasSetMathMode");
}

static cublasGemmAlgo_t algorithm_of(const bench_way *way) {
#if HAVE_AUTOTUNE
  if (way->variant == VARIANT_AUTOTUNE) return CUBLAS_GEMM_AUTOTUNE;
#endif
  (void)way;
  return CUBLAS_GEMM_DEFAULT;
}

static bool blas_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_cuda *cuda = platform->state;
  const attune_gemm_problem *g = &platform->problem->gemm;
  cublasOperation_t ta = operation(g->trans_a), tb = operation(g->trans_b);
  cudaDataType_t in = data_type(g->dtype), out = data_type(g->dtype_out);
  int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;
  cublasHandle_t handle = cuda->blas[way->variant];
  cublasStatus_t status;
  if (g->batch == 1)
    status = cublasGemmEx(handle, ta, tb, m, n, k, one(g), set->a, in, lda, set->b, in, ldb, zero(g), set->d, out, ldd,
                          compute_type(g), algorithm_of(way));
  else
    status = cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, one(g), set->a, in, lda, g->stride_a, set->b, in, ldb,
                                        g->stride_b, zero(g), set->d, out, ldd, g->stride_d, (int)g->batch,
                                        compute_type(g), algorithm_of(way));
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(cuda->stream, &capturing);
  /* AUTOTUNE may refuse a capture; it is then timed eagerly. */
  return capturing == cudaStreamCaptureStatusNone ? bench_blas_ok(status, way->name) : false;
}

static void lt_drop(bench_lt *lt) {
  if (lt->operation != NULL) cublasLtMatmulDescDestroy(lt->operation);
  if (lt->a != NULL) cublasLtMatrixLayoutDestroy(lt->a);
  if (lt->b != NULL) cublasLtMatrixLayoutDestroy(lt->b);
  if (lt->d != NULL) cublasLtMatrixLayoutDestroy(lt->d);
  if (lt->preference != NULL) cublasLtMatmulPreferenceDestroy(lt->preference);
  *lt = (bench_lt){0};
}

static bool lt_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                      int64_t stride, int64_t batch) {
  int32_t count = (int32_t)batch;
  if (!bench_blas_ok(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, ld),
                     "cublasLtMatrixLayoutCreate"))
    return false;
  if (batch == 1) return true;
  return bench_blas_ok(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                       "batch count") &&
         bench_blas_ok(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                        sizeof stride),
                       "batch stride");
}

static bool lt_describe(bench_lt *lt, const attune_gemm_problem *g) {
  cublasOperation_t ta = operation(g->trans_a), tb = operation(g->trans_b);
  cudaDataType_t in = data_type(g->dtype), out = data_type(g->dtype_out);
  cudaDataType_t scale = g->dtype == ATTUNE_F64 ? CUDA_R_64F : CUDA_R_32F;
  return bench_blas_ok(cublasLtMatmulDescCreate(&lt->operation, compute_type(g), scale), "cublasLtMatmulDescCreate") &&
         bench_blas_ok(cublasLtMatmulDescSetAttribute(lt->operation, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta),
                       "transa") &&
         bench_blas_ok(cublasLtMatmulDescSetAttribute(lt->operation, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb),
                       "transb") &&
         lt_layout(&lt->a, in, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda, g->stride_a, g->batch) &&
         lt_layout(&lt->b, in, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb, g->stride_b, g->batch) &&
         lt_layout(&lt->d, out, g->m, g->n, g->ldd, g->stride_d, g->batch);
}

static bool lt_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                       const bench_set *example) {
  (void)way, (void)example; /* buffers come from attune_alloc: aligned to 256 bytes, the preference's default */
  bench_cuda *cuda = platform->state;
  bench_lt *lt = &cuda->lt;
  const attune_gemm_problem *g = &problem->gemm;
  size_t workspace = ATTUNE_WORKSPACE_DEFAULT;
  /* strict: reduction in place and in the output type only where that is the compute type. */
  bool wide_output = g->dtype_out == ATTUNE_F32 || g->dtype_out == ATTUNE_F64;
  uint32_t schemes =
      reduced(g) || wide_output ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  int found = 0;
  lt_drop(lt);
  if (!lt_describe(lt, g) ||
      !bench_blas_ok(cublasLtMatmulPreferenceCreate(&lt->preference), "cublasLtMatmulPreferenceCreate"))
    return false;
  if (!bench_blas_ok(cublasLtMatmulPreferenceSetAttribute(lt->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                          &workspace, sizeof workspace),
                     "workspace") ||
      !bench_blas_ok(cublasLtMatmulPreferenceSetAttribute(lt->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                          &schemes, sizeof schemes),
                     "reduction schemes"))
    return false;
  return cublasLtMatmulAlgoGetHeuristic(cuda->lt_handle, lt->operation, lt->a, lt->b, lt->d, lt->d, lt->preference, 1,
                                        &lt->choice, &found) == CUBLAS_STATUS_SUCCESS &&
         found == 1;
}

static bool lt_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_cuda *cuda = platform->state;
  const bench_lt *lt = &cuda->lt;
  const attune_gemm_problem *g = &platform->problem->gemm;
  return bench_blas_ok(cublasLtMatmul(cuda->lt_handle, lt->operation, one(g), set->a, lt->a, set->b, lt->b, zero(g),
                                      set->d, lt->d, set->d, lt->d, &lt->choice.algo, cuda->workspace,
                                      ATTUNE_WORKSPACE_DEFAULT, cuda->stream),
                       way->name);
}

static void open_handle(bench_cuda *cuda, int variant) {
  cublasHandle_t *handle = &cuda->blas[variant];
  if (!bench_blas_ok(cublasCreate(handle), "cublasCreate") ||
      !bench_blas_ok(cublasSetStream(*handle, cuda->stream), "cublasSetStream") ||
      !bench_blas_ok(cublasSetWorkspace(*handle, cuda->workspace, ATTUNE_WORKSPACE_DEFAULT), "cublasSetWorkspace"))
    exit(1);
}

void bench_cuda_peers_open(bench_platform *platform) {
  bench_cuda *cuda = platform->state;
  bench_check(attune_alloc(&cuda->workspace, platform->stream, ATTUNE_WORKSPACE_DEFAULT), "attune_alloc");
  open_handle(cuda, VARIANT_DEFAULT);
  platform->ways[platform->way_count++] = (bench_way){
      .name = "GemmEx default", .prepare = blas_prepare, .enqueue = blas_enqueue, .variant = VARIANT_DEFAULT};
  if (HAVE_AUTOTUNE) {
    open_handle(cuda, VARIANT_AUTOTUNE);
    platform->ways[platform->way_count++] = (bench_way){
        .name = "GemmEx AUTOTUNE", .prepare = blas_prepare, .enqueue = blas_enqueue, .variant = VARIANT_AUTOTUNE};
  }
  if (!bench_blas_ok(cublasLtCreate(&cuda->lt_handle), "cublasLtCreate")) exit(1);
  platform->ways[platform->way_count++] =
      (bench_way){.name = "Lt heuristic 0", .prepare = lt_prepare, .enqueue = lt_enqueue, .variant = VARIANT_LT};
}

void bench_cuda_peers_close(bench_platform *platform) {
  bench_cuda *cuda = platform->state;
  lt_drop(&cuda->lt);
  for (int i = 0; i < 2; i++)
    if (cuda->blas[i] != NULL) cublasDestroy(cuda->blas[i]);
  cublasLtDestroy(cuda->lt_handle);
  bench_check(attune_free(cuda->workspace, platform->stream), "attune_free");
}
