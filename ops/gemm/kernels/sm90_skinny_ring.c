/* SPDX-License-Identifier: Apache-2.0
 * sm90_skinny_ring.c: the families of sm90_skinny_ring.cuh: a large matrix of halves times one of up to 16 columns, or
 * of 8-bit elements times one of up to 32, both along k. */
#include "ops/gemm/kernels/block_tile.h"

#include <math.h>

#include "gemm_scaled_element_cuh.h"
#include "gemm_sm90_skinny_ring_16b_cuh.h"
#include "gemm_sm90_skinny_ring_8b_cuh.h"
#include "gemm_sm90_skinny_ring_cuh.h"

enum {
  MOST_N = 16,
  MOST_N_8B = 32,
  MOST_CHOICES = 192,
  MOST_FEW = 6,
  MOST_FEW_8B = 8,
  MOST_VECTOR = 2,
  MOST_STAGES = 8,
  MOST_EARLY = 16,
  LINE = 128,       /* bytes of the L2 cache, where a part of k may begin */
  DEPTH = 64,       /* bytes along k: of halves no fewer are multiplied at a time */
  BLOCK = 128,      /* elements along k of a scale */
  PIECE = 16,       /* bytes of a copy */
  MOST_BYTES = 1024 /* of a line in a step that is offered */
};

static const double HOPELESS = 1.6; /* times the best guess: not tried */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                            \
  NUMBER("rows", rows, NULL, 16, 32, AT_POWERS, "rows of D (columns where m is the small size) of a warp")            \
  PAIR("warps", warps_m, "WARPS_M", 1, 16, warps_k, "WARPS_K", 1, 16, AT_POWERS,                                      \
       "warps of a block along the rows and along k")                                                                 \
  NUMBER("step", step, "STEP", 64, 1024, AT_POWERS, "of k, that a warp copies at a time")                             \
  NUMBER("stages", stages, "STAGES", 2, MOST_STAGES, 0, "steps that a warp has in shared memory or on the way there") \
  NUMBER("splitk", split, "SPLIT", 1, 8, AT_POWERS, "blocks, a cluster, that share k")                                \
  NUMBER("early", early, "EARLY", 0, MOST_EARLY, 0,                                                                   \
         "steps whose bytes a warp asks the L2 cache for before the work in front of it is done")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_shape shape;

/* Copies take 16 bytes from and to multiples of 16. */
static bool takes(const shape *s, int most_n, const at_machine *machine) {
  return machine->capability >= 90 && s->x_k && s->y_k && s->grain_x == PIECE && s->grain_y == PIECE &&
         s->n <= most_n && s->k >= 256 && s->m >= 64 && s->m <= INT32_MAX / 64 && s->k <= INT32_MAX / 64 &&
         s->batch <= 65535;
}

static bool supports_16b(const at_gemm *g, const at_machine *machine) {
  if (g->dtype != ATTUNE_F16 && g->dtype != ATTUNE_BF16) return false;
  const shape s = at_gemm_shape_of(g);
  return takes(&s, MOST_N, machine) && s.k % (DEPTH / 2) == 0;
}

static bool supports_8b(const at_gemm *g, const at_machine *machine) {
  if (g->scaling.zero_a || g->scaling.zero_b) return false;
  const shape s = at_gemm_shape_of(g);
  return takes(&s, MOST_N_8B, machine) && s.k % PIECE == 0;
}

static int columns_of(const shape *s) {
  return (int)(s->n + 7) / 8 * 8;
}

/* Lines of S in shared memory. */
static int lines_of(const shape *s) {
  return s->n > 4 ? columns_of(s) : s->n > 2 ? 4 : (int)s->n;
}

static int warps_of(const choice *c) {
  return c->warps_m * c->warps_k;
}

static int pitch_of(const shape *s, const choice *c) {
  return c->step * s->in + 64;
}

/* Bytes of the scales of a line in a step, if there may be any: a model has no need to know whether there are. */
static int scales_of(const shape *s, const choice *c) {
  return s->in == 1 ? c->step / BLOCK * (int)sizeof(float) : 0;
}

static int shared_bytes(const shape *s, const choice *c) {
  const int lines = c->warps_m * c->rows, bytes = pitch_of(s, c) * (lines + lines_of(s)),
            scales = scales_of(s, c) * (lines + columns_of(s));
  return c->warps_k * c->stages * (bytes + scales + 2 * (int)sizeof(uint64_t));
}

static int registers_of(const shape *s, const choice *c) {
  return 64 + c->rows / 16 * (columns_of(s) / 2 + (s->in == 1 ? 24 : 8));
}

