/* SPDX-License-Identifier: Apache-2.0
 * sm80_mma.c: the family of sm80_mma.cuh and block_tile.cuh: products by tensor cores, where vendors leave time: small,
 * odd, skinny and deep ones. */
#include "ops/gemm/kernels/block_tile.h"

#include "gemm_block_tile_cuh.h"
#include "gemm_sm80_mma_cuh.h"
#include "gemm_sm80_mma_tile_cuh.h"

enum { MOST_CHOICES = 128, MOST_FEW = 8, MOST_PARTS = 128, MOST_COPIES = 32, MOST_EARLY = 256 };

static const double HOPELESS = 1.5; /* times the best guess: not tried */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                 \
  AT_BLOCK_TILE_TUNABLES(NUMBER, PAIR, 8, 128)                                                             \
  AT_BLOCK_SHARE_TUNABLES(NUMBER, MOST_PARTS)                                                              \
  NUMBER("pads", pads, NULL, 0, 1, 0,                                                                      \
         "1: what permits no copies of 4 bytes is first copied to the workspace, by a launch of its own; " \
         "0: it goes through registers")                                                                   \
  NUMBER("early", early, "EARLY", 0, MOST_EARLY, 0,                                                        \
         "steps whose bytes a block asks the L2 cache for before the work in front of it is done; "        \
         "on devices of capability 9.0 and later")

typedef at_block_choice choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_shape shape;

/* What part of mma.sync's rate the kernel is timed at; more than 1, for the clock is then above the machine's. */
static double products_of(const shape *s, const at_machine *machine) {
  return s->in == 8   ? machine->mma_f64 * (110.0 / 128.0)
         : s->in == 4 ? machine->mma_tf32 * (550.0 / 512.0)
                      : machine->mma_f16 * (1150.0 / 1024.0);
}

static double compute_of(const shape *s, const at_machine *machine) {
  return (double)s->m * (double)s->n * (double)s->k * (double)s->batch / products_of(s, machine) / machine->processors *
         machine->cycle;
}

static double memory_of(const shape *s, const at_machine *machine) {
  const double in = ((double)s->m + (double)s->n) * (double)s->k * s->in, out = (double)s->m * (double)s->n * s->out;
  return (in + out) * (double)s->batch / machine->memory;
}

/* Where vendors have faster instructions than mma.sync, only what is bound by something else: memory, a start, operands
 * that their kernels cannot take. */
static bool is_hopeless(const shape *s, const at_machine *machine) {
  const double compute = compute_of(s, machine), memory = memory_of(s, machine);
  const bool odd = s->grain_x < 16 || s->grain_y < 16, faster = machine->capability == 90 || machine->capability == 100;
  if (odd) return compute > 60.0;
  if (s->in == 8) return compute > 100.0;
  return compute > (faster ? 4.0 : 30.0) && compute > 1.2 * memory;
}

static bool supports(const at_gemm *g, const at_machine *machine) {
  if (g->dtype == ATTUNE_F32 && g->accuracy != ATTUNE_REDUCED) return false;
  const shape s = at_gemm_shape_of(g);
  if (s.m <= 64 && s.k <= 64) return false;            /* sm80_batched_smem's */
  const bool alone = g->pointers && g->alignment < 16; /* what cublas_batched does not take */
  return machine->capability >= 80 && s.n >= 4 && s.m <= INT32_MAX / 4 && s.k <= INT32_MAX / 4 && s.batch <= 65535 &&
         at_gemm_parts(s.m, 32) * at_gemm_parts(s.n, 8) <= INT32_MAX / 64 && (alone || !is_hopeless(&s, machine));
}

static int grain_x(const shape *s, const choice *c) {
  return c->pads && s->grain_x < 4 ? 16 : s->grain_x;
}

