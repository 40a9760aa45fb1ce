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

static inline kind kind_of(const at_gemm_operands *o, const bool is_complex) {
  const double one = 1.0;
  uint64_t unit, alpha, beta;
  memcpy(&unit, &one, sizeof unit);
  memcpy(&alpha, &o->alpha, sizeof alpha);
  memcpy(&beta, &o->beta, sizeof beta);
  if (AT_UNLIKELY(alpha != unit)) return KIND_SCALED;
  if (is_complex && AT_UNLIKELY(o->alpha_imag != 0.0 || o->beta_imag != 0.0)) return KIND_SCALED;
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
                          .alpha_imag = o->alpha_imag,
                          .beta = c ? o->beta : 0.0,
                          .beta_imag = c ? o->beta_imag : 0.0,
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

static inline void run_strips(const at_small_plan *s, const at_gemm_operands *o, int64_t batch, const bool is_complex) {
  const kind how = kind_of(o, is_complex);
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
static inline void run_tile(const at_small_plan *s, const at_gemm_operands *o, int64_t batch, const bool is_complex) {
  const kind how = kind_of(o, is_complex);
  if (AT_LIKELY(how != KIND_SCALED))
    s->strips[0].tile(&s->each, o->a, o->b, o->d, batch, c_of(s, o, how), NULL);
  else
    run_strips(s, o, batch, is_complex);
}

static void plain(const at_small_plan *s, const at_gemm_operands *o, int64_t batch) {
  at_gemm_plain(s->problem, o, batch, 0, s->problem->m, 0, s->problem->n);
}

/* A is stored by rows: each matrix is turned into panels of rows first. */
static inline void run_packed(const at_small_plan *s, const at_gemm_operands *o, int64_t batch, const bool is_complex) {
  const at_gemm *g = s->g;
  const kind how = kind_of(o, is_complex);
  _Alignas(64) char near[ON_STACK];
  char *panels = s->packed_bytes <= ON_STACK ? near : at_host_scratch((size_t)s->packed_bytes);
  at_pack pack = s->packing;
  pack.to = panels;
  place p = first(s, o, how);
  for (int64_t i = 0; i < batch; i++) {
    if (!panels) {
      plain(s, o, i);
      continue;
    }
    pack.from = p.a;
    if (i == 0 || g->stride_a != 0) s->pack(&pack);
    const place next = i + 1 < batch ? after(s, &p) : p;
    run_product(s, o, panels, &p, &next, how);
    p = next;
  }
}

static inline void run_any(const at_small_plan *s, const at_gemm_operands *o, int64_t batch, const bool is_complex) {
  if (s->pack)
    run_packed(s, o, batch, is_complex);
  else if (s->strip_count == 1 && s->strips[0].count == 1)
    run_tile(s, o, batch, is_complex);
  else
    run_strips(s, o, batch, is_complex);
}

/* ---- a batch in threads ---- */

typedef struct job {
  const at_small_plan *s;
  const at_gemm_operands *o;
} job;

static inline void run_share(const job *w, const at_team *team, const bool is_complex) {
  const at_gemm *g = w->s->g;
  const int64_t from = g->batch * team->rank / team->size, to = g->batch * (team->rank + 1) / team->size;
  if (from == to) return;
  const int64_t size = w->s->size;
  at_gemm_operands o = *w->o;
  o.a = (const char *)o.a + from * g->stride_a * size;
  o.b = (const char *)o.b + from * g->stride_b * size;
  o.d = (char *)o.d + from * g->stride_d * size;
  if (g->c != AT_C_NONE) o.c = (const char *)o.c + from * g->stride_c * size;
  run_any(w->s, &o, to - from, is_complex);
}

static void run_real_share(void *arg, const at_team *team) {
  run_share((const job *)arg, team, false);
}

static void run_complex_share(void *arg, const at_team *team) {
  run_share((const job *)arg, team, true);
}

static inline void run_team(const at_small_plan *s, const at_gemm_operands *o, int64_t batch, const bool is_complex) {
  job w = {s, o};
  (void)batch;
  at_parallel((int)s->threads, is_complex ? run_complex_share : run_real_share, &w);
}

/* ---- launches: at once on the default stream, else in the stream's order ---- */

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

#define LAUNCH_AS(type, name)                                                                                      \
  static void run_##type##_##name##_later(const void *args) {                                                      \
    const work *w = (const work *)args;                                                                            \
    const at_small_plan *s = (const at_small_plan *)w->plan->state;                                                \
    run_##name(s, &w->operands, s->g->batch, is_##type);                                                           \
  }                                                                                                                \
  __attribute__((noinline)) static attune_status launch_##type##_##name(const at_plan *plan, const void *operands, \
                                                                        attune_stream *stream) {                   \
    const at_small_plan *s = (const at_small_plan *)plan->state;                                                   \
    if (AT_LIKELY(at_host_inline(stream))) {                                                                       \
      run_##name(s, (const at_gemm_operands *)operands, s->g->batch, is_##type);                                   \
      return ATTUNE_OK;                                                                                            \
    }                                                                                                              \
    work w = {plan, *(const at_gemm_operands *)operands};                                                          \
    return at_host_submit(stream, run_##type##_##name##_later, &w, sizeof w);                                      \
  }

/* `one`: one product with one vector of rows, alpha = 1 and without C, at once: nothing but the kernel. `ones`: several
 * adjacent tiles of such a product. */
#define LAUNCHES(type)                                                                                          \
  LAUNCH_AS(type, tile)                                                                                         \
  LAUNCH_AS(type, strips)                                                                                       \
  LAUNCH_AS(type, packed)                                                                                       \
  LAUNCH_AS(type, team)                                                                                         \
  static attune_status launch_##type##_one(const at_plan *plan, const void *operands, attune_stream *stream) {  \
    const at_small_plan *s = (const at_small_plan *)plan->state;                                                \
    const at_gemm_operands *o = (const at_gemm_operands *)operands;                                             \
    if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o, is_##type) != KIND_PLAIN))               \
      return launch_##type##_tile(plan, operands, stream);                                                      \
    return s->ones[1](&s->one, o->a, o->b, o->d);                                                               \
  }                                                                                                             \
  static attune_status launch_##type##_ones(const at_plan *plan, const void *operands, attune_stream *stream) { \
    const at_small_plan *s = (const at_small_plan *)plan->state;                                                \
    const at_gemm_operands *o = (const at_gemm_operands *)operands;                                             \
    if (AT_UNLIKELY(!at_host_inline(stream)) || AT_UNLIKELY(kind_of(o, is_##type) != KIND_PLAIN))               \
      return launch_##type##_strips(plan, operands, stream);                                                    \
    return run_ones(s, o);                                                                                      \
  }                                                                                                             \
  const at_small_launches at_small_##type = {                                                                   \
      .one = launch_##type##_one,                                                                               \
      .ones = launch_##type##_ones,                                                                             \
      .tile = launch_##type##_tile,                                                                             \
      .strips = launch_##type##_strips,                                                                         \
      .packed = launch_##type##_packed,                                                                         \
      .team = launch_##type##_team,                                                                             \
  };

enum { is_real = 0, is_complex = 1 };

static inline attune_status run_ones(const at_small_plan *s, const at_gemm_operands *o) {
  const char *b = (const char *)o->b;
  char *d = (char *)o->d;
  for (int64_t i = 1; i < s->one_count; i++, b += s->one_b, d += s->one_d) (void)s->ones[0](&s->one, o->a, b, d);
  return s->ones[1](&s->one, o->a, b, d);
}

LAUNCHES(real)
LAUNCHES(complex)
