/* SPDX-License-Identifier: Apache-2.0
 * block_tile.c: problems as the families of block_tile.cuh's kernel see them. */
#include "ops/gemm/kernels/block_tile.h"

/* The widest access that a matrix permits, an element at least. */
static int grain_of(const at_gemm *g, int64_t element, int64_t lines, int64_t line_bytes, int64_t stride_bytes) {
  uint64_t bits = g->alignment | 16u;
  if (lines > 1) bits |= (uint64_t)line_bytes;
  if (g->batch > 1) bits |= (uint64_t)stride_bytes;
  const int grain = (int)(bits & (~bits + 1));
  return grain < element ? (int)element : grain;
}

at_gemm_shape at_gemm_shape_of(const at_gemm *g) {
  const int64_t in = (int64_t)attune_dtype_size((attune_dtype)g->dtype),
                out = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  const int grain_a = grain_of(g, in, at_gemm_cols_a(g), g->lda * in, g->stride_a * in),
            grain_b = grain_of(g, in, at_gemm_cols_b(g), g->ldb * in, g->stride_b * in),
            grain_d = grain_of(g, out, g->n, g->ldd * out, g->stride_d * out),
            grain_c = g->c == AT_C_NONE ? 16 : grain_of(g, out, g->n, g->ldc * out, g->stride_c * out);
  const bool swapped = g->m < g->n;
  return (at_gemm_shape){.m = swapped ? g->n : g->m,
                         .n = swapped ? g->m : g->n,
                         .k = g->k,
                         .batch = g->batch,
                         .in = (int)in,
                         .out = (int)out,
                         .sum = g->dtype == ATTUNE_F64 ? 8 : 4,
                         .swapped = swapped,
                         .x_k = swapped ? !g->trans_b : g->trans_a,
                         .y_k = swapped ? g->trans_a : !g->trans_b,
                         .grain_x = swapped ? grain_b : grain_a,
                         .grain_y = swapped ? grain_a : grain_b,
                         .grain_d = grain_d < grain_c ? grain_d : grain_c,
                         .workspace_cap = g->workspace_cap};
}

int64_t at_gemm_parts(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit;
}

void at_gemm_launch_spec_swap(at_gemm_launch_spec *r, const at_gemm_shape *s) {
  at_gemm_arguments *a = &r->arguments;
  const at_gemm_arguments was = *a;
  r->swapped = s->swapped;
  if (!s->swapped) return;
  a->lda = was.ldb, a->ldb = was.lda;
  a->stride_a = was.stride_b, a->stride_b = was.stride_a;
  a->m = was.n, a->n = was.m;
}

void at_gemm_launch_spec_launch(at_gemm_launch_spec *r, const at_gemm_shape *s, const at_gemm_launch *l) {
  const unsigned blocks = (unsigned)l->tiles, threads = (unsigned)l->threads, batch = (unsigned)s->batch;
  r->config = (at_jit_config){.grid = {blocks * (unsigned)l->split, batch, (unsigned)l->parts},
                              .block = {threads},
                              .shared_bytes = (unsigned)l->shared_bytes,
                              .dependent = true};
  if (l->split > 1) r->config.cluster[0] = (unsigned)l->split;
  if (l->parts > 1)
    r->after = (at_jit_config){
        .grid = {blocks * (((unsigned)l->units + threads - 1) / threads), batch}, .block = {threads}, .dependent = true};
}

int at_gemm_usable(int split, const at_gemm_machine *machine) {
  return split <= 2 ? machine->processors / split * split : machine->processors * 10 / 11 / split * split;
}

int at_gemm_spread(int64_t blocks, int needed, const at_gemm_machine *machine) {
  const int64_t each = at_gemm_parts(blocks, machine->processors);
  const int least = each < 8 ? machine->shared_bytes / ((int)each + 1) : 0;
  return needed < least ? least : needed;
}
