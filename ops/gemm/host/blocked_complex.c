/* SPDX-License-Identifier: Apache-2.0
 * blocked_complex.c: see blocked_complex.h. */
#include "ops/gemm/host/blocked_complex.h"

at_gemm at_complex_form(const at_gemm *g) {
  const int64_t parts = at_gemm_element_parts(g->dtype);
  at_gemm form = *g;
  form.m *= parts;
  form.lda *= parts, form.ldb *= parts, form.ldc *= parts, form.ldd *= parts;
  form.stride_a *= parts, form.stride_b *= parts, form.stride_c *= parts, form.stride_d *= parts;
  return form;
}

at_join at_join_of(const at_gemm *g) {
  const bool a = g->trans_a == ATTUNE_C, b = g->trans_b == ATTUNE_C;
  return (at_join){.turn = {a != b ? 1.0 : -1.0, b ? -1.0 : 1.0}, .sign = a ? -1.0 : 1.0};
}

at_pack_fn at_packer_of(const at_blocked_isa *isa, unsigned dtype) {
  if (dtype == ATTUNE_C128) return isa->f64->pack_pairs;
  return dtype == ATTUNE_F32 ? isa->f32->pack : isa->f64->pack; /* a c64 has the size of an f64 */
}
