/* SPDX-License-Identifier: Apache-2.0
 * wgmma_model.c: which configurations of wgmma.cuh a search tries for a problem, best guess first. Figures of an H200. */
#include "ops/gemm/wgmma.h"

enum { MOST_CHOICES = 192, MOST_FEW = 8 };

static const double HOPELESS = 1.4; /* times the best guess: not tried */

static const double CYCLE = 1.0 / 1650.0; /* microseconds */

static double greater(double x, double y) {
  return x > y ? x : y;
}

static double whole_rounds(double x) {
  return (double)(int64_t)(x + 0.9999);
}

/* Cycles of a processor for 64 of k of a tile: tensor cores, which read X from shared memory as they go. */
static double slice_cycles(const at_wgmma_choice *c) {
  const double width = c->tn, products = width * 2.0, picked = 64.0 + width; /* of 64 rows, 64 of k */
  return c->tm / 64 * greater(products, picked);
}

static double bytes_of(const at_wgmma_shape *s) {
  const double in = 2.0 * ((double)s->m + (double)s->n) * (double)s->k,
               out = (double)s->m * (double)s->n * s->out * (s->reads_c ? 2.0 : 1.0);
  return (in + out) * (double)s->batch;
}

/* Microseconds of a tile's sums on their way to D, without what memory takes. */
static double epilogue_of(const at_wgmma_shape *s, const at_wgmma_choice *c) {
  const bool rounded = s->out == 2 && !s->reads_c && !at_wgmma_whole(c);
  const double elements = (double)c->tm * c->tn;
  double us = 0.35 + elements * (rounded ? 2.6e-5 : 6.0e-5) * (s->reads_c ? 1.5 : 1.0);
  if (s->grain_d < 16) us += elements * 1.0e-4 * (s->grain_d < 4 ? 2.0 : 1.0);
  if (c->split > 1) us += 0.5 + elements * 2.0e-5;
  return us;
}

double at_wgmma_cost(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_gemm_machine *machine) {
  const int cluster = at_wgmma_cluster(c), fits = at_wgmma_clusters(c, machine);
  const double works = (double)at_wgmma_tiles(s, c) * (double)s->batch * c->parts, blocks = works * cluster;
  const double slices = (double)at_wgmma_parts_of(s->k, AT_WGMMA_STEP) / (c->split * c->parts);
  const double rounds = whole_rounds(works / fits), busy = works < fits ? works / fits : 1.0;
  const double level2 = 2.0 * 64.0 * ((double)c->tm / c->along_n + (double)c->tn / c->along_m) * slices * blocks;
  const double step = slice_cycles(c) + 12.0 + 40.0 / c->deep;
  const double compute = rounds * (c->blocks > 1 && busy > 0.99 ? c->blocks : 1.0) * slices * step * CYCLE;
  const double processors = machine->processors, part = processors / 132.0;
  /* Bytes in flight: 48 KB a processor are what memory wants. */
  const double running = (blocks < (double)fits * cluster ? blocks : (double)fits * cluster), steps = slices / c->deep,
               ahead = steps < c->stages ? steps : c->stages,
               flight = running * ahead * at_wgmma_stage_bytes(s, c) / (processors * 49152.0),
               rate = part * (flight < 1.0 ? flight : 1.0);
  const double used = running / processors < 1.0 ? running / processors : 1.0;
  const double memory = bytes_of(s) / 4.15e6 / rate, second = level2 / 5.8e6 / rate / (0.3 + 0.7 * used);
  const double epilogue = epilogue_of(s, c), hidden = c->blocks > 1 ? 0.5 : 1.0;
  const double most = greater(memory, greater(second, compute));
  double us = 1.3 + most + 0.15 * (memory + second + compute - most) + epilogue * (1.0 + hidden * (rounds - 1.0));
  if (c->along_m * c->along_n > 1) us += 0.3;
  if (c->parts > 1) us += 1.2 + 2.0 * (double)at_wgmma_workspace(s, c) / 3e6;
  return us;
}

static const uint16_t tiles[][3] = {{64, 16, 1},   {64, 32, 1},   {64, 64, 1},   {64, 96, 1},   {64, 128, 1},
                                    {64, 192, 1},  {64, 256, 1},  {128, 16, 2},  {128, 32, 2},  {128, 64, 2},
                                    {128, 96, 2},  {128, 128, 2}, {128, 192, 2}, {128, 256, 2}, {256, 64, 2},
                                    {256, 128, 2}, {192, 128, 3}};

