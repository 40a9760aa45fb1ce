/* SPDX-License-Identifier: Apache-2.0
 * block_tile.c: problems as the families of block_tile.cuh's kernel see them. */
#include "ops/gemm/kernels/block_tile.h"

/* The widest access that a matrix permits, an element at least. */
static int grain_of(const at_gemm *g, size_t element, int64_t lines, int64_t ld, int64_t stride) {
  const int grain = at_gemm_grain(g, element, lines, ld, stride);
  return grain < (int)element ? (int)element : grain;
}

at_gemm_shape at_gemm_shape_of(const at_gemm *g) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), out = attune_dtype_size((attune_dtype)g->dtype_out);
  const int grain_a = grain_of(g, in, at_gemm_cols_a(g), g->lda, g->stride_a),
            grain_b = grain_of(g, in, at_gemm_cols_b(g), g->ldb, g->stride_b),
            grain_d = grain_of(g, out, g->n, g->ldd, g->stride_d),
            grain_c = g->c == AT_C_NONE ? 16 : grain_of(g, out, g->n, g->ldc, g->stride_c);
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
                         .pointers = g->pointers != ATTUNE_POINTERS_NONE,
                         .grain_x = swapped ? grain_b : grain_a,
                         .grain_y = swapped ? grain_a : grain_b,
                         .grain_d = grain_d < grain_c ? grain_d : grain_c,
                         .workspace_cap = g->workspace_cap};
}

int at_block_warps(const at_block_choice *c) {
  return c->warps_m * c->warps_n * c->warps_k;
}

int64_t at_block_tiles(const at_gemm_shape *s, const at_block_choice *c) {
  return at_gemm_parts(s->m, c->tm) * at_gemm_parts(s->n, c->tn);
}

int64_t at_block_blocks(const at_gemm_shape *s, const at_block_choice *c) {
  return at_block_tiles(s, c) * s->batch * c->split * c->parts;
}

int64_t at_block_steps(const at_gemm_shape *s, const at_block_choice *c) {
  return at_gemm_parts(at_gemm_parts(s->k, c->step), c->split * c->parts);
}

bool at_block_is_whole(const at_gemm_shape *s, const at_block_choice *c) {
  return at_block_steps(s, c) <= c->stages;
}

size_t at_block_sums(const at_gemm_shape *s, const at_block_choice *c) {
  return c->parts == 1 ? 0 : (size_t)(at_block_tiles(s, c) * s->batch * c->parts * c->tm * c->tn * s->sum);
}

bool at_block_fits(const at_gemm_shape *s, const at_block_choice *c, int shared_bytes, size_t workspace,
                   const at_machine *machine) {
  const int ranks = c->split * c->parts;
  if ((c->stages < 2 && !at_block_is_whole(s, c)) || (c->split > 1 && machine->capability < 90)) return false;
  if (ranks > 1 && at_gemm_parts(s->k, c->step) < 2 * ranks) return false;
  if (at_block_tiles(s, c) * c->split > INT32_MAX / 64 || workspace > s->workspace_cap) return false;
  return shared_bytes <= machine->shared_bytes - 1024;
}

bool at_block_share(const at_gemm_shape *s, at_block_choice *c, int most, const at_machine *machine) {
  const int rounds = c->parts;
  const int64_t filled = (int64_t)at_gemm_usable(c->split, machine) * rounds,
                parts = rounds == 0 ? 1 : filled / (at_block_tiles(s, c) * s->batch * c->split);
  if (rounds > 0 && (parts < 2 || parts > most)) return false;
  c->parts = (int)parts;
  return c->stages <= at_block_steps(s, c);
}

at_block_load at_block_load_of(const at_gemm_shape *s, const at_block_choice *c, int resident,
                               const at_machine *machine) {
  const double processors = at_greater(at_gemm_usable(c->split, machine), 1.0), ranks = c->split * c->parts,
               blocks = (double)at_block_tiles(s, c) * (double)s->batch * ranks;
  const double whole = (double)(int64_t)(blocks / processors + 0.9999), busy = at_lesser(whole, resident),
               warps = busy * at_block_warps(c);
  return (at_block_load){.processors = processors,
                         .blocks = blocks,
                         .mine = (double)(int64_t)((double)at_gemm_parts(s->k, c->step) / ranks + 0.999),
                         .whole = whole,
                         .busy = busy,
                         .rounds = (double)(int64_t)(whole / busy + 0.999),
                         .used = at_lesser(blocks / processors, 1.0),
                         .few = warps < 8 ? 8.0 / warps : 1.0};
}

/* Of the kernel, as fitted to its times: launches that adding up the parts takes, and what part of the memory's rate
 * their sums have. */
static const double ADDING = 0.65, SUMS_RATE = 2.0 / 4.25;

double at_block_cost(const at_gemm_shape *s, const at_block_choice *c, const at_block_load *load,
                     const at_block_times *t, const at_machine *machine) {
  const double most = at_greater(t->memory, at_greater(t->compute, t->level2)),
               sum = t->memory + t->compute + t->level2;
  const double copied = c->tm * c->tn * (double)s->sum * (c->warps_k + c->split) / 128.0 * 2.5 * t->cycle;
  const double each = 0.9 + copied + (c->split > 1 ? t->meet : 0.0);
  const double last = c->parts > 1 ? ADDING * machine->launch + 0.02 * c->parts +
                                         (double)at_block_sums(s, c) / (SUMS_RATE * machine->memory)
                                   : 0.0;
  return (most + 0.12 * (sum - most)) * t->deep + 0.7 + each * (1.0 + 0.5 * (load->rounds - 1.0)) + t->before + last;
}

int at_gemm_usable(int split, const at_machine *machine) {
  return (split <= 2 ? machine->processors : machine->clustered) / split * split;
}

int at_gemm_spread(int64_t blocks, int needed, const at_machine *machine) {
  const int64_t each = at_gemm_parts(blocks, machine->processors);
  const int least = each < 8 ? machine->shared_bytes / ((int)each + 1) : 0;
  return needed < least ? least : needed;
}

void at_block_launch(at_gemm_launch_spec *r, const at_gemm_shape *s, const at_block_choice *c, int shared_bytes) {
  const unsigned tiles = (unsigned)at_block_tiles(s, c), threads = 32 * (unsigned)at_block_warps(c),
                 batch = (unsigned)s->batch, units = (unsigned)(c->tm * c->tn);
  at_gemm_launch_spec_grid(r, tiles, c->split, s->batch, c->parts, (int)threads, shared_bytes);
  if (c->parts > 1)
    r->after = (at_jit_config){
        .grid = {tiles * ((units + threads - 1) / threads), batch}, .block = {threads}, .dependent = true};
}
