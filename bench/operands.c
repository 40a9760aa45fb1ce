/* SPDX-License-Identifier: Apache-2.0
 * operands.c: a workload row as a problem with explicit sizes, and device buffers for it filled with fresh random
 * numbers. */
#include "bench/bench.h"

#include "bench/tool.h"

#include <stdlib.h>
#include <string.h>

/* A prime number of elements, so that buffers filled from different offsets never repeat in step with a matrix. */
#define BLOCK_ELEMENTS ((size_t)4194301)

static void *random_blocks[5]; /* by dtype, on the device of the run */

static size_t span(int64_t ld, int64_t rows, int64_t columns, int64_t stride, int64_t batch, size_t element) {
  return (size_t)(stride * (batch - 1) + ld * (columns - 1) + rows) * element;
}

static int64_t stride_of(int64_t given, int64_t ld, int64_t columns) {
  if (given == ATTUNE_BROADCAST) return 0;
  return given != 0 ? given : ld * columns;
}

void bench_problem_read(bench_problem *out, const attune_workload_entry *entry) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%.63s", entry->name[0] != 0 ? entry->name : entry->problem);
  snprintf(out->text, sizeof out->text, "%s", entry->problem);
  attune_gemm_problem *g = &out->gemm;
  bench_check(attune_gemm_problem_parse(g, entry->problem), entry->problem);
  if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch < 1) bench_die("%s: a size is 0; nothing to measure", out->name);
  int64_t rows_a = g->trans_a ? g->k : g->m, columns_a = g->trans_a ? g->m : g->k;
  int64_t rows_b = g->trans_b ? g->n : g->k, columns_b = g->trans_b ? g->k : g->n;
  if (g->dtype_out == 0) g->dtype_out = g->dtype;
  if (g->lda == 0) g->lda = rows_a;
  if (g->ldb == 0) g->ldb = rows_b;
  if (g->ldd == 0) g->ldd = g->m;
  g->stride_a = stride_of(g->stride_a, g->lda, columns_a);
  g->stride_b = stride_of(g->stride_b, g->ldb, columns_b);
  g->stride_d = stride_of(g->stride_d, g->ldd, g->n);
  size_t in = attune_dtype_size(g->dtype), result = attune_dtype_size(g->dtype_out);
  out->bytes_a = span(g->lda, rows_a, columns_a, g->stride_a, g->batch, in);
  out->bytes_b = span(g->ldb, rows_b, columns_b, g->stride_b, g->batch, in);
  out->bytes_d = span(g->ldd, g->m, g->n, g->stride_d, g->batch, result);
}

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
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

static void fill_block(void *block, attune_dtype dtype, uint64_t seed) {
  uint64_t state = seed;
  for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
    uint64_t bits = next_random(&state);
    double value = (double)(int64_t)bits * 0x1p-63;
    if (dtype == ATTUNE_F64)
      ((double *)block)[i] = value;
    else if (dtype == ATTUNE_F32)
      ((float *)block)[i] = (float)value;
    else if (dtype == ATTUNE_BF16)
      ((uint16_t *)block)[i] = to_bf16((float)value);
    else
      ((uint16_t *)block)[i] = grid_to_f16((int32_t)(bits % 4097u) - 2048);
  }
}

static const void *random_block(attune_stream *stream, attune_dtype dtype) {
  void **block = &random_blocks[(int)dtype];
  if (*block != NULL) return *block;
  size_t bytes = BLOCK_ELEMENTS * attune_dtype_size(dtype);
  void *host = malloc(bytes);
  if (host == NULL) bench_die("out of memory for %zu bytes of random data", bytes);
  fill_block(host, dtype, (uint64_t)bench_now_ns());
  bench_check(attune_alloc(block, stream, bytes), "attune_alloc");
  bench_check(attune_copy(stream, *block, host, bytes), "attune_copy");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  free(host);
  return *block;
}

static void *random_buffer(attune_stream *stream, attune_dtype dtype, size_t bytes, size_t *offset) {
  const char *block = random_block(stream, dtype);
  size_t element = attune_dtype_size(dtype), total = BLOCK_ELEMENTS * element;
  void *buffer = NULL;
  bench_check(attune_alloc(&buffer, stream, bytes), "attune_alloc");
  for (size_t done = 0; done < bytes;) {
    size_t part = total - *offset < bytes - done ? total - *offset : bytes - done;
    bench_check(attune_copy(stream, (char *)buffer + done, block + *offset, part), "attune_copy");
    done += part;
    *offset = *offset + part == total ? 0 : *offset + part;
  }
  return buffer;
}

void bench_sets_create(bench_sets *out, attune_stream *stream, const bench_problem *problem, int count) {
  out->items = calloc((size_t)count, sizeof *out->items);
  if (out->items == NULL) bench_die("out of memory for %d sets of operands", count);
  out->count = count;
  size_t offset = 0;
  for (int i = 0; i < count; i++) {
    bench_set *set = &out->items[i];
    set->a = random_buffer(stream, problem->gemm.dtype, problem->bytes_a, &offset);
    set->b = random_buffer(stream, problem->gemm.dtype, problem->bytes_b, &offset);
    bench_check(attune_alloc(&set->d, stream, problem->bytes_d), "attune_alloc");
    bench_check(attune_fill(stream, set->d, 0xff, problem->bytes_d), "attune_fill");
  }
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
}

void bench_sets_destroy(bench_sets *sets, attune_stream *stream) {
  for (int i = 0; i < sets->count; i++) {
    bench_check(attune_free(sets->items[i].a, stream), "attune_free");
    bench_check(attune_free(sets->items[i].b, stream), "attune_free");
    bench_check(attune_free(sets->items[i].d, stream), "attune_free");
  }
  free(sets->items);
  sets->items = NULL;
  sets->count = 0;
}

void bench_random_release(attune_stream *stream) {
  for (size_t i = 0; i < sizeof random_blocks / sizeof random_blocks[0]; i++) {
    bench_check(attune_free(random_blocks[i], stream), "attune_free");
    random_blocks[i] = NULL;
  }
}
