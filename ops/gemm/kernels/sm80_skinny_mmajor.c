/* SPDX-License-Identifier: Apache-2.0
 * sm80_skinny_mmajor.c: the family of sm80_skinny_mmajor.cuh: f32 and f64, a large matrix that lies along its rows
 * times one of few columns, or the same transposed. */
#include "ops/gemm/kernels/skinny_shape.h"

#include "gemm_sm80_skinny_mmajor_cuh.h"

enum {
  MOST_N = 64,
  MOST_N_F64 = 8,
  MOST_COLS = 16,
  ROOMS = 4,
  MOST_ROOMS = 8,
  MOST_CHOICES = 64,
  MOST_FEW = 8,
  MOST_MORE = 4,
  MOST_COPIES = 16
};

/* Where the few are slow, MOST_MORE of all configurations that cost less than this part of their best are tried,
 * too: where few rows share a long k. */
static const double FAR_LESS = 0.8;

static const double HOPELESS = 1.6; /* times the best guess: not tried */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                          \
  NUMBER("lanes", lanes, "LANES", 8, 32, AT_POWERS,                                                                 \
         "lanes of a warp along the rows; the others take other parts of k")                                        \
  NUMBER("columns", cols, "COLS", 1, MOST_COLS, AT_POWERS,                                                          \
         "columns of D (rows where m is the small size) that a block computes")                                     \
  PAIR("warps", warps_m, "WARPS_M", 1, 16, warps_k, "WARPS_K", 1, 16, AT_POWERS,                                    \
       "warps of a block along the rows and along k")                                                               \
  NUMBER("splitk", split, "SPLIT", 1, 8, AT_POWERS,                                                                 \
         "blocks, a cluster, that share k; more than one on devices of capability 9.0 and later")                   \
  NUMBER("ahead", ahead, "AHEAD", 1, 16, AT_POWERS,                                                                 \
         "loads of 16 bytes that a thread has on the way; through shared memory: that its loop has side by side")   \
  NUMBER("chunk", chunk, "CHUNK", 1, 512, AT_POWERS, "k that a warp brings of the small matrix at a time")          \
  NUMBER("rooms", rooms, NULL, 0, MOST_ROOMS, 0,                                                                    \
         "0: the large matrix goes from memory into registers; 4 or 8: it comes through shared memory, and a warp " \
         "has so many chunks of it there or on the way")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_skinny_shape shape;

static int largest(int x, int y) {
  return x > y ? x : y;
}

static bool supports(const at_gemm *g, const at_machine *machine) {
  const shape s = at_gemm_skinny_shape_of(g);
  if (s.half || s.large_k || machine->capability < 80) return false;
  if (s.m <= 64 && s.k <= 64) return false;              /* sm80_batched_smem's */
  if (s.m * s.batch < 1024 && s.k > 16384) return false; /* too few rows share a long k */
  return s.n <= (s.sum == 8 ? MOST_N_F64 : MOST_N) && s.m <= INT32_MAX / 64 && s.k <= INT32_MAX / 4 && s.batch <= 65535;
}

/* k of a warp's 32 copies of an element, where S is turned. */
static int span_of(const choice *c) {
  return c->cols < 4 ? 32 / c->cols : 8;
}

/* k of a warp's loads that are under way. */
static int ahead_of(const choice *c) {
  return 32 / c->lanes * c->ahead;
}

/* The usual chunk: as little as keeps all lanes at the copying, but no less than four copies each. */
static int chunk_of(const shape *s, const choice *c) {
  const int least = largest(ahead_of(c), span_of(c));
  const int64_t parts = c->warps_k * c->split, share = (s->k + parts - 1) / parts;
  int chunk = least;
  while (chunk * c->cols < 128 && chunk < share) chunk *= 2;
  return chunk;
}

static int warp_rows(const shape *s, const choice *c) {
  return c->lanes * s->wide;
}

static int block_rows(const shape *s, const choice *c) {
  return c->warps_m * warp_rows(s, c);
}

static int shared_bytes(const shape *s, const choice *c) {
  const int pitch = c->cols * s->in < 32 ? c->cols : c->cols + s->wide, sums = warp_rows(s, c) * c->cols;
  const int loads = c->rooms ? c->chunk / (32 / c->lanes) * 32 * s->wide : 0, rooms = c->rooms ? c->rooms : ROOMS;
  const int room = largest(rooms * (c->chunk * pitch + loads), 32 / c->lanes * sums);
  return (c->warps_m * c->warps_k * room + c->warps_m * sums) * s->in + 16;
}

/* What a thread takes without a word of it in memory: as compiled for many configurations. */
static int registers_of(const shape *s, const choice *c) {
  const int others = (c->lanes == 32 || c->cols < 8 || s->in == 8 ? 60 : 44) + (s->m % s->wide ? 16 : 0);
  return others + c->cols * s->wide * s->in / 4 + (c->rooms ? 8 : 5 * c->ahead);
}

