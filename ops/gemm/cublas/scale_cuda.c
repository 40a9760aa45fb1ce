/* SPDX-License-Identifier: Apache-2.0
 * scale_cuda.c: D = beta C on CUDA, for k = 0 or alpha = 0; with beta = 1 the copy of C to D that cuBLAS needs. Gaps
 * between columns and matrices are left alone. */
#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/context/cuda.h"

/* The matrices of one operand of the batch, in bytes. */
typedef struct area {
  char *start;
  size_t column, gap; /* of a column, and from one to the next */
  size_t columns, matrices;
  size_t stride; /* from one matrix to the next; 0: the same one */
} area;

static area area_of(const at_gemm *g, const void *start, int64_t ld, int64_t stride) {
  size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  area a = {.start = (char *)(uintptr_t)start, .column = (size_t)g->m * element, .gap = (size_t)ld * element};
  a.columns = (size_t)g->n;
  a.matrices = (size_t)g->batch;
  a.stride = g->batch > 1 ? (size_t)stride * element : a.gap * a.columns;
  return a;
}

/* All matrices as one pitched block: columns without gaps, or matrices a whole number of columns apart. */
static bool is_block(const area *a) {
  return a->stride != 0 && a->gap != 0 && a->stride % a->gap == 0 && a->stride / a->gap >= a->columns;
}

static bool is_contiguous(const area *a) {
  return a->gap == a->column && a->stride == a->gap * a->columns;
}

static struct cudaPitchedPtr pitched(const area *a) {
  return (struct cudaPitchedPtr){.ptr = a->start, .pitch = a->gap, .xsize = a->column, .ysize = a->stride / a->gap};
}

static attune_status zero(attune_stream *stream, const area *d) {
  cudaStream_t native = (cudaStream_t)stream->native;
  attune_device *device = stream->device;
  if (is_contiguous(d))
    return at_cuda_check(device, cudaMemsetAsync(d->start, 0, d->column * d->columns * d->matrices, native),
                         "cudaMemsetAsync");
  if (is_block(d)) {
    struct cudaExtent extent = {.width = d->column, .height = d->columns, .depth = d->matrices};
    return at_cuda_check(device, cudaMemset3DAsync(pitched(d), 0, extent, native), "cudaMemset3DAsync");
  }
  for (size_t i = 0; i < d->matrices; i++) {
    cudaError_t error = cudaMemset2DAsync(d->start + i * d->stride, d->gap, 0, d->column, d->columns, native);
    if (error != cudaSuccess) return at_cuda_check(device, error, "cudaMemset2DAsync");
  }
  return ATTUNE_OK;
}

static attune_status copy(attune_stream *stream, const area *d, const area *c) {
  cudaStream_t native = (cudaStream_t)stream->native;
  attune_device *device = stream->device;
  if (is_contiguous(d) && is_contiguous(c)) {
    size_t bytes = d->column * d->columns * d->matrices;
    return at_cuda_check(device, cudaMemcpyAsync(d->start, c->start, bytes, cudaMemcpyDeviceToDevice, native),
                         "cudaMemcpyAsync");
  }
  if (is_block(d) && is_block(c)) {
    struct cudaMemcpy3DParms block = {.srcPtr = pitched(c), .dstPtr = pitched(d), .kind = cudaMemcpyDeviceToDevice};
    block.extent = (struct cudaExtent){.width = d->column, .height = d->columns, .depth = d->matrices};
    return at_cuda_check(device, cudaMemcpy3DAsync(&block, native), "cudaMemcpy3DAsync");
  }
  for (size_t i = 0; i < d->matrices; i++) {
    cudaError_t error = cudaMemcpy2DAsync(d->start + i * d->stride, d->gap, c->start + i * c->stride, c->gap, d->column,
                                          d->columns, cudaMemcpyDeviceToDevice, native);
    if (error != cudaSuccess) return at_cuda_check(device, error, "cudaMemcpy2DAsync");
  }
  return ATTUNE_OK;
}

/* The imaginary part of beta, which real problems do not have. */
static double imaginary(const at_gemm *g, const at_gemm_operands *p) {
  return at_gemm_complex(g->dtype) ? at_gemm_scalar_in((attune_dtype)g->dtype, p->beta_imag) : 0.0;
}

/* The real problem whose elements are the parts of the complex one's: what a real beta multiplies, so that a part that
 * is not finite leaves the other one alone. */
static at_gemm by_parts(const at_gemm *g) {
  at_gemm real = *g;
  real.dtype = real.dtype_out = (uint8_t)at_gemm_part(g->dtype);
  real.m *= 2, real.ldd *= 2, real.stride_d *= 2;
  return real;
}

/* D = beta D by a GEMM whose sums are empty. */
static attune_status scale(attune_stream *stream, const at_gemm *problem, const at_gemm_operands *p) {
  const bool parts = at_gemm_complex(problem->dtype) && imaginary(problem, p) == 0.0;
  const at_gemm real = by_parts(problem), *g = parts ? &real : problem;
  const at_gemm_scalar alpha = at_gemm_scalar_of(g, 0.0, 0.0), beta = at_gemm_scalar_of(g, p->beta, p->beta_imag);
  const cudaDataType_t in = at_gemm_cuda_type(g->dtype), out = at_gemm_cuda_type(g->dtype_out);
  cublasHandle_t handle = NULL;
  AT_TRY(at_cuda_blas(stream, &handle));
  const cublasComputeType_t compute = at_gemm_part(g->dtype) == ATTUNE_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
  cublasStatus_t result = at_cublas.cublasGemmStridedBatchedEx_64(
      handle, CUBLAS_OP_N, CUBLAS_OP_T, g->m, g->n, 0, &alpha, p->d, in, g->m, 0, p->d, in, g->n, 0, &beta, p->d, out,
      g->ldd, g->stride_d, g->batch, compute, CUBLAS_GEMM_DEFAULT);
  return at_cublas_check(stream->device, result, "cublasGemmStridedBatchedEx");
}

attune_status at_gemm_scale_cuda(attune_stream *stream, const at_gemm *g, const at_gemm_operands *p) {
  const bool separate = g->c == AT_C_SEPARATE, one = p->beta == 1.0 && imaginary(g, p) == 0.0;
  if (one && !separate) return ATTUNE_OK;
  area d = area_of(g, p->d, g->ldd, g->stride_d);
  area c = separate ? area_of(g, p->c, g->ldc, g->stride_c) : d;
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (at_gemm_beta_is_0((attune_dtype)g->dtype, p)) {
    status = zero(stream, &d);
  } else {
    if (separate) status = copy(stream, &d, &c);
    if (status == ATTUNE_OK && !one) status = scale(stream, g, p);
  }
  at_cuda_leave(&scope);
  return status;
}
