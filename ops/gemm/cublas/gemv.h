/* SPDX-License-Identifier: Apache-2.0
 * gemv.h: a product with one row or one column as a matrix-vector product in the words of BLAS. */
#ifndef AT_GEMM_GEMV_H
#define AT_GEMM_GEMV_H

#include "ops/gemm/cublas/cuda_types.h"

/* y = alpha op(M) x + beta y. M is A and x lies in B where D is a column; where D is a row it is made transposed,
 * D^T = op(B)^T op(A)^T, and M is B. Sizes are M's as stored; strides are from one matrix or vector to the next. */
typedef struct at_gemv {
  int64_t rows, cols, ld, inc_x, inc_y;
  int64_t stride_m, stride_x, stride_y;
  cublasOperation_t op;
  bool swapped; /* M is B, and x lies in A */
} at_gemv;

/* False: it is none, or it needs a conjugated x or conj(M) alone, which no call has. */
bool at_gemv_of(at_gemv *out, const at_gemm *g);

#endif
