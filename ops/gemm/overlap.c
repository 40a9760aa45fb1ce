/* SPDX-License-Identifier: Apache-2.0
 * overlap.c: see overlap.h. */
#include "ops/gemm/overlap.h"

typedef struct place {
  uintptr_t start;
  size_t element;
  int64_t rows, cols, ld, stride, batch;
} place;

/* Is the byte at `address` part of an element? Of inputs whose matrices interleave only the first is looked at. */
static bool holds(const place *p, uintptr_t address) {
  if (address < p->start) return false;
  int64_t at = (int64_t)((address - p->start) / p->element);
  if (p->batch > 1 && p->stride >= p->ld * (p->cols - 1) + p->rows) {
    if (at / p->stride >= p->batch) return false;
    at %= p->stride;
  }
  return at / p->ld < p->cols && at % p->ld < p->rows;
}

static bool meet(const place *a, const place *b) {
  return holds(a, b->start) || holds(b, a->start);
}

bool at_gemm_apart(const at_gemm *g, const at_gemm_operands *o) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), out = attune_dtype_size((attune_dtype)g->dtype_out);
  const place a = {(uintptr_t)o->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch},
              b = {(uintptr_t)o->b, in, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch},
              c = {(uintptr_t)o->c, out, g->m, g->n, g->ldc, g->stride_c, g->batch},
              d = {(uintptr_t)o->d, out, g->m, g->n, g->ldd, g->stride_d, g->batch};
  return !meet(&d, &a) && !meet(&d, &b) && !(g->c == AT_C_SEPARATE && meet(&d, &c));
}
