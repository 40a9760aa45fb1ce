/* SPDX-License-Identifier: Apache-2.0
 * gemm_oracle.h: one GEMM case as memory to run it on, and the right answer by loops that share no code with the
 * library: conversions of halves, layouts, strides and tolerances are written a second time here. Include after
 * cmocka.h. */
#ifndef AT_TEST_GEMM_ORACLE_H
#define AT_TEST_GEMM_ORACLE_H

#include "tests/support/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/splitmix64.h"
#include "tests/ops/gemm/gemm_cases.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORACLE_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ORACLE_ADDRESS_SANITIZER 1
#endif
#ifdef ORACLE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

enum { ORACLE_GUARD = 256 };

/* IEEE formats of 16 bits: `mantissa` stored bits, `bias`. */
static inline double oracle_half_value(unsigned word, int mantissa, int bias) {
  const int exponent = (int)(word & 0x7fff) >> mantissa, fraction = (int)(word & ((1u << mantissa) - 1));
  double value;
  if (exponent == 2 * bias + 1)
    value = fraction ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, 1 - bias - mantissa);
  else
    value = ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return word & 0x8000 ? -value : value;
}

static inline uint16_t oracle_half_word(double x, int mantissa, int bias) {
  const unsigned sign = signbit(x) ? 0x8000u : 0u, infinity = (2u * (unsigned)bias + 1u) << mantissa;
  if (isnan(x)) return (uint16_t)(sign | infinity | 1u << (mantissa - 1));
  if (isinf(x)) return (uint16_t)(sign | infinity);
  if (x == 0.0) return (uint16_t)sign;
  int exponent = 0;
  frexp(fabs(x), &exponent); /* |x| = f 2^exponent, f in [0.5, 1) */
  if (exponent < 2 - bias) exponent = 2 - bias;
  const double units = nearbyint(ldexp(fabs(x), mantissa + 1 - exponent)); /* of 2^(exponent - 1 - mantissa), to even */
  const unsigned word = (unsigned)units + ((unsigned)(exponent - 2 + bias) << mantissa);
  return (uint16_t)(sign | (word > infinity ? infinity : word));
}

static inline double oracle_load(const void *data, attune_dtype dtype, size_t i) {
  if (dtype == ATTUNE_F64) return ((const double *)data)[i];
  if (dtype == ATTUNE_F32) return (double)((const float *)data)[i];
  return dtype == ATTUNE_F16 ? oracle_half_value(((const uint16_t *)data)[i], 10, 15)
                             : oracle_half_value(((const uint16_t *)data)[i], 7, 127);
}

static inline void oracle_store(void *data, attune_dtype dtype, size_t i, double x) {
  if (dtype == ATTUNE_F64)
    ((double *)data)[i] = x;
  else if (dtype == ATTUNE_F32)
    ((float *)data)[i] = (float)x;
  else
    ((uint16_t *)data)[i] = dtype == ATTUNE_F16 ? oracle_half_word(x, 10, 15) : oracle_half_word(x, 7, 127);
}

/* A complex number is two of these. */
static inline attune_dtype oracle_part(attune_dtype dtype) {
  return dtype == ATTUNE_C64 ? ATTUNE_F32 : dtype == ATTUNE_C128 ? ATTUNE_F64 : dtype;
}

/* A matrix as stored. */
typedef struct oracle_matrix {
  attune_dtype dtype;
  int parts; /* 2: complex */
  bool row_major;
  int64_t rows, cols, ld, stride, batch;
} oracle_matrix;

