/* SPDX-License-Identifier: Apache-2.0
 * blocked_complex.h: complex products in the terms of real kernels (at_join). */
#ifndef AT_GEMM_BLOCKED_COMPLEX_H
#define AT_GEMM_BLOCKED_COMPLEX_H

#include "ops/gemm/host/blocked.h"
#include "ops/gemm/problem/problem.h"

/* The problem with rows of op(A), C and D, and all steps, in real numbers, twice as many where they are complex.
 * Columns, k and the type are the problem's. */
at_gemm at_complex_form(const at_gemm *g);

/* How the kernels join the sums of the problem. */
at_join at_join_of(const at_gemm *g);

/* The function that copies whole elements of `dtype`, complex ones too, as at_pack says; depth_step is 1. Not for
 * halves. */
at_pack_fn at_packer_of(const at_blocked_isa *isa, unsigned dtype);

/* Rows [i, i + m) and columns [j, j + n) of matrices of the batch. */
typedef struct at_complex_area {
  int64_t batch, batches, i, m, j, n;
} at_complex_area;

/* blocked_stream_complex.c: one pass over the wide matrix of a thin product. False: no scratch memory. */
bool at_complex_stream(const at_gemm *g, const at_gemm_operands *o, const at_blocked_ops *ops,
                       const at_complex_area *area);

#endif
