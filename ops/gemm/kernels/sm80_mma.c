/* SPDX-License-Identifier: Apache-2.0
 * sm80_mma.c: the family of sm80_mma.cuh and block_tile.cuh: products by tensor cores, where vendors leave time: small, odd, skinny
 * and deep ones. */
#include "ops/gemm/kernels/block_tile.h"

#include "gemm_block_tile_cuh.h"
#include "gemm_sm80_mma_cuh.h"
#include "gemm_sm80_mma_tile_cuh.h"

enum {
  MOST_CHOICES = 128,
  MOST_FEW = 8,
  MOST_WARPS = 8,
  MOST_PARTS = 128,
  MOST_ROUNDS = 2,
  MOST_COPIES = 32,
  MOST_EARLY = 256
};

static const double HOPELESS = 1.5; /* times the best guess: not tried */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                    \
  PAIR("tile", tm, "TM", 16, 256, tn, "TN", 8, 128, AT_POWERS, "rows and columns of D that a block computes") \
  NUMBER("step", step, "BK", 8, 128, AT_POWERS, "of k, by a block at a time")                                 \
  PAIR("warps", warps_m, "WARPS_M", 1, MOST_WARPS, warps_n, "WARPS_N", 1, MOST_WARPS, AT_POWERS,              \
       "warps of a block along the rows and the columns")                                                     \
  NUMBER("along", warps_k, "WARPS_K", 1, MOST_WARPS, AT_POWERS, "warps that share a step")                    \
  NUMBER("stages", stages, "STAGES", 1, 16, 0, "steps that a block has in shared memory or on the way there") \
  NUMBER("splitk", split, "SPLIT", 1, 8, 0,                                                                   \
         "blocks, a cluster, that share k; more than one on devices of capability 9.0 and later")             \
  NUMBER("parts", parts, "PARTS", 1, MOST_PARTS, 0,                                                           \
         "clusters that share k further: their sums go to the workspace, and another launch adds them up")    \
  NUMBER("pads", pads, NULL, 0, 1, 0,                                                                         \
         "1: what permits no copies of 4 bytes is first copied to the workspace, by a launch of its own; "    \
         "0: it goes through registers")                                                                      \
  NUMBER("early", early, "EARLY", 0, MOST_EARLY, 0,                                                           \
         "steps whose bytes a block asks the L2 cache for before the work in front of it is done; "           \
         "on devices of capability 9.0 and later")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_shape shape;

/* Sums and products a cycle of a processor's tensor cores, by mma.sync. */
static double products_of(const shape *s) {
  return s->in == 8 ? 110.0 : s->in == 4 ? 550.0 : 1150.0;
}
static const double CYCLE = 1.0 / 1700.0; /* microseconds */

static double compute_of(const shape *s, const at_gemm_machine *machine) {
  return (double)s->m * (double)s->n * (double)s->k * (double)s->batch / products_of(s) / machine->processors * CYCLE;
}

static double memory_of(const shape *s) {
  const double in = ((double)s->m + (double)s->n) * (double)s->k * s->in, out = (double)s->m * (double)s->n * s->out;
  return (in + out) * (double)s->batch / 4.25e6;
}

/* Where vendors have faster instructions than mma.sync, only what is bound by something else: memory, a start, operands
 * that their kernels cannot take. */
static bool is_hopeless(const shape *s, const at_gemm_machine *machine) {
  const double compute = compute_of(s, machine), memory = memory_of(s);
  const bool odd = s->grain_x < 16 || s->grain_y < 16, faster = machine->capability == 90 || machine->capability == 100;
  if (odd) return compute > 60.0;
  if (s->in == 8) return compute > 100.0;
  return compute > (faster ? 4.0 : 30.0) && compute > 1.2 * memory;
}

static bool supports(const at_gemm *g, const at_gemm_machine *machine) {
  if (g->dtype == ATTUNE_F32 && g->accuracy != ATTUNE_REDUCED) return false;
  const shape s = at_gemm_shape_of(g);
  if (s.m <= 64 && s.k <= 64) return false; /* sm80_batched_smem's */
  return machine->capability >= 80 && s.n >= 4 && s.m <= INT32_MAX / 4 && s.k <= INT32_MAX / 4 && s.batch <= 65535 &&
         at_gemm_parts(s.m, 32) * at_gemm_parts(s.n, 8) <= INT32_MAX / 64 && !is_hopeless(&s, machine);
}

