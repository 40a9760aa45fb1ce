/* SPDX-License-Identifier: Apache-2.0
 * small_run.c: the walks of host_small over products that fit into L1 or nearly: strips of tiles, columns before rows,
 * so that B is read once. */
#include "ops/gemm/host/small_run.h"

#include <string.h>

#include "ops/gemm/host/host_reference.h"
#include "src/host/host.h"
#include "src/host/threads.h"

enum { ON_STACK = 4096 /* bytes of a transposed A */ };

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

/* The tiles of a strip by way of their sums. */
static void run_scaled(const at_small_plan *s, const at_small_strip *p, const at_gemm_operands *o, const char *a,
                       const char *b, const char *c, char *d) {
  _Alignas(64) char sums[AT_SMALL_SUMS_BYTES];
  const at_small *step = p->shape;
  at_small shape = *p->shape;
  shape.ldd = (p->rows + s->lanes - 1) / s->lanes * s->lanes;
  at_small_scale scale = {.alpha = o->alpha,
                          .beta = c ? o->beta : 0.0,
                          .sums = sums,
                          .rows = p->rows,
                          .columns = p->columns,
                          .padded = shape.ldd,
                          .ldc = step->ldc,
                          .ldd = step->ldd};
  for (int64_t i = 0; i < p->count; i++) {
    p->tile(&shape, a + i * step->stride_a * s->size, b + i * step->stride_b * s->size, sums, 1, NULL, NULL);
    scale.c = c ? c + i * step->stride_c * s->size : NULL;
    scale.d = d + i * step->stride_d * s->size;
    s->scale(&scale);
  }
}

static const char *c_of(const at_small_plan *s, const at_gemm_operands *o, kind how) {
  return how != KIND_PLAIN && s->g->c != AT_C_NONE ? (const char *)o->c : NULL;
}

/* Where the matrices of a product lie. */
typedef struct place {
  const char *a, *b, *c;
  char *d;
} place;

static inline place first(const at_small_plan *s, const at_gemm_operands *o, kind how) {
  return (place){(const char *)o->a, (const char *)o->b, c_of(s, o, how), (char *)o->d};
}

static inline place after(const at_small_plan *s, const place *p) {
  const at_gemm *g = s->g;
  return (place){p->a + g->stride_a * s->size, p->b + g->stride_b * s->size, p->c ? p->c + g->stride_c * s->size : NULL,
                 p->d + g->stride_d * s->size};
}

static inline const char *ahead_of(const at_small_strip *strip, const place *next) {
  if (AT_LIKELY(strip->ahead == AT_SMALL_AHEAD_NONE)) return NULL;
  return (strip->ahead == AT_SMALL_AHEAD_A ? next->a : next->b) + strip->ahead_from;
}

/* One product; A, as it lies or packed, is at `a`. `next` is the one that comes after it, or itself. */
static inline void run_product(const at_small_plan *s, const at_gemm_operands *o, const char *a, const place *p,
                               const place *next, const kind how) {
  for (const at_small_strip *strip = s->strips, *end = strip + s->strip_count; strip < end; strip++) {
    const char *b = p->b + strip->b, *c = how != KIND_PLAIN && p->c ? p->c + strip->c : NULL;
    char *d = p->d + strip->d;
    if (how == KIND_SCALED)
      run_scaled(s, strip, o, a + strip->a, b, c, d);
    else
      strip->tile(strip->shape, a + strip->a, b, d, strip->count, c, ahead_of(strip, next));
  }
}

static void run_strips(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
  const kind how = kind_of(o);
  place p = first(s, o, how);
  for (;;) {
    const place next = --batch > 0 ? after(s, &p) : p;
    if (AT_LIKELY(how == KIND_PLAIN))
      run_product(s, o, p.a, &p, &next, KIND_PLAIN);
    else
      run_product(s, o, p.a, &p, &next, how);
    if (batch <= 0) return;
    p = next;
  }
}

/* Each product is one tile: one call for all. */
static void run_tile(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
  const kind how = kind_of(o);
  if (AT_LIKELY(how != KIND_SCALED))
    s->strips[0].tile(&s->each, o->a, o->b, o->d, batch, c_of(s, o, how), NULL);
  else
    run_strips(s, o, batch);
}

