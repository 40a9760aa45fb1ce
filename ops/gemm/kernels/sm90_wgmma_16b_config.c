/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_config.c: configurations of sm90_wgmma_16b.cuh: what they take, whether they can be, how they are
 * written. */
#include "ops/gemm/kernels/sm90_wgmma_16b_config.h"

#include "ops/gemm/problem/epilogue.h"

enum { ALIGNED = 1024, BARRIER_BYTES = 16, UNIT = 64 };

typedef at_wgmma_choice choice;

const at_tunables at_wgmma_tunables = AT_TUNABLES(AT_WGMMA_TUNABLES);

/* The widest store that D permits, and the widest load of C; an element at least. */
static int grain_d(const at_gemm *g) {
  const size_t out = attune_dtype_size((attune_dtype)g->dtype_out);
  const int d = at_gemm_grain(g, out, g->n, g->ldd, g->stride_d),
            c = g->c == AT_C_NONE ? d : at_gemm_grain(g, out, g->n, g->ldc, g->stride_c);
  const int least = d < c ? d : c;
  return least < (int)out ? (int)out : least;
}

at_wgmma_shape at_wgmma_shape_of(const at_gemm *g, bool turned) {
  return (at_wgmma_shape){.m = turned ? g->n : g->m,
                          .n = turned ? g->m : g->n,
                          .k = g->k,
                          .batch = g->batch,
                          .x_k = turned ? !g->trans_b : g->trans_a,
                          .y_k = turned ? g->trans_a : !g->trans_b,
                          .out = (int)attune_dtype_size((attune_dtype)g->dtype_out),
                          .grain_d = grain_d(g),
                          .gated = g->gated != ATTUNE_GATED_NONE,
                          .gated_rows = g->gated == (turned ? ATTUNE_GATED_N : ATTUNE_GATED_M),
                          .reads_c = g->c != AT_C_NONE,
                          .rounded = attune_dtype_size((attune_dtype)g->dtype_out) == 2 && g->c == AT_C_NONE &&
                                     !at_gemm_epilogue_matrices(g),
                          .pads_x = at_wgmma_pads(g, turned),
                          .pads_y = at_wgmma_pads(g, !turned),
                          .padded_x = (size_t)at_wgmma_padded_bytes(g, turned),
                          .padded_y = (size_t)at_wgmma_padded_bytes(g, !turned),
                          .workspace_cap = g->workspace_cap};
}

static int stage_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return 2 * UNIT * c->deep * (c->tm + (s->y_k ? c->tn : (c->tn + UNIT - 1) / UNIT * UNIT));
}

/* As LEAVES of sm90_wgmma_16b_tile.cuh. */
static bool leaves_registers(const at_wgmma_choice *c) {
  return c->groups >= 2 && c->tm / c->groups * c->tn > (c->groups == 2 ? 64 * 192 : 64 * 96);
}

int at_wgmma_threads(const at_wgmma_choice *c) {
  return 128 * c->groups + (leaves_registers(c) ? 128 : 32);
}

/* As PASS_BYTES of sm90_wgmma_16b_epilogue.cuh. */
static int pass_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const bool rounded = s->rounded;
  const int own = c->tn / c->split, passing = rounded && c->split == 1 && own % 64 == 0 ? 64 : own % 32 == 0 ? 32 : 16;
  const int line = c->turned ? passing : UNIT, lines = c->turned ? UNIT : passing;
  return lines * (line + (rounded || c->turned ? 8 : 4)) * (rounded ? 2 : 4);
}

/* Stages, what passes to D, and what the cluster's blocks send. */
int at_wgmma_barriers(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const int ring = c->stages * stage_bytes(s, c), pass = c->parts > 1 ? 0 : c->groups * pass_bytes(s, c),
            inbox = (c->split - 1) * c->tm * (c->tn / c->split) * 4;
  return (ring + pass + inbox + 127) / 128 * 128;
}