static int grain_x(const shape *s, const choice *c) {
  return c->pads && s->grain_x < 4 ? 16 : s->grain_x;
}

static int grain_y(const shape *s, const choice *c) {
  return c->pads && s->grain_y < 4 ? 16 : s->grain_y;
}

static int warps_of(const choice *c) {
  return c->warps_m * c->warps_n * c->warps_k;
}

static int stage_bytes(const shape *s, const choice *c) {
  return (c->tm + c->tn) * c->step * s->in;
}

/* As SUMS of sm80_mma.cuh. */
static int sums_of(const shape *s, const choice *c) {
  return s->swapped ? c->tm * (c->tn + 8) : c->tn * (c->tm + 4);
}

static int shared_bytes(const shape *s, const choice *c) {
  const int stages = c->stages * stage_bytes(s, c), sums = c->warps_k * sums_of(s, c) * s->sum;
  return stages > sums ? stages : sums;
}

/* Where products take all the time. */
static int asked_bytes(const shape *s, const choice *c, const at_gemm_machine *machine) {
  const int needed = shared_bytes(s, c);
  const int64_t tiles = at_gemm_parts(s->m, c->tm) * at_gemm_parts(s->n, c->tn);
  return s->in == 8 ? at_gemm_spread(tiles * s->batch * c->split * c->parts, needed, machine) : needed;
}

static int registers_of(const shape *s, const choice *c) {
  const int m = c->tm / c->warps_m / 16, n = c->tn / c->warps_n / 8, threads = 32 * warps_of(c);
  const int loads = (grain_x(s, c) < 4 ? c->tm : 0) + (grain_y(s, c) < 4 ? c->tn : 0);
  return (s->in == 4 ? 64 : 48) + (4 * m * n + 2 * (4 * m + 2 * n)) * (s->in == 8 ? 2 : 1) +
         loads * c->step * s->in / 16 / threads * 9;
}

static int64_t tiles_of(const shape *s, const choice *c) {
  return at_gemm_parts(s->m, c->tm) * at_gemm_parts(s->n, c->tn);
}

/* As at_up of sm80_mma.cuh. */
static size_t up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/* What padded operands take. */
static size_t padding_of(const shape *s, const choice *c) {
  const size_t k = (size_t)s->k, m = (size_t)s->m, n = (size_t)s->n, in = (size_t)s->in, batch = (size_t)s->batch;
  size_t bytes = 0;
  if (c->pads && s->grain_x < 4) bytes += up(batch * (s->x_k ? m : k) * up((s->x_k ? k : m) * in, 16), 256);
  if (c->pads && s->grain_y < 4) bytes += up(batch * (s->y_k ? n : k) * up((s->y_k ? k : n) * in, 16), 256);
  return bytes;
}

static size_t sums_in_workspace(const shape *s, const choice *c) {
  return c->parts == 1 ? 0 : (size_t)(tiles_of(s, c) * s->batch * c->parts * c->tm * c->tn * s->sum);
}

static size_t workspace_of(const shape *s, const choice *c) {
  return padding_of(s, c) + sums_in_workspace(s, c);
}

/* Whether one at least of X and Y is copied past the registers. */
static bool is_copied(const shape *s, const choice *c) {
  return grain_x(s, c) >= 4 || grain_y(s, c) >= 4;
}

/* Steps along k of a block, at most. */
static int64_t steps_of(const shape *s, const choice *c) {
  return at_gemm_parts(at_gemm_parts(s->k, c->step), c->split * c->parts);
}

static bool is_whole(const shape *s, const choice *c) {
  return steps_of(s, c) <= c->stages;
}

/* Copies that a line of a tile takes: no more than there are threads. */
static int units_of(const shape *s, const choice *c) {
  const int x = (s->x_k ? c->step : c->tm) * s->in / (grain_x(s, c) < 4 ? 16 : grain_x(s, c)),
            y = (s->y_k ? c->step : c->tn) * s->in / (grain_y(s, c) < 4 ? 16 : grain_y(s, c));
  return x > y ? x : y;
}

