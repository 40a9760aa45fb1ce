/* SPDX-License-Identifier: Apache-2.0
 * blocked_run.c: the walks of host_blocked over one problem, and their split among threads. */
#include "ops/gemm/host/blocked_run.h"

#include <string.h>

#include "ops/gemm/host/blocked_complex.h"
#include "ops/gemm/host/host_reference.h"
#include "src/base/half.h"
#include "src/host/host.h"
#include "src/host/threads.h"

typedef struct job {
  const at_gemm *g;       /* of a complex problem its form (blocked_complex.h) */
  const at_gemm *complex; /* the problem; NULL: it is a real one */
  const at_gemm_operands *o;
  const at_blocked_options *opt;
  const at_blocked_ops *ops;
  int64_t in_size, out_size, sum_size; /* bytes of a number of A and B, of C and D, of a sum */
  double beta;                         /* 0 when there is no C */
  double beta_imag;
  const at_pairs *pairs; /* of a complex problem: for the first block of k, and for the others, whose C is D */
  int pair;              /* 1: numbers are parts of complex ones, each two of them */
  int columns;           /* of a tile */
} job;

/* The part of D that one thread computes. */
typedef struct area {
  int64_t batch, batches, i, m, j, n;
} area;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t round_up(int64_t x, int64_t to) {
  return (x + to - 1) / to * to;
}

/* Cuts `total` into as few blocks of at most `limit` as possible, all but the last equal and a multiple of `grain`. */
static int64_t even_block(int64_t total, int64_t limit, int64_t grain) {
  int64_t blocks = (total + limit - 1) / limit;
  return least(round_up((total + blocks - 1) / blocks, grain), most(round_up(limit, grain), grain));
}

static const char *a_at(const job *w, int64_t batch, int64_t i, int64_t k) {
  const at_gemm *g = w->g;
  return (const char *)w->o->a +
         (batch * g->stride_a + (g->trans_a ? (k << w->pair) + (i >> w->pair) * g->lda : i + k * g->lda)) * w->in_size;
}

static const char *b_at(const job *w, int64_t batch, int64_t k, int64_t j) {
  const at_gemm *g = w->g;
  return (const char *)w->o->b +
         (batch * g->stride_b + (g->trans_b ? (j << w->pair) + k * g->ldb : (k << w->pair) + j * g->ldb)) * w->in_size;
}

/* NULL when there is no C to read. */
static const char *c_at(const job *w, int64_t batch, int64_t i, int64_t j) {
  if (w->beta == 0.0 && w->beta_imag == 0.0) return NULL;
  return (const char *)w->o->c + (batch * w->g->stride_c + i + j * w->g->ldc) * w->out_size;
}

static char *d_at(const job *w, int64_t batch, int64_t i, int64_t j) {
  return (char *)w->o->d + (batch * w->g->stride_d + i + j * w->g->ldd) * w->out_size;
}

/* Whole complex numbers, whose lines lie apart: lines, panels and steps of them. */
static void pack_pairs(const job *w, at_pack *p) {
  p->line_step /= 2;
  at_packer_of(w->opt->isa, w->complex->dtype)(p);
}

static void pack_a(const job *w, void *to, int64_t batch, int64_t i, int64_t m, int64_t k, int64_t depth) {
  const bool pairs = w->complex && w->g->trans_a;
  at_pack p = {.dtype = (attune_dtype)w->g->dtype,
               .to = to,
               .from = a_at(w, batch, i, k),
               .lines = m >> pairs,
               .depth = depth,
               .line_step = w->g->trans_a ? w->g->lda : 1,
               .depth_step = w->g->trans_a ? 1 : w->g->lda,
               .panel = (int64_t)w->opt->vectors * w->ops->lanes >> pairs,
               .round = w->ops->lanes >> pairs};
  if (pairs)
    pack_pairs(w, &p);
  else
    w->ops->pack(&p);
}

static void pack_b(const job *w, void *to, int64_t batch, int64_t k, int64_t depth, int64_t j, int64_t n) {
  const bool pairs = w->complex && !w->g->trans_b;
  at_pack p = {.dtype = (attune_dtype)w->g->dtype,
               .to = to,
               .from = b_at(w, batch, k, j),
               .lines = pairs ? n : n << w->pair,
               .depth = depth,
               .line_step = w->g->trans_b ? 1 : w->g->ldb,
               .depth_step = w->g->trans_b ? w->g->ldb : 1,
               .panel = pairs ? w->columns : w->columns << w->pair,
               .round = 1};
  if (pairs)
    pack_pairs(w, &p);
  else
    w->ops->pack(&p);
}