static inline oracle_matrix oracle_matrix_of(const attune_gemm_problem *p, attune_dtype dtype, int64_t rows,
                                             int64_t cols, int64_t ld, int64_t stride) {
  const int64_t inner = p->layout == ATTUNE_ROW_MAJOR ? cols : rows,
                outer = p->layout == ATTUNE_ROW_MAJOR ? rows : cols;
  if (ld == 0) ld = inner > 1 ? inner : 1;
  if (stride == 0) stride = ld * outer;
  if (stride == ATTUNE_BROADCAST) stride = 0;
  return (oracle_matrix){
      dtype,           1 + (oracle_part(dtype) != dtype), p->layout == ATTUNE_ROW_MAJOR, rows, cols, ld, stride,
      at_gemm_batch(p)};
}

static inline size_t oracle_at(const oracle_matrix *x, int64_t b, int64_t i, int64_t j) {
  return (size_t)(b * x->stride + (x->row_major ? i * x->ld + j : i + j * x->ld));
}

/* Elements from the first to the last one; 0 for a matrix of nothing. */
static inline size_t oracle_extent(const oracle_matrix *x) {
  return x->rows && x->cols && x->batch ? oracle_at(x, x->batch - 1, x->rows - 1, x->cols - 1) + 1 : 0;
}

/* One buffer between guards; all bytes outside the matrix are 0xFF. */
typedef struct oracle_block {
  unsigned char *raw, *before; /* now, and as it was when the call began */
  size_t bytes, first;         /* of raw; where the matrix starts */
} oracle_block;

enum { ORACLE_A, ORACLE_B, ORACLE_C, ORACLE_D, ORACLE_BLOCKS };

typedef struct oracle {
  at_gemm_case c;
  oracle_matrix matrix[ORACLE_BLOCKS];
  oracle_block block[ORACLE_BLOCKS];
  double *expected, *allowed; /* by (batch, column, row, part) of D */
  double *product_rounding;   /* error of rounding alpha A B to D's type before C is added */
  bool rounds_product;        /* ... and may it? */
} oracle;

static inline double oracle_normal(uint64_t *state) {
  const double u = at_splitmix64_uniform(state), v = at_splitmix64_uniform(state);
  return sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
}

static inline double oracle_draw(uint64_t *state, at_gemm_data data, attune_dtype dtype) {
  if (data == AT_DATA_UNIFORM) return at_splitmix64_uniform(state);
  if (data == AT_DATA_NORMAL) return oracle_normal(state);
  if (data == AT_DATA_WIDE) { /* no product overflows the narrowest output */
    const double exponent =
        dtype == ATTUNE_F16 ? -10.0 + 12.0 * at_splitmix64_uniform(state) : -20.0 + 40.0 * at_splitmix64_uniform(state);
    return (at_splitmix64_uniform(state) < 0.5 ? -1.0 : 1.0) * exp2(exponent);
  }
  const double dice = at_splitmix64_uniform(state);
  if (dice < 0.002) return (double)NAN;
  if (dice < 0.006) return dice < 0.004 ? (double)INFINITY : -(double)INFINITY;
  return dice < 0.05 ? 0.0 : oracle_normal(state);
}

static inline void *oracle_pointer(const oracle *o, int which) {
  return o->block[which].raw + o->block[which].first;
}

/* Blocks start at multiples of 256, as device memory does; the matrix behind the guard is aligned to the case's class,
 * not better. */
static inline void oracle_block_open(oracle *o, int which, bool filled, uint64_t *state) {
  const oracle_matrix *x = &o->matrix[which];
  oracle_block *block = &o->block[which];
  const size_t extent = oracle_extent(x) * attune_dtype_size(x->dtype);
  block->first = ORACLE_GUARD + (size_t)o->c.alignment;
  block->bytes = (block->first + extent + ORACLE_GUARD + 255) / 256 * 256;
  block->raw = aligned_alloc(256, block->bytes);
  block->before = malloc(block->bytes);
  assert_non_null(block->raw);
  assert_non_null(block->before);
  memset(block->raw, 0xFF, block->bytes);
  const int64_t batch = x->stride ? x->batch : x->batch > 0;
  for (int64_t b = 0; filled && b < batch; b++)
    for (int64_t j = 0; j < x->cols; j++)
      for (int64_t i = 0; i < x->rows * x->parts; i++)
        oracle_store(block->raw + block->first, oracle_part(x->dtype),
                     oracle_at(x, b, i / x->parts, j) * (size_t)x->parts + (size_t)(i % x->parts),
                     oracle_draw(state, o->c.data, x->dtype));
  memcpy(block->before, block->raw, block->bytes);
}

