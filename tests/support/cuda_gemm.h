/* SPDX-License-Identifier: Apache-2.0
 * cuda_gemm.h: one GEMM on the GPU for tests: operands with poisoned gaps and outputs, and a reference on the CPU. */
#ifndef TESTS_CUDA_GEMM_H
#define TESTS_CUDA_GEMM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/problem/problem.h"

/* Problem of a test; zero fields mean the plain case. */
typedef struct shape {
  attune_dtype dtype, dtype_out;
  int ta, tb;
  int64_t m, n, k, batch;
  int64_t gap;  /* added to every leading dimension */
  int64_t step; /* added to every batch stride */
  int shift;    /* elements by which every pointer is off its alignment */
  at_gemm_c c;
  bool share_a, share_b, share_c; /* one matrix for the whole batch */
  double alpha, beta;
  attune_accuracy accuracy;
  int data; /* DATA_... */
  double alpha_imag, beta_imag;
  bool apart; /* matrices of a batch begin at multiples of AT_ALIGNMENT from the first */
} shape;

/* Values that f32 and f64 are drawn from; halves too, except that DATA_PLAIN gives a few exact ones. */
enum { DATA_PLAIN, DATA_NORMAL, DATA_UNIFORM, DATA_WIDE, DATA_KINDS };

/* One operand: bytes on the host and on the device, both with `shift` elements before the first matrix. */
typedef struct operand {
  unsigned char *host;
  unsigned char *device;
  size_t bytes, offset, element;
  attune_dtype part; /* of an element: itself, or of a complex one its two parts */
  int parts;
  int64_t rows, cols, ld, stride;
} operand;

typedef struct gemm_case {
  shape s;
  at_gemm g;
  operand a, b, c, d;
  long double *expected, *weight; /* per part of D: the result, and |alpha||A||B| + |beta C| */
  at_gemm_operands operands;
  attune_stream *stream;
} gemm_case;

static inline double decode(attune_dtype dtype, const unsigned char *at) {
  uint16_t bits;
  uint32_t wide;
  float f;
  double d;
  switch (dtype) {
  case ATTUNE_F64: return memcpy(&d, at, 8), d;
  case ATTUNE_F32: return memcpy(&f, at, 4), (double)f;
  case ATTUNE_BF16:
    memcpy(&bits, at, 2);
    wide = (uint32_t)bits << 16;
    return memcpy(&f, &wide, 4), (double)f;
  default:
    memcpy(&bits, at, 2);
    if ((bits & 0x7c00) == 0x7c00) return bits & 0x3ff ? NAN : bits & 0x8000 ? -INFINITY : INFINITY;
    d = (bits & 0x7c00) ? ldexp(1024 + (bits & 0x3ff), (bits >> 10 & 31) - 25) : ldexp(bits & 0x3ff, -24);
    return bits & 0x8000 ? -d : d;
  }
}

/* Multiples of 1/16 up to 1 are exact; others are cut off: what counts is what is stored. NaN and infinities stay. */
static inline void encode(attune_dtype dtype, unsigned char *at, double value) {
  float f = (float)value;
  uint32_t wide;
  uint16_t bits;
  if (dtype == ATTUNE_F64) memcpy(at, &value, 8);
  if (dtype == ATTUNE_F32) memcpy(at, &f, 4);
  if (dtype == ATTUNE_F64 || dtype == ATTUNE_F32) return;
  memcpy(&wide, &f, 4);
  if (dtype == ATTUNE_BF16)
    bits = (uint16_t)(wide >> 16);
  else if (!isfinite(value))
    bits = (uint16_t)((wide >> 16 & 0x8000) | 0x7c00 | (isnan(value) ? 0x200 : 0));
  else
    bits = (uint16_t)((wide >> 16 & 0x8000) |
                      (fabs(value) < 0x1p-14 ? 0 : ((wide >> 23 & 255) - 112) << 10 | (wide >> 13 & 0x3ff)));
  memcpy(at, &bits, 2);
}

/* The thread's; never 0. */
static inline uint64_t *random_state(void) {
  static _Thread_local uint64_t state = 88172645463325252u;
  return &state;
}

static inline uint64_t random_bits(void) {
  uint64_t seed = *random_state();
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return *random_state() = seed;
}

