/* SPDX-License-Identifier: Apache-2.0
 * host_small.c: real and complex products of matrices of at most 64 rows and columns, with no set-up: all that does not
 * change from call to call is in the plan. One call of a tile kernel does a product that is one tile, with its whole
 * batch. A batch may be shared among threads; one product never is. Complex products are walked as real ones whose
 * sizes and steps are in parts: twice the rows, and the kernels join the parts of B. */
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/blocked_complex.h"
#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/host_blocked.h"
#include "ops/gemm/host/small_run.h"
#include "src/host/threads.h"

enum { MOST = 64, MOST_DEPTH = 256 };

/* ---- configurations: kernel=avx512,vectors=2,columns=8 ---- */

bool at_small_takes(const at_gemm *g) {
  const bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  return g->dtype == g->dtype_out && !half && g->m <= MOST && g->n <= MOST && g->k <= MOST_DEPTH;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && at_gemm_plain_product(at_gemm_of(problem)) &&
         at_small_takes(at_gemm_of(problem));
}

static const at_small_ops *ops_of(const at_blocked_isa *isa, const at_gemm *g) {
  const bool wide = at_gemm_part(g->dtype) == ATTUNE_F64;
  if (at_gemm_complex(g->dtype)) return isa->small[wide ? AT_SMALL_C128 : AT_SMALL_C64];
  return isa->small[wide ? AT_SMALL_F64 : AT_SMALL_F32];
}

static int64_t up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

/* Tiles of equal width, the widest that fit with this number of vectors. */
static int64_t columns_beside(const at_small_ops *ops, int64_t vectors, int64_t n) {
  return up(n, up(n, ops->columns[vectors - 1]));
}

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                       \
  WORD("kernel", kernel, NULL, at_blocked_isa_names, 0, "the instruction set")                   \
  NUMBER("vectors", vectors, NULL, 1, AT_SMALL_VECTORS, 0, "vectors of rows in a register tile") \
  NUMBER("columns", columns, NULL, 1, AT_SMALL_COLUMNS, 0, "columns in a register tile")         \
  NUMBER("threads", threads, NULL, 1, 4096, AT_LEFT_OUT, "threads that share the batch; left out for one product")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef struct list {
  at_configuration *out;
  int count, max;
} list;

/* One product has one thread, and does not say so. */
static void add(list *l, const at_gemm *g, const choice *o) {
  choice written = *o;
  if (g->batch == 1) written.threads = 0;
  if (l->count < l->max) l->count += at_tunables_add(&tunables, l->out, l->count, &written);
}

/* Below this many operations a thread costs more than it gives. */
#define FLOPS_PER_THREAD 20e3

int at_small_threads(const at_gemm *g) {
  const double each = at_gemm_complex(g->dtype) ? 8.0 : 2.0;
  const double flops = each * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
  int threads = at_cpu_count() < g->batch ? at_cpu_count() : (int)g->batch;
  while (threads > 1 && flops < FLOPS_PER_THREAD * (double)threads) threads /= 2;
  return threads;
}

/* All threads that are worthwhile, then the powers of two below. */
static void add_threads(list *l, const at_gemm *g, choice o) {
  const int most = o.threads;
  int power = 1;
  while (power * 2 < most) power *= 2;
  add(l, g, &o);
  for (o.threads = power; o.threads >= 1 && most > 1; o.threads /= 2) add(l, g, &o);
}

/* Multiplications for each value read, in hundredths. */
static int worth(const choice *o) {
  return 100 * o->vectors * o->columns / (o->vectors + o->columns);
}

/* The tiles of an instruction set, those that read least first, in equal panels. One vector of rows only where there
 * are no more than two. */
static int tiles_of(choice out[AT_SMALL_VECTORS], const at_gemm *g, const at_blocked_isa *isa) {
  const at_small_ops *ops = ops_of(isa, g);
  const int64_t in_all = up(g->m * at_gemm_element_parts(g->dtype), ops->lanes),
                most = in_all < AT_SMALL_VECTORS ? in_all : AT_SMALL_VECTORS;
  int count = 0;
  for (int64_t vectors = most; vectors >= 1; vectors--) {
    if (up(in_all, up(in_all, vectors)) != vectors || (vectors == 1 && in_all > 2)) continue;
    const choice o = {.kernel = at_blocked_isa_number(isa->name),
                      .vectors = (int)vectors,
                      .columns = (int)columns_beside(ops, vectors, g->n),
                      .threads = at_small_threads(g)};
    int at = count++;
    for (; at > 0 && worth(&out[at - 1]) < worth(&o); at--) out[at] = out[at - 1];
    out[at] = o;
  }
  return count;
}

