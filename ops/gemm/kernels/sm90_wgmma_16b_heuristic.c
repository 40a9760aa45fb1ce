/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_heuristic.c: which configurations of sm90_wgmma_16b.cuh a search tries for a problem, best guess
 * first. The numbers are the kernel's, fitted to its times on an H200 (gemm_kernel_times.c). */
#include "ops/gemm/kernels/sm90_wgmma_16b_config.h"

enum { MOST_CHOICES = 192, MOST_FEW = 8 };

typedef at_wgmma_choice choice;

static const double HOPELESS = 1.35; /* times the best guess: not tried */

/* Parts of the memory's rate: of the operands, of sums in the workspace, of padding. */
static const double RATE = 4.2 / 4.25, SUMS_RATE = 4.0 / 4.25, PADDING_RATE = 2.5 / 4.25;

static double rounded_up(double x) {
  return (double)(int64_t)(x + 0.9999);
}

/* Cycles of a processor for 64 of k of a tile: tensor cores, which read both factors from shared memory as they go. */
static double slice_cycles(const at_wgmma_choice *c, const at_machine *machine) {
  const double width = c->tn, products = 64.0 * 64.0 * width / machine->wgmma_f16,
               picked = 64.0 + width; /* of 64 rows */
  return c->tm / 64 * at_greater(products, picked);
}

static double bytes_of(const at_wgmma_shape *s) {
  const double in = 2.0 * ((double)s->m + (double)s->n) * (double)s->k, out = (double)s->m * (double)s->n * s->out *
                                                                              (s->reads_c ? 2.0
                                                                               : s->gated ? 0.5
                                                                                          : 1.0);
  return (in + out) * (double)s->batch;
}

/* Microseconds of a tile's sums on their way to D. */
static double epilogue_of(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const double elements = (double)c->tm * c->tn / c->split;
  double us = 0.3 + elements * (s->rounded ? 2.0e-5 : 4.0e-5) * (s->reads_c ? 1.5 : 1.0);
  if (s->grain_d < 16) us += elements * 2.0e-5;
  return us;
}

/* Microseconds of the cluster's blocks to add up what they have. */
static double exchange_of(const at_wgmma_choice *c) {
  if (c->split == 1) return 0.0;
  const double all = c->parts > 1 ? 0.1 + 0.1 * c->split : 0.3 + 0.15 * c->split;
  return all + (double)c->tm * c->tn * (c->split - 1) / c->split * 7.5e-5;
}

/* Bytes of 64 of k of a tile that are read: rows outside the matrix are not. */
static double slice_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const int columns = s->y_k ? c->tn : (c->tn + 63) / 64 * 64;
  return 128.0 * (at_lesser(c->tm, (double)s->m) + at_lesser(columns, (double)s->n));
}

/* Blocks or clusters that ask memory for the same line of the larger factor at the same time. */
static int64_t readers_of(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  return s->m > s->n ? at_gemm_parts(s->n, (int64_t)c->tn * c->along_n)
                     : at_gemm_parts(s->m, (int64_t)c->tm * c->along_m);
}