/* Copies of a thread in a step; each keeps an address. */
static int copies_of(const shape *s, const choice *c) {
  const int x = grain_x(s, c) < 4 ? 16 : grain_x(s, c), y = grain_y(s, c) < 4 ? 16 : grain_y(s, c);
  return (c->tm * c->step * s->in / x + c->tn * c->step * s->in / y) / (32 * warps_of(c));
}

static bool fits(const shape *s, const choice *c, const at_gemm_machine *machine) {
  if (c->tm % (16 * c->warps_m) || c->tn % (8 * c->warps_n) || c->step % ((s->in == 2 ? 16 : 8) * c->warps_k))
    return false;
  if (c->step * s->in < 64 || c->step * s->in > 256) return false;
  if (c->tm > 256 || c->tn > 128 || c->step > 128 || c->stages > 16) return false;
  if (c->pads && s->grain_x >= 4 && s->grain_y >= 4) return false;
  if (c->stages < 2 && !is_whole(s, c)) return false;
  const int warps = warps_of(c), registers = registers_of(s, c);
  if (warps < 4 || warps > MOST_WARPS || units_of(s, c) > 32 * warps || copies_of(s, c) > MOST_COPIES ||
      registers > 240 || registers * warps * 32 > 65536)
    return false;
  if (c->split > 8 || (c->split > 1 && machine->capability < 90)) return false;
  if (c->split * c->parts > 1 && at_gemm_parts(s->k, c->step) < 2 * c->split * c->parts) return false;
  if (tiles_of(s, c) * c->split > INT32_MAX / 64 || workspace_of(s, c) > s->workspace_cap) return false;
  return shared_bytes(s, c) <= machine->shared_bytes - 1024;
}

static int resident_of(const shape *s, const choice *c, const at_gemm_machine *machine) {
  const int threads = 32 * warps_of(c), by_shared = machine->shared_bytes / (shared_bytes(s, c) + 1024),
            by_registers = 65536 / (((registers_of(s, c) + 7) & ~7) * threads);
  const int blocks = at_lesser_int(at_lesser_int(by_shared, by_registers), 2048 / threads);
  return blocks < 1 ? 1 : blocks;
}

/* Cycles of a processor for a step of a block: tensor cores beside shared memory. */
static double step_cycles(const shape *s, const choice *c) {
  const double products = (double)c->tm * c->tn * c->step / products_of(s);
  const double picked = (double)(c->tm * c->warps_n + c->tn * c->warps_m) * c->step * s->in / 128.0;
  const double copied = ((grain_x(s, c) < 4    ? 3.0
                          : grain_x(s, c) < 16 ? 2.0
                                               : 1.0) *
                             c->tm +
                         (grain_y(s, c) < 4    ? 3.0
                          : grain_y(s, c) < 16 ? 2.0
                                               : 1.0) *
                             c->tn) *
                        c->step * s->in / 128.0;
  const double shared = picked + copied;
  return (products > shared ? products + 0.2 * shared : shared + 0.2 * products) + 30.0;
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
  const double pair = busy * warps < 8 ? 8.0 / (busy * warps) : 1.0; /* too few warps to hide what they wait for */
  const double late = grain_x(s, c) < 4 || grain_y(s, c) < 4 ? 1100.0 / busy : 0.0; /* cycles till loads come */
  const double compute = whole * mine * at_greater(step_cycles(s, c), late) * CYCLE * (0.6 + 0.4 * pair);
  const double moved = blocks * mine * stage_bytes(s, c); /* by L2 */
  const double flight = used * busy *
                        (!is_copied(s, c) ? 1
                         : is_whole(s, c) ? (int)mine
                                          : c->stages - 1) *
                        stage_bytes(s, c) / (s->in == 4 ? 98304.0 : 65536.0);
  const double rate = processors / 132.0 * (flight < 1.0 ? flight : 1.0);
  const double uneven = whole * processors / blocks;
  /* Short lines far apart are slow to come. */
  const double apart = s->x_k          ? 1.0 + 15.0 / (c->step * s->in)
                       : s->m <= c->tm ? 1.0
                                       : 1.0 + (s->in == 2 ? 70.0 : 8.0) / (c->tm * s->in);
  const double memory = memory_of(s) * apart / rate * (0.5 + 0.5 * uneven),
               level2 = moved / ((s->in == 2 ? 5.3e6 : 6.3e6) * processors / 132.0) / at_greater(used, 0.0) *
                        (flight < 1.0 ? 1.0 / flight : 1.0);
  double most = at_greater(memory, at_greater(compute, level2)), sum = memory + compute + level2;
  const double copied = c->tm * c->tn * (double)s->sum * (c->warps_k + c->split) / 128.0 * 2.5 * CYCLE;
  const double each = 0.9 + copied + (c->split > 1 ? (s->in == 8 ? 1.6 : 0.6) : 0.0);
  const double last = c->parts > 1 ? 1.3 + 0.02 * c->parts + (double)sums_in_workspace(s, c) / 2e6 : 0.0;
  const double before = c->pads ? 2.4 + (double)padding_of(s, c) / 1.5e6 : 0.0;
  return most + 0.12 * (sum - most) + 0.7 + each * (1.0 + 0.5 * (rounds - 1.0)) + before + last;
}

