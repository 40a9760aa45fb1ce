/* SPDX-License-Identifier: Apache-2.0
 * problem.c: a workload's row as a problem with explicit sizes, where its operands lie, and random numbers. */
#include "bench/common/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/tool.h"
#include "src/base/splitmix64.h"

static size_t span(int64_t ld, int64_t rows, int64_t columns, int64_t stride, int64_t batch, size_t element) {
  return (size_t)(stride * (batch - 1) + ld * (columns - 1) + rows) * element;
}

/* Of one product it is as good as 0. */
static int64_t stride_of(int64_t given, int64_t packed, int64_t batch) {
  if (batch == 1 || given == ATTUNE_BROADCAST) return 0;
  return given != 0 ? given : packed;
}

static int64_t named(int64_t stride, int64_t batch) {
  return batch > 1 && stride == 0 ? ATTUNE_BROADCAST : stride;
}

/* Each matrix that a pointer names begins at a multiple of 128 bytes. */
static void part_matrices(attune_gemm_problem *g) {
  const int64_t in = 128 / (int64_t)attune_dtype_size(g->dtype), out = 128 / (int64_t)attune_dtype_size(g->dtype_out);
  g->stride_a = (g->stride_a + in - 1) / in * in;
  g->stride_b = (g->stride_b + in - 1) / in * in;
  g->stride_d = (g->stride_d + out - 1) / out * out;
}

void bench_problem_read(bench_problem *out, const attune_workload_entry *entry) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%.63s", entry->name && *entry->name ? entry->name : entry->problem);
  snprintf(out->text, sizeof out->text, "%s", entry->problem);
  attune_gemm_problem *g = &out->gemm;
  bench_check(attune_gemm_problem_parse(g, entry->problem), entry->problem);
  if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch < 1)
    bench_die("%s: a size is 0, so there is nothing to measure", out->name);
  const int64_t rows_a = g->trans_a ? g->k : g->m, columns_a = g->trans_a ? g->m : g->k;
  const int64_t rows_b = g->trans_b ? g->n : g->k, columns_b = g->trans_b ? g->k : g->n;
  if (g->dtype_out == 0) g->dtype_out = g->dtype;
  if (g->lda == 0) g->lda = rows_a;
  if (g->ldb == 0) g->ldb = rows_b;
  if (g->ldd == 0) g->ldd = g->m;
  g->stride_a = stride_of(g->stride_a, g->lda * columns_a, g->batch);
  g->stride_b = stride_of(g->stride_b, g->ldb * columns_b, g->batch);
  g->stride_d = stride_of(g->stride_d, g->ldd * g->n, g->batch);
  if (g->pointers) part_matrices(g);
  out->given = *g;
  out->given.stride_a = named(g->stride_a, g->batch);
  out->given.stride_b = named(g->stride_b, g->batch);
  if (g->pointers) out->given.stride_a = out->given.stride_b = out->given.stride_d = 0;
  const size_t in = attune_dtype_size(g->dtype), result = attune_dtype_size(g->dtype_out);
  out->bytes_a = span(g->lda, rows_a, columns_a, g->stride_a, g->batch, in);
  out->bytes_b = span(g->ldb, rows_b, columns_b, g->stride_b, g->batch, in);
  out->bytes_d = span(g->ldd, g->m, g->n, g->stride_d, g->batch, result);
}

/* An odd multiple of the alignment at or after `from`. */
static size_t place_at(size_t from, size_t alignment) {
  const size_t unit = 2 * alignment > 512 ? 2 * alignment : 512;
  return (from + unit - 1) / unit * unit + alignment;
}

size_t bench_lay_out(const bench_problem *problem, bench_place place, int set, size_t out[3]) {
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

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* For |value| <= 1 on a grid of 2^-11 the binary16 value is exact, built from its integer. */
static uint16_t grid_to_f16(int32_t grid) {
  uint16_t sign = grid < 0 ? 0x8000u : 0u;
  uint32_t magnitude = (uint32_t)(grid < 0 ? -grid : grid); /* in units of 2^-11, at most 2048 */
  if (magnitude == 0) return sign;
  int top = 31 - __builtin_clz(magnitude);
  uint32_t fraction = (magnitude << (11 - top)) & 0x7ffu;
  return (uint16_t)(sign | (uint32_t)((top + 4) << 10) | (fraction >> 1));
}

void bench_random_fill(void *to, attune_dtype dtype, size_t bytes, uint64_t seed) {
  uint64_t state = seed;
  dtype = bench_part(dtype);
  for (size_t i = 0; i < bytes / attune_dtype_size(dtype); i++) {
    const uint64_t bits = at_splitmix64(&state);
    const double value = (double)(int64_t)bits * 0x1p-63;
    if (dtype == ATTUNE_F64)
      ((double *)to)[i] = value;
    else if (dtype == ATTUNE_F32)
      ((float *)to)[i] = (float)value;
    else if (dtype == ATTUNE_BF16)
      ((uint16_t *)to)[i] = to_bf16((float)value);
    else
      ((uint16_t *)to)[i] = grid_to_f16((int32_t)(bits % 4097u) - 2048);
  }
}

void *bench_random_new(attune_dtype dtype, size_t bytes, uint64_t seed) {
  void *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!out) bench_die("out of memory for %zu bytes of random numbers", bytes);
  bench_random_fill(out, dtype, bytes, seed);
  return out;
}
