/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublas.c: the vendor's default on CUDA, cublasGemmEx and its strided batched form: takes every problem. Its
 * 64-bit interface is used throughout: the same kernels for small sizes, and no limit on large ones. */
#include <stddef.h>
#include <stdlib.h>

#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/blas/blas.h"
#include "src/process/vendor.h"

#define VERSION 1

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)device;
  return at_cublas_open() == ATTUNE_OK && at_gemm_plain_product(at_gemm_of(problem)) &&
         at_gemm_aligned(at_gemm_of(problem));
}

/* The call as far as the problem settles it: one line of the cache, and half of one for a batch. */
typedef struct call {
  int64_t m, n, k, lda, ldb, ldd;
  uint8_t ta, tb, type, type_out, compute;
  bool f64, complex; /* of parts in f64; of two parts */
  bool separate;     /* C has memory of its own */
  cublasMath_t math;
  int64_t stride_a, stride_b, stride_d, batch;
} call;
_Static_assert(offsetof(call, stride_a) == 64, "one product is one line");
_Static_assert((int)CUDA_R_16BF <= UINT8_MAX && (int)CUBLAS_COMPUTE_32F_FAST_TF32 <= UINT8_MAX, "they fit");

static call call_of(const at_gemm *g) {
  return (call){.m = g->m,
                .n = g->n,
                .k = g->k,
                .lda = g->lda,
                .ldb = g->ldb,
                .ldd = g->ldd,
                .ta = (uint8_t)at_gemm_operation(g->trans_a),
                .tb = (uint8_t)at_gemm_operation(g->trans_b),
                .type = (uint8_t)at_gemm_cuda_type(g->dtype),
                .type_out = (uint8_t)at_gemm_cuda_type(g->dtype_out),
                .compute = (uint8_t)at_gemm_compute_type(g),
                .f64 = at_gemm_part(g->dtype) == ATTUNE_F64,
                .complex = at_gemm_complex(g->dtype),
                .separate = g->c == AT_C_SEPARATE,
                .math = g->accuracy == ATTUNE_REDUCED ? CUBLAS_DEFAULT_MATH : AT_CUDA_STRICT_MATH,
                .stride_a = g->stride_a,
                .stride_b = g->stride_b,
                .stride_d = g->stride_d,
                .batch = g->batch};
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

/* `complex` is a constant: launch has it as false. */
AT_INLINE cublasStatus_t multiply(cublasHandle_t handle, const call *c, const at_gemm_operands *p, bool complex) {
  at_gemm_scalar alpha, beta;
  if (c->f64) {
    alpha.c128[0] = p->alpha;
    beta.c128[0] = p->beta;
    if (complex) alpha.c128[1] = p->alpha_imag, beta.c128[1] = p->beta_imag;
  } else {
    alpha.c64[0] = (float)p->alpha;
    beta.c64[0] = (float)p->beta;
    if (complex) alpha.c64[1] = (float)p->alpha_imag, beta.c64[1] = (float)p->beta_imag;
  }
  const cudaDataType_t type = (cudaDataType_t)c->type, out = (cudaDataType_t)c->type_out;
  const cublasOperation_t ta = (cublasOperation_t)c->ta, tb = (cublasOperation_t)c->tb;
  const cublasComputeType_t compute = (cublasComputeType_t)c->compute;
  if (AT_LIKELY(c->batch == 1))
    return at_cublas.cublasGemmEx_64(handle, ta, tb, c->m, c->n, c->k, &alpha, p->a, type, c->lda, p->b, type, c->ldb,
                                     &beta, p->d, out, c->ldd, compute, CUBLAS_GEMM_DEFAULT);
  return at_cublas.cublasGemmStridedBatchedEx_64(handle, ta, tb, c->m, c->n, c->k, &alpha, p->a, type, c->lda,
                                                 c->stride_a, p->b, type, c->ldb, c->stride_b, &beta, p->d, out, c->ldd,
                                                 c->stride_d, c->batch, compute, CUBLAS_GEMM_DEFAULT);
}

static attune_status check(const at_plan *plan, cublasStatus_t status) {
  const call *c = plan->state;
  return at_cublas_check(plan->device, status, c->batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx");
}

/* With all that may be needed around it. cuBLAS adds to D in place: a C of its own is copied there first, unless beta =
 * 0, when it must not be read. */
static __attribute__((noinline)) attune_status launch_in_scope(const at_plan *plan, const at_gemm_operands *p,
                                                               attune_stream *stream) {
  const call *c = plan->state;
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  cublasHandle_t handle = NULL;
  if (c->separate && (p->beta != 0.0 || (c->complex && p->beta_imag != 0.0))) {
    at_gemm_operands copy = *p;
    copy.beta = 1.0, copy.beta_imag = 0.0;
    status = at_gemm_scale_cuda(stream, at_gemm_of(plan->problem), &copy);
  }
  if (status == ATTUNE_OK) status = at_cuda_blas_mode(stream, c->math, plan->workspace_bytes, &handle);
  if (status == ATTUNE_OK)
    status = check(plan, c->complex ? multiply(handle, c, p, true) : multiply(handle, c, p, false));
  at_cuda_leave(&scope);
  return status;
}

AT_INLINE attune_status launch_some(const at_plan *plan, const void *operands, attune_stream *stream, bool complex) {
  const call *c = plan->state;
  const at_gemm_operands *p = operands;
  const cublasHandle_t handle =
      AT_LIKELY(!c->separate) ? at_cuda_blas_at_once(stream, c->math, plan->workspace_bytes) : NULL;
  if (AT_UNLIKELY(!handle)) return launch_in_scope(plan, p, stream);
  const cublasStatus_t status = multiply(handle, c, p, complex);
  at_vendor_leave();
  return AT_LIKELY(status == CUBLAS_STATUS_SUCCESS) ? ATTUNE_OK : check(plan, status);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  return launch_some(plan, operands, stream, false);
}

static attune_status launch_complex(const at_plan *plan, const void *operands, attune_stream *stream) {
  return launch_some(plan, operands, stream, true);
}

attune_status at_gemm_cublas_prepare(at_plan *plan) {
  const uint64_t cap = at_gemm_of(plan->problem)->workspace_cap;
  plan->workspace_bytes = cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)cap : ATTUNE_WORKSPACE_DEFAULT;
  return at_configuration_check_none(plan);
}

static attune_status prepare(at_plan *plan) {
  AT_TRY(at_gemm_cublas_prepare(plan));
  call *c = aligned_alloc(64, (sizeof *c + 63) / 64 * 64);
  if (!c) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of cublas");
  *c = call_of(at_gemm_of(plan->problem));
  plan->state = c;
  if (c->complex) plan->launch = launch_complex;
  return ATTUNE_OK;
}

bool at_gemm_cublas_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                            char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublas-%s", at_cublas_version());
}

const at_implementation at_gemm_cublas = {
    .name = "cublas",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = at_gemm_cublas_depends,
};
