/* SPDX-License-Identifier: Apache-2.0
 * sm80_skinny_reg.c: the family of sm80_skinny_reg.cuh: a large matrix times one of up to 64 columns, or the same
 * transposed. */
#include "ops/gemm/kernels/skinny_shape.h"

#include "gemm_sm80_skinny_reg_cuh.h"

enum {
  MOST = 64,
  MOST_CHOICES = 64,
  MOST_FEW = 8,
  MOST_MORE = 4,
  MOST_BESIDE = 2,
  ROWS = 0,
  DEPTH = 1,
  TENSOR = 2,
  SMALL_BYTES = 8192,
  MOST_SMALL_BYTES = 65536
};

/* Where the few are slow, MOST_MORE of all configurations that cost less than this part of their best are tried,
 * too: where few rows share a long k. */
static const double FAR_LESS = 0.8;

static const double HOPELESS = 1.6; /* times the best guess: not tried */

static const char *const forms[] = {[ROWS] = "rows", [DEPTH] = "depth", [TENSOR] = "tensor", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                        \
  WORD("form", form, "FORM", forms, 0,                                                                            \
       "`rows`: the large matrix lies along m (n), a thread has rows of it; `depth`: it lies along k, and so do " \
       "the lanes of a warp; `tensor`: it lies along k, halves, by tensor cores")                                 \
  NUMBER("columns", cols, "COLS", 1, 64, AT_POWERS,                                                               \
         "columns of D (rows where m is the small size) that a block computes")                                   \
  NUMBER("per", per, "PER", 1, 8, AT_POWERS,                                                                      \
         "`rows`: vectors of rows of a thread; `depth`: rows of a warp; `tensor`: 16 rows of a warp")             \
  PAIR("warps", warps_m, "WARPS_M", 1, 16, warps_k, "WARPS_K", 1, 16, AT_POWERS,                                  \
       "warps of a block along the rows and along k")                                                             \
  NUMBER("splitk", split, "SPLIT", 1, 8, AT_POWERS,                                                               \
         "blocks, a cluster, that share k; more than one on devices of capability 9.0 and later")                 \
  NUMBER("ahead", ahead, "AHEAD", 1, 16, AT_POWERS, "steps of k whose loads a thread has on the way")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* microseconds, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef at_gemm_skinny_shape shape;

/* Where too few rows share a long k, or halves along m need tensor cores for their many columns, these kernels are far
 * behind others: not taken. */
static bool is_hopeless(const shape *s) {
  return (s->m * s->batch < 1024 && s->k > 16384) || (s->half && !s->large_k && s->n > 16);
}

/* f32 and f64 along m with more than a few columns: sm80_skinny_mmajor does them in less time. */
static bool is_left_to_rows(const shape *s) {
  return !s->half && !s->large_k && s->n > 4;
}

static bool supports(const at_gemm *g, const at_machine *machine) {
  const shape s = at_gemm_skinny_shape_of(g);
  if (s.m <= MOST && s.k <= MOST) return false; /* sm80_batched_smem's */
  return machine->capability >= 80 && s.n <= MOST && s.m <= INT32_MAX / 4 && s.k <= INT32_MAX / 4 && s.batch <= 65535 &&
         !is_hopeless(&s) && !is_left_to_rows(&s);
}

static int step_of(const shape *s, const choice *c) {
  return c->form == ROWS ? (s->wide < 4 ? s->wide : 4) : c->form == DEPTH ? 32 * s->wide : 32;
}

static int block_rows(const shape *s, const choice *c) {
  return c->warps_m * c->per * (c->form == ROWS ? 32 * s->wide : c->form == DEPTH ? 1 : 16);
}

/* Loads of 16 bytes of a thread in a step. */
static int loads_of(const shape *s, const choice *c) {
  return c->form == TENSOR ? 2 * c->per : c->form == ROWS ? c->per * step_of(s, c) : c->per;
}

/* So much of k of S lies in shared memory at once, twice; 0: not even the least does. */
static int chunk_of(const shape *s, const choice *c) {
  const int least = step_of(s, c) * c->warps_k * c->ahead, unit = least < 64 ? 64 : least;
  const int64_t share = (s->k + c->split - 1) / c->split, whole = (share + unit - 1) / unit;
  const int one = c->cols * s->in * unit, fit = one >= SMALL_BYTES ? 1 : SMALL_BYTES / one;
  return one > MOST_SMALL_BYTES ? 0 : unit * (int)(whole < fit ? whole : fit);
}

static int shared_bytes(const shape *s, const choice *c) {
  const int small = 2 * (chunk_of(s, c) + (c->form == TENSOR ? 32 : 0)) * c->cols * s->in;
  const int sums = c->warps_k * block_rows(s, c) * c->cols * s->sum;
  return small > sums ? small : sums;
}

static int registers_of(const shape *s, const choice *c) {
  const int sums = c->form == ROWS    ? c->per * s->wide * c->cols * s->sum / 4
                   : c->form == DEPTH ? c->per * c->cols * s->sum / 4
                                      : c->per * c->cols / 2;
  const int wide = c->form == ROWS    ? s->half ? c->per * s->wide * step_of(s, c) : 4
                   : c->form == DEPTH ? (c->per + 1) * s->wide * s->sum / 4
                                      : 8;
  return (c->form == TENSOR || s->sum == 8 ? 60 : 44) + sums + wide + 4 * c->ahead * loads_of(s, c);
}

/* Blocks that a processor's registers hold. */
static int resident_of(const shape *s, const choice *c, const at_machine *machine) {
  const int threads = 32 * c->warps_m * c->warps_k;
  return at_gemm_resident(machine, threads, registers_of(s, c), 0, 1536 / threads);
}

static bool fits(const shape *s, const choice *c, const at_machine *machine) {
  if (c->form == ROWS ? s->large_k : !s->large_k) return false;
  if (c->form == TENSOR && (!s->half || c->cols % 8)) return false;
  if (c->form != TENSOR && c->cols > 16) return false;
  const int warps = c->warps_m * c->warps_k, registers = registers_of(s, c);
  if (warps > 16 || registers > 232 || registers * warps * 32 > AT_PROCESSOR_REGISTERS) return false;
  if (c->split > 1 && machine->capability < 90) return false;
  if (s->swapped ? (s->m + block_rows(s, c) - 1) / block_rows(s, c) > INT32_MAX / 8 : false) return false;
  return chunk_of(s, c) > 0 && shared_bytes(s, c) <= machine->shared_bytes - 1024;
}

/* Microseconds: memory, sums and shared memory overlapped, spread over the blocks as they fall on the
 * processors, and what comes before and after. The numbers are the kernel's, fitted to its times
 * (gemm_kernel_times.c). */
static double cost_of(const shape *s, const choice *c, const at_machine *machine) {
  const double cycle = machine->cycle, processors = machine->processors;
  const int warps = c->warps_m * c->warps_k, rows = block_rows(s, c), loads = loads_of(s, c);
  const double tiles_m = (double)((s->m + rows - 1) / rows), tiles_n = (double)((s->n + c->cols - 1) / c->cols);
  const double blocks = tiles_m * tiles_n * c->split * (double)s->batch;
  const int resident =
      at_gemm_resident(machine, 32 * warps, registers_of(s, c), shared_bytes(s, c), 1536 / (32 * warps));
  const double mine = at_greater(blocks / processors, 1.0), whole = (double)(int64_t)(mine + 0.999);
  const double busy = whole > resident ? resident : whole; /* blocks of a processor at a time */
  const double uneven = at_gemm_uneven(machine, blocks / c->split, c->split);
  const double flight = busy * warps * 512.0 * loads * c->ahead * 0.8 / machine->wanted;
  const double large =
      (double)s->m * (double)s->k * s->in * (double)s->batch * (tiles_n > 1 ? 1.0 + 0.5 * tiles_n : 1.0);
  const double small = tiles_m * tiles_n * c->cols * (double)s->k * s->in * (double)s->batch;
  const double memory = (large / (flight < 1.0 ? flight : 1.0) + 0.8 * small) / machine->memory;
  const double products = tiles_m * rows * tiles_n * c->cols * (double)s->k * (double)s->batch / processors;
  const double depth = (double)s->k / 32.0 / s->wide * tiles_m * rows * tiles_n * (double)s->batch / processors;
  const double fma = s->sum == 8 ? machine->fma_f64 : machine->fma_f32;
  double sums, shared;
  if (c->form == ROWS) {
    sums = products / fma * 1.15;
    shared = products / 32.0 / (c->per * s->wide) * s->sum / 16.0 * 3.0 + depth * 4.0;
  } else if (c->form == DEPTH) {
    sums = products / fma * (s->half ? 1.4 + 1.0 / c->per : 1.15);
    shared = depth * 4.0 * (1.0 + (double)c->cols / c->per);
  } else {
    sums = products / machine->mma_f16;
    shared = depth * 4.0 * (1.0 + (double)c->cols / (16.0 * c->per));
  }
  const double compute = at_greater(sums, shared) * cycle;
  const double after = (double)rows * c->cols * (c->warps_k + c->split) / (warps * 32.0) * 3.0 * cycle;
  const double each = 1.0 + after + (c->split > 1 ? 0.7 : 0.0); /* of a block */
  return (at_greater(memory, compute) + 0.15 * (memory < compute ? memory : compute)) * uneven + 0.5 +
         each * (1.0 + 0.6 * (whole / busy - 1.0));
}

/* The least number of columns that a form computes at once and that holds n; the most it has where none does. */
static int columns_of(const shape *s, int form) {
  int cols = form == TENSOR ? 8 : 1;
  const int most = form == TENSOR ? 64 : form == DEPTH ? 8 : 16;
  while (cols < s->n && cols < most) cols *= 2;
  return cols;
}

/* Of each form, those that were once among the best on an H200: form, per, warps along m and k, splitk, ahead. */
static const uint16_t few[][6] = {
    {ROWS, 1, 1, 8, 4, 2},   {ROWS, 1, 1, 8, 8, 1},    {ROWS, 1, 1, 16, 2, 2},  {ROWS, 1, 1, 16, 4, 1},
    {ROWS, 2, 2, 4, 8, 1},   {ROWS, 1, 2, 8, 8, 1},    {ROWS, 2, 1, 8, 8, 1},   {ROWS, 1, 1, 4, 8, 2},
    {ROWS, 1, 1, 8, 1, 2},   {ROWS, 1, 4, 4, 8, 2},    {ROWS, 1, 1, 4, 1, 2},   {ROWS, 1, 2, 4, 4, 2},
    {DEPTH, 4, 8, 2, 1, 2},  {DEPTH, 8, 8, 1, 2, 2},   {DEPTH, 8, 4, 1, 2, 2},  {DEPTH, 4, 8, 1, 1, 4},
    {DEPTH, 2, 8, 1, 1, 4},  {DEPTH, 8, 1, 4, 1, 2},   {DEPTH, 4, 2, 2, 1, 2},  {DEPTH, 4, 4, 2, 1, 2},
    {DEPTH, 4, 4, 1, 1, 2},  {DEPTH, 4, 2, 4, 1, 2},   {DEPTH, 2, 8, 1, 1, 8},  {DEPTH, 2, 2, 2, 1, 4},
    {DEPTH, 1, 1, 4, 1, 2},  {DEPTH, 1, 4, 1, 1, 2},   {TENSOR, 2, 4, 4, 2, 2}, {TENSOR, 2, 8, 2, 1, 2},
    {TENSOR, 2, 4, 1, 8, 4}, {TENSOR, 2, 2, 8, 2, 2},  {TENSOR, 1, 4, 4, 2, 4}, {TENSOR, 1, 8, 2, 2, 4},
    {TENSOR, 1, 2, 8, 1, 4}, {TENSOR, 2, 1, 16, 1, 2}, {TENSOR, 2, 8, 1, 2, 2}, {TENSOR, 1, 1, 4, 1, 2},
    {TENSOR, 1, 4, 1, 1, 2}, {TENSOR, 1, 8, 1, 4, 4},
};

static int consider(const shape *s, const at_machine *machine, choice c, choice *list, int count, int most) {
  if (!fits(s, &c, machine)) return count;
  for (int i = 0; i < count; i++)
    if (at_tunables_equal(&tunables, &list[i], &c)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

static const at_axis few_axis =
    AT_AXIS(few, AT_AT(form), AT_AT(per), AT_AT(warps_m), AT_AT(warps_k), AT_AT(split), AT_AT(ahead));

static int collect_few(const shape *s, const at_machine *machine, choice *list) {
  choice c = {0};
  int count = 0;
  for (int i = 0; at_axes_pick(&few_axis, 1, i, &c); i++) {
    if (machine->capability < 90) c.split = 1;
    c.cols = columns_of(s, c.form);
    count = consider(s, machine, c, list, count, MOST_FEW);
    if (c.cols <= 8 || c.form != ROWS) continue;
    c.cols = 8;
    count = consider(s, machine, c, list, count, MOST_FEW);
  }
  return count;
}

static int collect_all(const shape *s, const at_machine *machine, choice *list) {
  static const uint16_t warps[][2] = {{1, 4}, {1, 8}, {1, 16}, {2, 2}, {2, 4}, {2, 8},
                                      {4, 1}, {4, 2}, {4, 4},  {8, 1}, {8, 2}},
                        forms_all[] = {ROWS, DEPTH, TENSOR}, parts[] = {1, 2}, pers[] = {1, 2, 4, 8},
                        splits[] = {1, 2, 4, 8}, aheads[] = {1, 2, 4, 8};
  static const at_axis axes[] = {
      AT_AXIS(forms_all, AT_AT(form)), AT_AXIS(parts, AT_AT(cols)),   AT_AXIS(warps, AT_AT(warps_m), AT_AT(warps_k)),
      AT_AXIS(pers, AT_AT(per)),       AT_AXIS(splits, AT_AT(split)), AT_AXIS(aheads, AT_AT(ahead))};
  choice c = {0};
  int count = 0;
  for (int i = 0; at_axes_pick(axes, AT_COUNT(axes), i, &c); i++) {
    c.cols = columns_of(s, c.form) / c.cols; /* all that a form computes at once, or half of them */
    if (c.cols < 1 || (c.form != DEPTH && c.per > 2)) continue;
    count = consider(s, machine, c, list, count, MOST_CHOICES);
  }
  return count;
}

/* sm90_skinny_ring_16b does these in less time: few are compiled. */
static bool is_left_to_ring(const at_gemm *g, const shape *s, const at_machine *machine) {
  return machine->capability >= 90 && s->half && s->large_k && s->small_k && s->n > 2 && s->n <= 16 &&
         g->alignment >= 16 && s->k % 32 == 0;
}

static int add_more(const shape *s, const at_machine *machine, choice *list, int count) {
  choice all[MOST_CHOICES];
  if (!at_gemm_skinny_is_slow(s, list[0].cost, machine)) return count;
  const int all_count = collect_all(s, machine, all);
  return at_lesser_int(AT_GEMM_PREPEND(list, count, all, all_count, MOST_MORE, FAR_LESS), MOST_FEW);
}

/* Where none of the few fits, the best of all. */
static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const shape s = at_gemm_skinny_shape_of(g);
  choice list[MOST_CHOICES];
  int count = wide ? 0 : collect_few(&s, machine, list);
  if (count == 0) {
    count = collect_all(&s, machine, list);
    if (!wide && count > MOST_FEW) count = MOST_FEW;
  } else {
    count = add_more(&s, machine, list, count);
  }
  if (!wide && count > MOST_BESIDE && is_left_to_ring(g, &s, machine)) count = MOST_BESIDE;
  return AT_GEMM_OFFER(out, max, list, count, wide ? 0.0 : HOPELESS);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = at_gemm_skinny_shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(&s, &c, machine)) return false;
  at_gemm_skinny_shape_start(out, g, &s);
  at_gemm_define_tunables(out, &tunables, &c);
  const int blocks = resident_of(&s, &c, machine);
  /* The compiler is told only where it would take more: told, it takes all that there is. */
  at_gemm_define_add(out, "BLOCKS", c.form == ROWS && s.sum == 4 && blocks > 1 ? blocks : 0);
  at_gemm_define_add(out, "CHUNK", chunk_of(&s, &c));
  at_gemm_define_add(out, "TAIL", c.form == ROWS && s.k % step_of(&s, &c) != 0);
  at_gemm_launch_spec_grid(out, at_gemm_parts(s.m, block_rows(&s, &c)), c.split, s.batch, at_gemm_parts(s.n, c.cols),
                           32 * c.warps_m * c.warps_k, shared_bytes(&s, &c));
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_skinny_reg.cu",
    .entry = "at_skinny",
    .text = at_gemm_sm80_skinny_reg_cuh,
    .has_epilogue = true,
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_skinny_reg = {
    .name = "sm80_skinny_reg", .version = 2, AT_GEMM_KERNEL_SLOTS(family, tunables)};
