/* SPDX-License-Identifier: Apache-2.0
 * host_reference.h: the plain loops, for callers that must not fail. */
#ifndef AT_GEMM_HOST_REFERENCE_H
#define AT_GEMM_HOST_REFERENCE_H

#include "ops/gemm/problem/problem.h"

/* Rows [i, i + m) and columns [j, j + n) of D of matrix `batch`, by plain loops in f64, rounded once. No memory. */
void at_gemm_plain(const at_gemm *g, const at_gemm_operands *operands, int64_t batch, int64_t i, int64_t m, int64_t j,
                   int64_t n);

#endif
