/* SPDX-License-Identifier: Apache-2.0
 * host_small.c: f32 and f64 products of matrices of at most 64 rows and columns, in one thread and with no set-up: all
 * that does not change from call to call is in the plan. One call of a tile kernel does a product that is one tile,
 * with its whole batch. */
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/blocked_run.h"
#include "ops/gemm/host_blocked.h"
#include "ops/gemm/host_reference.h"
#include "src/host/host.h"
#include "tuning/registry.h"

enum { MOST = 64, MOST_DEPTH = 256, ON_STACK = 4096 /* bytes of a transposed A */ };

/* Tiles beside each other: what rows of D have in common. */
typedef struct panel {
  at_small shape;                    /* with the matrices' strides, for tiles of a batch */
  at_small across;                   /* with the strides from one tile to the next */
  at_small_tile_fn tile, last;       /* the last has fewer columns, or as many */
  int64_t height, width, last_width; /* in elements */
  int64_t whole;                     /* tiles of the full width */
  int64_t past_b, past_c, past_d;    /* bytes from the first tile to behind those */
  bool narrow;                       /* one tile more follows them */
} panel;

typedef struct state {
  at_small_one one;        /* one product with one vector of rows; else its functions are NULL */
  at_small_one_fn ones[2]; /* by: the last columns */
  int64_t one_b, one_d;    /* bytes from one tile to the next */
  int64_t batch;
  panel panels[2];  /* by: the last rows */
  const at_gemm *g; /* the plan's */
  void (*scale)(const at_small_scale *scale);
  void (*pack)(const at_pack *pack); /* for a transposed A */
  int64_t size, lanes, packed_bytes;
} state;

/* How C comes in: not at all, as the sums' start, or by scalars that are not 0 or 1. */
typedef enum kind { KIND_PLAIN, KIND_ONTO, KIND_SCALED } kind;

static inline kind kind_of(const at_gemm_operands *o) {
  const double one = 1.0;
  uint64_t unit, alpha, beta;
  memcpy(&unit, &one, sizeof unit);
  memcpy(&alpha, &o->alpha, sizeof alpha);
  memcpy(&beta, &o->beta, sizeof beta);
  if (AT_UNLIKELY(alpha != unit)) return KIND_SCALED;
  return AT_LIKELY(beta == 0) ? KIND_PLAIN : beta == unit ? KIND_ONTO : KIND_SCALED;
}

/* One tile by way of its sums. */
static void run_scaled(const state *s, const panel *p, const at_gemm_operands *o, const void *a, const void *b, void *d,
                       const void *c, bool last) {
  _Alignas(64) char sums[AT_SMALL_SUMS_BYTES];
  const int64_t padded = (p->height + s->lanes - 1) / s->lanes * s->lanes;
  at_small shape = p->shape;
  shape.ldd = padded;
  (last ? p->last : p->tile)(&shape, a, b, sums, 1, NULL);
  const at_gemm *g = s->g;
  at_small_scale scale = {.alpha = o->alpha,
                          .beta = c ? o->beta : 0.0,
                          .sums = sums,
                          .c = c,
                          .d = d,
                          .rows = p->height,
                          .columns = last ? p->last_width : p->width,
                          .padded = padded,
                          .ldc = g->ldc,
                          .ldd = g->ldd};
  s->scale(&scale);
}

/* Where the tiles of a plan find A. */
typedef struct rows_of_a {
  const char *at;
  int64_t panel_step; /* bytes between panels of `height` rows */
} rows_of_a;

