/* SPDX-License-Identifier: Apache-2.0
 * wgmma.c: the family of wgmma.cuh: products of halves by Hopper's warpgroups, from tiles that tensor maps bring. */
#include "ops/gemm/wgmma.h"

#include <string.h>

#include "gemm_wgmma_cuh.h"
#include "gemm_wgmma_sums_cuh.h"
#include "gemm_wgmma_tile_cuh.h"

enum { ALIGNED = 1024, BARRIER_BYTES = 16, UNIT = 64, ADDED_AT_ONCE = 64 };

int64_t at_wgmma_parts_of(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit;
}

/* The widest store that D permits, and the widest load of C. */
static int grain_d(const at_gemm *g) {
  const size_t out = attune_dtype_size((attune_dtype)g->dtype_out);
  const int d = at_gemm_grain(g, out, g->n, g->ldd, g->stride_d),
            c = g->c == AT_C_NONE ? d : at_gemm_grain(g, out, g->n, g->ldc, g->stride_c);
  return d < c ? d : c;
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
                          .reads_c = g->c != AT_C_NONE,
                          .workspace_cap = g->workspace_cap};
}

int at_wgmma_stage_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return 2 * UNIT * c->deep * (c->tm + (s->y_k ? c->tn : (c->tn + UNIT - 1) / UNIT * UNIT));
}

/* As LEAVES of wgmma_tile.cuh. */
static bool leaves_registers(const at_wgmma_choice *c) {
  return c->groups >= 2 && c->tm / c->groups * c->tn > (c->groups == 2 ? 64 * 192 : 64 * 96);
}

int at_wgmma_threads(const at_wgmma_choice *c) {
  return 128 * c->groups + (leaves_registers(c) ? 128 : 32);
}

/* As PASS_BYTES of wgmma_sums.cuh. */
static int pass_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const bool rounded = s->out == 2 && !s->reads_c;
  const int own = c->tn / c->split, passing = rounded && c->split == 1 && own % 64 == 0 ? 64 : own % 32 == 0 ? 32 : 16;
  const int line = c->turned ? passing : UNIT, lines = c->turned ? UNIT : passing;
  return lines * (line + (rounded || c->turned ? 8 : 4)) * (rounded ? 2 : 4);
}

/* Where the barriers are in shared memory: behind stages, what passes to D, and what the cluster's blocks send. */
static int barriers_at(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const int ring = c->stages * at_wgmma_stage_bytes(s, c), pass = c->parts > 1 ? 0 : c->groups * pass_bytes(s, c),
            inbox = (c->split - 1) * c->tm * (c->tn / c->split) * 4;
  return (ring + pass + inbox + 127) / 128 * 128;
}

int at_wgmma_shared_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return ALIGNED + barriers_at(s, c) + BARRIER_BYTES * (c->stages + 1);
}

int64_t at_wgmma_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return at_wgmma_parts_of(s->m, (int64_t)c->tm * c->along_m) * at_wgmma_parts_of(s->n, (int64_t)c->tn * c->along_n);
}

static int64_t blocks_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return at_wgmma_tiles(s, c) * c->along_m * c->along_n;
}

size_t at_wgmma_workspace(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return c->parts == 1 ? 0 : (size_t)(blocks_tiles(s, c) * s->batch * c->parts) * (size_t)(c->tm * c->tn * 4);
}

