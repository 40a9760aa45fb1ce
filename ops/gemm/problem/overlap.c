/* SPDX-License-Identifier: Apache-2.0
 * overlap.c: see overlap.h. */
#include "ops/gemm/problem/overlap.h"

#include "tuning/op/extent.h"

static at_extent extent_of(const void *data, size_t element, int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                           int64_t batch) {
  at_extent e = {.low = (uintptr_t)data, .element = rows * (int64_t)element};
  e.high = e.low + (uintptr_t)e.element;
  at_extent_add(&e, cols, ld * (int64_t)element);
  at_extent_add(&e, batch, stride * (int64_t)element);
  return e;
}

/* D, A, B and, where it is apart from D, C: by AT_GEMM_SPAN; how many. */
static int extents_of(const at_gemm *g, const at_gemm_operands *o, at_extent out[AT_PLAN_SPANS]) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), result = attune_dtype_size((attune_dtype)g->dtype_out);
  out[AT_GEMM_SPAN_D] = extent_of(o->d, result, g->m, g->n, g->ldd, g->stride_d, g->batch);
  out[AT_GEMM_SPAN_A] = extent_of(o->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
  out[AT_GEMM_SPAN_B] = extent_of(o->b, in, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch);
  if (g->c == AT_C_SEPARATE) out[AT_GEMM_SPAN_C] = extent_of(o->c, result, g->m, g->n, g->ldc, g->stride_c, g->batch);
  return g->c == AT_C_SEPARATE ? 4 : 3;
}

void at_gemm_spans(const void *problem, uintptr_t out[AT_PLAN_SPANS]) {
  static const at_gemm_operands at_zero = {0};
  at_extent each[AT_PLAN_SPANS];
  const int count = extents_of(at_gemm_of(problem), &at_zero, each);
  const uintptr_t d = each[AT_GEMM_SPAN_D].high;
  out[AT_GEMM_SPAN_D] = d;
  for (int i = AT_GEMM_SPAN_A; i < AT_PLAN_SPANS; i++) out[i] = i < count ? 0 - d - each[i].high : UINTPTR_MAX;
}

attune_status at_gemm_check_apart(const at_gemm *g, const at_gemm_operands *o, bool products, bool swap) {
  at_extent each[AT_PLAN_SPANS];
  const int count = extents_of(g, o, each);
  const at_extent *d = &each[AT_GEMM_SPAN_D];
  for (int i = products ? AT_GEMM_SPAN_A : AT_GEMM_SPAN_C; i < count; i++)
    if (AT_UNLIKELY(at_extents_meet(d, &each[i])))
      return AT_INVALID(
          "operands.d overlaps operands.%c: D is 0x%llx to 0x%llx, %c 0x%llx to 0x%llx; should be disjoint%s",
          swap ? "dbac"[i] : "dabc"[i], (unsigned long long)d -> low, (unsigned long long)d -> high,
          swap ? "DBAC"[i] : "DABC"[i], (unsigned long long)each[i].low, (unsigned long long)each[i].high,
          i == AT_GEMM_SPAN_C ? ", or D be C itself" : "");
  return ATTUNE_OK;
}