static int resident_of(const shape *s, const choice *c, const at_machine *machine) {
  return at_gemm_resident(machine, 32 * warps_of(c), registers_of(s, c), shared_bytes(s, c), 16);
}

static int64_t tiles_of(const shape *s, const choice *c) {
  return at_gemm_parts(s->m, c->warps_m * c->rows);
}

static bool fits(const shape *s, const choice *c, const at_machine *machine) {
  if (warps_of(c) > 16 || s->k * s->in < LINE * c->warps_k * c->split || c->step * s->in < LINE) return false;
  if (registers_of(s, c) * warps_of(c) * 32 > AT_PROCESSOR_REGISTERS) return false;
  if (tiles_of(s, c) * c->split > INT32_MAX / 64) return false;
  return shared_bytes(s, c) <= machine->shared_bytes - 1024;
}

/* Numbers of the kernels, fitted to 250 of their times of halves and 450 of 8-bit elements on an H200. */
typedef struct fitted {
  double flight;              /* of what memory wants on the way, for copies of whole lines come later */
  double uneven, small;       /* how much an uneven load, and what blocks read of S, count */
  double each, teams, many;   /* microseconds of a block; more of two teams, of more than four */
  double cluster, of_cluster; /* microseconds more of a cluster, and of each of its blocks */
  double brief, few;          /* for short lines, and for warps that are too few to be busy */
  double overlap;             /* how much of the lesser of memory and cache counts */
} fitted;
static const fitted halves = {176e3 / 40960.0, 0.6, 1.0, 0.3, 0.2, 0.3, 0.3, 0.3, 0.35, 12.0, 0.06},
                    bytes = {98.4e3 / 40960.0, 0.357, 0.877, 1.3, 0.0, 1.96, 0.0, 1.07, 0.0, 5.3, 0.02};

/* Their part of the memory's rate; bytes a microsecond that one warp more or less brings; words of f8 that a processor
 * makes halves of for a warp, in a cycle. */
static const double RATE = 4.35 / 4.25, OF_WARPS = 50e6, CONVERTED = 0.59;

/* Microseconds that 8-bit elements take on their way to tensor cores. */
static double convert_of(const shape *s, const choice *c, const at_machine *machine) {
  const double tiles = (double)s->m / c->rows * (double)s->k / 64.0 * (double)s->batch,
               words = c->rows + (double)columns_of(s);
  return s->in == 1 ? tiles * words / CONVERTED / machine->processors * machine->cycle : 0.0;
}

/* Microseconds: memory or the L2 cache, and what comes before and after. */
static double cost_of(const shape *s, const choice *c, const at_machine *machine) {
  const fitted *f = s->in == 1 ? &bytes : &halves;
  const double processors = machine->processors;
  const double tiles = (double)(tiles_of(s, c) * s->batch), blocks = tiles * c->split;
  const double resident = resident_of(s, c, machine), places = at_gemm_usable(c->split, machine) * resident;
  const double rounds = (double)(int64_t)(blocks / places + 0.9999), at_once = at_lesser(blocks, places);
  const int64_t unit = LINE / s->in;
  const double share = (double)(at_gemm_parts(at_gemm_parts(s->k, c->warps_k * c->split), unit) * unit),
               steps = (double)at_gemm_parts((int64_t)share, c->step), ahead = at_lesser(c->stages, steps);
  const double ring = ahead * c->step * s->in * c->rows * warps_of(c),
               flight = at_lesser(at_once * ring / (processors * f->flight * machine->wanted), 1.0),
               used = at_lesser(at_once / processors, 1.0);
  const double large = (double)s->m * (double)s->k * (double)s->batch * s->in,
               small = tiles * (double)s->n * (double)s->k * s->in;
  const double uneven = rounds > 1.0 ? rounds * places / blocks : used < 0.9 ? 1.0 / used : 1.0;
  const double memory = large / (RATE * machine->memory) / (s->in == 1 ? sqrt(flight) : flight) *
                        (1.0 - f->uneven + f->uneven * uneven),
               level2 = (large + f->small * small) / machine->level2;
  const double warps = at_lesser(blocks / processors, resident) * warps_of(c), few = f->few / warps;
  const double each = f->each + (c->warps_k > 1 ? f->teams : 0.0) + (c->warps_k > 4 ? f->many : 0.0) +
                      (c->split > 1 ? f->cluster + f->of_cluster * c->split : 0.0);
  const double brief = c->step * s->in < 256 ? f->brief : 0.0;
  const double busy = at_greater(convert_of(s, c, machine), at_greater(memory, level2));
  return busy + f->overlap * at_lesser(memory, level2) + each + (few + brief) * large / OF_WARPS;
}

