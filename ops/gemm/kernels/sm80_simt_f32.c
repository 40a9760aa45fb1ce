/* SPDX-License-Identifier: Apache-2.0
 * sm80_simt_f32.c: the family of sm80_simt_f32.cuh and block_tile.cuh: products of f32 in f32, where vendors leave
 * time: small, odd, deep ones and those whose tiles do not fill the processors. */
#include "ops/gemm/kernels/block_tile.h"

#include "gemm_block_tile_cuh.h"
#include "gemm_sm80_simt_f32_cuh.h"

enum { MOST_CHOICES = 160, MOST_FEW = 8, MOST_WARPS = 8, MOST_PARTS = 264, MOST_ROUNDS = 2 };

static const double HOPELESS = 1.4;       /* times the best guess: not tried */
static const double CYCLE = 1.0 / 1900.0; /* microseconds */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                     \
  PAIR("tile", tm, "TM", 16, 256, tn, "TN", 16, 256, AT_POWERS, "rows and columns of D that a block computes") \
  NUMBER("step", step, "BK", 8, 128, AT_POWERS, "of k, by a block at a time")                                  \
  PAIR("warps", warps_m, "WARPS_M", 1, MOST_WARPS, warps_n, "WARPS_N", 1, MOST_WARPS, AT_POWERS,               \
       "warps of a block along the rows and the columns")                                                      \
  NUMBER("along", warps_k, "WARPS_K", 1, MOST_WARPS, AT_POWERS, "warps that share a step")                     \
  NUMBER("lanes", lanes, "LANES_M", 4, 8, AT_POWERS,                                                           \
         "lanes of a warp along the rows; the others lie along the columns")                                   \
  NUMBER("stages", stages, "STAGES", 1, 16, 0, "steps that a block has in shared memory or on the way there")  \
  NUMBER("splitk", split, "SPLIT", 1, 8, 0,                                                                    \
         "blocks, a cluster, that share k; more than one on devices of capability 9.0 and later")              \
  NUMBER("parts", parts, "PARTS", 1, MOST_PARTS, 0,                                                            \
         "clusters that share k further: their sums go to the workspace, and another launch adds them up")     \
  NUMBER("bound", bound, "BOUND", 0, 1, 0,                                                                     \
         "1: sums lie in registers so that a product finds what it takes in different banks")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_shape shape;

static bool supports(const at_gemm *g, const at_gemm_machine *machine) {
  if (g->dtype != ATTUNE_F32 || g->dtype_out != ATTUNE_F32 || g->accuracy == ATTUNE_REDUCED) return false;
  const shape s = at_gemm_shape_of(g);
  if (s.m <= 64 && s.k <= 64) return false; /* sm80_batched_smem's */
  return machine->capability >= 80 && s.n >= 8 && s.m <= INT32_MAX / 4 && s.k <= INT32_MAX / 4 && s.batch <= 65535 &&
         at_gemm_parts(s.m, 32) * at_gemm_parts(s.n, 16) <= INT32_MAX / 64;
}

static int warps_of(const choice *c) {
  return c->warps_m * c->warps_n * c->warps_k;
}

/* What a thread makes: rows, columns. */
static int rows_of(const choice *c) {
  return c->tm / c->warps_m / c->lanes;
}

static int cols_of(const choice *c) {
  return c->tn / c->warps_n / (32 / c->lanes);
}

/* As at_tile of sm80_simt_f32.cuh. */
static int stage_bytes(const shape *s, const choice *c) {
  return (c->tm + (s->x_k ? 4 : 0) + c->tn + (s->y_k ? 4 : 0)) * c->step * 4;
}

static int shared_bytes(const shape *s, const choice *c) {
  const int stages = c->stages * stage_bytes(s, c),
            sums = c->warps_k * (s->swapped ? c->tm * (c->tn + 4) : c->tn * (c->tm + 4)) * 4;
  return stages > sums ? stages : sums;
}

static int registers_of(const shape *s, const choice *c) {
  const int m = rows_of(c), n = cols_of(c), lines = (s->x_k ? c->tm : 0) + (s->y_k ? c->tn : 0);
  return m * n + 2 * (m + n) + 30 + lines / (4 * warps_of(c)); /* and an address of each line */
}

/* Sums that lie by pairs, along D's contiguous side: faster where a thread has no more of them along that side than
 * along the other, and does not wait for the sums of others at the end. */
static bool is_better_bound(const shape *s, const choice *c) {
  const int m = rows_of(c), n = cols_of(c);
  return c->warps_k == 1 && m * n >= 64 && (s->swapped ? n <= m : m <= n);
}

static int64_t tiles_of(const shape *s, const choice *c) {
  return at_gemm_parts(s->m, c->tm) * at_gemm_parts(s->n, c->tn);
}

