/* SPDX-License-Identifier: Apache-2.0
 * cblas_direct.c: see cblas_direct.h. */
#include "ops/gemm/host/cblas_direct.h"

#include <stdio.h>
#include <string.h>

#include "tuning/op/registry.h"

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

/* ---- gemv ---- */

bool at_cblas_can_gemv(const at_cblas *library, const at_gemm *g) {
  return (g->m == 1 || g->n == 1) && (g->dtype == ATTUNE_F64 ? library->dgemv != NULL : library->sgemv != NULL);
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

static inline void gemv_f64(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o,
                            int64_t batch, double beta) {
  const double *a = (const double *)o->a + batch * g->stride_a, *b = (const double *)o->b + batch * g->stride_b;
  library->dgemv(COLUMN_MAJOR, s->trans, s->rows, s->columns, o->alpha, s->on_a ? a : b, s->lead, s->on_a ? b : a,
                 s->step_in, beta, (double *)o->d + batch * g->stride_d, s->step_out);
}

static inline void gemv_f32(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o,
                            int64_t batch, float beta) {
  const float *a = (const float *)o->a + batch * g->stride_a, *b = (const float *)o->b + batch * g->stride_b;
  library->sgemv(COLUMN_MAJOR, s->trans, s->rows, s->columns, (float)o->alpha, s->on_a ? a : b, s->lead,
                 s->on_a ? b : a, s->step_in, beta, (float *)o->d + batch * g->stride_d, s->step_out);
}

void at_cblas_gemv(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, int64_t batch, double beta) {
  const shape s = shape_of(g);
  if (g->dtype == ATTUNE_F64)
    gemv_f64(library, g, &s, o, batch, beta);
  else
    gemv_f32(library, g, &s, o, batch, (float)beta);
}

/* ---- the program's own calls ---- */

/* What a program must do for a C of its own: CBLAS works in place. */
static void copy_c(const at_gemm *g, const at_gemm_operands *o, int64_t batch, size_t size) {
  const char *from = (const char *)o->c + (size_t)(batch * g->stride_c) * size;
  char *to = (char *)o->d + (size_t)(batch * g->stride_d) * size;
  for (int64_t j = 0; j < g->n; j++)
    memcpy(to + (size_t)(j * g->ldd) * size, from + (size_t)(j * g->ldc) * size, (size_t)g->m * size);
}

static inline void gemm_f64(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, int64_t batch,
                            double beta) {
  library->dgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, (int)g->m,
                 (int)g->n, (int)g->k, o->alpha, (const double *)o->a + batch * g->stride_a, (int)g->lda,
                 (const double *)o->b + batch * g->stride_b, (int)g->ldb, beta, (double *)o->d + batch * g->stride_d,
                 (int)g->ldd);
}

static inline void gemm_f32(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, int64_t batch,
                            float beta) {
  library->sgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, (int)g->m,
                 (int)g->n, (int)g->k, (float)o->alpha, (const float *)o->a + batch * g->stride_a, (int)g->lda,
                 (const float *)o->b + batch * g->stride_b, (int)g->ldb, beta, (float *)o->d + batch * g->stride_d,
                 (int)g->ldd);
}

static void call_f64(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o) {
  const double beta = g->c == AT_C_NONE ? 0.0 : o->beta;
  for (int64_t batch = 0; batch < g->batch; batch++) {
    if (g->c == AT_C_SEPARATE && beta != 0.0) copy_c(g, o, batch, sizeof(double));
    if (s)
      gemv_f64(library, g, s, o, batch, beta);
    else
      gemm_f64(library, g, o, batch, beta);
  }
}

static void call_f32(const at_cblas *library, const at_gemm *g, const shape *s, const at_gemm_operands *o) {
  const float beta = g->c == AT_C_NONE ? 0.0f : (float)o->beta;
  for (int64_t batch = 0; batch < g->batch; batch++) {
    if (g->c == AT_C_SEPARATE && beta != 0.0f) copy_c(g, o, batch, sizeof(float));
    if (s)
      gemv_f32(library, g, s, o, batch, beta);
    else
      gemm_f32(library, g, o, batch, beta);
  }
}

/* A program has the arguments at hand: those of small products are kept out of the loop, for reading them from the
 * problem at each call would be seen in the time. */
static void products_f64(const at_cblas *library, const at_gemm *g, const at_bare_calls *calls) {
  const at_cblas_dgemm_fn gemm = library->dgemm;
  const int trans_a = g->trans_a ? TRANSPOSE : NO_TRANSPOSE, trans_b = g->trans_b ? TRANSPOSE : NO_TRANSPOSE;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;
  const int run = calls->copies == 1 ? calls->to - calls->from : 1; /* calls of the same operands in a row */
  int copy = calls->from % calls->copies;
  for (int i = calls->from; i < calls->to; i += run) {
    const at_gemm_operands o = *(const at_gemm_operands *)at_bare_operands(calls, copy);
    for (int j = 0; j < run; j++)
      gemm(COLUMN_MAJOR, trans_a, trans_b, m, n, k, o.alpha, o.a, lda, o.b, ldb, o.beta, o.d, ldd);
    if (++copy == calls->copies) copy = 0;
  }
}

static void products_f32(const at_cblas *library, const at_gemm *g, const at_bare_calls *calls) {
  const at_cblas_sgemm_fn gemm = library->sgemm;
  const int trans_a = g->trans_a ? TRANSPOSE : NO_TRANSPOSE, trans_b = g->trans_b ? TRANSPOSE : NO_TRANSPOSE;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;
  const int run = calls->copies == 1 ? calls->to - calls->from : 1; /* calls of the same operands in a row */
  int copy = calls->from % calls->copies;
  for (int i = calls->from; i < calls->to; i += run) {
    const at_gemm_operands o = *(const at_gemm_operands *)at_bare_operands(calls, copy);
    for (int j = 0; j < run; j++)
      gemm(COLUMN_MAJOR, trans_a, trans_b, m, n, k, (float)o.alpha, o.a, lda, o.b, ldb, (float)o.beta, o.d, ldd);
    if (++copy == calls->copies) copy = 0;
  }
}

static at_cblas *library_of(const at_plan *plan) {
  char id[64];
  return at_configuration_get_text(&plan->configuration, "library", id, sizeof id) ? at_cblas_find(id) : NULL;
}

static void make_calls(const at_cblas *library, const at_gemm *g, const at_bare_calls *calls) {
  const shape vector = shape_of(g), *s = at_cblas_can_gemv(library, g) ? &vector : NULL;
  const bool f64 = g->dtype == ATTUNE_F64;
  if (!s && g->batch == 1 && g->c != AT_C_SEPARATE) {
    (f64 ? products_f64 : products_f32)(library, g, calls);
    return;
  }
  int copy = calls->from % calls->copies; /* a division at each call would be seen too */
  for (int i = calls->from; i < calls->to; i++) {
    const at_gemm_operands *o = at_bare_operands(calls, copy);
    if (f64)
      call_f64(library, g, s, o);
    else
      call_f32(library, g, s, o);
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
  if (!library) return at_fail(ATTUNE_NOT_FOUND, "the library of %s is not here", plan->configuration.text);
  if (!at_cblas_thread_setting_enter(&library->gate, threads_now(library)))
    return at_fail(ATTUNE_DEVICE_ERROR, "the process ends: %s is not measured any more", plan->configuration.text);
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
