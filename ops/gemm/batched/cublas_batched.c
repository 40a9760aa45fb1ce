/* SPDX-License-Identifier: Apache-2.0
 * cublas_batched.c: the vendor's product of matrices that arrays of pointers name, cublasGemmBatchedEx, the default on
 * CUDA. It adds to D in place: a C of its own is copied there first. */
#include "ops/gemm/batched/batched.h"
#include "ops/gemm/batched/copy_arrays.h"
#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/blas/blas.h"

/* For tensor cores cuBLAS 13.1 takes matrices for as well aligned as their leading dimensions are, for it cannot see
 * their addresses (seen on an H200: f16, lda 50, an odd address of halves; f32 by TF32, lda 80, an odd address of f32:
 * misaligned address). */
static bool is_aligned_as(const at_gemm *g, int64_t ld, uint8_t dtype) {
  const uint64_t bytes = (uint64_t)ld * attune_dtype_size((attune_dtype)dtype) | 16u;
  return g->alignment >= (bytes & (~bytes + 1));
}

static bool is_aligned_for_tensor_cores(const at_gemm *g) {
  const bool fast = attune_dtype_size((attune_dtype)g->dtype) == 2 || g->accuracy == ATTUNE_REDUCED;
  return !fast || (is_aligned_as(g, g->lda, g->dtype) && is_aligned_as(g, g->ldb, g->dtype) &&
                   is_aligned_as(g, g->ldd, g->dtype_out));
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  (void)self, (void)device;
  return g->pointers == ATTUNE_POINTERS_DEVICE && !at_gemm_8bit(g->dtype) && at_gemm_aligned(g) &&
         is_aligned_for_tensor_cores(g) && at_cublas_open() == ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  AT_TRY(at_gemm_cublas_prepare(plan));
  if (at_gemm_of(plan->problem)->c != AT_C_SEPARATE) return ATTUNE_OK;
  at_jit_kernel *kernel = NULL;
  const attune_status status = at_jit_get(&kernel, plan->device, &at_copy_arrays_source);
  plan->state = kernel;
  return status;
}

static void destroy(at_plan *plan) {
  at_jit_release(plan->state);
  plan->state = NULL;
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

/* Where C is to be read and is not D. */
static bool has_c(const at_gemm *g, const at_gemm_operands *o) {
  return g->c == AT_C_SEPARATE && !at_gemm_beta_is_0((attune_dtype)g->dtype, o);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_gemm *g = at_gemm_of(plan->problem);
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, plan->device));
  attune_status status = has_c(g, operands) ? at_copy_arrays(plan->state, g, operands, stream) : ATTUNE_OK;
  if (status == ATTUNE_OK) status = multiply(stream, g, operands, g->k, plan->workspace_bytes);
  at_cuda_leave(&scope);
  return status;
}

static attune_status copy_c(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o) {
  at_jit_kernel *kernel = NULL;
  AT_TRY(at_jit_get(&kernel, stream->device, &at_copy_arrays_source));
  const attune_status status = at_copy_arrays(kernel, g, o, stream);
  at_jit_release(kernel);
  return status;
}

/* Neither A nor B is read where k is 0; D's array stands for theirs. */
attune_status at_gemm_cublas_scale_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
  at_gemm_operands only = *run;
  at_gemm none = *g;
  at_cuda_scope scope;
  if (g->pointers == ATTUNE_POINTERS_HOST) AT_TRY(at_gemm_upload(stream, g, 0, &only));
  only.a = only.b = only.d;
  none.lda = at_gemm_rows_a(g) > 1 ? at_gemm_rows_a(g) : 1;
  none.ldb = at_gemm_rows_b(g) > 1 ? at_gemm_rows_b(g) : 1;
  AT_TRY(at_cublas_open());
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = has_c(g, run) ? copy_c(stream, g, &only) : ATTUNE_OK;
  if (status == ATTUNE_OK) status = multiply(stream, &none, &only, 0, 0);
  at_cuda_leave(&scope);
  return status;
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  (void)self, (void)configuration;
  if (made) *made = false;
  return at_gemm_of(problem)->c == AT_C_SEPARATE ? at_jit_compile(device, &at_copy_arrays_source, made) : ATTUNE_OK;
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublas-%s ", at_cublas_version()) && at_jit_depends(out + at, size - at);
}

const at_implementation at_gemm_cublas_batched = {
    .name = "cublas_batched",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