static size_t workspace_of(const shape *s, const choice *c) {
  return c->parts == 1 ? 0 : (size_t)(tiles_of(s, c) * s->batch * c->parts * c->tm * c->tn * 4);
}

/* Steps along k of a block, at most. */
static int64_t steps_of(const shape *s, const choice *c) {
  return at_gemm_parts(at_gemm_parts(s->k, c->step), c->split * c->parts);
}

static bool is_whole(const shape *s, const choice *c) {
  return steps_of(s, c) <= c->stages;
}

/* Copies of a line of a tile that lies along its rows: no more than there are threads. */
static int units_of(const shape *s, const choice *c) {
  const int x = s->x_k ? 8 : c->tm * 4 / s->grain_x, y = s->y_k ? 8 : c->tn * 4 / s->grain_y;
  return x > y ? x : y;
}

static int resident_of(const shape *s, const choice *c, const at_gemm_machine *machine) {
  const int threads = 32 * warps_of(c), by_shared = machine->shared_bytes / (shared_bytes(s, c) + 1024),
            by_registers = 65536 / (((registers_of(s, c) + 7) & ~7) * threads);
  const int blocks = at_lesser_int(at_lesser_int(by_shared, by_registers), 2048 / threads);
  return blocks < 1 ? 1 : blocks;
}

static bool fits(const shape *s, const choice *c, const at_gemm_machine *machine) {
  if (c->tm % (4 * c->lanes * c->warps_m) || c->tn % (128 / c->lanes * c->warps_n)) return false;
  if (c->step % 8 || c->step % (2 * c->warps_k) || c->step > 128 || c->tm > 256 || c->tn > 256 || c->stages > 16)
    return false;
  if (rows_of(c) > 16 || cols_of(c) > 16 || rows_of(c) * cols_of(c) > 128) return false;
  if (c->stages < 2 && !is_whole(s, c)) return false;
  const int warps = warps_of(c);
  if (warps < 2 || warps > MOST_WARPS || units_of(s, c) > 32 * warps || registers_of(s, c) > 220 ||
      registers_of(s, c) * warps * 32 > 65536)
    return false;
  if (c->split > 8 || (c->split > 1 && machine->capability < 90)) return false;
  if (c->split * c->parts > 1 && at_gemm_parts(s->k, c->step) < 2 * c->split * c->parts) return false;
  if (tiles_of(s, c) * c->split > INT32_MAX / 64 || workspace_of(s, c) > s->workspace_cap) return false;
  return shared_bytes(s, c) <= machine->shared_bytes - 1024;
}

/* How often shared memory is busy with 128 bytes that come: an element's copy takes a turn for itself. */
static double copies_of(bool along_k, int grain) {
  return along_k ? 10.0 : grain < 8 ? 3.0 : grain < 16 ? 2.0 : 1.0;
}

/* Cycles of a processor for a step of a block: what its warps issue, beside what shared memory serves. Products that
 * find all they take in registers' other banks take a turn each; some do not. */
static double step_cycles(const shape *s, const choice *c) {
  const int m = rows_of(c), n = cols_of(c), warps = warps_of(c), steps = c->step / c->warps_k;
  const double copies = c->step * 4.0 / (32 * warps) *
                        ((double)c->tm / (s->x_k ? 4 : s->grain_x) + (double)c->tn / (s->y_k ? 4 : s->grain_y));
  const double loop = m * n * (steps < 16 ? steps : 16) > 1024 ? 1.03 : 1.0; /* more than caches of instructions like */
  const double turns = (m * n > 64 ? 1.08 : 1.03) * (steps > 16 ? 1.12 : 1.0) * (warps < 8 ? 1.04 : 1.0) * loop *
                       (c->bound ? 0.97 : 1.0);
  const double issued = (steps * (m * n * turns + (m + n) / 4.0) + 45.0 + 4.0 * copies) * warps / 4.0;
  const double copied =
      (c->tm * copies_of(s->x_k, s->grain_x) + c->tn * copies_of(s->y_k, s->grain_y)) * c->step * 4 / 128.0;
  const double shared = (double)warps * steps * (m + n) / 2.0 + copied;
  return issued > shared ? issued + 0.1 * shared : shared + 0.1 * issued;
}