static void plain(const job *w, const area *r) {
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++)
    if (w->complex)
      at_gemm_plain(w->complex, w->o, batch, r->i / 2, r->m / 2, r->j, r->n);
    else
      at_gemm_plain(w->g, w->o, batch, r->i, r->m, r->j, r->n);
}

/* ---- direct and panel ---- */

static at_block block_as_it_lies(const at_gemm *g, const at_gemm_operands *o, const at_blocked_options *options) {
  return (at_block){.m = g->m,
                    .n = g->n,
                    .k = g->k,
                    .a = o->a,
                    .a_step = g->lda,
                    .b = o->b,
                    .b_k = g->trans_b ? g->ldb : 1,
                    .b_n = g->trans_b ? 1 : g->ldb,
                    .alpha = o->alpha,
                    .beta = g->c == AT_C_NONE ? 0.0 : o->beta,
                    .c = o->c,
                    .d = o->d,
                    .ldc = g->ldc,
                    .ldd = g->ldd,
                    .vectors = options->vectors};
}

/* The block of a complex problem's form; `first` along k. */
static void set_pairs(const job *w, at_block *block, bool first) {
  if (!w->complex) return;
  block->b_k = w->g->trans_b ? w->g->ldb : 2;
  block->b_n = w->g->trans_b ? 2 : w->g->ldb;
  block->pairs = &w->pairs[!first];
}

static void direct(const job *w, const area *r) {
  at_block block = block_as_it_lies(w->g, w->o, w->opt);
  set_pairs(w, &block, true);
  block.m = r->m;
  block.n = r->n;
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++) {
    block.a = a_at(w, batch, r->i, 0);
    block.b = b_at(w, batch, 0, r->j);
    block.c = c_at(w, batch, r->i, r->j);
    block.d = d_at(w, batch, r->i, r->j);
    (w->complex ? w->ops->direct_pairs : w->ops->direct)(&block);
  }
}

static void panel(const job *w, const area *r) {
  at_block block = block_as_it_lies(w->g, w->o, w->opt);
  int64_t rows = even_block(r->m, w->opt->mc, (int64_t)w->opt->vectors * w->ops->lanes);
  void *panels = at_host_scratch((size_t)(round_up(rows, w->ops->lanes) * w->g->k * w->sum_size));
  if (panels == NULL) {
    plain(w, r);
    return;
  }
  set_pairs(w, &block, true);
  block.a = panels;
  block.a_packed = true;
  block.n = r->n;
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++)
    for (int64_t i = r->i; i < r->i + r->m; i += rows) {
      block.m = least(rows, r->i + r->m - i);
      pack_a(w, panels, batch, i, block.m, 0, w->g->k);
      block.b = b_at(w, batch, 0, r->j);
      block.c = c_at(w, batch, i, r->j);
      block.d = d_at(w, batch, i, r->j);
      (w->complex ? w->ops->direct_pairs : w->ops->direct)(&block);
    }
}

/* ---- packed ---- */

/* The blocks that one thread walks, and where their copies lie in its scratch. */
typedef struct walk {
  int64_t mc, kc, nc;
  int64_t rows;  /* of D finished before going on: bounds the buffer of sums */
  bool buffered; /* D is narrower than the sums: they are kept apart over all of k and rounded once */
  char *a, *b, *sums;
  int64_t sums_ld;
} walk;

#define SUMS_BYTES ((int64_t)4 << 20)

static bool walk_make(walk *out, const job *w, const area *r) {
  int64_t tile = (int64_t)w->opt->vectors * w->ops->lanes;
  out->mc = even_block(r->m, w->opt->mc, tile);
  out->kc = even_block(w->g->k, w->opt->kc, 1);
  out->nc = least(even_block(r->n, w->opt->nc, w->columns), r->n);
  out->buffered = w->out_size < w->sum_size;
  bool one = out->kc >= w->g->k;
  out->rows = !out->buffered ? r->m
              : one          ? out->mc
                             : most(out->mc, SUMS_BYTES / (out->nc * w->sum_size) / out->mc * out->mc);
  out->sums_ld = round_up(least(out->rows, r->m), w->ops->lanes);
  int64_t a_bytes = round_up(round_up(out->mc, w->ops->lanes) * out->kc * w->sum_size, 64);
  int64_t b_bytes = round_up((out->nc << w->pair) * out->kc * w->sum_size, 64);
  int64_t sums_bytes = out->buffered ? out->sums_ld * out->nc * w->sum_size : 0;
  out->a = (char *)at_host_scratch((size_t)(a_bytes + b_bytes + sums_bytes));
  if (out->a == NULL) return false;
  out->b = out->a + a_bytes;
  out->sums = out->b + b_bytes;
  return true;
}

