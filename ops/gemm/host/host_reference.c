/* SPDX-License-Identifier: Apache-2.0
 * host_reference.c: GEMM by plain loops, every dtype and every problem: the oracle, and the fallback listed last. */
#include "ops/gemm/host/host_reference.h"

#include "src/base/half.h"
#include "src/host/host.h"
#include "tuning/op/registry.h"

static double load(const void *p, int64_t at, uint8_t dtype) {
  switch (dtype) {
  case ATTUNE_F64: return ((const double *)p)[at];
  case ATTUNE_F32: return (double)((const float *)p)[at];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)p)[at]);
  default: return (double)at_bf16_to_f32(((const uint16_t *)p)[at]);
  }
}

static void store(void *p, int64_t at, uint8_t dtype, double x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)p)[at] = x; break;
  case ATTUNE_F32: ((float *)p)[at] = (float)x; break;
  case ATTUNE_F16: ((uint16_t *)p)[at] = at_f64_to_f16(x); break;
  default: ((uint16_t *)p)[at] = at_f64_to_bf16(x); break;
  }
}

/* A complex product, and the scalars, part by part. */
typedef struct complex_number {
  double re, im;
} complex_number;

static complex_number load_complex(const void *p, int64_t at, uint8_t dtype, bool conjugate) {
  const uint8_t part = (uint8_t)at_gemm_part(dtype);
  const double im = load(p, 2 * at + 1, part);
  return (complex_number){load(p, 2 * at, part), conjugate ? -im : im};
}

static complex_number times(complex_number x, complex_number y) {
  return (complex_number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* x times z; a real x leaves what is not finite in its part. */
static complex_number scaled(complex_number x, complex_number z) {
  return x.im == 0.0 ? (complex_number){x.re * z.re, x.re * z.im} : times(x, z);
}

static void complex_element(const at_gemm *g, const at_gemm_operands *o, const at_gemm_scalars *s, int64_t batch,
                            int64_t i, int64_t j) {
  const uint8_t part = (uint8_t)at_gemm_part(g->dtype);
  complex_number sum = {0.0, 0.0};
  for (int64_t k = 0; k < g->k; k++) {
    const complex_number x = load_complex(o->a, batch * g->stride_a + (g->trans_a ? i * g->lda + k : i + k * g->lda),
                                          g->dtype, g->trans_a == ATTUNE_C);
    const complex_number y = load_complex(o->b, batch * g->stride_b + (g->trans_b ? j + k * g->ldb : k + j * g->ldb),
                                          g->dtype, g->trans_b == ATTUNE_C);
    const complex_number product = times(x, y);
    sum.re += product.re;
    sum.im += product.im;
  }
  complex_number value = scaled((complex_number){s->alpha, s->alpha_imag}, sum);
  if (s->beta != 0.0 || s->beta_imag != 0.0) {
    const complex_number c = load_complex(o->c, batch * g->stride_c + j * g->ldc + i, g->dtype, false),
                         added = scaled((complex_number){s->beta, s->beta_imag}, c);
    value.re += added.re;
    value.im += added.im;
  }
  store(o->d, 2 * (batch * g->stride_d + j * g->ldd + i), part, value.re);
  store(o->d, 2 * (batch * g->stride_d + j * g->ldd + i) + 1, part, value.im);
}

static void complex_plain(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i, int64_t m, int64_t j,
                          int64_t n) {
  at_gemm_scalars s = at_gemm_scalars_rounded(
      g, (at_gemm_scalars){.alpha = o->alpha, .alpha_imag = o->alpha_imag, .beta = o->beta, .beta_imag = o->beta_imag});
  if (g->c == AT_C_NONE) s.beta = s.beta_imag = 0.0;
  for (int64_t column = j; column < j + n; column++)
    for (int64_t row = i; row < i + m; row++) complex_element(g, o, &s, batch, row, column);
}

/* The scalars have the precision of the accumulation type that the contract names. */
static double scalar(double x, uint8_t dtype) {
  return dtype == ATTUNE_F64 ? x : (double)(float)x;
}

#define ROWS 256 /* of sums kept at once, on the stack */

/* sums[i] = op(A)(first + i, :) op(B)(:, j); the inner loop runs along A's memory. */
static void sum_rows(double *sums, const at_gemm *g, const void *a, int64_t a_at, const void *b, int64_t b_at,
                     int64_t first, int64_t rows, int64_t j) {
  int64_t b_k = g->trans_b ? g->ldb : 1, b_first = b_at + (g->trans_b ? j : j * g->ldb);
  for (int64_t i = 0; i < rows; i++) sums[i] = 0.0;
  if (g->trans_a) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t k = 0; k < g->k; k++)
        sums[i] += load(a, a_at + (first + i) * g->lda + k, g->dtype) * load(b, b_first + k * b_k, g->dtype);
    return;
  }
  for (int64_t k = 0; k < g->k; k++) {
    double y = load(b, b_first + k * b_k, g->dtype);
    int64_t at = a_at + k * g->lda + first;
    for (int64_t i = 0; i < rows; i++) sums[i] += load(a, at + i, g->dtype) * y;
  }
}

void at_gemm_plain(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i, int64_t m, int64_t j,
                   int64_t n) {
  if (at_gemm_complex(g->dtype)) {
    complex_plain(g, o, batch, i, m, j, n);
    return;
  }
  double sums[ROWS];
  double alpha = scalar(o->alpha, g->dtype), beta = g->c == AT_C_NONE ? 0.0 : scalar(o->beta, g->dtype);
  for (int64_t column = j; column < j + n; column++)
    for (int64_t row = i; row < i + m; row += ROWS) {
      int64_t rows = i + m - row < ROWS ? i + m - row : ROWS;
      sum_rows(sums, g, o->a, batch * g->stride_a, o->b, batch * g->stride_b, row, rows, column);
      for (int64_t r = 0; r < rows; r++) {
        double x = alpha * sums[r];
        if (beta != 0.0) x += beta * load(o->c, batch * g->stride_c + column * g->ldc + row + r, g->dtype_out);
        store(o->d, batch * g->stride_d + column * g->ldd + row + r, g->dtype_out, x);
      }
    }
}

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = (const work *)args;
  const at_gemm *g = at_gemm_of(w->plan->problem);
  for (int64_t batch = 0; batch < g->batch; batch++) at_gemm_plain(g, &w->operands, batch, 0, g->m, 0, g->n);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && at_gemm_plain_product(at_gemm_of(problem));
}

static attune_status prepare(at_plan *plan) {
  return at_configuration_check_none(plan);
}

const at_implementation at_gemm_host_reference = {
    .name = "host_reference",
    .version = 1,
    .backend = "host",
    .fallback = true,
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .launch = launch,
};