/* Microseconds. */
static double cost_of(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_machine *machine) {
  const int cluster = at_wgmma_cluster(c), at_once = at_wgmma_clusters(c, machine);
  const double works = (double)at_wgmma_tiles(s, c) * (double)s->batch * c->parts;
  const double processors = at_lesser((double)at_once * cluster / c->blocks, machine->processors);
  const double mean = works * cluster / processors, most = rounded_up(mean), rounds = rounded_up(works / at_once);
  const double slices = (double)at_gemm_parts(s->k, AT_WGMMA_STEP) / (c->split * c->parts), steps = slices / c->deep;
  /* Bytes on their way: 40 KB a processor are what memory wants. */
  const double ahead = at_lesser(steps * (at_wgmma_whole(c) ? 1.0 : rounds), c->stages),
               flight = at_lesser(works * cluster, (double)at_once * cluster) * ahead * slice_bytes(s, c) * c->deep /
                        (machine->processors * machine->wanted);
  const double rate = at_lesser(flight, 1.0) * (0.55 + 0.45 * at_lesser(mean, 1.0));
  const double waves = at_wgmma_whole(c) && rounds > 1.0 ? rounds * at_once / works : 1.0,
               uneven = waves * (mean < 1.0 ? 1.0 : 0.7 + 0.3 * most / mean);
  const double together = mean <= 1.0 && readers_of(s, c) > 1 ? 1.3 : 1.0;
  const double memory = bytes_of(s) * uneven * together / (RATE * machine->memory) / rate;
  const double slice = slice_bytes(s, c) * slices, level2 = slice * (0.4 * most + 0.6 * mean) / machine->level2_one *
                                                            (mean < 1.0 ? 1.0 / (0.4 / mean + 0.6) / mean : 1.0);
  const double tensor =
      most * slices * (slice_cycles(c, machine) + 10.0 + (c->blocks > 1 ? 0.0 : 30.0 / c->deep)) * machine->cycle;
  /* Too few steps ahead: the copies wait for the sums, and these for them. */
  const double late = steps <= c->stages && rounds <= 1.0 ? 1.0
                      : c->stages < 3                     ? 1.4
                      : c->stages == 3 && c->blocks == 1  ? 1.15
                                                          : 1.0;
  /* Where there are few blocks, those of the call behind come to the same processors, and leave others idle. */
  const double crowded = c->blocks > 1 && mean <= 1.0 && c->parts == 1 ? 1.2 : 1.0;
  const bool pads = s->pads_x || s->pads_y;
  const double coarse = c->deep > 1 && (c->tn > 64 || pads)                      ? 1.06
                        : c->deep == 1 && c->tn <= 64 && c->blocks == 1 && !pads ? 1.02
                                                                                 : 1.0;
  const double longest = late * crowded * coarse * at_greater(memory, at_greater(level2, tensor));
  const double epilogue = epilogue_of(s, c), shown = c->blocks > 1 ? 0.65 * c->blocks : 0.8;
  double us = 1.2 + longest + 0.1 * (memory + level2 + tensor - longest) + exchange_of(c);
  us += epilogue * (1.0 + shown * (rounds - 1.0));
  /* What comes from the L2 cache alone comes about as well to each as once. */
  if (c->along_m * c->along_n > 1) us += s->pads_x && s->pads_y ? 0.1 : 0.5;
  if (c->parts > 1) us += machine->launch + (double)at_wgmma_sums_bytes(s, c) / (SUMS_RATE * machine->memory);
  if (pads) us += machine->launch + (double)(s->padded_x + s->padded_y) / (PADDING_RATE * machine->memory);
  return us;
}

static const uint16_t tiles[][3] = {
    {64, 16, 1},   {64, 32, 1},   {64, 48, 1},   {64, 64, 1},  {64, 96, 1},   {64, 112, 1}, {64, 128, 1}, {64, 192, 1},
    {64, 224, 1},  {64, 256, 1},  {128, 16, 2},  {128, 32, 2}, {128, 48, 2},  {128, 64, 2}, {128, 96, 2}, {128, 112, 2},
    {128, 128, 2}, {128, 192, 2}, {128, 256, 2}, {256, 64, 2}, {256, 128, 2}, {192, 128, 3}};

/* Those of gated products. */
static const uint16_t gated_tiles[][3] = {{128, 16, 1}, {128, 32, 1},  {128, 48, 1}, {128, 64, 1},
                                          {128, 96, 1}, {128, 128, 1}, {256, 64, 2}, {256, 128, 2}};

static int consider(const at_wgmma_shape *s, const at_machine *machine, at_wgmma_choice c, at_wgmma_choice *list,
                    int count, int most) {
  /* As many stages as there is room for, and use. */
  const int64_t steps = at_gemm_parts(at_gemm_parts(s->k, (int64_t)AT_WGMMA_STEP * c.deep), c.split * c.parts);
  const bool once = at_wgmma_whole(&c) || at_wgmma_tiles(s, &c) * s->batch <= at_wgmma_clusters(&c, machine);
  const int most_stages = once && steps < AT_WGMMA_STAGES ? (int)steps : AT_WGMMA_STAGES;
  for (c.stages = most_stages; c.stages > 1 && !at_wgmma_fits(s, &c, machine);) c.stages--;
  if (!at_wgmma_fits(s, &c, machine) || (c.stages < 2 && steps > 1)) return count;
  c.cost = cost_of(s, &c, machine);
  return AT_GEMM_INSERT(list, count, most, &c);
}

/* Ways to share k: none, a cluster's blocks, and parts that fill the processors. */
static int share_k(const at_wgmma_shape *s, const at_machine *machine, at_wgmma_choice c, at_wgmma_choice *list,
                   int count, int most) {
  static const int splits[] = {1, 2, 4, 8};
  for (size_t i = 0; i < AT_COUNT(splits); i++) {
    c.split = splits[i], c.parts = 1;
    if (at_wgmma_cluster(&c) > 8) break;
    count = consider(s, machine, c, list, count, most);
    const int64_t works = at_wgmma_tiles(s, &c) * s->batch, filled = at_wgmma_clusters(&c, machine) / c.blocks;
    c.parts = filled / works <= AT_WGMMA_PARTS ? (int)(filled / works) : 1;
    if (c.parts > 1) count = consider(s, machine, c, list, count, most);
  }
  return count;
}