static void finish_sums(const job *w, const walk *v, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n) {
  at_finish f = {.dtype_out = (attune_dtype)w->g->dtype_out,
                 .rows = m,
                 .columns = n,
                 .partial = v->sums,
                 .partial_ld = v->sums_ld,
                 .alpha = w->o->alpha,
                 .beta = w->beta,
                 .c = c_at(w, batch, i, j),
                 .d = d_at(w, batch, i, j),
                 .c_row = 1,
                 .c_column = w->g->ldc,
                 .d_row = 1,
                 .d_column = w->g->ldd};
  w->ops->finish(&f);
}

/* Rows [i, i + m) and columns [j, j + n), over all of k. B's block stays packed between calls when all of k is one
 * block. */
static void packed_rows(const job *w, const walk *v, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n,
                        bool b_ready) {
  const at_gemm *g = w->g;
  for (int64_t k = 0; k < g->k; k += v->kc) {
    int64_t depth = least(v->kc, g->k - k);
    if (!b_ready) pack_b(w, v->b, batch, k, depth, j, n);
    for (int64_t ii = i; ii < i + m; ii += v->mc) {
      int64_t rows = least(v->mc, i + m - ii);
      pack_a(w, v->a, batch, ii, rows, k, depth);
      at_block block = {
          .m = rows, .n = n, .k = depth, .a = v->a, .b = v->b, .vectors = w->opt->vectors, .a_packed = true};
      if (v->buffered) {
        block.alpha = 1.0;
        block.beta = k == 0 ? 0.0 : 1.0;
        block.d = v->sums + (ii - i) * w->sum_size;
        block.ldd = v->sums_ld;
      } else {
        set_pairs(w, &block, k == 0);
        block.alpha = w->o->alpha;
        block.beta = k == 0 ? w->beta : 1.0;
        block.d = d_at(w, batch, ii, j);
        block.ldd = g->ldd;
      }
      bool first = k == 0 && !v->buffered;
      block.c = first ? (const void *)c_at(w, batch, ii, j) : block.d;
      block.ldc = first ? g->ldc : block.ldd;
      (w->complex ? w->ops->product_pairs : w->ops->product)(&block);
    }
  }
  if (v->buffered) finish_sums(w, v, batch, i, m, j, n);
}

static void packed(const job *w, const area *r) {
  walk v;
  if (!walk_make(&v, w, r)) {
    plain(w, r);
    return;
  }
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++)
    for (int64_t j = r->j; j < r->j + r->n; j += v.nc)
      for (int64_t i = r->i; i < r->i + r->m; i += v.rows)
        packed_rows(w, &v, batch, i, least(v.rows, r->i + r->m - i), j, least(v.nc, r->j + r->n - j),
                    i > r->i && v.kc >= w->g->k);
}

/* ---- stream ---- */

/* The thin operand as the kernels want it: element (k, column) at k * k_step + column * column_step of the type of
 * sums. */
typedef struct thin {
  const char *at;
  int64_t k_step, column_step, columns;
} thin;

static double load_half(const void *p, int64_t at, uint8_t dtype) {
  uint16_t h = ((const uint16_t *)p)[at];
  return dtype == ATTUNE_F16 ? (double)at_f16_to_f32(h) : (double)at_bf16_to_f32(h);
}

/* Copies the thin operand to `to`, depth contiguous for dot products, else columns contiguous. */
static void thin_copy(const job *w, thin *t, void *to, bool dots) {
  int64_t k_step = dots ? 1 : t->columns, column_step = dots ? w->g->k : 1;
  for (int64_t c = 0; c < t->columns; c++)
    for (int64_t k = 0; k < w->g->k; k++) {
      int64_t from = k * t->k_step + c * t->column_step, at = k * k_step + c * column_step;
      if (w->in_size == 8)
        ((double *)to)[at] = ((const double *)(const void *)t->at)[from];
      else
        ((float *)to)[at] =
            w->in_size == 4 ? ((const float *)(const void *)t->at)[from] : (float)load_half(t->at, from, w->g->dtype);
    }
  t->at = (const char *)to;
  t->k_step = k_step;
  t->column_step = column_step;
}