/* For the best instruction set, the first two tiles with each number of threads; then one for another. */
static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  static const char *const names[] = {NULL, "avx2", "portable"};
  const at_gemm *g = at_gemm_of(problem);
  (void)device;
  list l = {out, 0, max};
  for (size_t i = 0; i < AT_COUNT(names); i++) {
    const at_blocked_isa *isa = at_blocked_isa_find(names[i]);
    if (!isa || (i == 2 && l.count > 0)) continue;
    choice tiles[AT_SMALL_VECTORS];
    const int count = tiles_of(tiles, g, isa);
    for (int t = 0; t < count && (i == 0 || t == 0); t++)
      if (i == 0 && t < 2)
        add_threads(&l, g, tiles[t]);
      else
        add(&l, g, &tiles[t]);
  }
  return l.count;
}

/* Where every library that was tried takes longer in each type and transposition: bench/results/host-untuned.md. One
 * thread, for a team may lose where CPUs are taken. Not one row or column, which libraries do by gemv; not with C,
 * whose tiles are slower where stores are masked; not with the portable kernels. */
enum { UNTUNED_MOST = 8, UNTUNED_DEPTH = 16 };

static bool untuned(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  const at_blocked_isa *isa = at_blocked_isa_find(NULL);
  choice tiles[AT_SMALL_VECTORS];
  (void)device;
  if (g->m < 2 || g->m > UNTUNED_MOST || g->n < 2 || g->n > UNTUNED_MOST || g->k > UNTUNED_DEPTH || g->c != AT_C_NONE ||
      strcmp(isa->name, "portable") == 0 || tiles_of(tiles, g, isa) < 1)
    return false;
  list l = {out, 0, 1};
  tiles[0].threads = 1;
  add(&l, g, &tiles[0]);
  return l.count == 1;
}

/* NULL: the text is none of this implementation's for the problem and CPU. */
static const at_blocked_isa *parse(const at_plan *plan, choice *o) {
  const at_gemm *g = at_gemm_of(plan->problem);
  if (!at_tunables_parse(&tunables, o, &plan->configuration) || (g->batch > 1) != (o->threads > 0)) return NULL;
  if (o->threads == 0) o->threads = 1;
  const at_blocked_isa *isa = at_blocked_isa_find(at_blocked_isa_names[o->kernel]);
  return isa && o->columns <= ops_of(isa, g)->columns[o->vectors - 1] ? isa : NULL;
}

/* ---- plans ---- */

/* How a product is cut: rows into panels of `height`, the last of them lower where they do not fit; columns into tiles
 * of `columns`. */
typedef struct cut {
  const at_gemm *g; /* as at_complex_form makes it */
  const at_small_ops *ops;
  int64_t vectors, columns;
  int64_t height, whole; /* rows of a panel of so many vectors; panels of that height */
  int64_t a_panel;       /* elements from one panel of A to the next */
  int64_t a_step, last_a_step;
  bool single; /* a strip for each tile */
} cut;

/* A packed A has panels side by side, the last one rounded up to whole vectors; a single row of it is one as it
 * lies. */
static cut cut_of(const at_gemm *g, const at_small_ops *ops, int64_t vectors, int64_t columns) {
  cut c = {.g = g, .ops = ops, .vectors = vectors, .columns = columns, .height = vectors * ops->lanes};
  c.whole = g->m / c.height;
  c.a_panel = g->trans_a ? c.height * g->k : c.height;
  c.a_step = g->trans_a ? c.height : g->lda;
  c.last_a_step = g->trans_a ? up(g->m - c.whole * c.height, ops->lanes) * ops->lanes : g->lda;
  if (g->trans_a && g->m == at_gemm_element_parts(g->dtype)) c.last_a_step = g->m;
  return c;
}

static at_small shape_of(const at_gemm *g, int64_t a_step, int64_t rows_of_last) {
  return (at_small){.k = g->k,
                    .a_step = a_step,
                    .b_k = g->trans_b ? g->ldb : at_gemm_element_parts(g->dtype),
                    .b_n = g->trans_b ? at_gemm_element_parts(g->dtype) : g->ldb,
                    .ldc = g->ldc,
                    .ldd = g->ldd,
                    .rows = rows_of_last,
                    .join = at_join_of(g)};
}

static void step_down(at_small *shape, const cut *c) {
  shape->stride_a = c->a_panel;
  shape->stride_c = shape->stride_d = c->height;
}