static inline double oracle_gamma(const attune_gemm_problem *p) {
  const double k = (double)p->k * (oracle_part(p->dtype) == p->dtype ? 1.0 : 2.0),
               chain = fmax(8.0, fmax(2.0 * sqrt(k), k / 64.0));
  const bool reduced = p->contract.accuracy == ATTUNE_REDUCED;
  if (oracle_part(p->dtype) == ATTUNE_F64) return chain * 0x1p-53;
  if (oracle_part(p->dtype) == ATTUNE_F32) return reduced ? 0x1p-10 + k / 8.0 * 0x1p-24 : chain * 0x1p-24;
  return fmax(8.0, k / 16.0) * 0x1p-23 + (reduced ? (p->dtype == ATTUNE_F16 ? 0x1p-9 : 0x1p-6) : 0.0);
}

/* One element of D: products are exact in double for all but f64, which takes long double. */
static inline void oracle_element(oracle *o, int64_t b, int64_t i, int64_t j, const double *a, const double *bt,
                                  size_t at) {
  const attune_gemm_problem *p = &o->c.problem;
  const attune_dtype out = o->matrix[ORACLE_D].dtype;
  const bool products = o->c.alpha != 0.0 && p->k > 0;
  const double unit = out == ATTUNE_F64 ? 0x1p-53 : out == ATTUNE_F32 ? 0x1p-24 : out == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
  const double tiny = out == ATTUNE_F64 ? 0.0 : out == ATTUNE_F16 ? 0x1p-24 : 0x1p-126;
  long double result = 0.0L;
  double magnitude = 0.0, sum = 0.0;
  if (products && p->dtype == ATTUNE_F64) {
    for (int64_t k = 0; k < p->k; k++) result += (long double)a[i * p->k + k] * (long double)bt[j * p->k + k];
  } else if (products) {
    for (int64_t k = 0; k < p->k; k++) sum += a[i * p->k + k] * bt[j * p->k + k];
    result = sum;
  }
  for (int64_t k = 0; k < p->k && products; k++) magnitude += fabs(a[i * p->k + k] * bt[j * p->k + k]);
  if (products) result *= (long double)o->c.alpha;
  magnitude *= fabs(o->c.alpha);
  o->product_rounding[at] = unit * fabs((double)result);
  if (o->c.beta != 0.0) {
    const int from = o->c.c == AT_C_INPLACE ? ORACLE_D : ORACLE_C;
    const double c =
        oracle_load(o->block[from].before + o->block[from].first, out, oracle_at(&o->matrix[from], b, i, j));
    result += (long double)o->c.beta * (long double)c;
    magnitude += fabs(o->c.beta * c);
  }
  o->expected[at] = (double)result;
  o->allowed[at] = unit * fabs((double)result) + oracle_gamma(p) * magnitude + tiny;
}

static inline void oracle_times(long double out[2], const long double x[2], const long double y[2]) {
  const long double re = x[0] * y[0] - x[1] * y[1];
  out[1] = x[0] * y[1] + x[1] * y[0];
  out[0] = re;
}

static inline long double oracle_size(const long double x[2]) {
  return hypotl(x[0], x[1]);
}

/* As oracle_element, of the two parts at `at`: a and bt hold pairs. A real scalar does not spread what is not
 * finite. */
