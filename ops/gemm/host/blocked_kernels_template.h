/* SPDX-License-Identifier: Apache-2.0
 * blocked_kernels_template.h: one set of kernels for the accumulation type that the includer defines:
 *   E          the element type, float or double
 *   P(name)    the vector word for E: vf_##name or vd_##name
 *   FN(name)   a name for this set's functions
 *   LANES, VECTORS, COLUMNS, BLOCK   elements of a vector, the largest tile, lines of a transposed block
 *   HALVES     1 when f16 and bf16 are converted to E
 * No include guard: it is included once for each type. */

/* One element or vector of any input type, converted to E. */
SIMD P(vector) FN(load)(const void *p, int64_t at, const attune_dtype dtype) {
#if HALVES
  if (dtype == ATTUNE_F16) return P(load_f16)((const uint16_t *)p + at);
  if (dtype == ATTUNE_BF16) return P(load_bf16)((const uint16_t *)p + at);
#endif
  (void)dtype;
  return P(load)((const E *)p + at);
}

SIMD P(vector) FN(load_part)(const void *p, int64_t at, const P(mask) mask, const attune_dtype dtype) {
#if HALVES
  if (dtype == ATTUNE_F16) return P(load_part_f16)((const uint16_t *)p + at, mask);
  if (dtype == ATTUNE_BF16) return P(load_part_bf16)((const uint16_t *)p + at, mask);
#endif
  (void)dtype;
  return P(load_part)((const E *)p + at, mask);
}

SIMD E FN(load_one)(const void *p, int64_t at, const attune_dtype dtype) {
#if HALVES
  if (dtype == ATTUNE_F16) return at_f16_to_f32(((const uint16_t *)p)[at]);
  if (dtype == ATTUNE_BF16) return at_bf16_to_f32(((const uint16_t *)p)[at]);
#endif
  (void)dtype;
  E x; /* may be a complex number of floats, which has their alignment */
  memcpy(&x, (const char *)p + at * (int64_t)sizeof x, sizeof x);
  return x;
}

/* BLOCK lines by BLOCK columns; and LANES lines by BLOCK columns. */
AT_INSTANCE void FN(transpose)(E *to, int64_t to_step, const void *from, int64_t at, int64_t step,
                               const attune_dtype dtype) {
#if HALVES
  if (dtype == ATTUNE_F16)
    P(transpose_f16)(to, to_step, (const uint16_t *)from + at, step);
  else if (dtype == ATTUNE_BF16)
    P(transpose_bf16)(to, to_step, (const uint16_t *)from + at, step);
  else
#endif
    P(transpose)(to, to_step, (const E *)from + at, step);
  (void)dtype;
}

AT_INSTANCE void FN(transpose_lanes)(E *to, int64_t to_step, const void *from, int64_t at, int64_t step,
                                     const attune_dtype dtype) {
#if HALVES
  if (dtype == ATTUNE_F16)
    P(transpose_lanes_f16)(to, to_step, (const uint16_t *)from + at, step);
  else if (dtype == ATTUNE_BF16)
    P(transpose_lanes_bf16)(to, to_step, (const uint16_t *)from + at, step);
  else
#endif
    P(transpose_lanes)(to, to_step, (const E *)from + at, step);
  (void)dtype;
}

#include "ops/gemm/host/complex_template.h"

#include "ops/gemm/host/blocked_pack_template.h"
#include "ops/gemm/host/blocked_stream_template.h"
#include "ops/gemm/host/blocked_tile_template.h"

static const at_blocked_ops FN(ops) = {
    .lanes = LANES,
    .vectors = VECTORS,
    .columns = COLUMNS,
    .pack = FN(pack),
#if !HALVES
    .pack_pairs = FN(pack_pairs),
#endif
    .product = FN(product),
    .direct = FN(direct),
    .product_pairs = FN(product_pairs),
    .direct_pairs = FN(direct_pairs),
    .stream_columns = FN(stream_columns),
    .stream_rows = FN(stream_rows),
    .finish = FN(finish),
};
