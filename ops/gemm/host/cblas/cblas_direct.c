/* SPDX-License-Identifier: Apache-2.0
 * cblas_direct.c: see cblas_direct.h. */
#include "ops/gemm/host/cblas/cblas_direct.h"

#include <stdio.h>
#include <string.h>

#include "tuning/op/registry.h"

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

/* ---- gemv ---- */

bool at_cblas_can_gemv(const at_cblas *library, const at_gemm *g) {
  return (g->m == 1 || g->n == 1) && (g->dtype == ATTUNE_F64   ? library->dgemv != NULL
                                      : g->dtype == ATTUNE_F32 ? library->sgemv != NULL
                                                               : false);
}

/* The matrix as it is stored, and the steps from element to element of the two vectors. */
typedef struct shape {
  bool on_a; /* the matrix is A and the vector is B; else D' = op(B)' op(A)' */
  int trans, rows, columns, lead, step_in, step_out;
} shape;

static inline shape shape_of(const at_gemm *g) {
  if (g->n == 1)
    return (shape){true,
                   g->trans_a ? TRANSPOSE : NO_TRANSPOSE,
                   (int)at_gemm_rows_a(g),
                   (int)at_gemm_cols_a(g),
                   (int)g->lda,
                   g->trans_b ? (int)g->ldb : 1,
                   1};
  return (shape){false,
                 g->trans_b ? NO_TRANSPOSE : TRANSPOSE,
                 (int)at_gemm_rows_b(g),
                 (int)at_gemm_cols_b(g),
                 (int)g->ldb,
                 g->trans_a ? 1 : (int)g->lda,
                 (int)g->ldd};
}

/* ---- calls, of each type ---- */

/* What a program must do for a C of its own: CBLAS works in place. Column by column, so that gaps stay as they are. */
static void copy_c(const at_gemm *g, const at_gemm_operands *o, int64_t batch, size_t size) {
  const char *from = (const char *)o->c + (size_t)(batch * g->stride_c) * size;
  char *to = (char *)o->d + (size_t)(batch * g->stride_d) * size;
  for (int64_t j = 0; j < g->n; j++)
    memcpy(to + (size_t)(j * g->ldd) * size, from + (size_t)(j * g->ldc) * size, (size_t)g->m * size);
}

/* call_TYPE: the problem as a program calls it, with `s` by gemv, matrix after matrix.
 * products_TYPE: calls of one product. A program has the arguments at hand: those of small products are kept out of the
 * loop, for reading them from the problem at each call would be seen in the time. */
#define CALLS(NAME, TYPE, GEMM, GEMV)                                                                                \
  static void call_##NAME(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o) {    \
    const int trans_a = at_cblas_trans(g->trans_a), trans_b = at_cblas_trans(g->trans_b);                            \
    const TYPE alpha = (TYPE)o->alpha, beta = g->c == AT_C_NONE ? 0 : (TYPE)o->beta;                                 \
    for (int64_t i = 0; i < g->batch; i++) {                                                                         \
      const TYPE *a = (const TYPE *)o->a + i * g->stride_a, *b = (const TYPE *)o->b + i * g->stride_b;               \
      TYPE *d = (TYPE *)o->d + i * g->stride_d;                                                                      \
      if (g->c == AT_C_SEPARATE && beta != 0) copy_c(g, o, i, sizeof(TYPE));                                         \
      if (s)                                                                                                         \
        library->GEMV(COLUMN_MAJOR, s->trans, s->rows, s->columns, alpha, s->on_a ? a : b, s->lead, s->on_a ? b : a, \
                      s->step_in, beta, d, s->step_out);                                                             \
      else                                                                                                           \
        library->GEMM(COLUMN_MAJOR, trans_a, trans_b, (int)g->m, (int)g->n, (int)g->k, alpha, a, (int)g->lda, b,     \
                      (int)g->ldb, beta, d, (int)g->ldd);                                                            \
    }                                                                                                                \
  }                                                                                                                  \
                                                                                                                     \
  static void products_##NAME(const at_cblas *library, const at_gemm *g, const at_bare_calls *calls) {               \
    const at_cblas_##GEMM##_fn gemm = library->GEMM;                                                                 \
    const int trans_a = at_cblas_trans(g->trans_a), trans_b = at_cblas_trans(g->trans_b);                            \
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;  \
    const int run = calls->copies == 1 ? calls->to - calls->from : 1; /* calls of the same operands in a row */      \
    int copy = calls->from % calls->copies;                                                                          \
    for (int i = calls->from; i < calls->to; i += run) {                                                             \
      const at_gemm_operands o = *(const at_gemm_operands *)at_bare_operands(calls, copy);                           \
      for (int j = 0; j < run; j++)                                                                                  \
        gemm(COLUMN_MAJOR, trans_a, trans_b, m, n, k, (TYPE)o.alpha, o.a, lda, o.b, ldb, (TYPE)o.beta, o.d, ldd);    \
      if (++copy == calls->copies) copy = 0;                                                                         \
    }                                                                                                                \
  }

