/* SPDX-License-Identifier: Apache-2.0
 * gemm_fixture.h: one normalised GEMM problem on the host with its memory, its result by a naive loop in f64, and the
 * check of what an implementation wrote. */
#ifndef TESTS_GEMM_FIXTURE_H
#define TESTS_GEMM_FIXTURE_H

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/problem.h"
#include "src/half.h"

#define POISON 0xa5

/* ---- one problem with its memory ---- */

typedef struct fixture {
  at_gemm g;
  at_gemm_operands o;
  size_t in_size, out_size, d_bytes;
  char *a, *b, *c, *d;
  double *expected, *bound; /* packed m x n x batch: the result, and the error allowed */
} fixture;

static uint64_t seed = 1;

static double draw(void) { /* uniform in [-1, 1) */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(seed >> 11) / 0x1p52 - 1.0;
}

static void put(char *p, int64_t at, int dtype, double x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)(void *)p)[at] = x; break;
  case ATTUNE_F32: ((float *)(void *)p)[at] = (float)x; break;
  case ATTUNE_F16: ((uint16_t *)(void *)p)[at] = at_f64_to_f16(x); break;
  default: ((uint16_t *)(void *)p)[at] = at_f64_to_bf16(x); break;
  }
}

static double get(const char *p, int64_t at, int dtype) {
  switch (dtype) {
  case ATTUNE_F64: return ((const double *)(const void *)p)[at];
  case ATTUNE_F32: return (double)((const float *)(const void *)p)[at];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)(const void *)p)[at]);
  default: return (double)at_bf16_to_f32(((const uint16_t *)(const void *)p)[at]);
  }
}

/* Exactly `count` elements at the end of the allocation, so that a sanitizer sees every read past them. */
static char *fill(int64_t count, int dtype) {
  char *p = malloc((size_t)count * attune_dtype_size((attune_dtype)dtype));
  assert_non_null(p);
  for (int64_t i = 0; i < count; i++) put(p, i, dtype, draw());
  return p;
}

static int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch) {
  return rows + (columns - 1) * ld + (batch - 1) * stride;
}

static void expect(fixture *f) {
  const at_gemm *g = &f->g;
  double unit = g->dtype == ATTUNE_F64 ? 0x1p-53 : 0x1p-24;
  double unit_out = g->dtype_out == ATTUNE_F64   ? 0x1p-53
                    : g->dtype_out == ATTUNE_F32 ? 0x1p-24
                    : g->dtype_out == ATTUNE_F16 ? 0x1p-11
                                                 : 0x1p-8;
  double gamma = fmax(8.0, 2.0 * sqrt((double)g->k)) * unit;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        double sum = 0.0, size = 0.0;
        for (int64_t k = 0; k < g->k; k++) {
          double x = get(f->a, batch * g->stride_a + (g->trans_a ? k + i * g->lda : i + k * g->lda), g->dtype);
          double y = get(f->b, batch * g->stride_b + (g->trans_b ? j + k * g->ldb : k + j * g->ldb), g->dtype);
          sum += x * y;
          size += fabs(x * y);
        }
        double r = f->o.alpha * sum, s = fabs(f->o.alpha) * size;
        if (f->o.beta != 0.0) {
          double c = f->o.beta * get(f->c, batch * g->stride_c + i + j * g->ldc, g->dtype_out);
          r += c;
          s += fabs(c);
        }
        int64_t at = i + g->m * (j + g->n * batch);
        f->expected[at] = r;
        f->bound[at] = unit_out * fabs(r) + gamma * s + (g->dtype_out == ATTUNE_F16 ? 0x1p-25 : 0.0);
      }
}

static void fixture_make(fixture *f, const at_gemm *g, double alpha, double beta) {
  *f = (fixture){.g = *g, .o = {.alpha = alpha, .beta = beta}};
  f->in_size = attune_dtype_size((attune_dtype)g->dtype);
  f->out_size = attune_dtype_size((attune_dtype)g->dtype_out);
  f->a = fill(extent(at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch), g->dtype);
  f->b = fill(extent(at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch), g->dtype);
  int64_t c_count = g->c == AT_C_NONE ? 1 : extent(g->m, g->n, g->ldc, g->stride_c, g->batch);
  f->c = fill(c_count, g->dtype_out);
  f->d_bytes = (size_t)extent(g->m, g->n, g->ldd, g->stride_d, g->batch) * f->out_size;
  f->d = malloc(f->d_bytes);
  f->expected = malloc((size_t)(g->m * g->n * g->batch) * sizeof(double));
  f->bound = malloc((size_t)(g->m * g->n * g->batch) * sizeof(double));
  assert_true(f->d != NULL && f->expected != NULL && f->bound != NULL);
  f->o.a = f->a;
  f->o.b = f->b;
  f->o.c = g->c == AT_C_SEPARATE ? f->c : g->c == AT_C_INPLACE ? f->d : NULL;
  f->o.d = f->d;
  expect(f);
}

static void fixture_free(fixture *f) {
  free(f->a);
  free(f->b);
  free(f->c);
  free(f->d);
  free(f->expected);
  free(f->bound);
}

/* Poison everywhere; in place, C's elements (not its gaps) on top. */
static void fixture_reset(fixture *f) {
  const at_gemm *g = &f->g;
  memset(f->d, POISON, f->d_bytes);
  if (g->c != AT_C_INPLACE) return;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++) {
      int64_t at = batch * g->stride_d + j * g->ldd;
      memcpy(f->d + (size_t)at * f->out_size, f->c + (size_t)at * f->out_size, (size_t)g->m * f->out_size);
    }
}

static bool gaps_kept(const fixture *f) {
  const at_gemm *g = &f->g;
  size_t count = f->d_bytes / f->out_size;
  bool *used = calloc(count, sizeof *used);
  assert_non_null(used);
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) used[batch * g->stride_d + j * g->ldd + i] = true;
  bool kept = true;
  for (size_t i = 0; i < count; i++)
    for (size_t byte = 0; byte < f->out_size && !used[i]; byte++)
      kept = kept && (unsigned char)f->d[i * f->out_size + byte] == POISON;
  free(used);
  return kept;
}

static void check(const fixture *f, const char *what) {
  const at_gemm *g = &f->g;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        int64_t at = i + g->m * (j + g->n * batch);
        double x = get(f->d, batch * g->stride_d + j * g->ldd + i, g->dtype_out);
        if (!(fabs(x - f->expected[at]) <= f->bound[at]))
          fail_msg(
              "%s: %lldx%lldx%lld ta=%d tb=%d dtype=%d out=%d: D(%lld,%lld) of %lld is %.17g, should be %.17g +- %g",
              what, (long long)g->m, (long long)g->n, (long long)g->k, g->trans_a, g->trans_b, g->dtype, g->dtype_out,
              (long long)i, (long long)j, (long long)batch, x, f->expected[at], f->bound[at]);
      }
  if (!gaps_kept(f)) fail_msg("%s: a gap of D was written", what);
}

#endif