static inline double random_value(attune_dtype dtype, int data) {
  const uint64_t seed = random_bits();
  if (data == DATA_UNIFORM) return (double)(seed >> 11) * 0x1p-53;
  if (data == DATA_NORMAL) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) sum += (double)(random_bits() >> 11) * 0x1p-53;
    return sum;
  }
  if (data == DATA_WIDE) return ldexp((double)(seed >> 11) * 0x1p-52 - 1.0, (int)(seed % 17) - 8);
  if (dtype == ATTUNE_F16 || dtype == ATTUNE_BF16) return (double)((int)(seed % 33) - 16) / 16.0;
  return (double)(seed >> 11) * 0x1p-52 - 1.0;
}

static inline unsigned char *element_at(const operand *o, int64_t batch, int64_t row, int64_t col) {
  return o->host + o->offset + (size_t)(batch * o->stride + col * o->ld + row) * o->element;
}

static inline unsigned char *part_at(const operand *o, int64_t batch, int64_t row, int64_t col, int which) {
  return element_at(o, batch, row, col) + (size_t)which * (o->element / (size_t)o->parts);
}

/* Everything is 0xff, a NaN in every type, but for the elements themselves when they are to have values. */
static inline bool make_operand(operand *o, const gemm_case *t, attune_dtype dtype, int64_t rows, int64_t cols,
                                int64_t ld, int64_t stride, bool values) {
  int64_t batch = t->g.batch, distinct = stride ? batch : 1;
  *o = (operand){.element = attune_dtype_size(dtype), .rows = rows, .cols = cols, .ld = ld, .stride = stride};
  o->part = at_gemm_part(dtype), o->parts = at_gemm_complex(dtype) ? 2 : 1;
  o->offset = (size_t)t->s.shift * o->element;
  o->bytes = o->offset + (size_t)((distinct - 1) * stride + ld * cols + 64) * o->element;
  o->host = malloc(o->bytes);
  if (!o->host || attune_alloc((void **)&o->device, t->stream, o->bytes) != ATTUNE_OK) return false;
  memset(o->host, 0xff, o->bytes);
  for (int64_t i = 0; values && i < distinct; i++)
    for (int64_t c = 0; c < cols; c++)
      for (int64_t r = 0; r < rows * o->parts; r++)
        encode(o->part, part_at(o, i, r / o->parts, c, (int)(r % o->parts)), random_value(o->part, t->s.data));
  return attune_copy(t->stream, o->device, o->host, o->bytes) == ATTUNE_OK;
}

/* From one matrix of `elements` elements to the next. */
static inline int64_t stride_of(const shape *s, int64_t elements, attune_dtype dtype) {
  const int64_t unit = s->apart ? AT_ALIGNMENT / (int64_t)attune_dtype_size(dtype) : 1;
  return (elements + s->step + unit - 1) / unit * unit;
}

static inline void set_problem(at_gemm *g, const shape *s) {
  attune_dtype out = s->dtype_out ? s->dtype_out : s->dtype;
  int64_t batch = s->batch ? s->batch : 1;
  *g = (at_gemm){.m = s->m, .n = s->n, .k = s->k, .batch = batch, .workspace_cap = ATTUNE_WORKSPACE_DEFAULT};
  g->dtype = (uint8_t)s->dtype, g->dtype_out = (uint8_t)out;
  g->trans_a = (uint8_t)s->ta, g->trans_b = (uint8_t)s->tb;
  g->accuracy = (uint8_t)s->accuracy, g->c = (uint8_t)s->c;
  g->lda = at_gemm_rows_a(g) + s->gap, g->ldb = at_gemm_rows_b(g) + s->gap, g->ldd = g->m + s->gap;
  if (s->c != AT_C_NONE) g->ldc = s->c == AT_C_SEPARATE ? g->ldd + s->gap : g->ldd;
  if (batch > 1) {
    g->stride_a = s->share_a ? 0 : stride_of(s, g->lda * at_gemm_cols_a(g), s->dtype);
    g->stride_b = s->share_b ? 0 : stride_of(s, g->ldb * at_gemm_cols_b(g), s->dtype);
    g->stride_d = stride_of(s, g->ldd * g->n, out);
    if (s->c == AT_C_SEPARATE) g->stride_c = s->share_c ? 0 : stride_of(s, g->ldc * g->n, out);
    if (s->c == AT_C_INPLACE) g->stride_c = g->stride_d;
  }
  uint64_t smallest =
      attune_dtype_size(s->dtype) < attune_dtype_size(out) ? attune_dtype_size(s->dtype) : attune_dtype_size(out);
  uint64_t bits = (uint64_t)s->shift * smallest | 128;
  g->alignment = (uint8_t)(bits & (~bits + 1));
}

