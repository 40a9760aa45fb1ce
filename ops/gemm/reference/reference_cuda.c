/* SPDX-License-Identifier: Apache-2.0
 * reference_cuda.c: the trusted product on a GPU: cuBLAS's plain GEMM, f64 from f32 and f64, f32 from halves,
 * c128 from c64 and c128. */
#include <stdlib.h>

#include "ops/gemm/reference/reference.h"
#include "src/cuda/context/cuda.h"
#include "src/host/threads.h"
#include "tuning/measure/staging.h"

/* One matrix of the batch on the device, as cuBLAS takes it. */
typedef struct device_matrix {
  void *data;
  int64_t ld;
  long long stride;
} device_matrix;

static cudaDataType_t type_of(attune_dtype dtype) {
  return dtype == ATTUNE_F64    ? CUDA_R_64F
         : dtype == ATTUNE_F32  ? CUDA_R_32F
         : dtype == ATTUNE_F16  ? CUDA_R_16F
         : dtype == ATTUNE_C128 ? CUDA_C_64F
                                : CUDA_R_16BF;
}

static cublasOperation_t operation_of(uint8_t trans) {
  return trans == ATTUNE_C ? CUBLAS_OP_C : trans ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* Inputs as f64 or c128: converted on the host, packed. */
static attune_status widen(device_matrix *out, attune_stream *stream, const void *host, attune_dtype dtype,
                           int64_t rows, int64_t cols, int64_t ld, int64_t stride, int64_t batch) {
  const int64_t copies = stride ? batch : 1, parts = at_gemm_complex(dtype) ? 2 : 1;
  const size_t one = (size_t)(rows * cols * parts), bytes = one * (size_t)copies * sizeof(double);
  double *wide = at_alloc_touched(bytes);
  if (!wide) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  for (int64_t b = 0; b < copies; b++)
    at_reference_convert(wide + one * (size_t)b, host, at_gemm_part(dtype), (size_t)(stride * b * parts), rows * parts,
                         cols, ld * parts);
  *out = (device_matrix){NULL, rows, stride ? (long long)(rows * cols) : 0};
  attune_status status = attune_alloc(&out->data, stream, bytes);
  if (status == ATTUNE_OK) status = at_staging_put(stream, out->data, wide, bytes);
  free(wide);
  return status;
}

/* The device is current. */
static attune_status give_product(const at_gemm *g, attune_stream *stream, cublasHandle_t handle,
                                  const device_matrix *a, const device_matrix *b, cudaDataType_t in, void *d,
                                  cudaDataType_t out) {
  const cuDoubleComplex one = {1.0, 0.0}, zero = {0.0, 0.0}; /* their real parts, of real types */
  const float one_f = 1.0f, zero_f = 0.0f;
  const bool wide = out == CUDA_R_64F || out == CUDA_C_64F;
  return at_cublas_check(stream->device,
                         at_cublas.cublasGemmStridedBatchedEx(
                             handle, operation_of(g->trans_a), operation_of(g->trans_b), (int)g->m, (int)g->n,
                             (int)g->k, wide ? (const void *)&one : &one_f, a->data, in, (int)a->ld, a->stride, b->data,
                             in, (int)b->ld, b->stride, wide ? (const void *)&zero : &zero_f, d, out, (int)g->m,
                             (long long)(g->m * g->n), (int)g->batch, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                             CUBLAS_GEMM_DEFAULT),
                         "the reference GEMM");
}

static attune_status multiply(const at_gemm *g, attune_stream *stream, const device_matrix *a, const device_matrix *b,
                              cudaDataType_t in, void *d, cudaDataType_t out) {
  at_cuda_scope scope;
  cublasHandle_t handle;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = at_cuda_blas(stream, &handle);
  if (status == ATTUNE_OK) status = give_product(g, stream, handle, a, b, in, d, out);
  at_cuda_leave(&scope);
  return status;
}

static attune_status fetch_result(at_reference *r, attune_stream *stream, const void *d) {
  const size_t count = (size_t)(r->g.m * r->g.n) * (size_t)r->g.batch * (size_t)r->parts;
  return r->narrow ? at_staging_fetch(stream, r->narrow, d, count * sizeof *r->narrow)
                   : at_staging_fetch(stream, r->product, d, count * sizeof *r->product);
}

attune_status at_reference_expect_on_cuda(at_reference *r, attune_stream *stream,
                                          void *const pointers[AT_MAX_BUFFERS]) {
  const at_gemm *g = &r->g;
  const attune_dtype in = (attune_dtype)g->dtype;
  const bool copied = at_gemm_part(in) == ATTUNE_F32 || !at_gemm_aligned(g) || r->scaled;
  const attune_dtype wide = r->parts == 2 ? ATTUNE_C128 : ATTUNE_F64, result = r->narrow ? ATTUNE_F32 : wide;
  device_matrix a = {pointers[0], g->lda, g->stride_a}, b = {pointers[1], g->ldb, g->stride_b};
  void *d = NULL;
  attune_status status = ATTUNE_OK;
  if (g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX || g->batch > INT32_MAX || g->lda > INT32_MAX ||
      g->ldb > INT32_MAX)
    return at_fail(ATTUNE_UNSUPPORTED, "a size or leading dimension is above 2^31 and cannot be verified on a GPU, so "
                                       "the problem is not tuned; its calls run the default");
  if (copied) {
    a.data = b.data = NULL;
    status = widen(&a, stream, r->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
    if (status == ATTUNE_OK)
      status = widen(&b, stream, r->b, in, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch);
  }
  if (status == ATTUNE_OK)
    status = attune_alloc(&d, stream, (size_t)(g->m * g->n) * (size_t)g->batch * attune_dtype_size(result));
  if (status == ATTUNE_OK) status = multiply(g, stream, &a, &b, type_of(copied ? wide : in), d, type_of(result));
  if (status == ATTUNE_OK) status = fetch_result(r, stream, d);
  attune_free(d, stream);
  if (copied) {
    attune_free(a.data, stream);
    attune_free(b.data, stream);
  }
  return status;
}
