/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublas_3m.c: complex products by three real ones instead of four (Gauss), of cuBLAS. The error of an element is
 * bounded by its whole size, as strict's is, but no longer for each part by that part's own terms: a small part next to
 * a large one is less exact. So it is a candidate from `equivalent` on. */
#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/blas/blas.h"

#define VERSION 1

/* cuBLAS has no batches of c128 by this way. */
static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)device;
  const at_gemm *g = at_gemm_of(problem);
  return at_gemm_complex(g->dtype) && g->accuracy != ATTUNE_STRICT && (g->batch == 1 || g->dtype == ATTUNE_C64) &&
         at_gemm_plain_product(g) && at_gemm_aligned(g) && at_cublas_open() == ATTUNE_OK;
}

static cublasStatus_t multiply(cublasHandle_t handle, const at_gemm *g, const at_gemm_operands *p) {
  const at_gemm_scalar alpha = at_gemm_scalar_of(g, p->alpha, p->alpha_imag),
                       beta = at_gemm_scalar_of(g, p->beta, p->beta_imag);
  const cublasOperation_t ta = at_gemm_operation(g->trans_a), tb = at_gemm_operation(g->trans_b);
  if (g->dtype == ATTUNE_C128)
    return at_cublas.cublasZgemm3m_64(handle, ta, tb, g->m, g->n, g->k, (const cuDoubleComplex *)alpha.c128, p->a,
                                      g->lda, p->b, g->ldb, (const cuDoubleComplex *)beta.c128, p->d, g->ldd);
  if (g->batch == 1)
    return at_cublas.cublasCgemm3m_64(handle, ta, tb, g->m, g->n, g->k, (const cuComplex *)alpha.c64, p->a, g->lda,
                                      p->b, g->ldb, (const cuComplex *)beta.c64, p->d, g->ldd);
  return at_cublas.cublasCgemm3mStridedBatched_64(handle, ta, tb, g->m, g->n, g->k, (const cuComplex *)alpha.c64, p->a,
                                                  g->lda, g->stride_a, p->b, g->ldb, g->stride_b,
                                                  (const cuComplex *)beta.c64, p->d, g->ldd, g->stride_d, g->batch);
}

/* As cublas: adds to D in place, so that a C of its own is copied there first. */
static attune_status launch_here(const at_plan *plan, const at_gemm_operands *p, attune_stream *stream) {
  const at_gemm *g = at_gemm_of(plan->problem);
  cublasHandle_t handle = NULL;
  if (g->c == AT_C_SEPARATE && !at_gemm_beta_is_0((attune_dtype)g->dtype, p)) {
    at_gemm_operands copy = *p;
    copy.beta = 1.0, copy.beta_imag = 0.0;
    AT_TRY(at_gemm_scale_cuda(stream, g, &copy));
  }
  AT_TRY(at_cuda_blas_mode(stream, AT_CUDA_STRICT_MATH, plan->workspace_bytes, &handle));
  return at_cublas_check(plan->device, multiply(handle, g, p), "cublasCgemm3m or cublasZgemm3m");
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, plan->device));
  const attune_status status = launch_here(plan, operands, stream);
  at_cuda_leave(&scope);
  return status;
}

const at_implementation at_gemm_cublas_3m = {
    .name = "cublas_3m",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = at_gemm_cublas_prepare,
    .launch = launch,
    .depends = at_gemm_cublas_depends,
};
