/* SPDX-License-Identifier: Apache-2.0
 * cublas_batched.c: the vendor's product of matrices that arrays of pointers name, cublasGemmBatchedEx, the default on
 * CUDA. It adds to D in place. */
#include <stdlib.h>

#include "ops/gemm/batched/batched.h"
#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/blas/blas.h"

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  (void)self, (void)device;
  return g->pointers == ATTUNE_POINTERS_DEVICE && g->c != AT_C_SEPARATE && !at_gemm_8bit(g->dtype) &&
         at_gemm_aligned(g) && at_cublas_open() == ATTUNE_OK;
}

/* `k` 0: D = beta D. The device is current. */
static attune_status multiply(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o, int64_t k,
                              size_t workspace) {
  const cudaDataType_t in = at_gemm_cuda_type(g->dtype), out = at_gemm_cuda_type(g->dtype_out);
  const at_gemm_scalar alpha = at_gemm_scalar_of(g, o->alpha, o->alpha_imag),
                       beta = g->c == AT_C_NONE ? at_gemm_scalar_of(g, 0.0, 0.0)
                                                : at_gemm_scalar_of(g, o->beta, o->beta_imag);
  const cublasMath_t math = g->accuracy == ATTUNE_REDUCED ? CUBLAS_DEFAULT_MATH : AT_CUDA_STRICT_MATH;
  const void *const *a = o->a, *const *b = o->b;
  void *const *d = o->d;
  cublasHandle_t handle = NULL;
  AT_TRY(at_cuda_blas_mode(stream, math, workspace, &handle));
  const cublasStatus_t status = at_cublas.cublasGemmBatchedEx_64(
      handle, at_gemm_operation(g->trans_a), at_gemm_operation(g->trans_b), g->m, g->n, k, &alpha, a, in, g->lda, b, in,
      g->ldb, &beta, d, out, g->ldd, g->batch, at_gemm_compute_type(g), CUBLAS_GEMM_DEFAULT);
  return at_cublas_check(stream->device, status, "cublasGemmBatchedEx");
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_gemm *g = at_gemm_of(plan->problem);
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, plan->device));
  const attune_status status = multiply(stream, g, operands, g->k, plan->workspace_bytes);
  at_cuda_leave(&scope);
  return status;
}

/* Neither A nor B is read where k is 0; D's array stands for theirs. */
attune_status at_gemm_cublas_scale_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
  at_gemm_operands only = *run;
  at_gemm none = *g;
  at_cuda_scope scope;
  only.a = only.b = run->d;
  none.lda = at_gemm_rows_a(g) > 1 ? at_gemm_rows_a(g) : 1;
  none.ldb = at_gemm_rows_b(g) > 1 ? at_gemm_rows_b(g) : 1;
  AT_TRY(at_cublas_open());
  AT_TRY(at_cuda_enter(&scope, stream->device));
  const attune_status status = multiply(stream, &none, &only, 0, 0);
  at_cuda_leave(&scope);
  return status;
}

const at_implementation at_gemm_cublas_batched = {
    .name = "cublas_batched",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = at_gemm_cublas_prepare,
    .launch = launch,
    .depends = at_gemm_cublas_depends,
};