/* A is stored by rows: each matrix is turned into panels of rows first. */
static void run_packed(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
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
                  .panel = s->panel,
                  .round = (int)s->lanes};
  place p = first(s, o, how);
  for (int64_t i = 0; i < batch; i++) {
    if (!panels) {
      at_gemm_plain(g, o, i, 0, g->m, 0, g->n);
      continue;
    }
    pack.from = p.a;
    if (i == 0 || g->stride_a != 0) s->pack(&pack);
    const place next = i + 1 < batch ? after(s, &p) : p;
    run_product(s, o, panels, &p, &next, how);
    p = next;
  }
}

static void run_any(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
  if (s->pack)
    run_packed(s, o, batch);
  else if (s->strip_count == 1 && s->strips[0].count == 1)
    run_tile(s, o, batch);
  else
    run_strips(s, o, batch);
}

/* ---- a batch in threads ---- */

typedef struct job {
  const at_small_plan *s;
  const at_gemm_operands *o;
} job;

static void run_share(void *arg, const at_team *team) {
  const job *w = (const job *)arg;
  const at_gemm *g = w->s->g;
  const int64_t from = g->batch * team->rank / team->size, to = g->batch * (team->rank + 1) / team->size;
  if (from == to) return;
  const int64_t size = w->s->size;
  at_gemm_operands o = *w->o;
  o.a = (const char *)o.a + from * g->stride_a * size;
  o.b = (const char *)o.b + from * g->stride_b * size;
  o.d = (char *)o.d + from * g->stride_d * size;
  if (g->c != AT_C_NONE) o.c = (const char *)o.c + from * g->stride_c * size;
  run_any(w->s, &o, to - from);
}

static void run_team(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
  job w = {s, o};
  (void)batch;
  at_parallel((int)s->threads, run_share, &w);
}

/* ---- launches: at once on the default stream, else in the stream's order ---- */

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

#define LAUNCH(name)                                                                                       \
  static void run_##name##_later(const void *args) {                                                       \
    const work *w = (const work *)args;                                                                    \
    const at_small_plan *s = (const at_small_plan *)w->plan->state;                                        \
    run_##name(s, &w->operands, s->g->batch);                                                              \
  }                                                                                                        \
  __attribute__((noinline))                                                                                \
  attune_status at_small_launch_##name(const at_plan *plan, const void *operands, attune_stream *stream) { \
    const at_small_plan *s = (const at_small_plan *)plan->state;                                           \
    if (AT_LIKELY(at_host_inline(stream))) {                                                               \
      run_##name(s, (const at_gemm_operands *)operands, s->g->batch);                                      \
      return ATTUNE_OK;                                                                                    \
    }                                                                                                      \
    work w = {plan, *(const at_gemm_operands *)operands};                                                  \
    return at_host_submit(stream, run_##name##_later, &w, sizeof w);                                       \
  }
LAUNCH(tile)
LAUNCH(strips)
LAUNCH(packed)
LAUNCH(team)
#undef LAUNCH

/* One product with one vector of rows, alpha = 1 and without C, at once: nothing but the kernel. */
attune_status at_small_launch_one(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_small_plan *s = (const at_small_plan *)plan->state;
  const at_gemm_operands *o = (const at_gemm_operands *)operands;
  if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o) != KIND_PLAIN))
    return at_small_launch_tile(plan, operands, stream);
  return s->ones[1](&s->one, o->a, o->b, o->d);
}

/* As above, for several adjacent tiles. */
attune_status at_small_launch_ones(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_small_plan *s = (const at_small_plan *)plan->state;
  const at_gemm_operands *o = (const at_gemm_operands *)operands;
  if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o) != KIND_PLAIN))
    return at_small_launch_strips(plan, operands, stream);
  const char *b = (const char *)o->b;
  char *d = (char *)o->d;
  for (int64_t i = 1; i < s->one_count; i++, b += s->one_b, d += s->one_d) (void)s->ones[0](&s->one, o->a, b, d);
  return s->ones[1](&s->one, o->a, b, d);
}
