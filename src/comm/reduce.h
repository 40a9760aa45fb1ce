/* SPDX-License-Identifier: Apache-2.0
 * reduce.h: attune's own reductions: the sum, product, smallest, largest or mean of several arrays, into one. */
#ifndef AT_COMM_REDUCE_H
#define AT_COMM_REDUCE_H

#include <attune/collectives.h>

#include "src/base/backend.h"

#define AT_REDUCE_INPUTS 64

/* out[i] = in[0][i] + in[1][i] + ..., from left to right, or what the reduction has for +; `out` may be one of them.
 * f16 and bf16 are reduced in f32 and rounded once; integers wrap. Of reduce.cu too. */
typedef struct at_reduce_call {
  void *out;
  unsigned long long count;
  int inputs;
  short dtype, reduction;
  const void *in[AT_REDUCE_INPUTS];
} at_reduce_call;

#define AT_REDUCTIONS 5
#define AT_REDUCE_TYPES 12 /* F64 to U64 */

/* The type whose arithmetic reduces elements of `dtype`: one of the first AT_REDUCE_TYPES; 0: there is no such
 * reduction. Sums and products of signed integers have the bits of unsigned ones; complex numbers are pairs. */
attune_dtype at_reduce_as(attune_reduction reduction, attune_dtype dtype);

static inline size_t at_reduce_parts(attune_dtype dtype) {
  return dtype == ATTUNE_C64 || dtype == ATTUNE_C128 ? 2 : 1;
}

/* The backends' slots. */
attune_status at_reduce_host(attune_stream *stream, const at_reduce_call *call);
attune_status at_reduce_cuda(attune_stream *stream, const at_reduce_call *call);

#endif