static int collect(const at_wgmma_shape *s, const at_machine *machine, bool turned, const uint16_t *tile,
                   at_wgmma_choice *list, int count, int most) {
  static const uint16_t around[][2] = {{1, 1}, {2, 1}, {1, 2}}, blocks[] = {1, 2, 3}, deep[] = {1, 2};
  static const at_axis axes[] = {AT_AXIS(blocks, AT_AT(blocks)), AT_AXIS(deep, AT_AT(deep)),
                                 AT_AXIS(around, AT_AT(along_m), AT_AT(along_n))};
  choice c = {.tm = tile[0], .tn = tile[1], .groups = tile[2], .band = 8, .turned = turned};
  for (int i = 0; at_axes_pick(axes, AT_COUNT(axes), i, &c); i++) count = share_k(s, machine, c, list, count, most);
  return count;
}

static bool is_alike(const at_wgmma_choice *a, const at_wgmma_choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->split == b->split && a->parts == b->parts && a->along_m == b->along_m &&
         a->along_n == b->along_n && a->turned == b->turned;
}

/* What no model tells: how much is asked for early, and what is kept in the L2 cache. Memory-bound sums gain by one or
 * two early steps and by weights that stay, brief ones by two steps or more. What was just copied is in the L2
 * cache. */
static at_wgmma_choice variant_of(const at_wgmma_shape *s, at_wgmma_choice c, int number, const at_machine *machine) {
  if (s->pads_x || s->pads_y) return c;
  const int64_t steps = at_gemm_parts(at_gemm_parts(s->k, AT_WGMMA_STEP * c.deep), c.split * c.parts);
  const bool brief = steps <= 8, streams = bytes_of(s) / (RATE * machine->memory) > 0.6 * c.cost,
             alone = c.blocks == 1 && c.parts == 1;
  const int few = steps < 2 ? 1 : 2, most = steps < 4 ? (int)steps : 4, without = alone && brief ? 2 : 0;
  c.kept = streams && steps > 2 ? (number == 0 ? 1 : 2) : 0;
  c.early = 0;
  if (!streams)
    c.early = number == without ? 0 : number == 1 ? most : few;
  else if (alone)
    c.early = !brief ? number : number < 2 ? most : 0;
  c.late = c.early > 0 && (streams ? brief || number == 2 : number == 1);
  return c;
}

/* The best of all tiles. */
static int rank(at_wgmma_choice *list, int most, const at_gemm *g, const at_machine *machine) {
  int count = 0;
  for (int turned = 0; turned < 2; turned++) {
    const at_wgmma_shape s = at_wgmma_shape_of(g, turned);
    /* The longer side takes the rows, or the shorter one all of them. */
    if (s.gated && !s.gated_rows) continue;
    if (!s.gated && (turned ? s.m <= s.n : s.m < s.n) && (s.m > 128 || s.n < 2 * s.m)) continue;
    for (size_t t = 0; t < (s.gated ? AT_COUNT(gated_tiles) : AT_COUNT(tiles)); t++) {
      const uint16_t *tile = s.gated ? gated_tiles[t] : tiles[t];
      if ((tile[1] > 16 && tile[1] >= 2 * s.n) || (tile[0] > 64 && tile[0] >= 2 * s.m)) continue;
      count = collect(&s, machine, turned, tile, list, count, most);
    }
  }
  return count;
}

static bool is_variant(const at_wgmma_choice *a, const at_wgmma_choice *b) {
  return a->early == b->early && a->late == b->late && a->kept == b->kept;
}

/* A search tries few: no two that differ only in depth and blocks, no more than two of a tile, and variants of the
 * best. */
int at_wgmma_candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  at_wgmma_choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  const int count = rank(list, MOST_CHOICES, g, machine);
  int given = 0, tried = 0;
  for (int i = 0; i < count && given < max && (wide || given < MOST_FEW); i++) {
    int alike = 0, of_tile = 0;
    for (int j = 0; j < i; j++) {
      alike += taken[j] && is_alike(&list[i], &list[j]);
      of_tile += taken[j] && list[i].tm == list[j].tm && list[i].tn == list[j].tn;
    }
    taken[i] = wide || (alike == 0 && of_tile < 2 && list[i].cost < HOPELESS * list[0].cost);
    if (!taken[i]) continue;
    const at_wgmma_shape s = at_wgmma_shape_of(g, list[i].turned);
    const int variants = wide || tried == 0 ? 3 : 1;
    tried++;
    for (int v = 0; v < variants && given < max && (wide || given < MOST_FEW); v++) {
      const at_wgmma_choice c = variant_of(&s, list[i], v, machine), first = variant_of(&s, list[i], 0, machine),
                            second = variant_of(&s, list[i], 1, machine);
      if ((v > 0 && is_variant(&c, &first)) || (v > 1 && is_variant(&c, &second))) continue;
      if (at_tunables_format(&at_wgmma_tunables, &out[given], &c)) given++;
    }
  }
  return given;
}