/* `count` tiles of one width beside each other: one call, or one each where C is scaled. */
static inline void run_row(const state *s, const panel *p, const at_gemm_operands *o, const char *a, const char *b,
                           char *d, const char *c, int64_t count, bool last, const kind how) {
  if (how != KIND_SCALED) {
    (last ? p->last : p->tile)(&p->across, a, b, d, count, c);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    run_scaled(s, p, o, a, b + i * p->across.stride_b * s->size, d + i * p->across.stride_d * s->size,
               c ? c + i * p->across.stride_c * s->size : NULL, last);
}

static inline void run_tiles(const state *s, const at_gemm_operands *o, rows_of_a a, int64_t batch, const kind how) {
  const at_gemm *g = s->g;
  const char *b = (const char *)o->b + batch * g->stride_b * s->size, *c = NULL;
  char *d = (char *)o->d + batch * g->stride_d * s->size;
  const int64_t height = s->panels[0].height, rows_step = height * s->size;
  if (how != KIND_PLAIN && g->c != AT_C_NONE) c = (const char *)o->c + batch * g->stride_c * s->size;
  for (int64_t i = 0; i < g->m; i += height) {
    const panel *p = &s->panels[i + height >= g->m];
    if (p->whole > 0) run_row(s, p, o, a.at, b, d, c, p->whole, false, how);
    if (p->narrow) run_row(s, p, o, a.at, b + p->past_b, d + p->past_d, c ? c + p->past_c : NULL, 1, true, how);
    a.at += a.panel_step;
    d += rows_step;
    if (c) c += rows_step;
  }
}

static void run_all(const state *s, const at_gemm_operands *o) {
  const at_gemm *g = s->g;
  const kind how = kind_of(o);
  for (int64_t batch = 0; batch < g->batch; batch++) {
    const rows_of_a a = {(const char *)o->a + batch * g->stride_a * s->size, s->panels[0].height * s->size};
    if (AT_LIKELY(how == KIND_PLAIN))
      run_tiles(s, o, a, batch, KIND_PLAIN);
    else
      run_tiles(s, o, a, batch, how);
  }
}

/* A is stored by rows: each matrix is turned into panels of rows first. */
static void run_turned(const state *s, const at_gemm_operands *o) {
  const at_gemm *g = s->g;
  const kind how = kind_of(o);
  _Alignas(64) char near[ON_STACK];
  char *panels = s->packed_bytes <= ON_STACK ? near : at_host_scratch((size_t)s->packed_bytes);
  at_pack pack = {.dtype = (attune_dtype)g->dtype,
                  .to = panels,
                  .lines = g->m,
                  .depth = g->k,
                  .line_step = g->lda,
                  .depth_step = 1,
                  .panel = s->panels[0].height,
                  .round = (int)s->lanes};
  for (int64_t batch = 0; batch < g->batch; batch++) {
    if (!panels) {
      at_gemm_plain(g, o, batch, 0, g->m, 0, g->n);
      continue;
    }
    pack.from = (const char *)o->a + batch * g->stride_a * s->size;
    if (batch == 0 || g->stride_a != 0) s->pack(&pack);
    const rows_of_a a = {panels, s->panels[0].height * g->k * s->size};
    run_tiles(s, o, a, batch, how);
  }
}

/* ---- launches: at once on the default stream, else in the stream's order ---- */

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static inline void run_one_tile(const at_plan *plan, const at_gemm_operands *o) {
  const state *s = (const state *)plan->state;
  const panel *p = &s->panels[1];
  const kind how = kind_of(o);
  if (AT_LIKELY(how == KIND_PLAIN))
    p->last(&p->shape, o->a, o->b, o->d, s->batch, NULL);
  else if (how == KIND_ONTO && s->g->c != AT_C_NONE)
    p->last(&p->shape, o->a, o->b, o->d, s->batch, o->c);
  else
    run_all(s, o);
}
static inline void run_tiled(const at_plan *plan, const at_gemm_operands *o) {
  run_all((const state *)plan->state, o);
}
static inline void run_transposed(const at_plan *plan, const at_gemm_operands *o) {
  run_turned((const state *)plan->state, o);
}

#define LAUNCH(name)                                                                              \
  static void name##_later(const void *args) {                                                    \
    const work *w = (const work *)args;                                                           \
    name(w->plan, &w->operands);                                                                  \
  }                                                                                               \
  static __attribute__((noinline))                                                                \
  attune_status launch_##name(const at_plan *plan, const void *operands, attune_stream *stream) { \
    if (AT_LIKELY(at_host_inline(stream))) {                                                      \
      name(plan, (const at_gemm_operands *)operands);                                             \
      return ATTUNE_OK;                                                                           \
    }                                                                                             \
    work w = {plan, *(const at_gemm_operands *)operands};                                         \
    return at_host_submit(stream, name##_later, &w, sizeof w);                                    \
  }
LAUNCH(run_one_tile)
LAUNCH(run_tiled)
LAUNCH(run_transposed)
#undef LAUNCH

/* One product with one vector of rows, alpha = 1 and without C, at once: nothing but the kernel. */
static attune_status launch_one(const at_plan *plan, const void *operands, attune_stream *stream) {
  const state *s = (const state *)plan->state;
  const at_gemm_operands *o = (const at_gemm_operands *)operands;
  if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o) != KIND_PLAIN))
    return launch_run_one_tile(plan, operands, stream);
  return s->ones[1](&s->one, o->a, o->b, o->d);
}