static int consider(const at_wgmma_shape *s, const at_gemm_machine *machine, at_wgmma_choice c, at_wgmma_choice *list,
                    int count, int most) {
  /* As many stages as there is room for, and use. */
  const int64_t steps = at_wgmma_parts_of(at_wgmma_parts_of(s->k, (int64_t)AT_WGMMA_STEP * c.deep), c.split * c.parts);
  const bool whole = at_wgmma_whole(&c);
  int most_stages = AT_WGMMA_STAGES;
  if (whole && steps < most_stages) most_stages = (int)steps;
  for (c.stages = most_stages; c.stages > 1 && !at_wgmma_fits(s, &c, machine);) c.stages--;
  if (!at_wgmma_fits(s, &c, machine) || (c.stages < 2 && steps > 1)) return count;
  c.cost = at_wgmma_cost(s, &c, machine);
  return at_gemm_insert(list, count, most, sizeof c, offsetof(at_wgmma_choice, cost), &c);
}

/* Ways to share k: none, a cluster's blocks, and parts that fill the processors. */
static int share_k(const at_wgmma_shape *s, const at_gemm_machine *machine, at_wgmma_choice c, at_wgmma_choice *list,
                   int count, int most) {
  static const int splits[] = {1, 2, 4, 8};
  for (size_t i = 0; i < AT_COUNT(splits); i++) {
    c.split = splits[i], c.parts = 1;
    if (at_wgmma_cluster(&c) > 8) break;
    count = consider(s, machine, c, list, count, most);
    const int64_t works = at_wgmma_tiles(s, &c) * s->batch, parts = at_wgmma_clusters(&c, machine) / works;
    if (parts < 2 || parts > AT_WGMMA_PARTS) continue;
    c.parts = (int)parts;
    count = consider(s, machine, c, list, count, most);
    c.parts = 1;
  }
  return count;
}

static int collect(const at_wgmma_shape *s, const at_gemm_machine *machine, bool turned, const uint16_t *tile,
                   at_wgmma_choice *list, int count, int most) {
  static const int around[][2] = {{1, 1}, {2, 1}, {1, 2}};
  for (int blocks = 1; blocks <= 3; blocks++)
    for (int deep = 1; deep <= 2; deep++)
      for (size_t a = 0; a < AT_COUNT(around); a++) {
        const at_wgmma_choice c = {.tm = tile[0],
                                   .tn = tile[1],
                                   .groups = tile[2],
                                   .deep = deep,
                                   .along_m = around[a][0],
                                   .along_n = around[a][1],
                                   .band = 8,
                                   .blocks = blocks,
                                   .turned = turned};
        count = share_k(s, machine, c, list, count, most);
      }
  return count;
}

static bool is_alike(const at_wgmma_choice *a, const at_wgmma_choice *b) {
  return a->tm == b->tm && a->tn == b->tn && a->split == b->split && a->parts == b->parts && a->turned == b->turned &&
         a->along_m == b->along_m && a->along_n == b->along_n;
}

/* A search tries few, of which no more than two differ only in depth and blocks, and three have the same tile. */
int at_wgmma_candidates(const at_gemm *g, const at_gemm_machine *machine, at_configuration *out, int max, bool wide) {
  static const int most = MOST_CHOICES;
  at_wgmma_choice list[MOST_CHOICES];
  bool taken[MOST_CHOICES];
  int count = 0, given = 0;
  for (int turned = 0; turned < 2; turned++) {
    const at_wgmma_shape s = at_wgmma_shape_of(g, turned);
    if (s.m < s.n && s.n >= 2 * s.m) continue; /* the longer side takes the rows */
    for (size_t t = 0; t < AT_COUNT(tiles); t++) {
      if ((tiles[t][1] > 16 && tiles[t][1] >= 2 * s.n) || (tiles[t][0] > 64 && tiles[t][0] >= 2 * s.m)) continue;
      count = collect(&s, machine, turned, tiles[t], list, count, most);
    }
  }
  for (int i = 0; i < count && given < max && (wide || given < MOST_FEW); i++) {
    int alike = 0, of_tile = 0;
    for (int j = 0; j < i; j++) {
      alike += taken[j] && is_alike(&list[i], &list[j]);
      of_tile += taken[j] && list[i].tm == list[j].tm && list[i].tn == list[j].tn;
    }
    taken[i] = wide || (alike < 2 && of_tile < 3 && list[i].cost < HOPELESS * list[0].cost);
    if (taken[i] && at_wgmma_format(&out[given], &list[i])) given++;
  }
  return given;
}
