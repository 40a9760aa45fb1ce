/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_bf16x6.c: the family of sm90_wgmma_bf16x6.cuh: f32 products by tensor cores, under the contract
 * `equivalent` alone. */
#include "ops/gemm/kernels/kernel.h"

#include "gemm_sm90_wgmma_bf16x6_cuh.h"

enum {
  STEP = 64,
  MOST_CHOICES = 16,
  MOST_FEW = 3,
  MOST_STAGES = 4,
  LEAST_SIDE = 64,
  STATIC_BYTES = 1024,
  PART_THREADS = 256
};
static const double LEAST_PRODUCTS = 1e8; /* below that the parts take longer to make than the product in f32 */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                  \
  PAIR("tile", rows, NULL, 64, 128, columns, "COLUMNS", 64, 128, AT_POWERS, \
       "columns and rows of D that a block computes")                       \
  NUMBER("stages", stages, "STAGES", 2, MOST_STAGES, 0, "of 64 steps along k, in shared memory or on the way there")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

static int64_t stage_bytes(const choice *c) {
  return (c->rows + c->columns) * (int64_t)STEP * 2 * 3;
}

/* Blocks of 64 x 64 elements of both operands: parts and a flag for each. */
static int64_t blocks_of(const at_gemm *g, const choice *c) {
  const int64_t x = at_gemm_parts(g->n, c->rows) * (c->rows / 64);
  const int64_t y = at_gemm_parts(g->m, c->columns) * (c->columns / 64);
  return (x + y) * at_gemm_parts(g->k, STEP);
}

static int64_t workspace_of(const at_gemm *g, const choice *c) {
  return blocks_of(g, c) * g->batch * (64 * STEP * 2 * 3 + 4);
}

static int64_t tiles_of(const at_gemm *g, const choice *c) {
  return at_gemm_parts(g->n, c->rows) * at_gemm_parts(g->m, c->columns);
}

static bool fits(const at_gemm *g, const choice *c, const at_machine *machine) {
  if ((uint64_t)workspace_of(g, c) > g->workspace_cap || tiles_of(g, c) > INT32_MAX / 64 ||
      blocks_of(g, c) > INT32_MAX / 64)
    return false;
  return c->stages * stage_bytes(c) + STATIC_BYTES <= machine->shared_bytes - STATIC_BYTES;
}

/* The least workspace is that of the smallest tiles. */
static bool supports(const at_gemm *g, const at_machine *machine) {
  const choice least = {.rows = 64, .columns = 64, .stages = 2};
  if (g->dtype != ATTUNE_F32 || g->dtype_out != ATTUNE_F32 || g->accuracy != ATTUNE_EQUIVALENT) return false;
  if (machine->capability != 90 || g->m < LEAST_SIDE || g->n < LEAST_SIDE || g->k < LEAST_SIDE) return false;
  if (g->m > INT32_MAX / 4 || g->n > INT32_MAX / 4 || g->k > INT32_MAX / 4 || g->batch > 65535) return false;
  return (double)g->m * (double)g->n * (double)g->k * (double)g->batch >= LEAST_PRODUCTS && fits(g, &least, machine);
}

static const double PARTS_RATE = 0.8; /* of the memory's rate, for making parts */

/* Microseconds: parts at the memory's rate, then rounds of tiles, whose six products of 64 steps take so many
 * cycles that two warp groups share. */
static double cost_of(const at_gemm *g, const choice *c, const at_machine *machine) {
  const double bytes = (double)blocks_of(g, c) * (double)g->batch * 64.0 * STEP * 10.0;
  const double rounds = (double)at_gemm_parts(tiles_of(g, c) * g->batch, machine->processors);
  const double share = c->columns == 128 && c->rows == 128 ? 1.0
                       : c->rows == 128                    ? 1.33
                                                           : 1.5; /* what shared memory costs */
  const double step = 6.0 * c->rows * c->columns * STEP / machine->wgmma_f16 * share * machine->cycle;
  return 4.0 + bytes / (PARTS_RATE * machine->memory) + rounds * (2.5 + (double)at_gemm_parts(g->k, STEP) * step);
}

static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  choice list[MOST_CHOICES];
  int count = 0;
  for (int rows = 64; rows <= 128; rows += 64)
    for (int columns = 64; columns <= 128; columns += 64) {
      choice c = {.rows = rows, .columns = columns, .stages = MOST_STAGES};
      while (c.stages > 1 && !fits(g, &c, machine)) c.stages--;
      if (c.stages < 2) continue;
      c.cost = cost_of(g, &c, machine);
      count = AT_GEMM_INSERT(list, count, MOST_CHOICES, &c);
    }
  return AT_GEMM_OFFER(out, wide ? max : at_lesser_int(max, MOST_FEW), list, count, 0.0);
}

static int grain_of(const at_gemm *g, int64_t columns, int64_t ld, int64_t stride) {
  return at_gemm_grain(g, sizeof(float), columns, ld, stride);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(g, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  const int d = grain_of(g, g->n, g->ldd, g->stride_d);
  const at_gemm_define all[] = {{"ROWS", c.rows / 64},
                                {"X_K", !g->trans_b},
                                {"Y_K", g->trans_a},
                                {"BYTES_X", grain_of(g, at_gemm_cols_b(g), g->ldb, g->stride_b)},
                                {"BYTES_Y", grain_of(g, at_gemm_cols_a(g), g->lda, g->stride_a)},
                                {"BYTES_D", d < 8 ? 4 : 8},
                                {"READS_C", g->c != AT_C_NONE}};
  at_gemm_define_tunables(out, &tunables, &c);
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
  const unsigned threads = (unsigned)(2 * c.rows + 32);
  out->config = (at_jit_config){.grid = {(unsigned)tiles_of(g, &c), (unsigned)g->batch},
                                .block = {threads},
                                .shared_bytes = (unsigned)(c.stages * stage_bytes(&c)) + STATIC_BYTES,
                                .dependent = true};
  out->before = (at_jit_config){
      .grid = {(unsigned)blocks_of(g, &c), (unsigned)g->batch}, .block = {PART_THREADS}, .dependent = true};
  out->workspace_bytes = (size_t)workspace_of(g, &c);
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm90_wgmma_bf16x6.cu",
    .entry = "at_bf16x6",
    .text = at_gemm_sm90_wgmma_bf16x6_cuh,
    .before_apart = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm90_wgmma_bf16x6 = {
    .name = "sm90_wgmma_bf16x6", .version = 1, AT_GEMM_KERNEL_SLOTS(family, tunables)};