#define STREAM_SUMS_BYTES 16384 /* of partial sums kept in L1 */

/* One matrix. `wide_b`: B is the wide operand and D is written transposed. */
static void stream_one(const job *w, const area *r, int64_t batch, bool wide_b, char *scratch, int64_t chunk) {
  const at_gemm *g = w->g;
  bool dots = wide_b ? !g->trans_b : g->trans_a != 0;
  int64_t lines = wide_b ? r->n : r->m, ld = wide_b ? g->ldb : g->lda;
  thin t = {wide_b ? a_at(w, batch, r->i, 0) : b_at(w, batch, 0, r->j), 1, 1, wide_b ? r->m : r->n};
  if (wide_b ? !g->trans_a : g->trans_b) t.k_step = wide_b ? g->lda : g->ldb;
  if (wide_b ? g->trans_a : !g->trans_b) t.column_step = wide_b ? g->lda : g->ldb;
  if (w->in_size != w->sum_size || (dots && t.k_step != 1))
    thin_copy(w, &t, scratch + chunk * t.columns * w->sum_size, dots);
  at_stream_job s = {.dtype = (attune_dtype)g->dtype,
                     .depth = g->k,
                     .line_step = dots ? ld : 1,
                     .depth_step = dots ? 1 : ld,
                     .thin = t.at,
                     .thin_k = t.k_step,
                     .thin_column = t.column_step,
                     .columns = t.columns,
                     .partial = scratch,
                     .partial_ld = chunk};
  at_finish f = {.dtype_out = (attune_dtype)g->dtype_out,
                 .columns = t.columns,
                 .partial = scratch,
                 .partial_ld = chunk,
                 .alpha = w->o->alpha,
                 .beta = w->beta,
                 .c_row = wide_b ? g->ldc : 1,
                 .c_column = wide_b ? 1 : g->ldc,
                 .d_row = wide_b ? g->ldd : 1,
                 .d_column = wide_b ? 1 : g->ldd};
  for (int64_t line = 0; line < lines; line += chunk) {
    int64_t i = r->i + (wide_b ? 0 : line), j = r->j + (wide_b ? line : 0);
    s.wide = wide_b ? b_at(w, batch, 0, j) : a_at(w, batch, i, 0);
    s.lines = f.rows = least(chunk, lines - line);
    (dots ? w->ops->stream_rows : w->ops->stream_columns)(&s);
    f.c = c_at(w, batch, i, j);
    f.d = d_at(w, batch, i, j);
    w->ops->finish(&f);
  }
}

static void stream_complex(const job *w, const area *r) {
  const at_complex_area part = {r->batch, r->batches, r->i / 2, r->m / 2, r->j, r->n};
  if (!at_complex_stream(w->complex, w->o, w->ops, &part)) plain(w, r);
}

static void stream(const job *w, const area *r) {
  bool wide_b = w->g->m < w->g->n;
  int64_t columns = wide_b ? r->m : r->n, lanes = w->ops->lanes;
  int64_t chunk = most(STREAM_SUMS_BYTES / (columns * w->sum_size) / lanes * lanes, 4 * lanes);
  chunk = least(chunk, round_up(wide_b ? r->n : r->m, lanes));
  char *scratch = (char *)at_host_scratch((size_t)((chunk + w->g->k) * columns * w->sum_size));
  if (scratch == NULL) {
    plain(w, r);
    return;
  }
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++)
    stream_one(w, r, batch, wide_b, scratch, chunk);
}

/* ---- threads ---- */

/* Part `part` of `parts` of [0, total), in multiples of `grain`. */
static void cut(int64_t *first, int64_t *count, int64_t total, int64_t grain, int64_t part, int64_t parts) {
  int64_t blocks = (total + grain - 1) / grain;
  *first = least(blocks * part / parts * grain, total);
  *count = least(blocks * (part + 1) / parts * grain, total) - *first;
}

/* Rows of the grid of `parts` areas: the divisor that makes the areas most square. */
static int64_t grid_rows(const at_gemm *g, int64_t parts) {
  int64_t best = 1;
  double best_edge = 0.0;
  for (int64_t rows = 1; rows <= parts; rows++) {
    if (parts % rows != 0) continue;
    double edge = (double)g->m / (double)rows + (double)g->n / (double)(parts / rows);
    if (best_edge == 0.0 || edge < best_edge) {
      best = rows;
      best_edge = edge;
    }
  }
  return best;
}

