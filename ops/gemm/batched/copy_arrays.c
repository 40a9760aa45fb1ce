/* SPDX-License-Identifier: Apache-2.0
 * copy_arrays.c: see copy_arrays.h. */
#include "ops/gemm/batched/copy_arrays.h"

#include "copy_arrays_cu.h"

enum { THREADS = 256, EACH = 4, MOST_X = 1 << 16, MOST_Y = 65535 };

const at_kernel_source at_copy_arrays_source = {
    .file = "copy_arrays.cu", .text = at_copy_arrays_cu, .entry = "at_copy_arrays"};

/* struct copy_arguments of copy_arrays.cu */
typedef struct copy_arguments {
  const void *from;
  void *to;
  int64_t ld_from, ld_to, bytes, columns, batch;
  int32_t grain, unused;
} copy_arguments;

static int32_t grain_of(const at_gemm *g, const copy_arguments *a) {
  uint64_t bits = 16u | g->alignment | (uint64_t)a->bytes;
  if (g->n > 1) bits |= (uint64_t)a->ld_from | (uint64_t)a->ld_to;
  return (int32_t)(bits & (~bits + 1));
}

attune_status at_copy_arrays(at_jit_kernel *kernel, const at_gemm *g, const at_gemm_operands *o,
                             attune_stream *stream) {
  const int64_t element = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  copy_arguments a = {.from = o->c,
                      .to = o->d,
                      .ld_from = g->ldc * element,
                      .ld_to = g->ldd * element,
                      .bytes = g->m * element,
                      .columns = g->n,
                      .batch = g->batch};
  a.grain = grain_of(g, &a);
  const int64_t words = a.bytes / a.grain * a.columns, blocks = (words + THREADS * EACH - 1) / (THREADS * EACH);
  const at_jit_config config = {
      .grid = {blocks < MOST_X ? (unsigned)blocks : MOST_X, g->batch < MOST_Y ? (unsigned)g->batch : MOST_Y},
      .block = {THREADS}};
  return at_jit_launch(kernel, &config, &a, stream);
}
