/* SPDX-License-Identifier: Apache-2.0
 * watch.c: see watch.h. */
#include "ops/gemm/watch.h"

#include "ops/gemm/problem/arrays.h"
#include "ops/gemm/problem/overlap.h"
#include "src/base/support.h"
#include "src/trace/instrument.h"
#include "tuning/dispatch/public_call.h"

#include <stdlib.h>

/* Columns of `rows` elements, ld apart, in matrices that are `stride` apart. */
static at_operand_access matrix(const char *name, const void *data, attune_dtype dtype, int64_t rows, int64_t cols,
                                int64_t ld, int64_t stride, int64_t batch) {
  const int64_t size = (int64_t)attune_dtype_size(dtype);
  return (at_operand_access){.operand = name,
                             .data = data,
                             .element = (size_t)(rows * size),
                             .dims = 2,
                             .counts = {cols, batch},
                             .steps = {ld * size, stride * size},
                             .reads = true};
}

/* D, and what the product reads of C, A and B: 4 at most. */
static int matrices_of(const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled, at_operand_access *out) {
  const attune_dtype in = (attune_dtype)g->dtype;
  const bool reads_c = g->c != AT_C_NONE && !at_gemm_beta_is_0(in, o);
  const unsigned summed = g->epilogue.bias_gradient;
  int count = 0;
  out[count] = matrix("d", o->d, (attune_dtype)g->dtype_out, at_gemm_rows_d(g), at_gemm_cols_d(g), g->ldd, g->stride_d,
                      g->batch);
  out[count].writes = true;
  out[count++].reads = reads_c && g->c == AT_C_INPLACE;
  if (reads_c && g->c == AT_C_SEPARATE)
    out[count++] = matrix("c", o->c, at_gemm_dtype_c(g), g->m, g->n, g->ldc, g->stride_c, g->batch);
  if (!scaled || summed == ATTUNE_BIAS_GRADIENT_A)
    out[count++] =
        matrix(swap ? "b" : "a", o->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
  if (!scaled || summed == ATTUNE_BIAS_GRADIENT_B)
    out[count++] = matrix(swap ? "a" : "b", o->b, at_gemm_dtype_b(g), at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb,
                          g->stride_b, g->batch);
  return count;
}

static at_operand_access access_of(const at_gemm_extent *e, bool writes) {
  at_operand_access use = at_instrument_bytes(e->name, (const void *)e->extent.low, (size_t)e->extent.element, writes);
  use.dims = e->extent.dims;
  memcpy(use.counts, e->extent.sizes, sizeof e->extent.sizes);
  memcpy(use.steps, e->extent.steps, sizeof e->extent.steps);
  return use;
}
_Static_assert((int)AT_EXTENT_DIMS <= (int)AT_INSTRUMENT_DIMS, "every extent is an access");

/* What the epilogue and the scaling use. Scales of A and B that are not multiplied are not read. */
static int extras_of(const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled, at_operand_access *out) {
  at_gemm used = *g;
  at_gemm_extent each[AT_GEMM_EXTRAS];
  int written = 0;
  if (scaled) used.scaling.scale_a = used.scaling.scale_b = used.scaling.zero_a = used.scaling.zero_b = 0;
  const int count = at_gemm_extra_extents(&used, o, swap, each, &written);
  for (int i = 0; i < count; i++) out[i] = access_of(&each[i], i < written);
  return count;
}

/* The arrays of pointers themselves: as many as a product has matrices. */
static int arrays_of(const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled, at_operand_access *out) {
  const bool reads_c = g->c == AT_C_SEPARATE && !at_gemm_beta_is_0((attune_dtype)g->dtype, o);
  const size_t bytes = (size_t)g->batch * sizeof(void *);
  int count = 0;
  out[count++] = at_instrument_bytes("array d", o->d, bytes, false);
  if (reads_c) out[count++] = at_instrument_bytes("array c", o->c, bytes, false);
  if (scaled) return count;
  out[count++] = at_instrument_bytes(swap ? "array b" : "array a", o->a, bytes, false);
  out[count++] = at_instrument_bytes(swap ? "array a" : "array b", o->b, bytes, false);
  return count;
}

static void note_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled) {
  const int64_t known = g->pointers == ATTUNE_POINTERS_HOST ? g->batch : 0;
  at_operand_access *uses = calloc((size_t)known + 1, 4 * sizeof *uses);
  if (!uses) {
    at_log(ATTUNE_LOG_ERROR, "no memory to record the matrices of a batch");
    return;
  }
  const at_gemm one = at_gemm_one_of(g);
  int count = arrays_of(g, o, swap, scaled, uses);
  for (int64_t i = 0; i < known; i++) {
    const at_gemm_operands each = at_gemm_operands_at(g, o, i);
    count += matrices_of(&one, &each, swap, scaled, uses + count);
  }
  at_instrument_use(stream, "attune_gemm_batched", uses, count);
  free(uses);
}

void at_gemm_note(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled) {
  if (g->pointers) {
    note_arrays(stream, g, o, swap, scaled);
    return;
  }
  at_operand_access uses[4 + AT_GEMM_EXTRAS];
  int count = matrices_of(g, o, swap, scaled, uses);
  count += extras_of(g, o, swap, scaled, uses + count);
  at_instrument_use(stream, "attune_gemm", uses, count);
}

attune_status at_gemm_run_watched(const at_plan *plan, const at_gemm *g, const at_gemm_operands *operands,
                                  attune_stream *stream, bool swap) {
  const attune_status status = at_instrumented_launch(plan, "attune_gemm", operands, stream, swap);
  if (status == ATTUNE_OK && at_instrumented_races()) at_gemm_note(stream, g, operands, swap, false);
  return status;
}
