/* SPDX-License-Identifier: Apache-2.0
 * peers_cuda.c: the peers on CUDA: cublasGemmEx by default and with CUBLAS_GEMM_AUTOTUNE, and cublasLt's first
 * heuristic, under the same contract as attune: compute type, reduced-precision reductions and workspace alike; of
 * matrices that pointers name cublasGemmBatchedEx alone; of products with one row or column the matrix-vector call,
 * too. */
#include "bench/gemm/peers_cuda.h"

#include "bench/common/cublas.h"
#include "bench/common/tool.h"

#include <cublasLt.h>
#include <stdlib.h>

enum { VARIANT_DEFAULT, VARIANT_AUTOTUNE };

#if CUBLAS_VERSION >= 130000
#define HAVE_AUTOTUNE 1
#else
#define HAVE_AUTOTUNE 0
#endif

typedef struct lt_call {
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t choice;
} lt_call;

struct bench_cuda_peers {
  cudaStream_t stream;    /* the platform's */
  cublasHandle_t blas[2]; /* of the default and of AUTOTUNE, which keeps its winners in the handle */
  cublasLtHandle_t lt_handle;
  lt_call lt;
  void *workspace;
};

/* False, with a message on standard error, when a call failed. */
static bool blas_ok(cublasStatus_t status, const char *what) {
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  fprintf(stderr, "bench_gemm: %s: %s\n", what, cublasGetStatusString(status));
  return false;
}

static bool reduced(const attune_gemm_problem *g) {
  return g->contract.accuracy == ATTUNE_REDUCED;
}

static bool fits_int(const attune_gemm_problem *g) {
  int64_t most = INT32_MAX;
  return g->m <= most && g->n <= most && g->k <= most && g->batch <= most && g->lda <= most && g->ldb <= most &&
         g->ldd <= most;
}

static bool blas_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  (void)platform, (void)example;
  bench_cuda_peers *peers = way->state;
  bench_cublas_obey(peers->blas[way->variant], &problem->gemm);
  const attune_pointers pointers =
      (attune_pointers)problem->gemm.pointers; /* AUTOTUNE takes none, no call host memory */
  const bool takes = !pointers || (pointers == ATTUNE_POINTERS_DEVICE && way->variant == VARIANT_DEFAULT);
  return fits_int(&problem->gemm) && takes;
}

static cublasGemmAlgo_t algorithm_of(const bench_way *way) {
#if HAVE_AUTOTUNE
  if (way->variant == VARIANT_AUTOTUNE) return CUBLAS_GEMM_AUTOTUNE;
#endif
  (void)way;
  return CUBLAS_GEMM_DEFAULT;
}

static bool blas_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_cuda_peers *peers = way->state;
  const attune_gemm_operands o = bench_operands(platform->problem, set);
  const cublasStatus_t status =
      bench_cublas_gemm(peers->blas[way->variant], &platform->problem->gemm, o.a, o.b, o.d, algorithm_of(way));
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(peers->stream, &capturing);
  /* AUTOTUNE may refuse a capture; it is then timed eagerly. */
  return capturing == cudaStreamCaptureStatusNone ? blas_ok(status, way->name) : false;
}

static void lt_drop(lt_call *lt) {
  if (lt->operation != NULL) cublasLtMatmulDescDestroy(lt->operation);
  if (lt->a != NULL) cublasLtMatrixLayoutDestroy(lt->a);
  if (lt->b != NULL) cublasLtMatrixLayoutDestroy(lt->b);
  if (lt->d != NULL) cublasLtMatrixLayoutDestroy(lt->d);
  if (lt->preference != NULL) cublasLtMatmulPreferenceDestroy(lt->preference);
  *lt = (lt_call){0};
}

static bool lt_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                      int64_t stride, int64_t batch) {
  int32_t count = (int32_t)batch;
  if (!blas_ok(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, ld),
               "cublasLtMatrixLayoutCreate"))
    return false;
  if (batch == 1) return true;
  return blas_ok(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                 "batch count") &&
         blas_ok(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                  sizeof stride),
                 "batch stride");
}

static bool lt_describe(lt_call *lt, const attune_gemm_problem *g) {
  cublasOperation_t ta = bench_cublas_operation(g->trans_a), tb = bench_cublas_operation(g->trans_b);
  cudaDataType_t in = bench_cublas_type(g->dtype), out = bench_cublas_type(g->dtype_out);
  cudaDataType_t scale = g->dtype == ATTUNE_F64 || bench_parts(g->dtype) == 2 ? in : CUDA_R_32F;
  return blas_ok(cublasLtMatmulDescCreate(&lt->operation, bench_cublas_compute(g), scale),
                 "cublasLtMatmulDescCreate") &&
         blas_ok(cublasLtMatmulDescSetAttribute(lt->operation, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta),
                 "transa") &&
         blas_ok(cublasLtMatmulDescSetAttribute(lt->operation, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb),
                 "transb") &&
         lt_layout(&lt->a, in, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda, g->stride_a, g->batch) &&
         lt_layout(&lt->b, in, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb, g->stride_b, g->batch) &&
         lt_layout(&lt->d, out, g->m, g->n, g->ldd, g->stride_d, g->batch);
}