static int resident_of(const shape *s, const choice *c, const at_machine *machine) {
  const int threads = 32 * c->warps_m * c->warps_k;
  return at_gemm_resident(machine, threads, registers_of(s, c), shared_bytes(s, c), 1536 / threads);
}

static bool fits(const shape *s, const choice *c, const at_machine *machine) {
  const int warps = c->warps_m * c->warps_k, registers = (registers_of(s, c) + 7) / 8 * 8;
  if (s->half || s->large_k || warps > 16) return false;
  if (c->rooms != 0 && c->rooms != 4 && c->rooms != MOST_ROOMS) return false;
  if (c->chunk % ahead_of(c) || c->chunk % span_of(c) || c->chunk * c->cols / 32 > MOST_COPIES) return false;
  if (registers > 200 || registers * warps * 32 > AT_PROCESSOR_REGISTERS || (c->split > 1 && machine->capability < 90))
    return false;
  return shared_bytes(s, c) <= machine->shared_bytes - 1024;
}

/* Cycles of a processor for a step of a warp, a load of 16 bytes a lane: instructions on four schedulers, shared memory
 * beside them. */
static double step_cost(const shape *s, const choice *c) {
  const double sums = c->cols * s->wide * (s->sum == 8 ? 2.0 : 1.0), lines = c->cols * s->in / 16.0,
               copies = c->cols * (32.0 / c->lanes) / 32.0;
  return at_greater((1.2 * sums + lines + 4.0 * copies + 8.0) / 4.0, 4.0 * at_greater(lines, 1.0) + 4.0 + 2.0 * copies);
}

/* What part of what memory wants on the way the kernel needs, and what part of its rate it has. */
static const double FLIGHT = 30000.0 / 40960.0, RATE = 4.3 / 4.25;

/* Microseconds: memory and sums overlapped, and what comes before and after. The numbers are the kernel's,
 * fitted to its times (gemm_kernel_times.c). */
static double cost_of(const shape *s, const choice *c, const at_machine *machine) {
  const double cycle = machine->cycle, processors = machine->processors;
  const int warps = c->warps_m * c->warps_k, rows = block_rows(s, c), resident = resident_of(s, c, machine);
  const int64_t parts = c->warps_k * c->split;
  const double tiles_m = (double)((s->m + rows - 1) / rows), tiles_n = (double)((s->n + c->cols - 1) / c->cols);
  const double clusters = tiles_m * tiles_n * (double)s->batch, blocks = clusters * c->split;
  const double share = (double)(((s->k + parts - 1) / parts + c->chunk - 1) / c->chunk * c->chunk);
  const double uneven = at_gemm_uneven(machine, clusters, c->split);
  const double mine = at_greater(blocks / processors, 1.0), busy = mine > resident ? resident : mine;
  const int loads = c->rooms ? (c->rooms - 1) * c->chunk / (32 / c->lanes) : c->ahead; /* on their way */
  const double flight = busy * warps * 512.0 * loads / (FLIGHT * machine->wanted);
  const double large = (double)s->m * (double)s->k * s->in * (double)s->batch * (0.75 + 0.25 * tiles_n);
  const double small = clusters * c->cols * (double)s->k * s->in;
  const double memory = (large / (flight < 1.0 ? flight : 1.0) + 0.4 * small) / (RATE * machine->memory);
  const double compute = blocks * warps * share / (32.0 / c->lanes) * step_cost(s, c) / processors * cycle;
  const double sums = (double)rows * c->cols * s->sum * c->warps_k;
  const double each = 0.6 + (sums / 64.0 + 300.0) * cycle + (c->split > 1 ? 0.5 : 0.0); /* of a block */
  return (at_greater(memory, compute) + 0.1 * (memory < compute ? memory : compute)) * uneven + 1.0 +
         each * (1.0 + 0.6 * (mine / busy - 1.0));
}

