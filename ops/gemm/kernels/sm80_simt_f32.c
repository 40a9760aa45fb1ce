/* SPDX-License-Identifier: Apache-2.0
 * sm80_simt_f32.c: the family of sm80_simt_f32.cuh and block_tile.cuh: products of f32 in f32, where vendors leave
 * time: small, odd, deep ones and those whose tiles do not fill the processors. */
#include "ops/gemm/kernels/block_tile.h"

#include "gemm_block_tile_cuh.h"
#include "gemm_sm80_simt_f32_cuh.h"

enum { MOST_CHOICES = 160, MOST_FEW = 8, MOST_PARTS = 264 };

static const double HOPELESS = 1.4; /* times the best guess: not tried */
static const double FLIGHT = 1.2;   /* of what memory wants on the way */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                   \
  AT_BLOCK_TILE_TUNABLES(NUMBER, PAIR, 16, 256)                              \
  NUMBER("lanes", lanes, "LANES_M", 4, 8, AT_POWERS,                         \
         "lanes of a warp along the rows; the others lie along the columns") \
  AT_BLOCK_SHARE_TUNABLES(NUMBER, MOST_PARTS)                                \
  NUMBER("bound", bound, "BOUND", 0, 1, 0,                                   \
         "1: sums lie in registers so that a product finds what it takes in different banks")

typedef at_block_choice choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_shape shape;

static bool supports(const at_gemm *g, const at_machine *machine) {
  if (g->dtype != ATTUNE_F32 || g->dtype_out != ATTUNE_F32 || g->accuracy == ATTUNE_REDUCED) return false;
  const shape s = at_gemm_shape_of(g);
  if (s.m <= 64 && s.k <= 64) return false; /* sm80_batched_smem's */
  return machine->capability >= 80 && s.n >= 8 && s.m <= INT32_MAX / 4 && s.k <= INT32_MAX / 4 && s.batch <= 65535 &&
         at_gemm_parts(s.m, 32) * at_gemm_parts(s.n, 16) <= INT32_MAX / 64;
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
  return m * n + 2 * (m + n) + 30 + lines / (4 * at_block_warps(c)); /* and an address of each line */
}

/* Sums that lie by pairs, along D's contiguous side: faster where a thread has no more of them along that side than
 * along the other, and does not wait for the sums of others at the end. */
static bool is_better_bound(const shape *s, const choice *c) {
  const int m = rows_of(c), n = cols_of(c);
  return c->warps_k == 1 && m * n >= 64 && (s->swapped ? n <= m : m <= n);
}

/* Copies of a line of a tile that lies along its rows: no more than there are threads. */
static int units_of(const shape *s, const choice *c) {
  const int x = s->x_k ? 8 : c->tm * 4 / s->grain_x, y = s->y_k ? 8 : c->tn * 4 / s->grain_y;
  return x > y ? x : y;
}

static int resident_of(const shape *s, const choice *c, const at_machine *machine) {
  const int threads = 32 * at_block_warps(c);
  return at_gemm_resident(machine, threads, registers_of(s, c), shared_bytes(s, c), 2048 / threads);
}

static bool fits(const shape *s, const choice *c, const at_machine *machine) {
  if (c->tm % (4 * c->lanes * c->warps_m) || c->tn % (128 / c->lanes * c->warps_n)) return false;
  if (c->step % (2 * c->warps_k) || rows_of(c) > 16 || cols_of(c) > 16 || rows_of(c) * cols_of(c) > 128) return false;
  const int warps = at_block_warps(c);
  if (warps < 2 || warps > AT_BLOCK_WARPS || units_of(s, c) > 32 * warps || registers_of(s, c) > 220 ||
      registers_of(s, c) * warps * 32 > AT_PROCESSOR_REGISTERS)
    return false;
  return at_block_fits(s, c, shared_bytes(s, c), at_block_sums(s, c), machine);
}

/* How often shared memory is busy with 128 bytes that come: an element's copy takes a turn for itself. */
static double copies_of(bool along_k, int grain) {
  return along_k ? 10.0 : grain < 8 ? 3.0 : grain < 16 ? 2.0 : 1.0;
}

/* Cycles of a processor for a step of a block: what its warps issue, beside what shared memory serves. Products that
 * find all they take in registers' other banks take a turn each; some do not. */