CALLS(f64, double, dgemm, dgemv)
CALLS(f32, float, sgemm, sgemv)

/* The same of c64 and c128, without gemv. */
static void call_complex(const at_cblas *library, const at_gemm *g, const shape *none, const at_gemm_operands *o) {
  const size_t size = attune_dtype_size((attune_dtype)g->dtype);
  const bool wide = g->dtype == ATTUNE_C128, with_c = g->c != AT_C_NONE;
  const at_cblas_complex_fn gemm = wide ? library->zgemm : library->cgemm;
  const double alpha[] = {o->alpha, o->alpha_imag}, beta[] = {with_c ? o->beta : 0.0, with_c ? o->beta_imag : 0.0};
  const float alpha_f[] = {(float)alpha[0], (float)alpha[1]}, beta_f[] = {(float)beta[0], (float)beta[1]};
  (void)none;
  for (int64_t i = 0; i < g->batch; i++) {
    if (g->c == AT_C_SEPARATE && !at_gemm_beta_is_0((attune_dtype)g->dtype, o)) copy_c(g, o, i, size);
    gemm(COLUMN_MAJOR, at_cblas_trans(g->trans_a), at_cblas_trans(g->trans_b), (int)g->m, (int)g->n, (int)g->k,
         wide ? (const void *)alpha : alpha_f, (const char *)o->a + (size_t)(i * g->stride_a) * size, (int)g->lda,
         (const char *)o->b + (size_t)(i * g->stride_b) * size, (int)g->ldb, wide ? (const void *)beta : beta_f,
         (char *)o->d + (size_t)(i * g->stride_d) * size, (int)g->ldd);
  }
}

typedef void (*call_fn)(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o);

static call_fn call_of(const at_gemm *g) {
  return at_gemm_complex(g->dtype) ? call_complex : g->dtype == ATTUNE_F64 ? call_f64 : call_f32;
}

void at_cblas_call(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, bool gemv) {
  const shape vector = gemv ? shape_of(g) : (shape){.on_a = false};
  call_of(g)(library, g, gemv ? &vector : NULL, o);
}

static at_cblas *library_of(const at_plan *plan) {
  char id[64];
  return at_configuration_get_text(&plan->configuration, "library", id, sizeof id) ? at_cblas_find(id) : NULL;
}

static void make_calls(const at_cblas *library, const at_gemm *g, const at_bare_calls *calls) {
  const shape vector = shape_of(g), *s = at_cblas_can_gemv(library, g) ? &vector : NULL;
  const call_fn call = call_of(g);
  if (!s && g->batch == 1 && g->c != AT_C_SEPARATE && !at_gemm_complex(g->dtype)) {
    (g->dtype == ATTUNE_F64 ? products_f64 : products_f32)(library, g, calls);
    return;
  }
  int copy = calls->from % calls->copies; /* a division at each call would be seen too */
  for (int i = calls->from; i < calls->to; i++) {
    const at_gemm_operands *o = at_bare_operands(calls, copy);
    call(library, g, s, o);
    if (++copy == calls->copies) copy = 0;
  }
}

static int threads_now(const at_cblas *library) {
  const int threads = library->gate.get_threads ? library->gate.get_threads() : 1;
  return threads > 1 ? threads : 1;
}

/* One pass through the gate for all calls, which is lost in their time: forks and the process's end wait there. */
attune_status at_cblas_direct(const at_plan *plan, const at_bare_calls *calls) {
  at_cblas *library = library_of(plan);
  if (!library) return at_fail(ATTUNE_NOT_FOUND, "the library of %s is not on this machine", plan->configuration.text);
  if (!at_cblas_thread_setting_enter(&library->gate, threads_now(library)))
    return at_fail(ATTUNE_DEVICE_ERROR, "the process is exiting: %s is no longer measured", plan->configuration.text);
  make_calls(library, at_gemm_of(plan->problem), calls);
  at_cblas_thread_setting_leave(&library->gate);
  return ATTUNE_OK;
}

/* A program's call runs with the library's own thread count of this moment. */
int at_cblas_direct_threads(const at_plan *plan) {
  const at_cblas *library = library_of(plan);
  return library ? threads_now(library) : 1;
}

void at_cblas_direct_name(const at_plan *plan, char *out, size_t size) {
  const at_cblas *library = library_of(plan);
  const bool gemv = library && at_cblas_can_gemv(library, at_gemm_of(plan->problem));
  snprintf(out, size, "%s threads=%d%s", plan->implementation->name, at_cblas_direct_threads(plan),
           gemv ? " call=gemv" : "");
}