static int grain_y(const shape *s, const choice *c) {
  return c->pads && s->grain_y < 4 ? 16 : s->grain_y;
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
static int asked_bytes(const shape *s, const choice *c, const at_machine *machine) {
  const int needed = shared_bytes(s, c);
  return s->in == 8 ? at_gemm_spread(at_block_blocks(s, c), needed, machine) : needed;
}

static int registers_of(const shape *s, const choice *c) {
  const int m = c->tm / c->warps_m / 16, n = c->tn / c->warps_n / 8, threads = 32 * at_block_warps(c);
  const int loads = (grain_x(s, c) < 4 ? c->tm : 0) + (grain_y(s, c) < 4 ? c->tn : 0);
  return (s->in == 4 ? 64 : 48) + (4 * m * n + 2 * (4 * m + 2 * n)) * (s->in == 8 ? 2 : 1) +
         loads * c->step * s->in / 16 / threads * 9;
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

static size_t workspace_of(const shape *s, const choice *c) {
  return padding_of(s, c) + at_block_sums(s, c);
}

/* Whether one at least of X and Y is copied past the registers. */
static bool is_copied(const shape *s, const choice *c) {
  return grain_x(s, c) >= 4 || grain_y(s, c) >= 4;
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
  return (c->tm * c->step * s->in / x + c->tn * c->step * s->in / y) / (32 * at_block_warps(c));
}

static bool fits(const shape *s, const choice *c, const at_machine *machine) {
  if (c->tm % (16 * c->warps_m) || c->tn % (8 * c->warps_n) || c->step % ((s->in == 2 ? 16 : 8) * c->warps_k))
    return false;
  if (c->step * s->in < 64 || c->step * s->in > 256 ||
      (c->pads && (s->pointers || (s->grain_x >= 4 && s->grain_y >= 4))))
    return false;
  const int warps = at_block_warps(c), registers = registers_of(s, c);
  if (warps < 4 || warps > AT_BLOCK_WARPS || units_of(s, c) > 32 * warps || copies_of(s, c) > MOST_COPIES ||
      registers > 240 || registers * warps * 32 > AT_PROCESSOR_REGISTERS)
    return false;
  return at_block_fits(s, c, shared_bytes(s, c), workspace_of(s, c), machine);
}

static int resident_of(const shape *s, const choice *c, const at_machine *machine) {
  const int threads = 32 * at_block_warps(c);
  return at_gemm_resident(machine, threads, registers_of(s, c), shared_bytes(s, c), 2048 / threads);
}

/* Cycles of a processor for a step of a block: tensor cores overlapped with shared memory. */
static double step_cycles(const shape *s, const choice *c, const at_machine *machine) {
  const double products = (double)c->tm * c->tn * c->step / products_of(s, machine);
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

/* How much of what memory wants a block's copies are to have on the way; how much faster the L2 cache is where
 * elements are wider than two bytes; cycles till a load through registers comes; launches that padding takes, and its
 * part of the memory's rate. */
static const double FLIGHT_TF32 = 2.4, FLIGHT = 1.6, LEVEL2_WIDE = 6.3 / 5.3, LATE = 1100.0, PADDING = 1.2,
                    PADDING_RATE = 1.5 / 4.25;

/* Microseconds. The numbers are the kernel's, fitted to its times (gemm_kernel_times.c). */
static double cost_of(const shape *s, const choice *c, const at_machine *machine) {
  const at_block_load l = at_block_load_of(s, c, resident_of(s, c, machine), machine);
  const double late = grain_x(s, c) < 4 || grain_y(s, c) < 4 ? LATE / l.busy : 0.0;
  const double ahead = !is_copied(s, c) ? 1 : at_block_is_whole(s, c) ? (int)l.mine : c->stages - 1;
  const double wanted = (s->in == 4 ? FLIGHT_TF32 : FLIGHT) * machine->wanted,
               flight = at_lesser(l.used * l.busy * ahead * stage_bytes(s, c) / wanted, 1.0);
  const double rate = l.processors / machine->processors * flight, uneven = l.whole * l.processors / l.blocks;
  /* Short lines far apart are slow to come. */
  const double apart = s->x_k          ? 1.0 + 15.0 / (c->step * s->in)
                       : s->m <= c->tm ? 1.0
                                       : 1.0 + (s->in == 2 ? 70.0 : 8.0) / (c->tm * s->in);
  const double level2 = (s->in == 2 ? 1.0 : LEVEL2_WIDE) * machine->level2 * l.processors / machine->processors;
  return at_block_cost(
      s, c, &l,
      &(at_block_times){
          .memory = memory_of(s, machine) * apart / rate * (0.5 + 0.5 * uneven),
          .compute =
              l.whole * l.mine * at_greater(step_cycles(s, c, machine), late) * machine->cycle * (0.6 + 0.4 * l.few),
          .level2 = l.blocks * l.mine * stage_bytes(s, c) / level2 / l.used * (1.0 / flight),
          .deep = 1.0,
          .meet = s->in == 8 ? 1.6 : 0.6,
          .before =
              c->pads ? PADDING * machine->launch + (double)padding_of(s, c) / (PADDING_RATE * machine->memory) : 0.0,
          .cycle = machine->cycle},
      machine);
}

/* Tiles with warps over them and along k. */
static const uint16_t tiles[][5] = {
    {32, 8, 2, 1, 2},    {64, 8, 4, 1, 1},   {64, 8, 4, 1, 2},   {128, 8, 8, 1, 1},  {32, 16, 2, 1, 2},
    {64, 16, 4, 1, 1},   {64, 16, 4, 1, 2},  {128, 16, 4, 1, 1}, {32, 32, 2, 2, 1},  {32, 32, 2, 1, 2},
    {64, 32, 4, 1, 1},   {64, 32, 2, 2, 1},  {64, 32, 2, 2, 2},  {128, 32, 4, 1, 1}, {64, 64, 2, 2, 1},
    {64, 64, 2, 2, 2},   {128, 64, 2, 2, 1}, {128, 64, 4, 1, 1}, {128, 64, 4, 2, 1}, {128, 128, 2, 2, 1},
    {128, 128, 4, 2, 1}, {256, 8, 8, 1, 1},  {256, 16, 8, 1, 1}, {256, 32, 8, 1, 1}, {256, 64, 8, 1, 1}};

static const at_axis tile_axis = AT_AXIS(tiles, AT_AT(tm), AT_AT(tn), AT_AT(warps_m), AT_AT(warps_n), AT_AT(warps_k));

static int consider(const shape *s, const at_machine *machine, choice c, choice *list, int count, int most) {
  if (c.stages > 2 && !is_copied(s, &c)) return count;
  if (!fits(s, &c, machine)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* The configurations of a tile; those of `most` or all of the best are kept. */
static int collect_tile(const shape *s, const at_machine *machine, int tile, choice *list, int count, int most) {
  static const uint16_t bytes[] = {64, 128, 256}, stages[] = {1, 2, 3, 4, 5, 6, 8, 10, 12}, shares[] = {1, 2, 4, 8},
                        rounds[] = {0, 1, 2};
  static const at_axis axes[] = {AT_AXIS(bytes, AT_AT(step)), AT_AXIS(stages, AT_AT(stages)),
                                 AT_AXIS(shares, AT_AT(split)), AT_AXIS(rounds, AT_AT(parts))};
  const bool pads = !s->pointers && (s->grain_x < 4 || s->grain_y < 4);
  choice c = {0};
  (void)at_axes_pick(&tile_axis, 1, tile, &c);
  for (int i = 0; at_axes_pick(axes, AT_COUNT(axes), i, &c); i++) {
    c.step /= s->in;
    if (!at_block_share(s, &c, MOST_PARTS, machine)) continue;
    for (c.pads = pads; c.pads >= 0; c.pads--) count = consider(s, machine, c, list, count, most);
  }
  return count;
}

/* So many times what is copied ahead, where a device starts a kernel before the last one is done. */
static int early_of(const shape *s, const choice *c, const at_machine *machine, int times) {
  const bool aligned = grain_x(s, c) == 16 || grain_y(s, c) == 16;
  const int64_t steps = at_block_steps(s, c);
  if (machine->capability < 90 || !aligned || c->pads) return 0;
  const int64_t asked = steps < (int64_t)times * c->stages ? steps : (int64_t)times * c->stages;
  return asked < MOST_EARLY ? (int)asked : MOST_EARLY;
}

static bool is_alike(const choice *a, const choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->step == b->step && a->split == b->split && a->parts == b->parts &&
         a->pads == b->pads;
}

/* A search tries few, of which no more than two differ only in warps and stages, and three have the same tile. */
static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_shape_of(g);
  static const int times[] = {0, 1, 4};
  choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  int count = 0, given = 0;
  for (size_t t = 0; t < AT_COUNT(tiles); t++) {
    if (tiles[t][1] > 8 && tiles[t][1] >= 2 * s.n) continue;
    count = collect_tile(&s, machine, (int)t, list, count, MOST_CHOICES);
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
      if (!wide && e != (alike > 0 && at_block_is_whole(&s, &list[i]) ? 1 : 0))
        continue; /* it helps short sums alone */
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
                                {"WHOLE", at_block_is_whole(s, c)}};
  at_gemm_define_tunables(out, &tunables, c);
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = at_gemm_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  if (s.swapped) at_gemm_launch_spec_swap(out);
  define(out, g, &s, &c);
  const int threads = 32 * at_block_warps(&c);
  at_block_launch(out, &s, &c, asked_bytes(&s, &c, machine));
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
    .has_epilogue = true,
    .first = {at_gemm_sm80_mma_tile_cuh, at_gemm_sm80_mma_cuh},
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_mma = {.name = "sm80_mma", .version = 1, AT_GEMM_KERNEL_SLOTS(family, tunables)};
