/* SPDX-License-Identifier: Apache-2.0
 * skinny_shape.c: a problem as a large factor times a thin one. */
#include "ops/gemm/kernels/skinny_shape.h"

at_gemm_skinny_shape at_gemm_skinny_shape_of(const at_gemm *g) {
  const bool swapped = g->m < g->n;
  at_gemm_skinny_shape s = {.m = swapped ? g->n : g->m,
                            .n = swapped ? g->m : g->n,
                            .k = g->k,
                            .batch = g->batch,
                            .in = (int)attune_dtype_size((attune_dtype)g->dtype),
                            .swapped = swapped,
                            .large_k = swapped ? !g->trans_b : g->trans_a,
                            .small_k = swapped ? g->trans_a : !g->trans_b};
  s.half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  s.sum = g->dtype == ATTUNE_F64 ? 8 : 4;
  s.wide = 16 / s.in;
  return s;
}

void at_gemm_skinny_shape_start(at_gemm_launch_spec *out, const at_gemm *g, const at_gemm_skinny_shape *s) {
  const at_gemm_arguments *a = &out->arguments;
  at_gemm_launch_spec_start(out, g);
  if (s->swapped) at_gemm_launch_spec_swap(out);
  at_gemm_define_add(out, "BYTES_L", at_gemm_grain(g, 1, s->large_k ? s->m : s->k, a->lda, a->stride_a));
  at_gemm_define_add(out, "BYTES_S", at_gemm_grain(g, 1, s->small_k ? s->n : s->k, a->ldb, a->stride_b));
  at_gemm_define_add(out, "SMALL_K", s->small_k);
  at_gemm_define_add(out, "TURNED", s->swapped);
  at_gemm_define_add(out, "READS_C", g->c != AT_C_NONE);
  at_gemm_define_add(out, "RAGGED", (s->large_k ? s->k : s->m) % s->wide != 0);
}

/* Clusters that the device holds when a processor has one block. */
static double clusters_at_once(const at_machine *machine, int blocks) {
  const int usable = blocks > 2 ? machine->clustered : machine->processors;
  return usable < blocks ? 1.0 : (double)(usable / blocks);
}

double at_gemm_uneven(const at_machine *machine, double clusters, int blocks) {
  const double at_once = clusters_at_once(machine, blocks), rounds = clusters / at_once;
  const double whole = rounds > 1.0 ? (double)(int64_t)(rounds + 0.999) : 1.0;
  const double uneven = whole * machine->processors / (clusters * blocks);
  return uneven > 1.0 ? uneven : 1.0;
}

bool at_gemm_skinny_is_slow(const at_gemm_skinny_shape *s, double cost, const at_machine *machine) {
  const double bytes = (double)(s->m + s->n) * (double)s->k * s->in * (double)s->batch;
  return cost > 1.25 * bytes / machine->memory + 3.0;
}
