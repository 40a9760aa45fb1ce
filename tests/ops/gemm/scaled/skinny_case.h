/* SPDX-License-Identifier: Apache-2.0
 * skinny_case.h: random problems for sm90_skinny_ring_8b: a large matrix and one of up to 32 columns, both along k,
 * with tails of all sizes, each type, each scale and each way that D may lie. */
#ifndef AT_TEST_SKINNY_CASE_H
#define AT_TEST_SKINNY_CASE_H

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "ops/gemm/problem/problem.h"
#include "tests/ops/gemm/scaled/scaled_oracle.h"

static inline void skinny_draw_types(attune_gemm_problem *p, uint64_t *state) {
  static const attune_dtype f8_out[] = {ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_F8E4M3, ATTUNE_F8E5M2},
                            i8_out[] = {ATTUNE_I32, ATTUNE_I8, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16};
  const bool i8 = scaled_draw(state, 5) == 0;
  const unsigned mix = (unsigned)scaled_draw(state, 3);
  p->dtype = i8 ? ATTUNE_I8 : mix == 1 ? ATTUNE_F8E5M2 : ATTUNE_F8E4M3;
  if (!i8 && mix) p->scaling.dtype_b = mix == 1 ? ATTUNE_F8E4M3 : ATTUNE_F8E5M2;
  p->dtype_out = i8 ? i8_out[scaled_draw(state, 5)] : f8_out[scaled_draw(state, mix ? 5 : 4)];
  if (p->dtype_out == ATTUNE_I32) return;
  const uint64_t modes = p->batch > 1 ? 2 : i8 ? 3 : 5;
  p->scaling.scale_a = (uint8_t)scaled_draw(state, modes);
  p->scaling.scale_b = (uint8_t)scaled_draw(state, modes);
  p->scaling.amax_d = (uint8_t)scaled_draw(state, 2);
  p->scaling.scale_d = (uint8_t)(attune_dtype_size(p->dtype_out) == 1 && scaled_draw(state, 2));
}

static inline void skinny_draw_case(scaled_case *c, int64_t most, int64_t most_k, uint64_t *state) {
  *c = (scaled_case){.p = ATTUNE_GEMM_PROBLEM_INIT, .grain = 16};
  attune_gemm_problem *p = &c->p;
  const int64_t small = 1 + (int64_t)scaled_draw(state, scaled_draw(state, 2) ? 9 : 32),
                large = 64 + (int64_t)scaled_draw(state, (uint64_t)(most - 63));
  const bool across = scaled_draw(state, 2);
  p->layout = (attune_layout)scaled_draw(state, 2);
  p->trans_a = p->layout == ATTUNE_ROW_MAJOR ? ATTUNE_N : ATTUNE_T;
  p->trans_b = p->layout == ATTUNE_ROW_MAJOR ? ATTUNE_T : ATTUNE_N;
  p->m = across ? small : large, p->n = across ? large : small;
  p->k = 16 * (16 + (int64_t)scaled_draw(state, (uint64_t)(most_k / 16 - 15)));
  p->batch = scaled_draw(state, 5) ? 1 : 2;
  skinny_draw_types(p, state);
  c->special = p->dtype != ATTUNE_I8 && scaled_draw(state, 4) == 0;
  scaled_open(c, scaled_draw(state, 2) == 0, state);
  c->loose = true;
  if (p->dtype != ATTUNE_I8) c->gamma += 0x1p-11; /* tensor cores may lose this much of a sum (gemm.h) */
}

/* A configuration: one that a search has, or any, of which most are none. */
static inline void skinny_draw_configuration(at_configuration *out, uint64_t *state) {
  size_t at = 0;
  assert_true(at_append(out->text, sizeof out->text, &at, "rows=%d,warps=%dx%d,step=%d,stages=%d,splitk=%d,early=%d",
                        16 << scaled_draw(state, 2), 1 << scaled_draw(state, 4), 1 << scaled_draw(state, 4),
                        128 << scaled_draw(state, 4), 2 + (int)scaled_draw(state, 4), 1 << scaled_draw(state, 4),
                        (int)scaled_draw(state, 3)));
}

/* The problem that implementations see, and its operands. */
static inline void skinny_normalise(const scaled_case *c, const attune_gemm_operands *o, at_gemm *g,
                                    attune_gemm_operands *run) {
  at_gemm_use use;
  bool swap = false;
  OK(at_gemm_check_operands(&c->p, o, &use));
  OK(at_gemm_normalise(&c->p, use, g, &swap));
  *run = *o;
  if (!swap) return;
  run->a = o->b, run->b = o->a;
  run->scale_a = o->scale_b, run->scale_b = o->scale_a;
}

#endif
