/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublas.c: the vendor's default on CUDA, cublasGemmEx and its strided batched form: takes every problem. Its
 * 64-bit interface is used throughout: the same kernels for small sizes, and no limit on large ones. */
#include "ops/gemm/cuda_types.h"
#include "src/cuda/blas.h"
#include "tuning/registry.h"

#define VERSION 1

static bool supports(const void *problem, attune_device *device) {
  (void)device;
  uint8_t dtype = at_gemm_of(problem)->dtype;
  if (at_cublas_open() != ATTUNE_OK) return false;
  return dtype == ATTUNE_F64 || dtype == ATTUNE_F32 || dtype == ATTUNE_F16 || dtype == ATTUNE_BF16;
}

static int configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
  if (max < 1) return 0;
  out[0].text[0] = '\0';
  return 1;
}

static attune_status prepare(at_plan *plan) {
  if (plan->configuration.text[0] != '\0')
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; cublas has none", plan->configuration.text);
  uint64_t cap = at_gemm_of(plan->problem)->workspace_cap;
  plan->workspace_bytes = cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)cap : ATTUNE_WORKSPACE_DEFAULT;
  return ATTUNE_OK;
}

static cublasStatus_t multiply(cublasHandle_t handle, const at_gemm *g, const at_gemm_operands *p) {
  at_gemm_scalar alpha = at_gemm_scalar_of(g, p->alpha), beta = at_gemm_scalar_of(g, p->beta);
  cudaDataType_t type = at_gemm_cuda_type(g->dtype), out = at_gemm_cuda_type(g->dtype_out);
  cublasOperation_t ta = at_gemm_operation(g->trans_a), tb = at_gemm_operation(g->trans_b);
  cublasComputeType_t compute = at_gemm_compute_type(g);
  if (g->batch == 1)
    return at_cublas.cublasGemmEx_64(handle, ta, tb, g->m, g->n, g->k, &alpha, p->a, type, g->lda, p->b, type, g->ldb,
                                     &beta, p->d, out, g->ldd, compute, CUBLAS_GEMM_DEFAULT);
  return at_cublas.cublasGemmStridedBatchedEx_64(handle, ta, tb, g->m, g->n, g->k, &alpha, p->a, type, g->lda,
                                                 g->stride_a, p->b, type, g->ldb, g->stride_b, &beta, p->d, out, g->ldd,
                                                 g->stride_d, g->batch, compute, CUBLAS_GEMM_DEFAULT);
}

/* cuBLAS adds to D in place: a C of its own is copied there first, unless beta = 0, when it must not be read. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_gemm *g = at_gemm_of(plan->problem);
  const at_gemm_operands *p = operands;
  cublasMath_t math = g->accuracy == ATTUNE_REDUCED ? CUBLAS_DEFAULT_MATH : AT_CUDA_STRICT_MATH;
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (g->c == AT_C_SEPARATE && p->beta != 0.0) {
    at_gemm_operands copy = *p;
    copy.beta = 1.0;
    status = at_gemm_scale_cuda(stream, g, &copy);
  }
  cublasHandle_t handle = NULL;
  if (status == ATTUNE_OK) status = at_cuda_blas_mode(stream, math, plan->workspace_bytes, &handle);
  if (status == ATTUNE_OK)
    status = at_cublas_check(plan->device, multiply(handle, g, p),
                             g->batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx");
  at_cuda_leave(&scope);
  return status;
}

static bool depends(const at_configuration *configuration, attune_device *device, char *out, size_t size) {
  (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublas-%s", at_cublas_version());
}

const at_implementation at_gemm_cublas = {
    .name = "cublas",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch,
    .depends = depends,
};