static bool lt_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                       const bench_set *example) {
  (void)platform, (void)example; /* buffers come from attune_alloc: aligned to 256 bytes, the preference's default */
  bench_cuda_peers *peers = way->state;
  lt_call *lt = &peers->lt;
  const attune_gemm_problem *g = &problem->gemm;
  size_t workspace = ATTUNE_WORKSPACE_DEFAULT;
  /* strict: reduction in place and in the output type only where that is the compute type. */
  bool wide_output = bench_part(g->dtype_out) == ATTUNE_F32 || bench_part(g->dtype_out) == ATTUNE_F64;
  uint32_t schemes =
      reduced(g) || wide_output ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  int found = 0;
  lt_drop(lt);
  if (g->pointers) return false;
  if (!lt_describe(lt, g) ||
      !blas_ok(cublasLtMatmulPreferenceCreate(&lt->preference), "cublasLtMatmulPreferenceCreate"))
    return false;
  if (!blas_ok(cublasLtMatmulPreferenceSetAttribute(lt->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace, sizeof workspace),
               "workspace") ||
      !blas_ok(cublasLtMatmulPreferenceSetAttribute(lt->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                    &schemes, sizeof schemes),
               "reduction schemes"))
    return false;
  return cublasLtMatmulAlgoGetHeuristic(peers->lt_handle, lt->operation, lt->a, lt->b, lt->d, lt->d, lt->preference, 1,
                                        &lt->choice, &found) == CUBLAS_STATUS_SUCCESS &&
         found == 1;
}

static bool lt_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_cuda_peers *peers = way->state;
  const lt_call *lt = &peers->lt;
  const attune_gemm_problem *g = &platform->problem->gemm;
  return blas_ok(cublasLtMatmul(peers->lt_handle, lt->operation, bench_cublas_one(g), set->a, lt->a, set->b, lt->b,
                                bench_cublas_zero(g), set->d, lt->d, set->d, lt->d, &lt->choice.algo, peers->workspace,
                                ATTUNE_WORKSPACE_DEFAULT, peers->stream),
                 way->name);
}

static bool gemv_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_cuda_peers *peers = way->state;
  return blas_ok(bench_gemv(peers->blas[VARIANT_DEFAULT], &platform->problem->gemm, set), way->name);
}

void bench_cuda_peers_open(bench_cuda_peers **out, bench_platform *platform) {
  bench_cuda_peers *peers = calloc(1, sizeof *peers);
  if (peers == NULL) bench_die("out of memory");
  *out = peers;
  peers->stream = (cudaStream_t)attune_stream_native(platform->stream);
  bench_check(attune_alloc(&peers->workspace, platform->stream, ATTUNE_WORKSPACE_DEFAULT), "attune_alloc");
  bench_way blas = {.prepare = blas_prepare, .enqueue = blas_enqueue, .state = peers};
  blas.name = "GemmEx default";
  blas.variant = VARIANT_DEFAULT;
  peers->blas[blas.variant] = bench_cublas_open(peers->stream, peers->workspace, ATTUNE_WORKSPACE_DEFAULT);
  platform->ways[platform->way_count++] = blas;
  if (HAVE_AUTOTUNE) {
    blas.name = "GemmEx AUTOTUNE";
    blas.variant = VARIANT_AUTOTUNE;
    peers->blas[blas.variant] = bench_cublas_open(peers->stream, peers->workspace, ATTUNE_WORKSPACE_DEFAULT);
    platform->ways[platform->way_count++] = blas;
  }
  if (!blas_ok(cublasLtCreate(&peers->lt_handle), "cublasLtCreate")) exit(1);
  platform->ways[platform->way_count++] =
      (bench_way){.name = "Lt heuristic 0", .prepare = lt_prepare, .enqueue = lt_enqueue, .state = peers};
  platform->ways[platform->way_count++] =
      (bench_way){.name = "gemv", .prepare = bench_gemv_prepare, .enqueue = gemv_enqueue, .state = peers};
}

void bench_cuda_peers_close(bench_cuda_peers *peers, attune_stream *stream) {
  lt_drop(&peers->lt);
  for (int i = 0; i < 2; i++)
    if (peers->blas[i] != NULL) cublasDestroy(peers->blas[i]);
  cublasLtDestroy(peers->lt_handle);
  bench_check(attune_free(peers->workspace, stream), "attune_free");
  free(peers);
}