/* The same for several tiles beside each other. */
static attune_status launch_ones(const at_plan *plan, const void *operands, attune_stream *stream) {
  const state *s = (const state *)plan->state;
  const at_gemm_operands *o = (const at_gemm_operands *)operands;
  if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o) != KIND_PLAIN))
    return launch_run_tiled(plan, operands, stream);
  const panel *p = &s->panels[1];
  const char *b = (const char *)o->b;
  char *d = (char *)o->d;
  for (int64_t i = 1; i < p->whole + p->narrow; i++, b += s->one_b, d += s->one_d)
    (void)s->ones[0](&s->one, o->a, b, d);
  return s->ones[1](&s->one, o->a, b, d);
}

/* ---- configurations: kernel=avx512,vectors=2,columns=8 ---- */

static bool supports(const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  return device->backend->kind == ATTUNE_DEVICE_HOST && g->dtype == g->dtype_out &&
         (g->dtype == ATTUNE_F32 || g->dtype == ATTUNE_F64) && g->m <= MOST && g->n <= MOST && g->k <= MOST_DEPTH;
}

static const at_small_ops *ops_of(const at_blocked_isa *isa, const at_gemm *g) {
  return g->dtype == ATTUNE_F64 ? isa->small_f64 : isa->small_f32;
}

static int64_t up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

/* Tiles of equal width, the widest that there are beside so many vectors. */
static int64_t columns_beside(const at_small_ops *ops, int64_t vectors, int64_t n) {
  return up(n, up(n, ops->columns[vectors - 1]));
}

static void add(at_configuration *out, int *count, int max, const at_blocked_isa *isa, int64_t vectors,
                int64_t columns) {
  if (*count == max) return;
  at_configuration c = {""};
  if (!at_configuration_put_text(&c, "kernel", isa->name) || !at_configuration_put(&c, "vectors", vectors) ||
      !at_configuration_put(&c, "columns", columns))
    return;
  for (int i = 0; i < *count; i++)
    if (strcmp(out[i].text, c.text) == 0) return;
  out[(*count)++] = c;
}

/* Tiles of equal size, the highest first; for the best instruction set, then for another. */
static int configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  static const char *const names[] = {NULL, "avx2", "portable"};
  const at_gemm *g = at_gemm_of(problem);
  (void)device;
  int count = 0;
  for (size_t i = 0; i < AT_COUNT(names); i++) {
    const at_blocked_isa *isa = at_blocked_isa_find(names[i]);
    if (!isa || (i == 2 && count > 0)) continue;
    const at_small_ops *ops = ops_of(isa, g);
    const int64_t in_all = up(g->m, ops->lanes), most = in_all < AT_SMALL_VECTORS ? in_all : AT_SMALL_VECTORS;
    for (int64_t panels = up(in_all, most); panels <= in_all && (i == 0 || panels == up(in_all, most)); panels++) {
      const int64_t vectors = up(in_all, panels);
      if (up(in_all, vectors) != panels) continue;
      add(out, &count, max, isa, vectors, columns_beside(ops, vectors, g->n));
    }
  }
  return count;
}

static bool parse(const at_plan *plan, const at_blocked_isa **isa, int64_t *vectors, int64_t *columns) {
  const at_gemm *g = at_gemm_of(plan->problem);
  char kernel[32];
  return at_configuration_get_text(&plan->configuration, "kernel", kernel, sizeof kernel) &&
         (*isa = at_blocked_isa_find(kernel)) != NULL &&
         at_configuration_get(&plan->configuration, "vectors", vectors) &&
         at_configuration_get(&plan->configuration, "columns", columns) && *vectors >= 1 &&
         *vectors <= AT_SMALL_VECTORS && *columns >= 1 && *columns <= ops_of(*isa, g)->columns[*vectors - 1];
}