static inline void expect_element(gemm_case *t, int64_t i, int64_t row, int64_t col) {
  const at_gemm *g = &t->g;
  long double sum = 0, size = 0;
  for (int64_t l = 0; l < g->k && t->s.alpha != 0.0; l++) {
    double a = decode(t->a.part, g->trans_a ? element_at(&t->a, i, l, row) : element_at(&t->a, i, row, l));
    double b = decode(t->b.part, g->trans_b ? element_at(&t->b, i, col, l) : element_at(&t->b, i, l, col));
    sum += (long double)a * b;
    size += fabsl((long double)a * b);
  }
  sum *= t->s.alpha, size *= fabs(t->s.alpha);
  if (t->s.beta != 0.0) {
    const operand *source = g->c == AT_C_SEPARATE ? &t->c : &t->d;
    long double c = t->s.beta * (long double)decode(source->part, element_at(source, i, row, col));
    sum += c, size += fabsl(c);
  }
  int64_t at = (i * g->n + col) * g->m + row;
  t->expected[at] = sum;
  t->weight[at] = size;
}

/* sum += x y, size += |x| |y| of complex numbers. */
static inline void add_product(long double sum[2], long double *size, const long double x[2], const long double y[2]) {
  sum[0] += x[0] * y[0] - x[1] * y[1];
  sum[1] += x[0] * y[1] + x[1] * y[0];
  *size += hypotl(x[0], x[1]) * hypotl(y[0], y[1]);
}

static inline void complex_at(long double out[2], const operand *o, int64_t i, int64_t row, int64_t col, int trans) {
  for (int p = 0; p < 2; p++) out[p] = decode(o->part, trans ? part_at(o, i, col, row, p) : part_at(o, i, row, col, p));
  if (trans == ATTUNE_C) out[1] = -out[1];
}

static inline void expect_complex(gemm_case *t, int64_t i, int64_t row, int64_t col) {
  const at_gemm *g = &t->g;
  const long double alpha[2] = {t->s.alpha, t->s.alpha_imag}, beta[2] = {t->s.beta, t->s.beta_imag};
  const int64_t at = 2 * ((i * g->n + col) * g->m + row);
  long double sum[2] = {0}, size = 0, all[2] = {0}, weight = 0, x[2], y[2];
  for (int64_t l = 0; l < g->k; l++) {
    complex_at(x, &t->a, i, row, l, g->trans_a);
    complex_at(y, &t->b, i, l, col, g->trans_b);
    add_product(sum, &size, x, y);
  }
  add_product(all, &weight, alpha, sum);
  weight = hypotl(alpha[0], alpha[1]) * size;
  if (beta[0] != 0.0L || beta[1] != 0.0L) {
    complex_at(x, g->c == AT_C_SEPARATE ? &t->c : &t->d, i, row, col, 0);
    add_product(all, &weight, beta, x);
  }
  memcpy(&t->expected[at], all, sizeof all);
  t->weight[at] = t->weight[at + 1] = weight;
}