/* Clusters of 4 and 8 leave some of each group of processors idle: an H200 holds 66 of 2, 30 of 4 and 15 of 8. */
int at_wgmma_clusters(const at_wgmma_choice *c, const at_gemm_machine *machine) {
  const int blocks = at_wgmma_cluster(c),
            clusters = (blocks <= 2 ? machine->processors : machine->processors * 10 / 11) / blocks * c->blocks;
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

/* Registers: of the four quarters of a processor each has a fourth of its warps. */
static bool has_registers(const at_wgmma_choice *c) {
  const int warps = (at_wgmma_threads(c) / 32 * c->blocks + 3) / 4, room = 65536 / 128 / warps / 8 * 8,
            sums = c->tm / c->groups * c->tn / 128;
  return leaves_registers(c) ? c->blocks == 1 : sums + 48 <= (room < 255 ? room : 255);
}

bool at_wgmma_fits(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_gemm_machine *machine) {
  const int64_t steps = at_wgmma_parts_of(s->k, AT_WGMMA_STEP * c->deep), tiles = at_wgmma_tiles(s, c);
  const int cluster = at_wgmma_cluster(c), pieces_m = c->tn / 8, pieces_n = c->tm / 8;
  if (!is_tile(c) || !has_registers(c) || cluster > 8 || c->tn % (16 * c->split)) return false;
  if (c->along_m > 4 || c->along_n > 4 || pieces_m % c->along_m || pieces_n % c->along_n) return false;
  if (steps < (int64_t)c->split * c->parts) return false;
  if (tiles > INT32_MAX / 64 / c->parts / s->batch / cluster ||
      blocks_tiles(s, c) * c->tm * c->tn / 64 > INT32_MAX / 64)
    return false;
  if (c->parts > 1 && s->batch > 65535) return false;
  return at_wgmma_workspace(s, c) <= s->workspace_cap &&
         (at_wgmma_shared_bytes(s, c) + 1024) * c->blocks <= machine->shared_bytes + 1024;
}

/* ---- the words of a configuration ---- */

bool at_wgmma_format(at_configuration *out, const at_wgmma_choice *c) {
  char tile[24], cluster[24];
  size_t at = 0, at_cluster = 0;
  *out = (at_configuration){""};
  return at_append(tile, sizeof tile, &at, "%dx%d", c->tm, c->tn) &&
         at_append(cluster, sizeof cluster, &at_cluster, "%dx%d", c->along_m, c->along_n) &&
         at_configuration_put_text(out, "tile", tile) && at_configuration_put(out, "deep", c->deep) &&
         at_configuration_put(out, "stages", c->stages) && at_configuration_put(out, "groups", c->groups) &&
         at_configuration_put(out, "splitk", c->split) && at_configuration_put(out, "parts", c->parts) &&
         at_configuration_put_text(out, "cluster", cluster) && at_configuration_put(out, "band", c->band) &&
         at_configuration_put(out, "blocks", c->blocks) && at_configuration_put(out, "early", c->early) &&
         at_configuration_put(out, "kept", c->kept) && at_configuration_put(out, "turned", c->turned);
}

static bool parse(at_wgmma_choice *c, const at_configuration *text) {
  at_configuration again;
  int64_t early = 0, kept = 0, turned = 0;
  *c = (at_wgmma_choice){0};
  if (!at_gemm_pair(text, "tile", &c->tm, &c->tn) || !at_gemm_number(text, "deep", AT_WGMMA_DEEP, &c->deep) ||
      !at_gemm_number(text, "stages", AT_WGMMA_STAGES, &c->stages) ||
      !at_gemm_number(text, "groups", AT_WGMMA_GROUPS, &c->groups) || !at_gemm_number(text, "splitk", 8, &c->split) ||
      !at_gemm_number(text, "parts", AT_WGMMA_PARTS, &c->parts) ||
      !at_gemm_pair(text, "cluster", &c->along_m, &c->along_n) ||
      !at_gemm_number(text, "band", AT_WGMMA_BAND, &c->band) ||
      !at_gemm_number(text, "blocks", AT_WGMMA_BLOCKS, &c->blocks) || !at_configuration_get(text, "early", &early) ||
      !at_configuration_get(text, "kept", &kept) || !at_configuration_get(text, "turned", &turned) || kept < 0 ||
      kept > 2 || early < 0 || early > AT_WGMMA_EARLY)
    return false;
  c->early = (int)early;
  c->kept = (int)kept;
  c->turned = turned == 1;
  return at_wgmma_format(&again, c) && strcmp(again.text, text->text) == 0;
}

/* ---- the family ---- */

static at_tensor_shape tensor_of(const at_gemm *g, bool b, int box_lines) {
  const int64_t size = 2;
  return (at_tensor_shape){.length = b ? at_gemm_rows_b(g) : at_gemm_rows_a(g),
                           .lines = b ? at_gemm_cols_b(g) : at_gemm_cols_a(g),
                           .count = (b ? g->stride_b : g->stride_a) == 0 ? 1 : g->batch,
                           .line_bytes = (b ? g->ldb : g->lda) * size,
                           .matrix_bytes = (b ? g->stride_b : g->stride_a) * size,
                           .box_length = UNIT,
                           .box_lines = box_lines,
                           .bfloat = g->dtype == ATTUNE_BF16};
}

/* What tensor copies can reach. Smaller problems are those of tiny_batched, rows and skinny. */
static bool supports(const at_gemm *g, const at_gemm_machine *machine) {
  const bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  const int64_t large = g->m > g->n ? g->m : g->n, small = g->m > g->n ? g->n : g->m;
  if (machine->capability != 90 || !half || g->alignment < 16) return false;
  if (small < 8 || (large <= 64 && g->k <= 64)) return false;
  if (large > INT32_MAX / 4 || g->k > INT32_MAX / 4 || g->batch > 65535) return false;
  const at_tensor_shape a = tensor_of(g, false, UNIT), b = tensor_of(g, true, UNIT);
  return at_tensor_shape_fits(&a) && at_tensor_shape_fits(&b) &&
         at_wgmma_parts_of(g->m, 64) * at_wgmma_parts_of(g->n, 16) * g->batch <= INT32_MAX / 1024;
}

/* X is A and Y is B, whichever they were. */
static void turn(at_gemm_recipe *r) {
  at_gemm_arguments *a = &r->arguments;
  const at_gemm_arguments was = *a;
  r->swapped = true;
  a->lda = was.ldb, a->ldb = was.lda;
  a->stride_a = was.stride_b, a->stride_b = was.stride_a;
  a->m = was.n, a->n = was.m;
}

static int kept_of(const at_wgmma_choice *c, bool larger) {
  return c->kept == 0 ? 0 : larger ? 1 : c->kept == 2 ? 2 : 0;
}

static void define(at_gemm_recipe *out, const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const at_gemm_define all[] = {{"TM", c->tm},
                                {"TN", c->tn},
                                {"DEEP", c->deep},
                                {"STAGES", c->stages},
                                {"GROUPS", c->groups},
                                {"SPLIT", c->split},
                                {"PARTS", c->parts},
                                {"ALONG_M", c->along_m},
                                {"ALONG_N", c->along_n},
                                {"X_K", s->x_k},
                                {"Y_K", s->y_k},
                                {"MANY_X", out->maps[0].count > 1},
                                {"MANY_Y", out->maps[1].count > 1},
                                {"BYTES_D", s->grain_d},
                                {"TURNED", c->turned},
                                {"READS_C", s->reads_c},
                                {"RAGGED_M", s->m % (c->tm * c->along_m) != 0},
                                {"RAGGED_N", s->n % (c->tn * c->along_n) != 0},
                                {"BAND", c->band},
                                {"EARLY", c->early},
                                {"BLOCKS", c->blocks},
                                {"KEPT_X", kept_of(c, s->m >= s->n)},
                                {"KEPT_Y", kept_of(c, s->m < s->n)},
                                {"BARRIERS", barriers_at(s, c)}};
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

static void set_grids(at_gemm_recipe *out, const at_wgmma_shape *s, const at_wgmma_choice *c,
                      const at_gemm_machine *machine) {
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
  out->after =
      (at_jit_config){.grid = {(unsigned)(blocks_tiles(s, c) * (c->tm * c->tn / ADDED_AT_ONCE)), (unsigned)s->batch},
                      .block = {128},
                      .shared_bytes = 8 * ADDED_AT_ONCE * 4,
                      .dependent = true};
}

static bool recipe(at_gemm_recipe *out, const at_gemm *g, const at_gemm_machine *machine,
                   const at_configuration *text) {
  at_wgmma_choice c;
  if (!parse(&c, text)) return false;
  const at_wgmma_shape s = at_wgmma_shape_of(g, c.turned);
  if (!at_wgmma_fits(&s, &c, machine)) return false;
  at_gemm_recipe_start(out, g);
  if (c.turned) turn(out);
  out->mapped = true;
  out->maps[0] = tensor_of(g, c.turned, (s.x_k ? c.tm : UNIT) / c.along_n);
  out->maps[1] = tensor_of(g, !c.turned, (s.y_k ? c.tn : UNIT) / c.along_m);
  define(out, &s, &c);
  set_grids(out, &s, &c, machine);
  return true;
}

const at_gemm_kernels at_gemm_wgmma_family = {
    .name = "wgmma",
    .file = "wgmma.cu",
    .entry = "at_wgmma",
    .text = at_gemm_wgmma_cuh,
    .first = {at_gemm_wgmma_tile_cuh, at_gemm_wgmma_sums_cuh},
    .supports = supports,
    .candidates = at_wgmma_candidates,
    .recipe = recipe,
};
