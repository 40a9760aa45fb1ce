/* SPDX-License-Identifier: Apache-2.0
 * reference_gaps.h: the bytes of D that are none of its elements. */
#ifndef AT_GEMM_REFERENCE_GAPS_H
#define AT_GEMM_REFERENCE_GAPS_H

#include "ops/gemm/problem/problem.h"

/* What lies behind column j up to the next column or matrix of the batch: its first byte, how many into *bytes. */
const unsigned char *at_reference_gap(const at_gemm *g, const unsigned char *output, int64_t b, int64_t j,
                                      size_t *bytes);

/* Hash of all bytes of D that lie between its columns and matrices. */
uint64_t at_reference_gaps(const at_gemm *g, const void *output);

#endif
