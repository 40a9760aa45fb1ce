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

/* A part of A or B of one matrix of the batch: `lines` by `depth` of its real form, both even (lines of B: columns, any
 * number). Line l and depth k of the complex matrix lie at from[l * line_step + k * depth_step]. */
typedef struct at_complex_pack {
  attune_dtype part; /* f32 or f64 */
  void *to;
  const void *from;
  int64_t lines, depth, line_step, depth_step, panel;
  int round;
  bool conjugate;
  double alpha, alpha_imag; /* A is multiplied by it */
} at_complex_pack;

void at_complex_pack_a(const at_complex_pack *p);
void at_complex_pack_b(const at_complex_pack *p);

/* D = beta C of rows and columns of complex elements; C may be D. */
void at_complex_scale(attune_dtype part, double beta, double beta_imag, const void *c, int64_t ldc, void *d,
                      int64_t ldd, int64_t rows, int64_t columns);

#endif