/* Rows of `vectors` vectors, whose last one has `last` rows, by tiles of `columns`. */
static panel panel_of(const at_gemm *g, const at_small_ops *ops, int64_t vectors, int64_t last, int64_t columns) {
  const int64_t size = g->dtype == ATTUNE_F64 ? 8 : 4, wide = up(g->n, columns);
  const at_small_tile_fn *tiles = ops->tiles[last < ops->lanes][vectors - 1];
  panel p = {.shape = {.k = g->k,
                       .a_step = g->lda,
                       .b_k = g->trans_b ? g->ldb : 1,
                       .b_n = g->trans_b ? 1 : g->ldb,
                       .ldc = g->ldc,
                       .ldd = g->ldd,
                       .stride_a = g->stride_a,
                       .stride_b = g->stride_b,
                       .stride_c = g->stride_c,
                       .stride_d = g->stride_d,
                       .rows = last},
             .height = (vectors - 1) * ops->lanes + last,
             .width = columns,
             .last_width = g->n - (wide - 1) * columns};
  p.across = p.shape;
  p.across.stride_a = 0;
  p.across.stride_b = columns * p.shape.b_n;
  p.across.stride_c = columns * g->ldc;
  p.across.stride_d = columns * g->ldd;
  p.narrow = p.last_width < columns;
  p.whole = wide - p.narrow;
  p.past_b = p.whole * p.across.stride_b * size;
  p.past_c = p.whole * p.across.stride_c * size;
  p.past_d = p.whole * p.across.stride_d * size;
  p.tile = tiles[columns - 1];
  p.last = tiles[p.last_width - 1];
  return p;
}

/* The last panel, where it is lower than the others, has tiles as wide as suits it. */
static void fill(state *s, const at_gemm *g, const at_blocked_isa *isa, int64_t vectors, int64_t columns) {
  const at_small_ops *ops = ops_of(isa, g);
  const int64_t height = vectors * ops->lanes, last_rows = g->m - (up(g->m, height) - 1) * height,
                last_vectors = up(last_rows, ops->lanes),
                last_columns =
                    g->m > height && last_vectors < vectors ? columns_beside(ops, last_vectors, g->n) : columns;
  s->g = g;
  s->size = g->dtype == ATTUNE_F64 ? 8 : 4;
  s->lanes = ops->lanes;
  s->batch = g->batch;
  s->scale = ops->scale;
  s->panels[0] = panel_of(g, ops, vectors, ops->lanes, columns);
  s->panels[1] = panel_of(g, ops, last_vectors, last_rows - (last_vectors - 1) * ops->lanes, last_columns);
}

static bool is_packed(const at_gemm *g, int64_t columns) {
  return !g->trans_b && g->ldb == columns;
}

static void fill_one(state *s, const at_gemm *g, const at_small_ops *ops) {
  const panel *p = &s->panels[1];
  const bool part = p->shape.rows < ops->lanes;
  s->one = (at_small_one){.k = g->k,
                          .a_step = g->lda * s->size,
                          .b_k = p->shape.b_k * s->size,
                          .b_n = p->shape.b_n * s->size,
                          .ldd = g->ldd * s->size,
                          .rows = p->shape.rows};
  s->one_b = p->width * s->one.b_n;
  s->one_d = p->width * s->one.ldd;
  s->ones[0] = ops->ones[is_packed(g, p->width)][part][p->width - 1];
  s->ones[1] = ops->ones[is_packed(g, p->last_width)][part][p->last_width - 1];
}

static void set_a_step(state *s, int64_t step, int64_t last_step) {
  s->panels[0].shape.a_step = s->panels[0].across.a_step = step;
  s->panels[1].shape.a_step = s->panels[1].across.a_step = last_step;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm *g = at_gemm_of(plan->problem);
  const at_blocked_isa *isa = NULL;
  int64_t vectors = 0, columns = 0;
  if (!parse(plan, &isa, &vectors, &columns))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; host_small has none like it for this problem and CPU",
                   plan->configuration.text);
  state *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_small");
  memset(s, 0, sizeof *s);
  fill(s, g, isa, vectors, columns);
  const int64_t height = s->panels[0].height;
  const bool one = g->m <= height && g->n <= columns;
  plan->launch = one ? launch_run_one_tile : launch_run_tiled;
  if (g->m <= s->lanes && g->batch == 1 && !g->trans_a) {
    fill_one(s, g, ops_of(isa, g));
    plan->launch = one ? launch_one : launch_ones;
  }
  if (g->trans_a && g->m == 1) {
    set_a_step(s, 1, 1);
  } else if (g->trans_a) {
    const int64_t padded = up(g->m, s->lanes) * s->lanes;
    set_a_step(s, height, padded - (up(g->m, height) - 1) * height);
    s->packed_bytes = padded * g->k * s->size;
    s->pack = (g->dtype == ATTUNE_F64 ? isa->f64 : isa->f32)->pack;
    plan->launch = launch_run_transposed;
  }
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

const at_implementation at_gemm_host_small = {
    .name = "host_small",
    .version = 3,
    .backend = "host",
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch_run_tiled,
    .destroy = destroy,
    .depends = at_blocked_depends,
};