static int consider(const shape *s, const at_machine *machine, choice c, choice *list, int count, int most) {
  if (!fits(s, &c, machine) || c.step * c.warps_k * c.split > s->k || c.step * s->in > MOST_BYTES) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* Those that were once among the best on an H200: rows, warps, step, stages, splitk. */
static const uint16_t few[][6] = {
    {16, 2, 4, 128, 3, 1}, {16, 2, 4, 256, 2, 1}, {16, 2, 8, 128, 2, 1}, {16, 1, 4, 128, 3, 1}, {16, 1, 4, 256, 2, 1},
    {16, 1, 2, 128, 3, 1}, {16, 2, 2, 128, 3, 1}, {16, 2, 2, 256, 3, 1}, {16, 8, 2, 128, 2, 1}, {16, 4, 2, 128, 2, 1},
    {16, 8, 1, 128, 3, 1}, {16, 4, 1, 256, 2, 1}, {16, 2, 4, 128, 3, 2}, {16, 2, 2, 256, 3, 2}, {16, 2, 1, 128, 3, 4},
    {16, 4, 1, 128, 3, 4}, {32, 4, 2, 128, 2, 1}, {32, 4, 1, 128, 3, 1}, {16, 1, 1, 128, 2, 1}, {16, 1, 1, 256, 2, 1},
};

/* The same of 8-bit elements; the last ones are for sizes that were not measured. */
static const uint16_t few_8b[][6] = {
    {16, 2, 4, 256, 3, 1}, {16, 2, 8, 256, 2, 1}, {16, 1, 4, 512, 2, 1}, {16, 1, 8, 128, 3, 1}, {16, 4, 2, 256, 3, 1},
    {32, 1, 8, 256, 2, 1}, {16, 1, 8, 256, 2, 1}, {16, 1, 4, 256, 4, 1}, {16, 2, 1, 256, 3, 1}, {16, 8, 1, 128, 3, 1},
    {16, 2, 4, 512, 2, 1}, {16, 4, 4, 128, 3, 1}, {32, 8, 1, 256, 2, 4}, {16, 2, 2, 256, 3, 1}, {16, 2, 4, 256, 2, 1},
    {16, 2, 2, 256, 2, 2}, {32, 1, 2, 256, 2, 2}, {32, 8, 1, 256, 2, 1}, {16, 8, 1, 256, 2, 1}, {16, 2, 8, 128, 3, 1},
    {16, 1, 2, 256, 3, 1}, {16, 1, 4, 256, 3, 1}, {16, 1, 8, 512, 2, 1}, {16, 2, 1, 256, 3, 4}, {16, 4, 1, 256, 3, 4},
    {16, 4, 2, 256, 3, 2}, {16, 2, 2, 512, 2, 2}, {16, 8, 2, 256, 2, 1}, {32, 4, 2, 256, 2, 1}, {32, 4, 1, 256, 2, 2},
    {16, 1, 2, 512, 3, 1}, {16, 1, 1, 256, 2, 1},
};

#define FEW_AXIS(FEW) \
  AT_AXIS(FEW, AT_AT(rows), AT_AT(warps_m), AT_AT(warps_k), AT_AT(step), AT_AT(stages), AT_AT(split))
static const at_axis few_axis = FEW_AXIS(few), few_axis_8b = FEW_AXIS(few_8b);

static const uint16_t all_rows[] = {16, 32}, all_steps[] = {64, 128, 256, 512, 1024}, all_stages[] = {2, 3, 4, 5, 6},
                      all_splits[] = {1, 2, 4},
                      all_warps[][2] = {{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1},  {2, 2}, {2, 4},
                                        {2, 8}, {4, 1}, {4, 2}, {4, 4}, {1, 16}, {8, 1}, {8, 2}};
static const at_axis all_axes[] = {AT_AXIS(all_rows, AT_AT(rows)), AT_AXIS(all_warps, AT_AT(warps_m), AT_AT(warps_k)),
                                   AT_AXIS(all_steps, AT_AT(step)), AT_AXIS(all_stages, AT_AT(stages)),
                                   AT_AXIS(all_splits, AT_AT(split))};

static int collect(const shape *s, const at_machine *machine, choice *list, bool wide) {
  const at_axis *axes = wide ? all_axes : s->in == 1 ? &few_axis_8b : &few_axis;
  choice c = {0};
  int count = 0;
  for (int i = 0; at_axes_pick(axes, wide ? AT_COUNT(all_axes) : 1, i, &c); i++)
    count = consider(s, machine, c, list, count, MOST_CHOICES);
  return count;
}

static bool is_alike(const choice *a, const choice *b) {
  return a->rows == b->rows && a->warps_m == b->warps_m && a->warps_k == b->warps_k && a->split == b->split &&
         a->step == b->step;
}

/* The best guess, of more than two stages, with two ways to ask early, others with one: of two stages one is being
 * multiplied, so no more than one step is worth asking for. No two that differ only in stages. */
static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_shape_of(g);
  choice list[MOST_CHOICES];
  const int most = s.in == 1 ? MOST_FEW_8B : s.n == 1 ? MOST_VECTOR : MOST_FEW; /* sm80_skinny_reg is for vectors */
  const int count = collect(&s, machine, list, wide);
  int given = 0;
  for (int i = 0; i < count && given < max && (wide || given < most); i++) {
    int alike = 0;
    for (int j = 0; j < i; j++) alike += is_alike(&list[i], &list[j]);
    if (!wide && (alike > 0 || list[i].cost > HOPELESS * list[0].cost)) continue;
    const int usual = list[i].step * s.in <= 256 && list[i].stages > 2 ? 2 : 1;
    for (int early = usual; early >= (wide ? 0 : i == 0 ? 1 : usual) && given < max; early--) {
      list[i].early = early;
      if (at_tunables_format(&tunables, &out[given], &list[i])) given++;
    }
  }
  return given;
}