static area area_of(const job *w, int64_t part, int64_t parts) {
  const at_gemm *g = w->g;
  area r = {0, g->batch, 0, g->m, 0, g->n};
  int64_t tile = (int64_t)w->opt->vectors * w->ops->lanes, columns = w->columns;
  switch (w->opt->split) {
  case AT_SPLIT_M: cut(&r.i, &r.m, g->m, g->m >= 4 * tile * parts ? tile : w->ops->lanes, part, parts); break;
  case AT_SPLIT_N: cut(&r.j, &r.n, g->n, columns, part, parts); break;
  case AT_SPLIT_BATCH: cut(&r.batch, &r.batches, g->batch, 1, part, parts); break;
  case AT_SPLIT_GRID: {
    int64_t rows = grid_rows(g, parts);
    cut(&r.i, &r.m, g->m, tile, part % rows, rows);
    cut(&r.j, &r.n, g->n, columns, part / rows, parts / rows);
    break;
  }
  }
  return r;
}

static void run_area(const job *w, const area *r) {
  if (r->batches <= 0 || r->m <= 0 || r->n <= 0) return;
  switch (w->opt->path) {
  case AT_PATH_DIRECT: direct(w, r); break;
  case AT_PATH_PANEL: panel(w, r); break;
  case AT_PATH_PACKED: packed(w, r); break;
  case AT_PATH_STREAM: (w->complex ? stream_complex : stream)(w, r); break;
  }
}

/* The areas are those of the wanted threads, whatever the team's size: the same bits at each run. */
static void run_member(void *arg, const at_team *team) {
  const job *w = (const job *)arg;
  for (int64_t part = team->rank; part < w->opt->threads; part += team->size) {
    area r = area_of(w, part, w->opt->threads);
    run_area(w, &r);
  }
}

static void run_job(const job *w) {
  if (w->opt->threads > 1) {
    at_parallel(w->opt->threads, run_member, (void *)(uintptr_t)w);
    return;
  }
  const area all = {0, w->g->batch, 0, w->g->m, 0, w->g->n};
  run_area(w, &all);
}

static void run_complex(const at_gemm *g, const at_gemm_operands *o, const at_blocked_options *options) {
  const at_gemm form = at_complex_form(g);
  const bool f64 = g->dtype == ATTUNE_C128, c = g->c != AT_C_NONE;
  job w = {
      .g = &form, .complex = g, .o = o, .opt = options, .ops = f64 ? options->isa->f64 : options->isa->f32, .pair = 1};
  w.columns = w.ops->columns / 2;
  w.in_size = w.out_size = w.sum_size = f64 ? 8 : 4;
  w.beta = !c ? 0.0 : f64 ? o->beta : (double)(float)o->beta;
  w.beta_imag = !c ? 0.0 : f64 ? o->beta_imag : (double)(float)o->beta_imag;
  const at_join join = at_join_of(g);
  const at_pairs pairs[2] = {{o->alpha_imag, w.beta_imag, join}, {o->alpha_imag, 0.0, join}};
  w.pairs = pairs;
  run_job(&w);
}

void at_blocked_run(const at_gemm *g, const at_gemm_operands *operands, const at_blocked_options *options) {
  if (at_gemm_complex(g->dtype)) {
    run_complex(g, operands, options);
    return;
  }
  bool f64 = g->dtype == ATTUNE_F64;
  if (options->path == AT_PATH_DIRECT && options->threads == 1 &&
      g->batch == 1) { /* so small that more set-up would be felt */
    at_block block = block_as_it_lies(g, operands, options);
    (f64 ? options->isa->f64 : options->isa->f32)->direct(&block);
    return;
  }
  int64_t in_size = f64 ? 8 : g->dtype == ATTUNE_F32 ? 4 : 2;
  job w = {.g = g,
           .o = operands,
           .opt = options,
           .ops = f64 ? options->isa->f64 : options->isa->f32,
           .in_size = in_size,
           .out_size = f64                          ? 8
                       : g->dtype_out == ATTUNE_F32 ? 4
                                                    : 2,
           .sum_size = f64 ? 8 : 4};
  w.columns = w.ops->columns;
  w.beta = g->c == AT_C_NONE ? 0.0 : f64 ? operands->beta : (double)(float)operands->beta;
  run_job(&w);
}
