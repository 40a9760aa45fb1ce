/* SPDX-License-Identifier: Apache-2.0
 * peer_gemv.c: a peer on CUDA for products with one row or one column: the vendor's matrix-vector call of the type, as
 * a program would call it. A row is made transposed: D^T = op(B)^T op(A)^T. */
#include "bench/gemm/peers_cuda.h"

#include "bench/common/cublas.h"
#include "bench/common/tool.h"

/* Declared by the vendor's header for C++ only. */
#define HALF_GEMV(NAME)                                                                                           \
  cublasStatus_t cublas##NAME##gemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,   \
                                                  const float *alpha, const void *a, int lda, long long stride_a, \
                                                  const void *x, int incx, long long stride_x, const float *beta, \
                                                  void *y, int incy, long long stride_y, int batch);
HALF_GEMV(HSH)
HALF_GEMV(HSS)
HALF_GEMV(TST)
HALF_GEMV(TSS)

/* y = op(M) x; M as stored. */
typedef struct gemv {
  cublasOperation_t op;
  int rows, cols, ld, incx, incy;
  int64_t stride_m, stride_x;
  const void *m, *x;
} gemv;

static bool is_column(const attune_gemm_problem *g) {
  return g->n == 1 && g->trans_b != ATTUNE_C;
}

static bool is_row(const attune_gemm_problem *g) {
  return g->m == 1 && g->trans_a != ATTUNE_C && g->trans_b != ATTUNE_C;
}

bool bench_gemv_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                        const bench_set *example) {
  const attune_gemm_problem *g = &problem->gemm;
  const int64_t most = INT32_MAX;
  (void)platform, (void)way, (void)example;
  return !g->pointers && (is_column(g) || is_row(g)) && g->m <= most && g->n <= most && g->k <= most &&
         g->batch <= most && g->lda <= most && g->ldb <= most && g->ldd <= most;
}

static gemv gemv_of(const attune_gemm_problem *g, const bench_set *set) {
  if (is_column(g))
    return (gemv){.op = bench_cublas_operation(g->trans_a),
                  .rows = (int)(g->trans_a ? g->k : g->m),
                  .cols = (int)(g->trans_a ? g->m : g->k),
                  .ld = (int)g->lda,
                  .incx = g->trans_b ? (int)g->ldb : 1,
                  .incy = 1,
                  .stride_m = g->stride_a,
                  .stride_x = g->stride_b,
                  .m = set->a,
                  .x = set->b};
  return (gemv){.op = g->trans_b ? CUBLAS_OP_N : CUBLAS_OP_T,
                .rows = (int)(g->trans_b ? g->n : g->k),
                .cols = (int)(g->trans_b ? g->k : g->n),
                .ld = (int)g->ldb,
                .incx = g->trans_a ? 1 : (int)g->lda,
                .incy = (int)g->ldd,
                .stride_m = g->stride_b,
                .stride_x = g->stride_a,
                .m = set->b,
                .x = set->a};
}

#define STRIDED(NAME)                                                                                                 \
  cublas##NAME##gemvStridedBatched(handle, v.op, v.rows, v.cols, one, v.m, v.ld, v.stride_m, v.x, v.incx, v.stride_x, \
                                   zero, set->d, v.incy, g->stride_d, (int)g->batch)
#define ANY(NAME)               \
  (g->batch > 1 ? STRIDED(NAME) \
                : cublas##NAME##gemv(handle, v.op, v.rows, v.cols, one, v.m, v.ld, v.x, v.incx, zero, set->d, v.incy))

cublasStatus_t bench_gemv(cublasHandle_t handle, const attune_gemm_problem *g, const bench_set *set) {
  const gemv v = gemv_of(g, set);
  const void *one = bench_cublas_one(g), *zero = bench_cublas_zero(g);
  const bool half_out = g->dtype_out == g->dtype;
  switch (g->dtype) {
  case ATTUNE_F64: return ANY(D);
  case ATTUNE_C64: return ANY(C);
  case ATTUNE_C128: return ANY(Z);
  case ATTUNE_F16: return half_out ? STRIDED(HSH) : STRIDED(HSS);
  case ATTUNE_BF16: return half_out ? STRIDED(TST) : STRIDED(TSS);
  default: return ANY(S);
  }
}
