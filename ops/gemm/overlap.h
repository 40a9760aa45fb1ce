/* SPDX-License-Identifier: Apache-2.0
 * overlap.h: does D lie in what a product reads? A look at two addresses, for builds with assertions: a program's own duty
 * otherwise. */
#ifndef AT_GEMM_OVERLAP_H
#define AT_GEMM_OVERLAP_H

#include "ops/gemm/problem.h"

/* False where D, A, B or a C apart from D starts inside an element of the other. Matrices that lie in each other's gaps are
 * apart; some overlaps that start in a gap are not noticed. */
bool at_gemm_apart(const at_gemm *g, const at_gemm_operands *operands);

#endif