static double step_cycles(const shape *s, const choice *c) {
  const int m = rows_of(c), n = cols_of(c), warps = at_block_warps(c), steps = c->step / c->warps_k;
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

/* Microseconds. The numbers are the kernel's, fitted to its times (gemm_kernel_times.c). */
static double cost_of(const shape *s, const choice *c, const at_machine *machine) {
  const at_block_load l = at_block_load_of(s, c, resident_of(s, c, machine), machine);
  const int ahead = at_block_is_whole(s, c) ? (int)l.mine : c->stages - 1;
  const double flight = at_lesser(l.used * l.busy * ahead * stage_bytes(s, c) / (FLIGHT * machine->wanted), 1.0);
  const double rate = l.processors / machine->processors * flight;
  const double in = ((double)s->m + (double)s->n) * (double)s->k * 4, out = (double)s->m * (double)s->n * 4;
  const double level2 = machine->level2 * l.processors / machine->processors;
  return at_block_cost(
      s, c, &l,
      &(at_block_times){.memory = (in + out) * (double)s->batch / machine->memory / rate,
                        .compute = l.whole * l.mine * step_cycles(s, c) * machine->cycle_fma * (0.7 + 0.3 * l.few),
                        .level2 = l.blocks * l.mine * stage_bytes(s, c) / level2 / l.used,
                        .deep = c->stages > 3 ? 1.0 + 0.006 * (c->stages - 3) : 1.0,
                        .meet = 1.4,
                        .cycle = machine->cycle_fma},
      machine);
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

static const at_axis tile_axis =
    AT_AXIS(tiles, AT_AT(tm), AT_AT(tn), AT_AT(warps_m), AT_AT(warps_n), AT_AT(warps_k), AT_AT(lanes));

static int consider(const shape *s, const at_machine *machine, choice c, choice *list, int count, int most) {
  if (!fits(s, &c, machine)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* The configurations of a tile; those of `most` or all of the best are kept. */
static int collect_tile(const shape *s, const at_machine *machine, int tile, choice *list, int count, int most) {
  static const uint16_t steps[] = {8, 16, 32, 64}, stages[] = {1, 2, 3, 4, 6, 8}, shares[] = {1, 2, 4, 8},
                        rounds[] = {0, 1, 2};
  static const at_axis axes[] = {AT_AXIS(steps, AT_AT(step)), AT_AXIS(stages, AT_AT(stages)),
                                 AT_AXIS(shares, AT_AT(split)), AT_AXIS(rounds, AT_AT(parts))};
  choice c = {0};
  (void)at_axes_pick(&tile_axis, 1, tile, &c);
  c.bound = is_better_bound(s, &c);
  for (int i = 0; at_axes_pick(axes, AT_COUNT(axes), i, &c); i++)
    if (at_block_share(s, &c, MOST_PARTS, machine)) count = consider(s, machine, c, list, count, most);
  return count;
}

static bool is_alike(const choice *a, const choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->step == b->step && a->split == b->split && a->parts == b->parts;
}

/* But for stages and which way its warps and lanes lie. */
static bool is_same(const choice *a, const choice *b) {
  return is_alike(a, b) && a->warps_k == b->warps_k && at_block_warps(a) == at_block_warps(b);
}

/* A search tries few, of which no more than two differ only in what a block does in itself, and three have the same
 * tile. */
static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_shape_of(g);
  choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  int count = 0, given = 0;
  for (size_t t = 0; t < AT_COUNT(tiles); t++) {
    if ((tiles[t][1] > 16 && tiles[t][1] >= 2 * s.n) || (tiles[t][0] > 32 && tiles[t][0] >= 2 * s.m)) continue;
    count = collect_tile(&s, machine, (int)t, list, count, MOST_CHOICES);
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
                   const at_machine *machine) {
  const int64_t each = at_gemm_parts(at_block_blocks(s, c), machine->processors), resident = resident_of(s, c, machine);
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
                                {"WHOLE", at_block_is_whole(s, c)},
                                {"BLOCKS", (int)(each < resident ? each : resident)}};
  at_gemm_define_tunables(out, &tunables, c);
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = at_gemm_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  if (s.swapped) at_gemm_launch_spec_swap(out);
  define(out, g, &s, &c, machine);
  at_block_launch(out, &s, &c, at_gemm_spread(at_block_blocks(&s, &c), shared_bytes(&s, &c), machine));
  out->workspace_bytes = at_block_sums(&s, &c);
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_simt_f32.cu",
    .entry = "at_simt",
    .text = at_gemm_block_tile_cuh,
    .has_epilogue = true,
    .first = {at_gemm_sm80_simt_f32_cuh},
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_simt_f32 = {
    .name = "sm80_simt_f32", .version = 2, AT_GEMM_KERNEL_SLOTS(family, tunables)};