static void step_across(at_small *shape, const cut *c, int64_t columns) {
  shape->stride_b = columns * shape->b_n;
  shape->stride_c = columns * c->g->ldc;
  shape->stride_d = columns * c->g->ldd;
}

/* `count` tiles from row `panel * height` and column j: one strip, or each its own. */
static void add_strip(at_small_plan *s, const cut *c, const at_small *shape, int64_t panel, int64_t rows, int64_t j,
                      int64_t columns, int64_t count) {
  const int64_t vectors = up(rows, c->ops->lanes), i = panel * c->height, size = s->size;
  at_small_strip p = {.tile = c->ops->tiles[shape->rows < c->ops->lanes][vectors - 1][columns - 1],
                      .shape = shape,
                      .count = c->single ? 1 : count,
                      .a = panel * c->a_panel * size,
                      .b = j * shape->b_n * size,
                      .c = (i + j * c->g->ldc) * size,
                      .d = (i + j * c->g->ldd) * size,
                      .rows = rows,
                      .columns = columns};
  for (int64_t done = 0; done < count; done += p.count) {
    s->strips[s->strip_count++] = p;
    p.a += shape->stride_a * size;
    p.b += shape->stride_b * size;
    p.c += shape->stride_c * size;
    p.d += shape->stride_d * size;
  }
}

/* One panel, tiles across it: those of the full width, then the rest. */
static void add_across(at_small_plan *s, const cut *c, at_small *shape, int64_t panel, int64_t rows, int64_t columns) {
  const int64_t n = c->g->n, whole = n / columns;
  step_across(shape, c, columns);
  if (whole > 0) add_strip(s, c, shape, panel, rows, 0, columns, whole);
  if (n % columns) add_strip(s, c, shape, panel, rows, whole * columns, n % columns, 1);
}

/* Panels of the full height, strip by strip down each tile's columns, so that B comes from memory once; a lower last
 * panel has tiles as wide as suits it. */
static void add_strips(at_small_plan *s, const cut *c) {
  const at_gemm *g = c->g;
  const int64_t lanes = c->ops->lanes, rest = g->m - c->whole * c->height;
  s->shapes[0] = shape_of(g, c->a_step, lanes);
  if (c->whole == 1) {
    add_across(s, c, &s->shapes[0], 0, c->height, c->columns);
  } else if (c->whole > 1) {
    step_down(&s->shapes[0], c);
    for (int64_t j = 0; j < g->n; j += c->columns)
      add_strip(s, c, &s->shapes[0], 0, c->height, j, g->n - j < c->columns ? g->n - j : c->columns, c->whole);
  }
  if (!rest) return;
  const int64_t vectors = up(rest, lanes);
  s->shapes[1] = shape_of(g, c->last_a_step, rest - (vectors - 1) * lanes);
  add_across(s, c, &s->shapes[1], c->whole, rest,
             c->whole > 0 && vectors < c->vectors ? columns_beside(c->ops, vectors, g->n) : c->columns);
}

/* ---- the next product's operands, asked for while one is made ---- */

/* Smaller products come in time by themselves; in bytes of A, B and D. */
enum { AHEAD_FROM = 40 << 10 };

/* Matrices with wide gaps, or the same one for the whole batch, are not worth it. */
static int64_t ahead_bytes(const at_gemm *g, int64_t rows, int64_t ld, int64_t columns, int64_t stride) {
  return stride == 0 || 4 * ld > 5 * rows ? 0 : ld * columns * (int64_t)attune_dtype_size((attune_dtype)g->dtype);
}

static bool wants_ahead(const at_gemm *g) {
  const int64_t size = (int64_t)attune_dtype_size((attune_dtype)g->dtype);
  return g->batch > 1 && (g->m * g->k + g->k * g->n + g->m * g->n) * size >= AHEAD_FROM;
}

/* Each tile of several vectors asks for as much as its steps do. */
static void set_ahead(at_small_plan *s) {
  const at_gemm *g = s->problem;
  const int64_t of_a = ahead_bytes(g, at_gemm_rows_a(g), g->lda, at_gemm_cols_a(g), g->stride_a),
                of_both = of_a + ahead_bytes(g, at_gemm_rows_b(g), g->ldb, at_gemm_cols_b(g), g->stride_b);
  int64_t at = 0;
  for (at_small_strip *p = s->strips, *end = p + s->strip_count; p < end; p++) {
    if (p->rows <= s->lanes) continue;
    p->ahead = at < of_a ? AT_SMALL_AHEAD_A : at < of_both ? AT_SMALL_AHEAD_B : AT_SMALL_AHEAD_NONE;
    p->ahead_from = at < of_a ? at : at - of_a;
    at += p->count * (g->k / 4) * AT_SMALL_AHEAD;
  }
}

