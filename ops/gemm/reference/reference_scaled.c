/* SPDX-License-Identifier: Apache-2.0
 * reference_scaled.c: products of 8-bit elements: what elements and scales are in f64, and the tolerance of D and its
 * amax. */
#include <stdlib.h>

#include "ops/gemm/problem/scaling.h"
#include "ops/gemm/reference/reference.h"
#include "ops/gemm/scaled/value.h"
#include "src/host/threads.h"

/* A or B on its way to f64, packed as it is stored. */
typedef struct widening {
  double *to;
  const void *from;
  attune_dtype dtype;
  int64_t rows, cols, ld, stride, batch;
  bool lines_are_columns; /* of the stored matrix: what one scale of a vector belongs to */
  const float *scale;
  at_scale_layout layout;
  double zero;
} widening;

static double scale_of(const widening *w, int64_t i, int64_t j) {
  return w->scale ? (double)w->scale[at_scale_at(w->layout, w->lines_are_columns ? j : i, w->lines_are_columns ? i : j)]
                  : 1.0;
}

static void widen_share(void *arg, const at_team *team) {
  const widening *w = arg;
  for (int64_t x = team->rank; x < w->cols * w->batch; x += team->size) {
    const int64_t b = x / w->cols, j = x % w->cols;
    for (int64_t i = 0; i < w->rows; i++)
      w->to[x * w->rows + i] =
          (at_scaled_load(w->from, w->stride * b + j * w->ld + i, w->dtype) - w->zero) * scale_of(w, i, j);
  }
}

static attune_status widen(double **out, widening *w) {
  *out = w->to = at_alloc_touched((size_t)(w->rows * w->cols * w->batch) * sizeof **out);
  if (!w->to) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  at_parallel(w->rows * w->cols * w->batch > 65536 ? at_cpu_count() : 1, widen_share, w);
  return ATTUNE_OK;
}

attune_status at_reference_widen(at_reference *r, const void *const seen[AT_MAX_BUFFERS]) {
  const at_gemm *g = &r->asked;
  int at[AT_GEMM_BUFFERS];
  r->scaled = true;
  r->asked = r->g;
  at_gemm_buffer_places(g, at);
  widening a = {.from = r->a,
                .dtype = (attune_dtype)g->dtype,
                .rows = at_gemm_rows_a(g),
                .cols = at_gemm_cols_a(g),
                .ld = g->lda,
                .stride = g->stride_a,
                .batch = g->stride_a ? g->batch : 1,
                .lines_are_columns = g->trans_a != 0,
                .layout = at_gemm_scale_layout(g->scaling.scale_a, g->m, g->k)};
  widening b = {.from = r->b,
                .dtype = at_gemm_dtype_b(g),
                .rows = at_gemm_rows_b(g),
                .cols = at_gemm_cols_b(g),
                .ld = g->ldb,
                .stride = g->stride_b,
                .batch = g->stride_b ? g->batch : 1,
                .lines_are_columns = g->trans_b == 0,
                .layout = at_gemm_scale_layout(g->scaling.scale_b, g->n, g->k)};
  if (g->scaling.scale_a) a.scale = seen[at[AT_GEMM_SCALE_A]];
  if (g->scaling.scale_b) b.scale = seen[at[AT_GEMM_SCALE_B]];
  if (g->scaling.zero_a) a.zero = (double)*(const int8_t *)seen[at[AT_GEMM_ZERO_A]];
  if (g->scaling.zero_b) b.zero = (double)*(const int8_t *)seen[at[AT_GEMM_ZERO_B]];
  r->scale_d = g->scaling.scale_d ? (double)*(const float *)seen[at[AT_GEMM_SCALE_D]] : 1.0;
  AT_TRY(widen(&r->wide_a, &a));
  AT_TRY(widen(&r->wide_b, &b));
  r->a = r->wide_a;
  r->b = r->wide_b;
  r->g.dtype = ATTUNE_F64;
  r->g.scaling = (attune_gemm_scaling){0};
  r->g.lda = a.rows;
  r->g.ldb = b.rows;
  r->g.stride_a = g->stride_a ? a.rows * a.cols : 0;
  r->g.stride_b = g->stride_b ? b.rows * b.cols : 0;
  return ATTUNE_OK;
}

