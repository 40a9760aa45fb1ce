/* SPDX-License-Identifier: Apache-2.0
 * blocked_complex.h: complex products by the real kernels of host_blocked. An element of A becomes a block of two rows
 * and two columns,
 *
 *     re -im
 *     im  re
 *
 * one of B two rows, re and im, and D is as it lies: twice the rows and twice the depth, with as many multiplications
 * as the complex product has. Only copies of A and B are made so, in the panels of at_pack. */
#ifndef AT_GEMM_BLOCKED_COMPLEX_H
#define AT_GEMM_BLOCKED_COMPLEX_H

#include "ops/gemm/problem/problem.h"

/* The problem in real form: C and D are twice as high, real scalars are those of each part. *fold: alpha has an
 * imaginary part and is multiplied into A; *scale: beta has one, and D becomes beta C first, to which the product is
 * added. */
void at_complex_real_form(const at_gemm *g, const at_gemm_operands *o, at_gemm *real, at_gemm_operands *real_operands,
                          bool *fold, bool *scale);

/* A part of A or B of matrix `batch`: `lines` lines from `line` on, `depth` steps from `k` on, of the real form: all
 * but the columns of B are even. Panels as at_pack's. */
typedef struct at_complex_pack {
  const at_gemm *g;
  const at_gemm_operands *o;
  bool of_a, fold;
  void *to;
  int64_t batch, line, lines, k, depth, panel;
  int round;
} at_complex_pack;

void at_complex_pack_lines(const at_complex_pack *pack);

/* D = beta C for rows [i, i + m) and columns [j, j + n) of matrix `batch`; C may be D. */
void at_complex_scale(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i, int64_t m, int64_t j,
                      int64_t n);

#endif