static inline void oracle_complex_element(oracle *o, int64_t b, int64_t i, int64_t j, const double *a, const double *bt,
                                          size_t at) {
  const attune_gemm_problem *p = &o->c.problem;
  const attune_dtype out = oracle_part(o->matrix[ORACLE_D].dtype);
  const double unit = out == ATTUNE_F64 ? 0x1p-53 : 0x1p-24, tiny = out == ATTUNE_F64 ? 0.0 : 0x1p-126;
  const long double alpha[2] = {o->c.alpha, o->c.alpha_imag}, beta[2] = {o->c.beta, o->c.beta_imag};
  const bool products = (alpha[0] != 0.0L || alpha[1] != 0.0L) && p->k > 0;
  long double sum[2] = {0.0L, 0.0L}, magnitude = 0.0L, product[2];
  for (int64_t k = 0; k < p->k && products; k++) {
    const double *u = &a[2 * (i * p->k + k)], *v = &bt[2 * (j * p->k + k)];
    const long double x[2] = {u[0], u[1]}, y[2] = {v[0], v[1]};
    oracle_times(product, x, y);
    sum[0] += product[0], sum[1] += product[1];
    magnitude += oracle_size(x) * oracle_size(y);
  }
  if (products) oracle_times(product, alpha, sum), memcpy(sum, product, sizeof sum);
  magnitude *= oracle_size(alpha);
  if (beta[0] != 0.0L || beta[1] != 0.0L) {
    const int from = o->c.c == AT_C_INPLACE ? ORACLE_D : ORACLE_C;
    const unsigned char *was = o->block[from].before + o->block[from].first;
    const size_t c_at = 2 * oracle_at(&o->matrix[from], b, i, j);
    const long double c[2] = {oracle_load(was, out, c_at), oracle_load(was, out, c_at + 1)};
    oracle_times(product, beta, c);
    sum[0] += product[0], sum[1] += product[1];
    magnitude += oracle_size(beta) * oracle_size(c);
  }
  for (int part = 0; part < 2; part++) {
    o->expected[at + (size_t)part] = (double)sum[part];
    o->allowed[at + (size_t)part] = unit * fabs((double)sum[part]) + oracle_gamma(p) * (double)magnitude + tiny;
  }
}

/* op(A) by rows, op(B) by columns, of one matrix of the batch; of complex ones pairs. */
static inline void oracle_gather(const oracle *o, int64_t b, double *a, double *bt) {
  const attune_gemm_problem *p = &o->c.problem;
  const oracle_matrix *ma = &o->matrix[ORACLE_A], *mb = &o->matrix[ORACLE_B];
  const int parts = ma->parts;
  for (int64_t k = 0; k < p->k; k++)
    for (int part = 0; part < parts; part++) {
      for (int64_t i = 0; i < p->m; i++) {
        const size_t at = p->trans_a ? oracle_at(ma, b, k, i) : oracle_at(ma, b, i, k);
        const double x =
            oracle_load(oracle_pointer(o, ORACLE_A), oracle_part(ma->dtype), at * (size_t)parts + (size_t)part);
        a[(i * p->k + k) * parts + part] = part && p->trans_a == ATTUNE_C ? -x : x;
      }
      for (int64_t j = 0; j < p->n; j++) {
        const size_t at = p->trans_b ? oracle_at(mb, b, j, k) : oracle_at(mb, b, k, j);
        const double x =
            oracle_load(oracle_pointer(o, ORACLE_B), oracle_part(mb->dtype), at * (size_t)parts + (size_t)part);
        bt[(j * p->k + k) * parts + part] = part && p->trans_b == ATTUNE_C ? -x : x;
      }
    }
}