/* Tiles with warps over them and along k. */
static const uint16_t tiles[][5] = {
    {32, 8, 2, 1, 2},    {64, 8, 4, 1, 1},   {64, 8, 4, 1, 2},   {128, 8, 8, 1, 1},  {32, 16, 2, 1, 2},
    {64, 16, 4, 1, 1},   {64, 16, 4, 1, 2},  {128, 16, 4, 1, 1}, {32, 32, 2, 2, 1},  {32, 32, 2, 1, 2},
    {64, 32, 4, 1, 1},   {64, 32, 2, 2, 1},  {64, 32, 2, 2, 2},  {128, 32, 4, 1, 1}, {64, 64, 2, 2, 1},
    {64, 64, 2, 2, 2},   {128, 64, 2, 2, 1}, {128, 64, 4, 1, 1}, {128, 64, 4, 2, 1}, {128, 128, 2, 2, 1},
    {128, 128, 4, 2, 1}, {256, 8, 8, 1, 1},  {256, 16, 8, 1, 1}, {256, 32, 8, 1, 1}, {256, 64, 8, 1, 1}};

static int consider(const shape *s, const at_gemm_machine *machine, choice c, choice *list, int count, int most) {
  if (c.stages > 2 && !is_copied(s, &c)) return count;
  if (!fits(s, &c, machine)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* The configurations of a tile; those of `most` or all of the best are kept. */
static int collect_tile(const shape *s, const at_gemm_machine *machine, const uint16_t *tile, choice *list, int count,
                        int most) {
  static const int bytes[] = {64, 128, 256}, stages[] = {1, 2, 3, 4, 5, 6, 8, 10, 12}, shares[] = {1, 2, 4, 8};
  for (size_t d = 0; d < AT_COUNT(bytes); d++)
    for (size_t g = 0; g < AT_COUNT(stages); g++)
      for (size_t h = 0; h < AT_COUNT(shares); h++)
        for (int r = 0; r <= MOST_ROUNDS; r++) {
          /* Parts that fill the processors r times. */
          const int64_t filled = (int64_t)at_gemm_usable(shares[h], machine) * r,
                        parts = r == 0 ? 1
                                       : filled / (tiles_of(s, &(choice){.tm = tile[0], .tn = tile[1]}) * s->batch *
                                                   shares[h]);
          const bool pads = s->grain_x < 4 || s->grain_y < 4;
          choice c = {.tm = tile[0],
                      .tn = tile[1],
                      .step = bytes[d] / s->in,
                      .warps_m = tile[2],
                      .warps_n = tile[3],
                      .warps_k = tile[4],
                      .stages = stages[g],
                      .split = shares[h],
                      .parts = (int)parts,
                      .pads = pads};
          if (r > 0 && (parts < 2 || parts > MOST_PARTS)) continue;
          if (c.stages > steps_of(s, &c)) continue;
          count = consider(s, machine, c, list, count, most);
          c.pads = false;
          if (pads) count = consider(s, machine, c, list, count, most);
        }
  return count;
}

/* So many times what is copied ahead, where a device starts a kernel before the last one is done. */
static int early_of(const shape *s, const choice *c, const at_gemm_machine *machine, int times) {
  const bool aligned = grain_x(s, c) == 16 || grain_y(s, c) == 16;
  const int64_t steps = steps_of(s, c);
  if (machine->capability < 90 || !aligned || c->pads) return 0;
  const int64_t asked = steps < (int64_t)times * c->stages ? steps : (int64_t)times * c->stages;
  return asked < MOST_EARLY ? (int)asked : MOST_EARLY;
}

static bool is_alike(const choice *a, const choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->step == b->step && a->split == b->split && a->parts == b->parts &&
         a->pads == b->pads;
}

/* A search tries few, of which no more than two differ only in warps and stages, and three have the same tile. */
static int candidates(const at_gemm *g, const at_gemm_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_shape_of(g);
  static const int times[] = {0, 1, 4};
  choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  int count = 0, given = 0;
  for (size_t t = 0; t < AT_COUNT(tiles); t++) {
    if (tiles[t][1] > 8 && tiles[t][1] >= 2 * s.n) continue;
    count = collect_tile(&s, machine, tiles[t], list, count, MOST_CHOICES);
  }
  for (int i = 0; i < count && given < max && (wide || given < MOST_FEW); i++) {
    int alike = 0, of_tile = 0;
    for (int j = 0; j < i; j++) {
      alike += is_alike(&list[i], &list[j]);
      of_tile += taken[j] && list[i].tm == list[j].tm && list[i].tn == list[j].tn;
    }
    taken[i] = of_tile < (wide ? 6 : 3) && (wide || (alike < 2 && list[i].cost < HOPELESS * list[0].cost));
    if (!taken[i]) continue;
    for (size_t e = 0; e < AT_COUNT(times) && given < max; e++) {
      if (!wide && e != (alike > 0 && is_whole(&s, &list[i]) ? 1 : 0)) continue; /* it helps short sums alone */
      const int before = list[i].early;
      list[i].early = early_of(&s, &list[i], machine, times[e]);
      if (e > 0 && wide && list[i].early == before) break;
      if (at_tunables_format(&tunables, &out[given], &list[i])) given++;
    }
  }
  return given;
}

static void define(at_gemm_launch_spec *out, const at_gemm *g, const shape *s, const choice *c) {
  const at_gemm_define all[] = {{"X_K", s->x_k},
                                {"Y_K", s->y_k},
                                {"BYTES_X", grain_x(s, c)},
                                {"BYTES_Y", grain_y(s, c)},
                                {"PAD_X", c->pads && s->grain_x < 4},
                                {"PAD_Y", c->pads && s->grain_y < 4},
                                {"BYTES_D", s->grain_d},
                                {"TURNED", s->swapped},
                                {"READS_C", g->c != AT_C_NONE},
                                {"RAGGED_M", s->m % c->tm != 0},
                                {"RAGGED_N", s->n % c->tn != 0},
                                {"RAGGED_K", s->k % c->step != 0},
                                {"WHOLE", is_whole(s, c)}};
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
  define(out, g, &s, &c);
  const int threads = 32 * warps_of(&c);
  at_gemm_launch_spec_launch(
      out, &s,
      &(at_gemm_launch){tiles_of(&s, &c), c.split, c.parts, threads, c.tm * c.tn, asked_bytes(&s, &c, machine)});
  out->workspace_bytes = workspace_of(&s, &c);
  if (c.pads) {
    const int64_t lines = (s.grain_x < 4 ? (s.x_k ? s.m : s.k) : 0) + (s.grain_y < 4 ? (s.y_k ? s.n : s.k) : 0),
                  wanted = at_gemm_parts(lines * s.batch, threads / 32);
    out->before = (at_jit_config){
        .grid = {(unsigned)(wanted < 4096 ? wanted : 4096)}, .block = {(unsigned)threads}, .dependent = true};
  }
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_mma.cu",
    .entry = "at_mma",
    .text = at_gemm_block_tile_cuh,
    .first = {at_gemm_sm80_mma_tile_cuh, at_gemm_sm80_mma_cuh},
    .supports = supports,
    .candidates = candidates,
    .recipe = recipe,
};

const at_implementation at_gemm_sm80_mma = {.name = "sm80_mma", .version = 1, AT_GEMM_KERNEL_SLOTS(family, tunables)};