int at_wgmma_shared_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return ALIGNED + at_wgmma_barriers(s, c) + BARRIER_BYTES * (c->stages + 1);
}

int64_t at_wgmma_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return at_gemm_parts(s->m, (int64_t)c->tm * c->along_m) * at_gemm_parts(s->n, (int64_t)c->tn * c->along_n);
}

int64_t at_wgmma_block_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return at_wgmma_tiles(s, c) * c->along_m * c->along_n;
}

size_t at_wgmma_sums_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return c->parts == 1 ? 0 : (size_t)(at_wgmma_block_tiles(s, c) * s->batch * c->parts) * (size_t)(c->tm * c->tn * 4);
}

size_t at_wgmma_workspace(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return s->padded_x + s->padded_y + at_wgmma_sums_bytes(s, c);
}

int at_wgmma_clusters(const at_wgmma_choice *c, const at_machine *machine) {
  const int blocks = at_wgmma_cluster(c),
            clusters = (blocks <= 2 ? machine->processors : machine->clustered) / blocks * c->blocks;
  return clusters < 1 ? 1 : clusters;
}

static bool is_tile(const at_wgmma_choice *c) {
  static const int widths[] = {16, 32, 48, 64, 96, 112, 128, 192, 224, 256};
  bool known = false;
  for (size_t i = 0; i < AT_COUNT(widths); i++) known = known || c->tn == widths[i];
  const int rows = c->tm / c->groups;
  return known && c->tm <= 256 && c->tm == rows * c->groups && rows % UNIT == 0 &&
         rows * c->tn <= (c->groups == 3 ? 64 * 128 : 64 * 256);
}

/* Registers: of the four quarters of a processor each has a fourth of its warps. A cluster's blocks need some more. */
static bool has_registers(const at_wgmma_choice *c) {
  const int warps = (at_wgmma_threads(c) / 32 * c->blocks + 3) / 4, room = AT_PROCESSOR_REGISTERS / 128 / warps / 8 * 8,
            sums = c->tm / c->groups * c->tn / 128, others = at_wgmma_cluster(c) > 1 ? 56 : 48;
  return leaves_registers(c) ? c->blocks == 1 : sums + others <= (room < 255 ? room : 255);
}

/* A warpgroup has 64 rows of each half; sums that pass through the workspace are added up one by one. */
static bool gates(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return s->gated_rows && c->tm == 2 * UNIT * c->groups && c->parts == 1 && (!s->x_k || c->tm / UNIT % c->along_n == 0);
}

bool at_wgmma_fits(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_machine *machine) {
  const int64_t steps = at_gemm_parts(s->k, AT_WGMMA_STEP * c->deep), tiles = at_wgmma_tiles(s, c);
  const int cluster = at_wgmma_cluster(c), pieces_m = c->tn / 8, pieces_n = c->tm / 8;
  if (s->gated && !gates(s, c)) return false;
  if (!is_tile(c) || !has_registers(c) || cluster > 8 || c->tn % (16 * c->split)) return false;
  if (c->along_m > 4 || c->along_n > 4 || pieces_m % c->along_m || pieces_n % c->along_n) return false;
  if (steps < (int64_t)c->split * c->parts) return false;
  /* A place is given back when the next step is on its way: with one place only one step can be. */
  if (c->stages < 2 && steps > (int64_t)c->split * c->parts) return false;
  if (tiles > INT32_MAX / 64 / c->parts / s->batch / cluster ||
      at_wgmma_block_tiles(s, c) * c->tm * c->tn / 64 > INT32_MAX / 64)
    return false;
  if (c->parts > 1 && s->batch > 65535) return false;
  if (c->early > 0 && (s->pads_x || s->pads_y)) return false; /* copies are not there early */
  return at_wgmma_workspace(s, c) <= s->workspace_cap &&
         (at_wgmma_shared_bytes(s, c) + 1024) * c->blocks <= machine->shared_bytes + 1024;
}
