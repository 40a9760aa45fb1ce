/* SPDX-License-Identifier: Apache-2.0
 * operands.c: device buffers for a problem, filled with fresh random numbers. */
#include "bench/gemm/gemm.h"

#include "bench/common/tool.h"

#include <stdlib.h>

/* A prime number of elements, so that buffers filled from different offsets never repeat in step with a matrix. */
#define BLOCK_ELEMENTS ((size_t)4194301)

static void *random_blocks[ATTUNE_C128 + 1]; /* by dtype, on the device of the run */

static const void *random_block(attune_stream *stream, attune_dtype dtype) {
  void **block = &random_blocks[(int)dtype];
  if (*block != NULL) return *block;
  size_t bytes = BLOCK_ELEMENTS * attune_dtype_size(dtype);
  void *host = bench_random_new(dtype, bytes, (uint64_t)bench_now_ns());
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

/* The addresses of the set's matrices: in host memory, or copied to the device's. */
static void **arrays_of(attune_stream *stream, const bench_problem *problem, const bench_set *set) {
  const attune_gemm_problem *g = &problem->gemm;
  const size_t batch = (size_t)g->batch, bytes = 3 * batch * sizeof(void *), in = attune_dtype_size(g->dtype),
               out = attune_dtype_size(g->dtype_out);
  void **arrays = malloc(bytes), *there = NULL;
  if (arrays == NULL) bench_die("out of memory for %zu pointers", 3 * batch);
  for (size_t i = 0; i < batch; i++) {
    arrays[i] = (char *)set->a + i * (size_t)g->stride_a * in;
    arrays[batch + i] = (char *)set->b + i * (size_t)g->stride_b * in;
    arrays[2 * batch + i] = (char *)set->d + i * (size_t)g->stride_d * out;
  }
  if (g->pointers == ATTUNE_POINTERS_HOST) return arrays;
  bench_check(attune_alloc(&there, stream, bytes), "attune_alloc");
  bench_check(attune_copy(stream, there, arrays, bytes), "attune_copy");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  free(arrays);
  return there;
}

void bench_sets_create(bench_sets *out, attune_stream *stream, const bench_problem *problem, int count) {
  out->items = calloc((size_t)count, sizeof *out->items);
  if (out->items == NULL) bench_die("out of memory for %d sets of operands", count);
  out->count = count;
  out->arrays_on_host = problem->gemm.pointers == ATTUNE_POINTERS_HOST;
  size_t offset = 0;
  for (int i = 0; i < count; i++) {
    bench_set *set = &out->items[i];
    set->a = random_buffer(stream, problem->gemm.dtype, problem->bytes_a, &offset);
    set->b = random_buffer(stream, problem->gemm.dtype, problem->bytes_b, &offset);
    bench_check(attune_alloc(&set->d, stream, problem->bytes_d), "attune_alloc");
    bench_check(attune_fill(stream, set->d, 0xff, problem->bytes_d), "attune_fill");
    set->arrays = problem->gemm.pointers ? arrays_of(stream, problem, set) : NULL;
  }
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
}

void bench_sets_destroy(bench_sets *sets, attune_stream *stream) {
  for (int i = 0; i < sets->count; i++) {
    bench_check(attune_free(sets->items[i].a, stream), "attune_free");
    bench_check(attune_free(sets->items[i].b, stream), "attune_free");
    bench_check(attune_free(sets->items[i].d, stream), "attune_free");
    if (sets->arrays_on_host)
      free(sets->items[i].arrays);
    else
      bench_check(attune_free(sets->items[i].arrays, stream), "attune_free");
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