static inline bool make_case(gemm_case *t, const shape *s, attune_stream *stream) {
  *t = (gemm_case){.s = *s, .stream = stream};
  set_problem(&t->g, s);
  const at_gemm *g = &t->g;
  attune_dtype out = (attune_dtype)g->dtype_out;
  if (!make_operand(&t->a, t, s->dtype, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, true)) return false;
  if (!make_operand(&t->b, t, s->dtype, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, true)) return false;
  if (!make_operand(&t->d, t, out, g->m, g->n, g->ldd, g->stride_d, g->c == AT_C_INPLACE)) return false;
  bool separate = g->c == AT_C_SEPARATE;
  if (separate && !make_operand(&t->c, t, out, g->m, g->n, g->ldc, g->stride_c, s->beta != 0.0 || s->beta_imag != 0.0))
    return false;
  size_t elements = (size_t)(g->m * g->n * g->batch * t->d.parts);
  t->expected = malloc(elements * sizeof *t->expected);
  t->weight = malloc(elements * sizeof *t->weight);
  if (!t->expected || !t->weight) return false;
  for (int64_t i = 0; i < g->batch; i++)
    for (int64_t c = 0; c < g->n; c++)
      for (int64_t r = 0; r < g->m; r++) (t->d.parts == 2 ? expect_complex : expect_element)(t, i, r, c);
  t->operands =
      (at_gemm_operands){.alpha = s->alpha, .beta = s->beta, .alpha_imag = s->alpha_imag, .beta_imag = s->beta_imag};
  t->operands.a = t->a.device + t->a.offset, t->operands.b = t->b.device + t->b.offset;
  t->operands.d = t->d.device + t->d.offset;
  t->operands.c = g->c == AT_C_NONE ? NULL : separate ? t->c.device + t->c.offset : t->operands.d;
  return true;
}

static inline void free_case(gemm_case *t) {
  operand *all[4] = {&t->a, &t->b, &t->c, &t->d};
  for (int i = 0; i < 4; i++) {
    free(all[i]->host);
    if (all[i]->device) (void)attune_free(all[i]->device, t->stream);
  }
  free(t->expected);
  free(t->weight);
}

/* D as it was before a call: poison, or C's values when C is in place. */
static inline bool reset_output(gemm_case *t) {
  return attune_copy(t->stream, t->d.device, t->d.host, t->d.bytes) == ATTUNE_OK;
}

/* Units in the last place of the output, and the error that the accumulation may add, as a fraction of |A||B|. */
static inline void tolerances(const at_gemm *g, double *unit, double *sum) {
  const attune_dtype in = at_gemm_part(g->dtype), out = at_gemm_part(g->dtype_out);
  double k = (double)g->k * (at_gemm_complex(g->dtype) ? 2.0 : 1.0), full = fmax(fmax(8.0, 2.0 * sqrt(k)), k / 64.0);
  *unit = out == ATTUNE_F64 ? 0x1p-53 : out == ATTUNE_F32 ? 0x1p-24 : out == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
  if (in == ATTUNE_F64)
    *sum = full * 0x1p-53;
  else if (in == ATTUNE_F32)
    *sum = g->accuracy == ATTUNE_REDUCED ? 0x1p-10 + k / 8.0 * 0x1p-24 : full * 0x1p-24;
  else
    *sum = fmax(8.0, k / 16.0) * 0x1p-23 + (g->accuracy == ATTUNE_REDUCED ? 8.0 * *unit : 0.0);
}

/* The largest error as a fraction of what is allowed; INFINITY for a NaN, or for a gap that was written. */
static inline double output_error(gemm_case *t) {
  operand got = t->d;
  double unit, sum, worst = 0.0;
  const double least = t->g.dtype_out == ATTUNE_F16 ? 0x1p-25 : 1e-300; /* half of a denormal */
  tolerances(&t->g, &unit, &sum);
  got.host = malloc(got.bytes);
  if (!got.host || attune_copy(t->stream, got.host, got.device, got.bytes) != ATTUNE_OK) worst = INFINITY;
  if (attune_stream_synchronize(t->stream) != ATTUNE_OK) worst = INFINITY;
  for (int64_t i = 0; i < t->g.batch && isfinite(worst); i++)
    for (int64_t c = 0; c < t->g.n; c++)
      for (int64_t r = 0; r < t->g.m * got.parts; r++) {
        int64_t at = (i * t->g.n + c) * t->g.m * got.parts + r;
        unsigned char *element = part_at(&got, i, r / got.parts, c, (int)(r % got.parts));
        double error = (double)fabsl(decode(got.part, element) - t->expected[at]);
        double allowed = unit * (double)fabsl(t->expected[at]) + sum * (double)t->weight[at] + least;
        if (isnan(error))
          worst = INFINITY;
        else
          worst = fmax(worst, error / allowed);
        memset(element, 0xff, got.element / (size_t)got.parts);
      }
  for (size_t i = 0; i < got.bytes && isfinite(worst); i++)
    if (got.host[i] != 0xff) worst = INFINITY;
  free(got.host);
  return worst;
}

#endif
