/* SPDX-License-Identifier: Apache-2.0
 * reference_value.c: a matrix as double, and what a dtype's rounding costs. */
#define XXH_INLINE_ALL
#include "ops/gemm/reference/reference.h"

#include "src/host/threads.h"

#include <xxhash.h>

double at_reference_roundoff(attune_dtype dtype) {
  return dtype == ATTUNE_F64 ? 0x1p-53 : dtype == ATTUNE_F32 ? 0x1p-24 : dtype == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
}

double at_reference_underflow(attune_dtype dtype) {
  return dtype == ATTUNE_F64 ? 0.0 : dtype == ATTUNE_F16 ? 0x1p-25 : 0x1p-134;
}

/* What at_parallel shares when one matrix is converted to double. */
typedef struct conversion {
  double *to;
  const void *from;
  attune_dtype dtype;
  size_t first;
  int64_t rows, cols, ld;
} conversion;

static void convert_share(void *arg, const at_team *team) {
  const conversion *c = arg;
  for (int64_t j = team->rank; j < c->cols; j += team->size)
    for (int64_t i = 0; i < c->rows; i++)
      c->to[i + j * c->rows] = at_reference_value(c->from, c->dtype, c->first + (size_t)(i + j * c->ld));
}

void at_reference_convert(double *to, const void *from, attune_dtype dtype, size_t first, int64_t rows, int64_t cols,
                          int64_t ld) {
  conversion c = {to, from, dtype, first, rows, cols, ld};
  at_parallel(rows * cols > 65536 ? at_cpu_count() : 1, convert_share, &c);
}

const unsigned char *at_reference_gap(const at_gemm *g, const unsigned char *output, int64_t b, int64_t j,
                                      size_t *bytes) {
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  const int64_t end = g->stride_d * b + g->ldd * j + at_gemm_rows_d(g);
  const int64_t next = j + 1 < at_gemm_cols_d(g) ? g->stride_d * b + g->ldd * (j + 1)
                       : b + 1 < g->batch        ? g->stride_d * (b + 1)
                                                 : end;
  *bytes = (size_t)(next - end) * element;
  return output + (size_t)end * element;
}

uint64_t at_reference_gaps(const at_gemm *g, const void *output) {
  uint64_t hash = 0;
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < at_gemm_cols_d(g); j++) {
      size_t bytes = 0;
      const unsigned char *gap = at_reference_gap(g, output, b, j, &bytes);
      if (bytes) hash = XXH3_64bits_withSeed(gap, bytes, hash);
    }
  return hash;
}