static inline void oracle_expect(oracle *o) {
  const attune_gemm_problem *p = &o->c.problem;
  const int64_t parts = o->matrix[ORACLE_D].parts;
  const size_t count = (size_t)(p->m * p->n * at_gemm_batch(p) * parts);
  double *a = calloc((size_t)(p->m * p->k * parts) + 1, sizeof *a),
         *bt = calloc((size_t)(p->n * p->k * parts) + 1, sizeof *bt);
  o->expected = calloc(count + 1, sizeof *o->expected);
  o->allowed = calloc(count + 1, sizeof *o->allowed);
  o->product_rounding = calloc(count + 1, sizeof *o->product_rounding);
  assert_true(a && bt && o->expected && o->allowed && o->product_rounding);
  for (int64_t b = 0; b < at_gemm_batch(p); b++) {
    oracle_gather(o, b, a, bt);
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++)
        (parts == 2 ? oracle_complex_element : oracle_element)(o, b, i, j, a, bt,
                                                               (size_t)((b * p->n + j) * p->m + i) * (size_t)parts);
  }
  free(a);
  free(bt);
}

/* Memory and right answer of a case. What must not be read holds NaN: A and B with alpha = 0, C with beta = 0, every
 * gap and guard. */
static inline void oracle_open(oracle *o, const at_gemm_case *c) {
  memset(o, 0, sizeof *o);
  o->c = *c;
  const attune_gemm_problem *p = &o->c.problem;
  const attune_dtype out = p->dtype_out ? p->dtype_out : p->dtype;
  uint64_t state = c->seed;
  o->matrix[ORACLE_A] =
      oracle_matrix_of(p, p->dtype, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda, p->stride_a);
  o->matrix[ORACLE_B] =
      oracle_matrix_of(p, p->dtype, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb, p->stride_b);
  o->matrix[ORACLE_C] = oracle_matrix_of(p, out, p->m, p->n, p->ldc, p->stride_c);
  o->matrix[ORACLE_D] = oracle_matrix_of(p, out, p->m, p->n, p->ldd, p->stride_d);
  const bool products = c->alpha != 0.0 || c->alpha_imag != 0.0, reads_c = c->beta != 0.0 || c->beta_imag != 0.0;
  oracle_block_open(o, ORACLE_A, products, &state);
  oracle_block_open(o, ORACLE_B, products, &state);
  oracle_block_open(o, ORACLE_C, reads_c && c->c == AT_C_SEPARATE, &state);
  oracle_block_open(o, ORACLE_D, reads_c && c->c == AT_C_INPLACE, &state);
  oracle_expect(o);
}

/* The right answer again, for inputs that a test has changed. */
static inline void oracle_expect_again(oracle *o) {
  free(o->expected);
  free(o->allowed);
  free(o->product_rounding);
  oracle_expect(o);
}

/* Under AddressSanitizer, until the check: who reads or writes beyond a matrix of the host is found where it happens,
 * also if that changes nothing. */
static inline void oracle_forbid(const oracle *o) {
#ifdef ORACLE_ADDRESS_SANITIZER
  for (int i = 0; i < ORACLE_BLOCKS; i++) {
    const oracle_block *block = &o->block[i];
    const size_t end = block->first + oracle_extent(&o->matrix[i]) * attune_dtype_size(o->matrix[i].dtype);
    __asan_poison_memory_region(block->raw, block->first);
    __asan_poison_memory_region(block->raw + end, block->bytes - end);
  }
#else
  (void)o;
#endif
}

static inline void oracle_allow(const oracle *o) {
#ifdef ORACLE_ADDRESS_SANITIZER
  for (int i = 0; i < ORACLE_BLOCKS; i++) __asan_unpoison_memory_region(o->block[i].raw, o->block[i].bytes);
#else
  (void)o;
#endif
}

static inline void oracle_close(oracle *o) {
  for (int i = 0; i < ORACLE_BLOCKS; i++) {
    free(o->block[i].raw);
    free(o->block[i].before);
  }
  free(o->expected);
  free(o->allowed);
  free(o->product_rounding);
}

/* All as before the call. */
static inline void oracle_reset(oracle *o) {
  for (int i = 0; i < ORACLE_BLOCKS; i++) memcpy(o->block[i].raw, o->block[i].before, o->block[i].bytes);
}