static void define_all(at_gemm_launch_spec *out, const at_gemm_define *all, size_t count) {
  for (size_t i = 0; i < count; i++) at_gemm_define_add(out, all[i].name, all[i].value);
}

/* C is bf16 where D is f8. */
static void define_scaling(at_gemm_launch_spec *out, const at_gemm *g) {
  const attune_gemm_scaling *s = &g->scaling;
  const bool swapped = out->swapped;
  const int a = g->dtype, b = (int)at_gemm_dtype_b(g);
  const int64_t c_bytes = (int64_t)attune_dtype_size(at_gemm_dtype_c(g));
  const at_gemm_define all[] = {{"TYPE_L", swapped ? b : a},
                                {"TYPE_S", swapped ? a : b},
                                {"D_TYPE", g->dtype_out},
                                {"SCALE_L", swapped ? s->scale_b : s->scale_a},
                                {"SCALE_S", swapped ? s->scale_a : s->scale_b},
                                {"SCALE_D", s->scale_d},
                                {"AMAX", s->amax_d}};
  out->arguments.ldc = g->ldc * c_bytes, out->arguments.stride_c = g->stride_c * c_bytes;
  define_all(out, all, AT_COUNT(all));
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = at_gemm_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  at_gemm_launch_spec_start(out, g);
  if (s.swapped) at_gemm_launch_spec_swap(out);
  const at_gemm_define all[] = {
      {"COLS", columns_of(&s)},  {"PER", c.rows / 16},  {"BLOCKS", resident_of(&s, &c, machine)},
      {"LINES_S", lines_of(&s)}, {"TURNED", s.swapped}, {"READS_C", g->c != AT_C_NONE},
      {"ELEMENT", s.in}};
  at_gemm_define_tunables(out, &tunables, &c);
  define_all(out, all, AT_COUNT(all));
  if (s.in == 1) define_scaling(out, g);
  at_gemm_launch_spec_grid(out, tiles_of(&s, &c), c.split, s.batch, 0, 32 * warps_of(&c), shared_bytes(&s, &c));
  return true;
}

static const at_gemm_kernels family_16b = {
    .file = "sm90_skinny_ring_16b.cu",
    .entry = "at_ring",
    .first = {at_gemm_sm90_skinny_ring_cuh},
    .text = at_gemm_sm90_skinny_ring_16b_cuh,
    .has_epilogue = true,
    .pointers = true,
    .supports = supports_16b,
    .candidates = candidates,
    .spec = spec,
};

static const at_gemm_kernels family_8b = {
    .file = "sm90_skinny_ring_8b.cu",
    .entry = "at_ring",
    .first = {at_gemm_sm90_skinny_ring_cuh, at_gemm_scaled_element_cuh},
    .text = at_gemm_sm90_skinny_ring_8b_cuh,
    .scaled = true,
    .supports = supports_8b,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm90_skinny_ring_16b = {
    .name = "sm90_skinny_ring_16b", .version = 1, AT_GEMM_KERNEL_SLOTS(family_16b, tunables)};

const at_implementation at_gemm_sm90_skinny_ring_8b = {
    .name = "sm90_skinny_ring_8b",
    .version = 1,
    AT_GEMM_KERNEL_SLOTS_BY(family_8b, tunables, at_gemm_kernel_launch_scaled)};