/* Microseconds. Figures of an H200; on others the order is much the same. */
static double cost_of(const shape *s, const choice *c, const at_gemm_machine *machine) {
  const double processors = at_greater(at_gemm_usable(c->split, machine), 1.0),
               tiles = (double)tiles_of(s, c) * (double)s->batch;
  const double ranks = c->split * c->parts, blocks = tiles * ranks;
  const double steps = (double)at_gemm_parts(s->k, c->step), mine = (double)(int64_t)(steps / ranks + 0.999);
  const int resident = resident_of(s, c, machine), warps = warps_of(c);
  const double whole = (double)(int64_t)(blocks / processors + 0.9999); /* blocks of a processor */
  const double busy = whole < resident ? whole : resident, rounds = (double)(int64_t)(whole / busy + 0.999);
  const double used = blocks < processors ? blocks / processors : 1.0;
  const double few = busy * warps < 8 ? 8.0 / (busy * warps) : 1.0; /* too few warps to hide what they wait for */
  const double compute = whole * mine * step_cycles(s, c) * CYCLE * (0.7 + 0.3 * few);
  const double moved = blocks * mine * stage_bytes(s, c); /* by L2 */
  const double flight = used * busy * (is_whole(s, c) ? (int)mine : c->stages - 1) * stage_bytes(s, c) / 49152.0;
  const double rate = processors / 132.0 * (flight < 1.0 ? flight : 1.0);
  const double in = ((double)s->m + (double)s->n) * (double)s->k * 4, out = (double)s->m * (double)s->n * 4;
  const double memory = (in + out) * (double)s->batch / 4.25e6 / rate,
               level2 = moved / (5.3e6 * processors / 132.0) / at_greater(used, 0.0);
  const double most = at_greater(memory, at_greater(compute, level2)), sum = memory + compute + level2;
  const double copied = c->tm * c->tn * 4.0 * (c->warps_k + c->split) / 128.0 * 2.5 * CYCLE;
  const double each = 0.9 + copied + (c->split > 1 ? 1.4 : 0.0);
  const double last = c->parts > 1 ? 1.3 + 0.02 * c->parts + (double)workspace_of(s, c) / 2e6 : 0.0;
  const double deep = c->stages > 3 ? 1.0 + 0.006 * (c->stages - 3) : 1.0;
  return (most + 0.12 * (sum - most)) * deep + 0.7 + each * (1.0 + 0.5 * (rounds - 1.0)) + last;
}

/* Tiles with warps over them and along k, and the lanes of a warp along m. */
static const uint16_t tiles[][6] = {
    {256, 128, 4, 2, 1, 8}, {256, 128, 4, 2, 1, 4}, {256, 128, 2, 4, 1, 8}, {128, 128, 2, 2, 1, 4},
    {128, 128, 4, 2, 1, 4}, {128, 128, 2, 4, 1, 8}, {128, 128, 1, 4, 1, 8}, {128, 128, 2, 2, 2, 4},
    {256, 64, 4, 2, 1, 8},  {256, 64, 4, 1, 2, 4},  {128, 64, 4, 1, 1, 4},  {128, 64, 2, 2, 1, 8},
    {128, 64, 4, 1, 2, 4},  {128, 64, 2, 2, 2, 8},  {128, 64, 2, 1, 4, 4},  {128, 64, 4, 2, 1, 4},
    {64, 64, 2, 1, 1, 4},   {64, 64, 2, 1, 2, 4},   {64, 64, 1, 2, 2, 8},   {64, 64, 2, 1, 4, 4},
    {64, 64, 1, 2, 4, 8},   {64, 64, 1, 1, 4, 4},   {64, 64, 1, 1, 8, 4},   {64, 64, 2, 2, 1, 4},
    {64, 64, 2, 2, 2, 4},   {128, 32, 4, 1, 1, 4},  {128, 32, 2, 1, 4, 8},  {128, 32, 4, 1, 2, 4},
    {64, 32, 2, 1, 2, 4},   {64, 32, 2, 1, 4, 4},   {64, 32, 1, 1, 4, 8},   {64, 32, 1, 1, 8, 8},
    {32, 32, 1, 1, 4, 4},   {32, 32, 1, 1, 8, 4},   {256, 32, 8, 1, 1, 4},  {256, 32, 4, 1, 2, 8},
    {128, 16, 4, 1, 1, 8},  {128, 16, 4, 1, 2, 8},  {64, 16, 2, 1, 4, 8},   {32, 16, 1, 1, 8, 8}};

