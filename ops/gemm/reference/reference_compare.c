/* SPDX-License-Identifier: Apache-2.0
 * reference_compare.c: every element of an output against the trusted result, every byte between columns against the
 * poison. */
#include <math.h>

#include "ops/gemm/reference/reference_epilogue.h"
#include "src/host/threads.h"
#include "src/process/limit.h"

enum { MOST_THREADS = 64 };

typedef struct comparison {
  const at_reference *r;
  const at_outputs *outputs;
  const unsigned char *output;
  unsigned char poison;
  at_gemm_scalars s;          /* in the accumulation's precision; beta 0 without C */
  double worst[MOST_THREADS]; /* by rank */
  double amax[MOST_THREADS][2];
  int64_t until_ns; /* the caller's limit */
} comparison;

/* Part `part` of a complex number times another one. */
static double times(double re, double im, const double *z, int part) {
  return part ? re * z[1] + im * z[0] : re * z[0] - im * z[1];
}

/* alpha times the product in a row of the real form. */
static double scaled(const comparison *c, size_t at, int64_t i) {
  if (c->r->parts == 1) return c->s.alpha * at_reference_product(c->r, at + (size_t)i);
  return times(c->s.alpha, c->s.alpha_imag, &c->r->product[at + (size_t)(i & ~INT64_C(1))], (int)(i & 1));
}

/* beta times C there, and its size. */
static double addend_of(const comparison *c, size_t at, int64_t i, double *size) {
  const at_reference *r = c->r;
  *size = 0.0;
  if (c->s.beta == 0.0 && c->s.beta_imag == 0.0) return 0.0;
  if (r->parts == 1) {
    *size = fabs(c->s.beta * r->added[at + (size_t)i]);
    return c->s.beta * r->added[at + (size_t)i];
  }
  const double *z = &r->added[at + (size_t)(i & ~INT64_C(1))];
  *size = hypot(c->s.beta, c->s.beta_imag) * hypot(z[0], z[1]);
  return times(c->s.beta, c->s.beta_imag, z, (int)(i & 1));
}

/* alpha A B of element (i, j) of a gated product, with its error: there is no C. */
static double gated_sum(const comparison *c, int64_t b, int64_t i, int64_t j, double *error) {
  const at_reference *r = c->r;
  const at_gemm *g = &r->g;
  *error = r->gamma * r->row_norms[b * g->m + i] * fabs(c->s.alpha) * r->column_norms[b * g->n + j];
  return scaled(c, (size_t)((b * g->n + j) * g->m), i);
}

static at_epilogue_element expect_gated(const comparison *c, int64_t b, int64_t i, int64_t j) {
  const at_gemm_place up = at_gemm_second_half(&c->r->g, i, j);
  double error[2];
  const double sum[2] = {gated_sum(c, b, i, j, &error[0]), gated_sum(c, b, up.row, up.column, &error[1])};
  return at_epilogue_expect_gated(c->r, &c->s, b, i, j, sum, error);
}

/* An element of D and of aux with an epilogue, `sum` before it with its error. */
static double compare_epilogue(const comparison *c, int64_t b, int64_t i, int64_t j, double sum, double error,
                               double value) {
  const attune_dtype dtype = (attune_dtype)c->r->g.dtype_out;
  const at_epilogue_element e =
      c->r->g.gated ? expect_gated(c, b, i, j) : at_epilogue_expect(c->r, &c->s, b, i, j, sum, error);
  const double fraction = fabs(value - e.y) / (e.y_error + at_reference_roundoff(dtype) * fabs(e.y) +
                                               at_reference_underflow(dtype) + at_reference_underflow(dtype));
  const double aux = at_epilogue_compare_aux(c->r, c->outputs, b, i, j, &e);
  if (value == e.y) return aux;
  return isnan(fraction) ? INFINITY : fraction > aux ? fraction : aux;
}

/* The largest error of one column as a fraction of what is allowed; infinity for a NaN. Half results that add C may
 * round twice, alpha A B before C is added: cuBLAS's default does. A complex element's parts are allowed the error of
 * its size. */
