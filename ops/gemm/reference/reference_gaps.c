/* SPDX-License-Identifier: Apache-2.0
 * reference_gaps.c: the bytes of D that are none of its elements. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/gemm/reference/reference_gaps.h"

const unsigned char *at_reference_gap(const at_gemm *g, const unsigned char *output, int64_t b, int64_t j,
                                      size_t *bytes) {
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  const int64_t end = g->stride_d * b + g->ldd * j + g->m;
  const int64_t next = j + 1 < g->n       ? g->stride_d * b + g->ldd * (j + 1)
                       : b + 1 < g->batch ? g->stride_d * (b + 1)
                                          : end;
  *bytes = (size_t)(next - end) * element;
  return output + (size_t)end * element;
}

uint64_t at_reference_gaps(const at_gemm *g, const void *output) {
  uint64_t hash = 0;
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < g->n; j++) {
      size_t bytes = 0;
      const unsigned char *gap = at_reference_gap(g, output, b, j, &bytes);
      if (bytes) hash = XXH3_64bits_withSeed(gap, bytes, hash);
    }
  return hash;
}
