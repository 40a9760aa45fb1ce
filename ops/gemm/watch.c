/* SPDX-License-Identifier: Apache-2.0
 * watch.c: see watch.h. */
#include "ops/gemm/watch.h"

#include "src/trace/instrument.h"
#include "tuning/dispatch/public_call.h"

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

void at_gemm_note(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o, bool swap, bool scaled) {
  const attune_dtype in = (attune_dtype)g->dtype, out = (attune_dtype)g->dtype_out;
  const bool reads_c = g->c != AT_C_NONE && o->beta != 0.0;
  at_operand_access uses[4];
  int count = 0;
  uses[count] = matrix("d", o->d, out, at_gemm_rows_d(g), at_gemm_cols_d(g), g->ldd, g->stride_d, g->batch);
  uses[count].writes = true;
  uses[count++].reads = reads_c && g->c == AT_C_INPLACE;
  if (reads_c && g->c == AT_C_SEPARATE)
    uses[count++] = matrix("c", o->c, out, g->m, g->n, g->ldc, g->stride_c, g->batch);
  if (!scaled) {
    uses[count++] =
        matrix(swap ? "b" : "a", o->a, in, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch);
    uses[count++] =
        matrix(swap ? "a" : "b", o->b, in, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch);
  }
  at_instrument_use(stream, "attune_gemm", uses, count);
}

attune_status at_gemm_run_watched(const at_plan *plan, const at_gemm *g, const at_gemm_operands *operands,
                                  attune_stream *stream, bool swap) {
  const attune_status status = at_instrumented_launch(plan, "attune_gemm", operands, stream, swap);
  if (status == ATTUNE_OK && at_instrumented_races()) at_gemm_note(stream, g, operands, swap, false);
  return status;
}
