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

/* A complex number of doubles, aligned to its parts. */
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

static void pack_c128(const at_pack *p) {
  for (int64_t first = 0; first < p->lines; first += p->panel) {
    const int64_t width = p->lines - first < p->panel ? p->lines - first : p->panel,
                  padded = (width + p->round - 1) / p->round * p->round;
    const pair *from = (const pair *)p->from + first * p->line_step;
    pair *to = (pair *)p->to + first * p->depth;
    for (int64_t k = 0; k < p->depth; k++, from += p->depth_step, to += padded) {
      for (int64_t i = 0; i < width; i++) to[i] = from[i * p->line_step];
      for (int64_t i = width; i < padded; i++) to[i] = (pair){0.0, 0.0};
    }
  }
}

at_pack_fn at_packer_of(const at_blocked_isa *isa, unsigned dtype) {
  if (dtype == ATTUNE_C128) return pack_c128;
  return dtype == ATTUNE_F32 ? isa->f32->pack : isa->f64->pack; /* a c64 has the size of an f64 */
}