static bool is_packed(const at_gemm *g, int64_t columns) {
  return !g->trans_b && g->ldb == columns * at_gemm_element_parts(g->dtype);
}

/* One product with one vector of rows: its strips are one of the full width and one of the rest, or one of them. */
static void fill_one(at_small_plan *s, const at_small_ops *ops) {
  const at_gemm *g = s->g;
  const at_small_strip *p = &s->strips[0], *last = &s->strips[s->strip_count - 1];
  const bool part = p->shape->rows < ops->lanes;
  s->one = (at_small_one){.k = g->k,
                          .a_step = g->lda * s->size,
                          .b_k = p->shape->b_k * s->size,
                          .b_n = p->shape->b_n * s->size,
                          .ldd = g->ldd * s->size,
                          .rows = p->shape->rows,
                          .join = p->shape->join};
  s->one_count = p->count + (last != p);
  s->one_b = p->columns * s->one.b_n;
  s->one_d = p->columns * s->one.ldd;
  s->ones[0] = ops->ones[is_packed(g, p->columns)][part][p->columns - 1];
  s->ones[1] = ops->ones[is_packed(g, last->columns)][part][last->columns - 1];
}

static const at_small_launches *launches_of(const at_gemm *g) {
  return at_gemm_complex(g->dtype) ? &at_small_complex : &at_small_real;
}

/* Any product: what prepare chooses has less around it. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  return launches_of(at_gemm_of(plan->problem))->team(plan, operands, stream);
}

/* The walk that has the least around it. */
static void choose_launch(at_plan *plan, const at_small_plan *s) {
  const at_small_launches *launches = launches_of(s->g);
  const bool one = s->strip_count == 1 && s->strips[0].count == 1;
  if (s->threads > 1)
    plan->launch = launches->team;
  else if (s->pack)
    plan->launch = launches->packed;
  else if (s->one_count > 0)
    plan->launch = one ? launches->one : launches->ones;
  else
    plan->launch = one ? launches->tile : launches->strips;
}

/* A transposed A: panels of whole elements, depth-major. */
static void set_packing(at_small_plan *s, const at_blocked_isa *isa, int64_t height) {
  const at_gemm *g = s->problem;
  const int64_t parts = at_gemm_element_parts(g->dtype);
  s->pack = at_packer_of(isa, g->dtype);
  s->packing = (at_pack){.dtype = (attune_dtype)g->dtype,
                         .lines = g->m,
                         .depth = g->k,
                         .line_step = g->lda,
                         .depth_step = 1,
                         .panel = height / parts,
                         .round = (int)(s->lanes / parts)};
  s->packed_bytes = up(s->g->m, s->lanes) * s->lanes * g->k * s->size;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm form = at_complex_form(at_gemm_of(plan->problem)), *g = &form;
  choice o;
  const at_blocked_isa *isa = parse(plan, &o);
  if (!isa)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; host_small does not have it for this problem and CPU",
                   plan->configuration.text);
  const at_small_ops *ops = ops_of(isa, g);
  cut c = cut_of(g, ops, o.vectors, o.columns);
  const size_t most = (size_t)((c.whole + 1) * up(g->n, o.columns)),
               bytes = sizeof(at_small_plan) + most * sizeof(at_small_strip);
  at_small_plan *s = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_small");
  memset(s, 0, bytes);
  s->problem = at_gemm_of(plan->problem);
  s->form = form;
  s->g = &s->form;
  s->size = at_gemm_part(g->dtype) == ATTUNE_F64 ? 8 : 4;
  c.single = wants_ahead(s->problem);
  s->lanes = ops->lanes;
  s->threads = o.threads;
  s->scale = ops->scale;
  add_strips(s, &c);
  if (c.single) set_ahead(s);
  s->each = *s->strips[0].shape;
  s->each.stride_a = g->stride_a;
  s->each.stride_b = g->stride_b;
  s->each.stride_c = g->stride_c;
  s->each.stride_d = g->stride_d;
  if (g->m <= s->lanes && g->batch == 1 && !g->trans_a) fill_one(s, ops);
  if (g->trans_a && s->problem->m > 1) set_packing(s, isa, c.height);
  choose_launch(plan, s);
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

const at_implementation at_gemm_host_small = {
    .name = "host_small",
    .version = 4,
    .backend = "host",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .untuned = untuned,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = at_blocked_depends,
};
