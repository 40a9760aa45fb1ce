/* SPDX-License-Identifier: Apache-2.0
 * outside_problem.c: a workload's row as sizes, and where its operands lie. */
#include "bench/outside.h"

#include "bench/tool.h"

#include <stdio.h>

static size_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch, size_t element) {
  return (size_t)(stride * (batch - 1) + ld * (columns - 1) + rows) * element;
}

static int64_t packed(int64_t given, int64_t value) {
  return given == 0 ? value : given == ATTUNE_BROADCAST ? 0 : given;
}

void outside_problem_read(outside_problem *out, const attune_workload_entry *entry) {
  attune_gemm_problem *g = &out->gemm;
  snprintf(out->name, sizeof out->name, "%s", entry->name);
  bench_check(attune_gemm_problem_parse(g, entry->problem), entry->problem);
  const int64_t rows_a = g->trans_a ? g->k : g->m, columns_a = g->trans_a ? g->m : g->k;
  const int64_t rows_b = g->trans_b ? g->n : g->k, columns_b = g->trans_b ? g->k : g->n;
  if (g->dtype_out == 0) g->dtype_out = g->dtype;
  g->lda = packed(g->lda, rows_a), g->ldb = packed(g->ldb, rows_b), g->ldd = packed(g->ldd, g->m);
  g->stride_a = g->batch == 1 ? 0 : packed(g->stride_a, g->lda * columns_a);
  g->stride_b = g->batch == 1 ? 0 : packed(g->stride_b, g->ldb * columns_b);
  g->stride_d = g->batch == 1 ? 0 : packed(g->stride_d, g->ldd * g->n);
  const size_t in = attune_dtype_size(g->dtype), result = attune_dtype_size(g->dtype_out);
  out->bytes_a = extent(rows_a, columns_a, g->lda, g->stride_a, g->batch, in);
  out->bytes_b = extent(rows_b, columns_b, g->ldb, g->stride_b, g->batch, in);
  out->bytes_d = extent(g->m, g->n, g->ldd, g->stride_d, g->batch, result);
}

/* An odd multiple of the alignment at or after `from`. */
static size_t place_at(size_t from, size_t alignment) {
  const size_t unit = 2 * alignment > 512 ? 2 * alignment : 512;
  return (from + unit - 1) / unit * unit + alignment;
}

size_t outside_lay_out(const outside_problem *problem, outside_place place, int set, size_t out[3]) {
  const size_t bytes[3] = {problem->bytes_a, problem->bytes_b, problem->bytes_d};
  size_t one = 0, start[3];
  for (int i = 0; i < 3; i++) {
    start[i] = place_at(one, place.alignment);
    one = start[i] + bytes[i] + place.spacing;
  }
  const size_t unit = 2 * place.alignment > 512 ? 2 * place.alignment : 512;
  one = (one + unit - 1) / unit * unit;
  for (int i = 0; i < 3; i++) out[i] = (size_t)set * one + start[i];
  return (size_t)(set + 1) * one;
}
