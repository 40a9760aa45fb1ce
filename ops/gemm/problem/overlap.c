/* SPDX-License-Identifier: Apache-2.0
 * overlap.c: see overlap.h. */
#include "ops/gemm/problem/overlap.h"

#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/problem/scaling.h"

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
  out[AT_GEMM_SPAN_D] = extent_of(o->d, result, at_gemm_rows_d(g), at_gemm_cols_d(g), g->ldd, g->stride_d, g->batch);
  out[AT_GEMM_SPAN_A] = extent_of(o->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
  out[AT_GEMM_SPAN_B] = extent_of(o->b, in, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch);
  if (g->c == AT_C_SEPARATE)
    out[AT_GEMM_SPAN_C] =
        extent_of(o->c, attune_dtype_size(at_gemm_dtype_c(g)), g->m, g->n, g->ldc, g->stride_c, g->batch);
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

/* Bytes from `data` on. */
static at_gemm_extent vector_of(const char *name, const void *data, size_t bytes) {
  return (at_gemm_extent){name, {.low = (uintptr_t)data, .high = (uintptr_t)data + bytes, .element = (int64_t)bytes}};
}

/* A mask is of bytes: its lines begin at bytes, and the last one of a line may have bits that are not its own. Where it
 * is written what lies between lines counts too: a library may write it. */
static at_gemm_extent aux_of(const at_gemm *g, const at_gemm_operands *o) {
  if (g->epilogue.aux == ATTUNE_AUX_RELU_MASK && at_gemm_writes_aux(g))
    return vector_of("aux", o->aux, at_gemm_aux_bytes(g));
  if (g->epilogue.aux == ATTUNE_AUX_RELU_MASK)
    return (at_gemm_extent){"aux",
                            extent_of(o->aux, 1, (g->m + 7) / 8, g->n, g->ld_aux / 8, g->stride_aux / 8, g->batch)};
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  return (at_gemm_extent){"aux", extent_of(o->aux, element, g->m, g->n, g->ld_aux, g->stride_aux, g->batch)};
}

int at_gemm_extra_extents(const at_gemm *g, const at_gemm_operands *o, bool swap, at_gemm_extent out[AT_GEMM_EXTRAS],
                          int *written) {
  const size_t vector = g->epilogue.bias_dtype ? attune_dtype_size(at_gemm_bias_dtype(g)) : 0;
  int count = 0;
  if (at_gemm_writes_aux(g)) out[count++] = aux_of(g, o);
  if (g->epilogue.bias_gradient)
    out[count++] = vector_of("bias_gradient", o->bias_gradient, (size_t)at_gemm_bias_gradient_count(g) * vector);
  if (g->scaling.amax_d) out[count++] = vector_of("amax_d", o->amax_d, sizeof(float));
  *written = count;
  if (g->scaling.scale_a)
    out[count++] = vector_of(swap ? "scale_b" : "scale_a", o->scale_a, at_gemm_scale_count(g, false) * sizeof(float));
  if (g->scaling.scale_b)
    out[count++] = vector_of(swap ? "scale_a" : "scale_b", o->scale_b, at_gemm_scale_count(g, true) * sizeof(float));
  if (g->scaling.scale_d) out[count++] = vector_of("scale_d", o->scale_d, sizeof(float));
  if (g->scaling.zero_a) out[count++] = vector_of(swap ? "zero_b" : "zero_a", o->zero_a, 1);
  if (g->scaling.zero_b) out[count++] = vector_of(swap ? "zero_a" : "zero_b", o->zero_b, 1);
  if (g->epilogue.bias) out[count++] = vector_of("bias", o->bias, (size_t)at_gemm_bias_count(g) * vector);
  if (at_gemm_reads_aux(g)) out[count++] = aux_of(g, o);
  if (g->epilogue.residual)
    out[count++] = (at_gemm_extent){"residual", extent_of(o->residual, attune_dtype_size((attune_dtype)g->dtype_out),
                                                          at_gemm_rows_d(g), at_gemm_cols_d(g), g->ld_residual,
                                                          g->stride_residual, g->batch)};
  return count;
}

/* What is written besides D, against all the others; and D against what the epilogue and the scaling read. */
static attune_status check_extras_apart(const at_gemm *g, const at_gemm_operands *o, const at_extent *each, int count,
                                        bool products, bool swap) {
  const char *const names[] = {"d", swap ? "b" : "a", swap ? "a" : "b", "c"};
  at_gemm_extent all[AT_GEMM_EXTRAS + AT_PLAN_SPANS];
  int written = 0;
  const int extras = at_gemm_extra_extents(g, o, swap, all, &written);
  int total = extras;
  for (int i = 0; i < count; i++)
    if (products || i == AT_GEMM_SPAN_D || i == AT_GEMM_SPAN_C) all[total++] = (at_gemm_extent){names[i], each[i]};
  for (int i = 0; i < extras; i++)
    for (int j = i + 1; j < (i < written ? total : extras + 1); j++)
      if ((i < written || j == extras) && AT_UNLIKELY(at_extents_meet(&all[i].extent, &all[j].extent)))
        return AT_INVALID("operands.%s overlaps operands.%s; should be disjoint", all[i].name, all[j].name);
  return ATTUNE_OK;
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
  return AT_LIKELY(!at_gemm_extended(g)) ? ATTUNE_OK : check_extras_apart(g, o, each, count, products, swap);
}
