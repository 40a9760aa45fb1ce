/* SPDX-License-Identifier: Apache-2.0
 * scaled.h: what other folders need of the products of 8-bit elements. */
#ifndef AT_GEMM_SCALED_H
#define AT_GEMM_SCALED_H

#include "ops/gemm/problem/scaling.h"

/* D = scale_d beta C and its amax, in the stream's order: for k = 0 or alpha = 0. */
attune_status at_scaled_without_product(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o);

/* One problem by plain loops in f64, on the host, now. */
void at_scaled_plain(const at_gemm *g, const at_gemm_operands *o);

#ifdef AT_WITH_CUDA
/* scaled_cuda.c: at_scaled_without_product on a GPU. */
attune_status at_scaled_without_product_cuda(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o);
#endif

#endif
