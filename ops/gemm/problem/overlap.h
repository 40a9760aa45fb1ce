/* SPDX-License-Identifier: Apache-2.0
 * overlap.h: does D lie in what a product reads? A call compares ranges of addresses, which a plan knows; only where
 * they intersect is there more to look at. */
#ifndef AT_GEMM_OVERLAP_H
#define AT_GEMM_OVERLAP_H

#include "ops/gemm/problem/problem.h"
#include "tuning/op/extent.h"
#include "tuning/op/registry.h"

/* Of a plan's `spans`: the bytes of D, and for what it may not meet what at_gemm_apart_at_once compares with. */
enum { AT_GEMM_SPAN_D, AT_GEMM_SPAN_A, AT_GEMM_SPAN_B, AT_GEMM_SPAN_C };

/* The slot of at_gemm_op. */
void at_gemm_spans(const void *problem, uintptr_t out[AT_PLAN_SPANS]);

/* Do the addresses from the first byte of D to its last one have none in common with those of A and B, and with
 * `with_c` of a C apart from D? From D's end on, X may start at up to 2^64 - D's bytes - X's bytes, around the end
 * of all addresses: one comparison for both sides. */
AT_INLINE bool at_gemm_apart_at_once(const at_plan *plan, const at_gemm_operands *o, bool with_c) {
  const uintptr_t end = (uintptr_t)o->d + plan->spans[AT_GEMM_SPAN_D];
  return AT_LIKELY((uintptr_t)o->a - end <= plan->spans[AT_GEMM_SPAN_A]) &&
         AT_LIKELY((uintptr_t)o->b - end <= plan->spans[AT_GEMM_SPAN_B]) &&
         (!with_c || AT_LIKELY((uintptr_t)o->c - end <= plan->spans[AT_GEMM_SPAN_C]));
}

/* An operand, by its public name, and its bytes. */
typedef struct at_gemm_extent {
  const char *name;
  at_extent extent;
} at_gemm_extent;

/* The operands of the epilogue and the scaling: first those that are written, *written of them; how many in all.
 * `swap`: A is the caller's B, and B its A. */
enum { AT_GEMM_EXTRAS = 10 };
int at_gemm_extra_extents(const at_gemm *g, const at_gemm_operands *o, bool swap, at_gemm_extent out[AT_GEMM_EXTRAS],
                          int *written);

/* INVALID_ARGUMENT, naming the two, where D shares a byte with A, B or a C apart from D. Matrices that lie in each
 * other's gaps are apart. `products` false: A and B are not read. `swap`: A is the caller's B, and B its A. */
attune_status at_gemm_check_apart(const at_gemm *g, const at_gemm_operands *operands, bool products, bool swap);

#endif
