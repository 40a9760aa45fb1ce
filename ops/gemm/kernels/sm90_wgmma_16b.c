/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b.c: the family of sm90_wgmma_16b.cuh: products of halves by Hopper's warpgroups, from tiles that tensor
 * maps bring. */
#include "ops/gemm/kernels/sm90_wgmma_16b_config.h"

#include "gemm_sm90_wgmma_16b_cuh.h"
#include "gemm_sm90_wgmma_16b_epilogue_cuh.h"
#include "gemm_sm90_wgmma_16b_pad_cuh.h"
#include "gemm_sm90_wgmma_16b_tile_cuh.h"

enum { UNIT = 64, ADDED_AT_ONCE = 64 };

/* Where the gated side lies contiguous, the second half's boxes begin, as all do, at a multiple of 16 bytes (seen on an
 * H200: an illegal instruction otherwise). */
static bool gates(const at_gemm *g) {
  const bool of_m = g->gated == ATTUNE_GATED_M;
  const int64_t whole = of_m ? g->m : g->n;
  return whole > UNIT && ((of_m ? g->trans_a : !g->trans_b) || whole / 2 % 8 == 0);
}

/* What tensor copies can reach, if need be in copies. Smaller problems are those of the families
 * batched and skinny. */
static bool supports(const at_gemm *g, const at_machine *machine) {
  const bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  const int64_t large = g->m > g->n ? g->m : g->n, small = g->m > g->n ? g->n : g->m;
  if (machine->capability != 90 || !half) return false;
  if (g->gated && !gates(g)) return false;
  if (small < 8 || (large <= 64 && g->k <= 64)) return false;
  if (large > INT32_MAX / 4 || g->k > INT32_MAX / 4 || g->batch > 65535) return false;
  return at_wgmma_reaches(g) && at_gemm_parts(g->m, 64) * at_gemm_parts(g->n, 16) * g->batch <= INT32_MAX / 1024;
}

static int kept_of(const at_wgmma_choice *c, bool larger) {
  return c->kept == 0 ? 0 : larger ? 1 : c->kept == 2 ? 2 : 0;
}

static void define(at_gemm_launch_spec *out, const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const at_gemm_define before[] = {
      {"X_K", s->x_k}, {"Y_K", s->y_k}, {"PAD_X", s->pads_x}, {"PAD_Y", s->pads_y}, {"HALVES", s->gated ? 2 : 1}};
  const at_gemm_define all[] = {{"MANY_X", out->maps[0].count > 1},
                                {"MANY_Y", out->maps[1].count > 1},
                                {"BYTES_D", s->grain_d},
                                {"READS_C", s->reads_c},
                                {"RAGGED_M", s->m % (c->tm * c->along_m) != 0},
                                {"RAGGED_N", s->n % (c->tn * c->along_n) != 0},
                                {"KEPT_X", kept_of(c, s->m >= s->n)},
                                {"KEPT_Y", kept_of(c, s->m < s->n)},
                                {"PADDED", c->parts > 1 ? (int)((s->padded_x + s->padded_y) / 256) : 0},
                                {"BARRIERS", at_wgmma_barriers(s, c)}};
  for (size_t i = 0; i < AT_COUNT(before); i++) at_gemm_define_add(out, before[i].name, before[i].value);
  out->before_defines = out->define_count;
  at_gemm_define_tunables(out, &at_wgmma_tunables, c);
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

static void set_grids(at_gemm_launch_spec *out, const at_wgmma_shape *s, const at_wgmma_choice *c,
                      const at_machine *machine) {
  const int cluster = at_wgmma_cluster(c), most = at_wgmma_clusters(c, machine);
  const int64_t works = at_wgmma_tiles(s, c) * s->batch * c->parts;
  const int64_t clusters = !at_wgmma_whole(c) && works > most ? most : works;
  out->config = (at_jit_config){.grid = {(unsigned)(clusters * cluster)},
                                .block = {(unsigned)at_wgmma_threads(c)},
                                .shared_bytes = (unsigned)at_wgmma_shared_bytes(s, c),
                                .dependent = true};
  if (cluster > 1) out->config.cluster[0] = (unsigned)cluster;
  out->workspace_bytes = at_wgmma_workspace(s, c);
  if (c->parts == 1) return;
  out->after = (at_jit_config){
      .grid = {(unsigned)(at_wgmma_block_tiles(s, c) * (c->tm * c->tn / ADDED_AT_ONCE)), (unsigned)s->batch},
      .block = {128},
      .shared_bytes = 8 * ADDED_AT_ONCE * 4,
      .dependent = true};
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  at_wgmma_choice c;
  if (!at_tunables_parse(&at_wgmma_tunables, &c, text)) return false;
  const at_wgmma_shape s = at_wgmma_shape_of(g, c.turned);
  if (!at_wgmma_fits(&s, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  if (c.turned) at_gemm_launch_spec_swap(out);
  out->mapped = true;
  if (s.gated) out->arguments.m /= 2;
  out->maps[0] = at_wgmma_tensor(g, c.turned, s.gated && s.x_k ? UNIT : (s.x_k ? c.tm : UNIT) / c.along_n);
  out->maps[1] = at_wgmma_tensor(g, !c.turned, (s.y_k ? c.tn : UNIT) / c.along_m);
  out->copied[0] = s.pads_x, out->copied[1] = s.pads_y;
  out->places[1] = s.padded_x;
  define(out, &s, &c);
  set_grids(out, &s, &c, machine);
  const int64_t copying = at_wgmma_pad_blocks(g, false) + at_wgmma_pad_blocks(g, true);
  if (copying > 0)
    out->before = (at_jit_config){.grid = {(unsigned)copying}, .block = {AT_WGMMA_PAD_THREADS}, .dependent = true};
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm90_wgmma_16b.cu",
    .entry = "at_wgmma",
    .text = at_gemm_sm90_wgmma_16b_cuh,
    .has_epilogue = true,
    .has_gated = true,
    .first = {at_gemm_sm90_wgmma_16b_tile_cuh, at_gemm_sm90_wgmma_16b_epilogue_cuh},
    .before_apart = true,
    .before_text = at_gemm_sm90_wgmma_16b_pad_cuh,
    .supports = supports,
    .candidates = at_wgmma_candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm90_wgmma_16b = {
    .name = "sm90_wgmma_16b", .version = 3, AT_GEMM_KERNEL_SLOTS(family, at_wgmma_tunables)};