/* f8: f32 sums of f32 terms, and what the tensor cores of capability 9.0 keep of them: about 14 bits (DeepGEMM,
 * arXiv:2412.19437, 3.3.2), in partial sums of 128 (strict) or in all of k, which grows as they do; an H200 was
 * seen 1.1 times 2^-12 of the sum of |a||b| off. i8: exact sums. */
double at_reference_scaled_gamma(const at_gemm *g) {
  const double k = (double)g->k;
  if (g->dtype == ATTUNE_I8) return 0x1p-22;
  const double sums = fmax(8.0, k / 16.0) * 0x1p-23;
  return sums + (g->accuracy == ATTUNE_REDUCED ? 8.0 + sqrt(k / 32.0) : 8.0) * 0x1p-14;
}

/* Unit roundoff, the error of what is rounded to zero or to an integer, and the largest number. */
typedef struct rounding {
  double u, least, most;
} rounding;

static rounding rounding_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F8E4M3: return (rounding){0x1p-4, 0x1p-10, 448.0};
  case ATTUNE_F8E5M2: return (rounding){0x1p-3, 0x1p-17, 57344.0};
  case ATTUNE_I8: return (rounding){0.0, 0.5, 128.0};
  default: return (rounding){at_reference_roundoff(dtype), at_reference_underflow(dtype), INFINITY};
  }
}

static double compare_i32(const at_reference *r, at_gemm_scalars s, const int32_t *output, int64_t b, int64_t j) {
  const at_gemm *g = &r->g;
  for (int64_t i = 0; i < g->m; i++) {
    const size_t at = (size_t)((b * g->n + j) * g->m + i);
    uint32_t expected = (uint32_t)at_scaled_integer(s.alpha) * (uint32_t)(int64_t)r->product[at];
    if (r->added && s.beta != 0.0) expected += (uint32_t)at_scaled_integer(s.beta) * (uint32_t)(int32_t)r->added[at];
    if ((uint32_t)output[g->stride_d * b + g->ldd * j + i] != expected) return INFINITY;
  }
  return 0.0;
}

double at_reference_scaled_column(const at_reference *r, at_gemm_scalars s, const void *output, int64_t b, int64_t j,
                                  double amax[2]) {
  const at_gemm *g = &r->g;
  const attune_dtype dtype = (attune_dtype)g->dtype_out;
  if (dtype == ATTUNE_I32) return compare_i32(r, s, output, b, j);
  const rounding round = rounding_of(dtype);
  const double twice = r->added && (dtype == ATTUNE_F16 || dtype == ATTUNE_BF16) ? round.u : 0.0;
  double worst = 0.0;
  for (int64_t i = 0; i < g->m; i++) {
    const size_t at = (size_t)((b * g->n + j) * g->m + i);
    const double product = s.alpha * r->product[at], addend = r->added && s.beta != 0.0 ? s.beta * r->added[at] : 0.0,
                 v = product + addend, norms = r->row_norms[b * g->m + i] * r->column_norms[b * g->n + j],
                 slack = r->gamma * (fabs(s.alpha) * norms + fabs(addend)) + 0x1p-126;
    const double expected = fmax(-round.most, fmin(dtype == ATTUNE_I8 ? 127.0 : round.most, r->scale_d * v)),
                 value = at_reference_value(output, dtype, (size_t)(g->stride_d * b + g->ldd * j + i));
    double fraction = fabs(value - expected) /
                      (round.u * fabs(expected) + twice * fabs(product) + fabs(r->scale_d) * slack + round.least);
    if (dtype == ATTUNE_F16 && isinf(value) && fabs(expected) > 65504.0)
      fraction = value * expected > 0.0 ? 0.0 : INFINITY;
    if (!(fraction <= worst)) worst = isnan(fraction) ? INFINITY : fraction;
    amax[0] = fmax(amax[0], fabs(v));
    amax[1] = fmax(amax[1], slack);
  }
  return worst;
}