static inline attune_gemm_operands oracle_operands(const oracle *o) {
  attune_gemm_operands operands = {.alpha = o->c.alpha,
                                   .beta = o->c.beta,
                                   .a = oracle_pointer(o, ORACLE_A),
                                   .b = oracle_pointer(o, ORACLE_B),
                                   .d = oracle_pointer(o, ORACLE_D),
                                   .alpha_imag = o->c.alpha_imag,
                                   .beta_imag = o->c.beta_imag};
  if (o->c.c != AT_C_NONE) operands.c = oracle_pointer(o, o->c.c == AT_C_INPLACE ? ORACLE_D : ORACLE_C);
  if (o->c.alpha == 0.0 && o->c.alpha_imag == 0.0 && o->c.seed % 2)
    operands.a = operands.b = NULL; /* may be: they are not read */
  return operands;
}

static inline bool oracle_right(double value, double expected, double allowed) {
  if (isnan(expected)) return isnan(value);
  if (isinf(expected)) return value == expected;
  return fabs(value - expected) <= allowed;
}

/* A complex element that is not finite may be so in either part, or in both. */
static inline bool oracle_complex_right(const double value[2], const double *expected, const double *allowed) {
  if (isfinite(expected[0]) && isfinite(expected[1]))
    return oracle_right(value[0], expected[0], allowed[0]) && oracle_right(value[1], expected[1], allowed[1]);
  return !isfinite(value[0]) || !isfinite(value[1]);
}

static inline bool oracle_element_right(const oracle *o, const unsigned char *output, size_t element, size_t at) {
  const oracle_matrix *d = &o->matrix[ORACLE_D];
  if (d->parts == 1)
    return oracle_right(oracle_load(output, d->dtype, element), o->expected[at],
                        o->allowed[at] + (o->rounds_product ? o->product_rounding[at] : 0.0));
  const double value[2] = {oracle_load(output, oracle_part(d->dtype), 2 * element),
                           oracle_load(output, oracle_part(d->dtype), 2 * element + 1)};
  return oracle_complex_right(value, &o->expected[2 * at], &o->allowed[2 * at]);
}

/* Every element right, nothing else written. Destroys D. */
static inline void oracle_check(oracle *o, const char *who) {
  const attune_gemm_problem *p = &o->c.problem;
  const oracle_matrix *d = &o->matrix[ORACLE_D];
  unsigned char *output = oracle_pointer(o, ORACLE_D);
  oracle_allow(o);
  for (int64_t b = 0; b < at_gemm_batch(p); b++)
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++) {
        const size_t at = (size_t)((b * p->n + j) * p->m + i), size = attune_dtype_size(d->dtype),
                     element = oracle_at(d, b, i, j), first = at * (size_t)d->parts;
        if (!oracle_element_right(o, output, element, at))
          fail_msg("%s, %s: D(%d,%d) of matrix %d is %.9g; should be %.9g within %.3g (alpha %g, beta %g, data %d)",
                   o->c.name, who, (int)i, (int)j, (int)b,
                   oracle_load(output, oracle_part(d->dtype), element * (size_t)d->parts), o->expected[first],
                   o->allowed[first], o->c.alpha, o->c.beta, (int)o->c.data);
        memset(output + element * size, 0xFF, size);
      }
  for (size_t i = 0; i < o->block[ORACLE_D].bytes; i++)
    if (o->block[ORACLE_D].raw[i] != 0xFF)
      fail_msg("%s, %s: wrote outside D, at byte %zd", o->c.name, who, (ssize_t)i - (ssize_t)o->block[ORACLE_D].first);
  for (int i = ORACLE_A; i <= ORACLE_C; i++)
    if (memcmp(o->block[i].raw, o->block[i].before, o->block[i].bytes) != 0)
      fail_msg("%s, %s: changed %c", o->c.name, who, 'A' + i);
}

#endif