static int consider(const shape *s, const at_gemm_machine *machine, choice c, choice *list, int count, int most) {
  if (!fits(s, &c, machine)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* The configurations of a tile; those of `most` or all of the best are kept. */
static int collect_tile(const shape *s, const at_gemm_machine *machine, const uint16_t *tile, choice *list, int count,
                        int most) {
  static const int steps[] = {8, 16, 32, 64}, stages[] = {1, 2, 3, 4, 6, 8}, shares[] = {1, 2, 4, 8};
  for (size_t d = 0; d < AT_COUNT(steps); d++)
    for (size_t g = 0; g < AT_COUNT(stages); g++)
      for (size_t h = 0; h < AT_COUNT(shares); h++)
        for (int r = 0; r <= MOST_ROUNDS; r++) {
          /* Parts that fill the processors r times. */
          const int64_t filled = (int64_t)at_gemm_usable(shares[h], machine) * r,
                        parts = r == 0 ? 1
                                       : filled / (tiles_of(s, &(choice){.tm = tile[0], .tn = tile[1]}) * s->batch *
                                                   shares[h]);
          choice c = {.tm = tile[0],
                      .tn = tile[1],
                      .step = steps[d],
                      .warps_m = tile[2],
                      .warps_n = tile[3],
                      .warps_k = tile[4],
                      .lanes = tile[5],
                      .stages = stages[g],
                      .split = shares[h],
                      .parts = (int)parts};
          c.bound = is_better_bound(s, &c);
          if (r > 0 && (parts < 2 || parts > MOST_PARTS)) continue;
          if (c.stages > steps_of(s, &c)) continue;
          count = consider(s, machine, c, list, count, most);
        }
  return count;
}

static bool is_alike(const choice *a, const choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->step == b->step && a->split == b->split && a->parts == b->parts;
}

/* But for stages and which way its warps and lanes lie. */
static bool is_same(const choice *a, const choice *b) {
  return is_alike(a, b) && a->warps_k == b->warps_k && warps_of(a) == warps_of(b);
}

/* A search tries few, of which no more than two differ only in what a block does in itself, and three have the same tile. */
static int candidates(const at_gemm *g, const at_gemm_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_shape_of(g);
  choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  int count = 0, given = 0;
  for (size_t t = 0; t < AT_COUNT(tiles); t++) {
    if ((tiles[t][1] > 16 && tiles[t][1] >= 2 * s.n) || (tiles[t][0] > 32 && tiles[t][0] >= 2 * s.m)) continue;
    count = collect_tile(&s, machine, tiles[t], list, count, MOST_CHOICES);
  }
  for (int i = 0; i < count && given < max && (wide || given < MOST_FEW); i++) {
    int alike = 0, of_tile = 0, same = 0;
    for (int j = 0; j < i; j++) {
      if (!taken[j]) continue;
      alike += is_alike(&list[i], &list[j]);
      same += is_same(&list[i], &list[j]);
      of_tile += list[i].tm == list[j].tm && list[i].tn == list[j].tn;
    }
    taken[i] = of_tile < (wide ? 8 : 3) && (wide || (alike < 2 && same < 1 && list[i].cost < HOPELESS * list[0].cost));
    if (!taken[i]) continue;
    if (at_tunables_format(&tunables, &out[given], &list[i])) given++;
  }
  return given;
}

static void define(at_gemm_launch_spec *out, const at_gemm *g, const shape *s, const choice *c,
                   const at_gemm_machine *machine) {
  const int64_t each = at_gemm_parts(tiles_of(s, c) * s->batch * c->split * c->parts, machine->processors),
                resident = resident_of(s, c, machine);
  const at_gemm_define all[] = {{"X_K", s->x_k},
                                {"Y_K", s->y_k},
                                {"BYTES_X", s->grain_x},
                                {"BYTES_Y", s->grain_y},
                                {"BYTES_D", s->grain_d},
                                {"TURNED", s->swapped},
                                {"READS_C", g->c != AT_C_NONE},
                                {"RAGGED_M", s->m % c->tm != 0},
                                {"RAGGED_N", s->n % c->tn != 0},
                                {"RAGGED_K", s->k % c->step != 0},
                                {"EARLY", 0},
                                {"WHOLE", is_whole(s, c)},
                                {"BLOCKS", (int)(each < resident ? each : resident)}};
  at_gemm_define_tunables(out, &tunables, c);
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

static bool recipe(at_gemm_launch_spec *out, const at_gemm *g, const at_gemm_machine *machine,
                   const at_configuration *text) {
  const shape s = at_gemm_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  at_gemm_launch_spec_swap(out, &s);
  define(out, g, &s, &c, machine);
  const int shared = at_gemm_spread(tiles_of(&s, &c) * s.batch * c.split * c.parts, shared_bytes(&s, &c), machine);
  at_gemm_launch_spec_launch(
      out, &s, &(at_gemm_launch){tiles_of(&s, &c), c.split, c.parts, 32 * warps_of(&c), c.tm * c.tn, shared});
  out->workspace_bytes = workspace_of(&s, &c);
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_simt_f32.cu",
    .entry = "at_simt",
    .text = at_gemm_block_tile_cuh,
    .first = {at_gemm_sm80_simt_f32_cuh},
    .supports = supports,
    .candidates = candidates,
    .recipe = recipe,
};

const at_implementation at_gemm_sm80_simt_f32 = {
    .name = "sm80_simt_f32", .version = 2, AT_GEMM_KERNEL_SLOTS(family, tunables)};