/* Adds c, if it fits, in its place by cost; the worst falls out. */
static int consider(const shape *s, const at_machine *machine, choice c, choice *list, int count, int most) {
  if (!fits(s, &c, machine)) return count;
  for (int i = 0; i < count; i++)
    if (at_tunables_equal(&tunables, &list[i], &c)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* The least number of columns that holds n; MOST_COLS where none does. */
static int columns_of(const shape *s) {
  int cols = 1;
  while (cols < s->n && cols < MOST_COLS) cols *= 2;
  return cols;
}

/* Those of which a search tries the best guesses: lanes, warps along m and k, splitk, ahead, rooms. */
static const uint16_t few[][6] = {
    {16, 1, 16, 2, 4, 0}, {16, 1, 16, 1, 4, 0},  {16, 1, 8, 2, 8, 0},  {16, 1, 8, 2, 16, 0}, {16, 1, 8, 1, 8, 0},
    {16, 2, 4, 2, 16, 0}, {16, 4, 1, 1, 4, 0},   {16, 2, 2, 1, 4, 0},  {16, 1, 4, 1, 4, 0},  {32, 1, 8, 2, 8, 0},
    {32, 1, 8, 1, 8, 0},  {32, 1, 16, 2, 16, 0}, {32, 2, 4, 2, 8, 0},  {32, 2, 8, 1, 4, 0},  {32, 4, 1, 1, 4, 0},
    {32, 1, 4, 1, 8, 0},  {8, 1, 16, 1, 4, 0},   {8, 1, 16, 1, 8, 0},  {8, 1, 8, 1, 16, 0},  {8, 2, 8, 2, 8, 0},
    {8, 4, 2, 2, 16, 0},  {8, 2, 8, 1, 4, 0},    {8, 1, 8, 1, 4, 0},   {16, 1, 16, 2, 4, 4}, {16, 1, 8, 2, 8, 4},
    {8, 1, 16, 1, 4, 4},  {8, 1, 8, 1, 8, 4},    {16, 1, 16, 1, 4, 4},
};

static const at_axis few_axis =
    AT_AXIS(few, AT_AT(lanes), AT_AT(warps_m), AT_AT(warps_k), AT_AT(split), AT_AT(ahead), AT_AT(rooms));

static int collect_few(const shape *s, const at_machine *machine, choice *list) {
  choice c = {.cols = columns_of(s)};
  int count = 0;
  for (int i = 0; at_axes_pick(&few_axis, 1, i, &c); i++) {
    if (machine->capability < 90) c.split = 1;
    c.chunk = chunk_of(s, &c);
    count = consider(s, machine, c, list, count, MOST_FEW);
  }
  return count;
}

static int collect_all(const shape *s, const at_machine *machine, choice *list) {
  static const uint16_t warps[][2] = {{1, 4}, {1, 8}, {1, 16}, {2, 2}, {2, 4}, {2, 8}, {4, 1}, {4, 2}, {4, 4}, {8, 1}},
                        lanes[] = {8, 16, 32}, splits[] = {1, 2, 4, 8}, aheads[] = {2, 4, 8, 16}, times[] = {1, 2};
  static const at_axis axes[] = {AT_AXIS(lanes, AT_AT(lanes)), AT_AXIS(warps, AT_AT(warps_m), AT_AT(warps_k)),
                                 AT_AXIS(splits, AT_AT(split)), AT_AXIS(aheads, AT_AT(ahead)),
                                 AT_AXIS(times, AT_AT(chunk))};
  choice c = {.cols = columns_of(s)};
  int count = 0;
  for (int i = 0; at_axes_pick(axes, AT_COUNT(axes), i, &c); i++) {
    c.chunk *= chunk_of(s, &c);
    count = consider(s, machine, c, list, count, MOST_CHOICES);
  }
  return count;
}

static int add_more(const shape *s, const at_machine *machine, choice *list, int count) {
  choice all[MOST_CHOICES];
  if (count == 0 || !at_gemm_skinny_is_slow(s, list[0].cost, machine)) return count;
  const int all_count = collect_all(s, machine, all);
  return at_lesser_int(AT_GEMM_PREPEND(list, count, all, all_count, MOST_MORE, FAR_LESS), MOST_FEW);
}

static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_skinny_shape_of(g);
  choice list[MOST_CHOICES];
  const int few_count = wide ? 0 : collect_few(&s, machine, list),
            count = wide ? collect_all(&s, machine, list) : add_more(&s, machine, list, few_count);
  return AT_GEMM_OFFER(out, max, list, count, wide ? 0.0 : HOPELESS);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = at_gemm_skinny_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  const int tiles_n = (int)at_gemm_parts(s.n, c.cols);
  at_gemm_skinny_shape_start(out, g, &s);
  at_gemm_define_tunables(out, &tunables, &c);
  at_gemm_define_add(out, "ROOMS", c.rooms ? c.rooms : ROOMS);
  at_gemm_define_add(out, "STAGED", c.rooms > 0);
  at_gemm_define_add(out, "BLOCKS", resident_of(&s, &c, machine));
  at_gemm_define_add(out, "TILES_N", tiles_n);
  at_gemm_define_add(out, "EXACT", s.k % c.chunk == 0 && s.n % c.cols == 0);
  at_gemm_launch_spec_grid(out, at_gemm_parts(s.m, block_rows(&s, &c)) * tiles_n, c.split, s.batch, 0,
                           32 * c.warps_m * c.warps_k, shared_bytes(&s, &c));
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_skinny_mmajor.cu",
    .entry = "at_rows",
    .text = at_gemm_sm80_skinny_mmajor_cuh,
    .has_epilogue = true,
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_skinny_mmajor = {
    .name = "sm80_skinny_mmajor", .version = 2, AT_GEMM_KERNEL_SLOTS(family, tunables)};