static double compare_column(const comparison *c, int64_t b, int64_t j) {
  const at_reference *r = c->r;
  const at_gemm *g = &r->g;
  const attune_dtype dtype = at_gemm_part(g->dtype_out);
  const int64_t rows = g->m * r->parts, rows_d = at_gemm_rows_d(g) * r->parts;
  const double u = at_reference_roundoff(dtype), tiny = at_reference_underflow(dtype),
               column = hypot(c->s.alpha, c->s.alpha_imag) * r->column_norms[b * g->n + j];
  const double twice = r->added && (dtype == ATTUNE_F16 || dtype == ATTUNE_BF16) ? u : 0.0;
  const size_t first = (size_t)((g->stride_d * b + g->ldd * j) * r->parts), at = (size_t)((b * g->n + j) * rows);
  double worst = 0.0;
  for (int64_t i = 0; i < rows_d; i++) {
    double added = 0.0;
    const double addend = addend_of(c, at, i, &added);
    const double product = scaled(c, at, i), expected = product + addend,
                 value = at_reference_value(c->output, dtype, first + (size_t)i);
    const double magnitude = r->row_norms[b * g->m + i / r->parts] * column + added;
    if (r->epilogue) {
      const double here = compare_epilogue(c, b, i, j, expected, twice * fabs(product) + r->gamma * magnitude, value);
      if (here > worst) worst = here;
      continue;
    }
    const double fraction =
        fabs(value - expected) / (u * fabs(expected) + twice * fabs(product) + r->gamma * magnitude + tiny);
    if (!(fraction <= worst)) worst = isnan(fraction) ? INFINITY : fraction;
  }
  return worst;
}

static bool poisoned(const unsigned char *bytes, size_t count, unsigned char poison) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != poison) return false;
  return true;
}

/* An in-place output was not poisoned: its gaps are compared by their hash. */
static bool gap_untouched(const comparison *c, int64_t b, int64_t j) {
  size_t bytes = 0;
  const unsigned char *gap = at_reference_gap(&c->r->g, c->output, b, j, &bytes);
  if (c->r->epilogue && !at_epilogue_gaps_untouched(c->r, c->outputs, b, j)) return false;
  return c->r->g.c == AT_C_INPLACE || poisoned(gap, bytes, c->poison);
}

static void compare_share(void *arg, const at_team *team) {
  comparison *c = arg;
  const int64_t columns = at_gemm_cols_d(&c->r->g);
  double worst = 0.0;
  for (int64_t column = team->rank; column < columns * c->r->g.batch; column += team->size) {
    if (c->until_ns != AT_NO_LIMIT && at_now_ns() >= c->until_ns) break;
    const int64_t b = column / columns, j = column % columns;
    const double here = !gap_untouched(c, b, j) ? INFINITY
                        : c->r->scaled ? at_reference_scaled_column(c->r, c->s, c->output, b, j, c->amax[team->rank])
                                       : compare_column(c, b, j);
    if (here > worst) worst = here;
  }
  c->worst[team->rank] = worst;
}

/* The error of amax_d as a fraction of what is allowed; 0: there is none. */
static double compare_amax(const comparison *c, const at_outputs *outputs, int threads) {
  int places[AT_GEMM_BUFFERS];
  double expected = 0.0, allowed = 0.0;
  if (!c->r->scaled || !c->r->asked.scaling.amax_d) return 0.0;
  at_gemm_buffer_places(&c->r->asked, places);
  const double amax = (double)*(const float *)outputs->bytes[places[AT_GEMM_AMAX_D]];
  for (int i = 0; i < threads; i++) {
    expected = fmax(expected, c->amax[i][0]);
    allowed = fmax(allowed, c->amax[i][1]);
  }
  const double fraction = fabs(amax - expected) / (allowed + 0x1p-23 * expected + 0x1p-149);
  return isnan(fraction) ? INFINITY : fraction;
}

attune_status at_gemm_reference_compare(void *reference, const double *scalars, const at_outputs *outputs,
                                        double *max_error) {
  comparison c = {
      .r = reference, .outputs = outputs, .output = outputs->bytes[AT_GEMM_D], .poison = outputs->poison[AT_GEMM_D]};
  const at_gemm *asked = c.r->scaled ? &c.r->asked : &c.r->g;
  c.s = at_gemm_scalars_rounded(asked, at_gemm_scalars_of(asked, scalars));
  if (c.r->g.c == AT_C_INPLACE && at_reference_gaps(&c.r->g, c.output) != c.r->gaps) {
    *max_error = INFINITY;
    return ATTUNE_OK;
  }
  const int64_t elements = c.r->g.m * c.r->g.n * c.r->g.batch;
  const int threads = elements > 65536 ? (at_cpu_count() < MOST_THREADS ? at_cpu_count() : MOST_THREADS) : 1;
  c.until_ns = at_limit_of();
  at_parallel(threads, compare_share, &c);
  const attune_status status = at_limit_look(); /* else all columns were compared */
  if (status != ATTUNE_OK) return status;
  *max_error = c.r->epilogue ? at_epilogue_compare_vector(c.r, outputs) : compare_amax(&c, outputs, threads);
  for (int i = 0; i < threads; i++)
    if (c.worst[i] > *max_error) *max_error = c.worst[i];
  return ATTUNE_OK;
}
