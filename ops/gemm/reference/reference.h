/* SPDX-License-Identifier: Apache-2.0
 * reference.h: private to reference*.c: the trusted result of one GEMM. */
#ifndef AT_GEMM_REFERENCE_H
#define AT_GEMM_REFERENCE_H

#include "ops/gemm/problem/problem.h"
#include "ops/gemm/reference/ieee_specials.h"
#include "src/base/backend.h"
#include "src/base/float8.h"

#include <math.h>

/* A complex product is a real one of twice the rows and depth: a complex row of A becomes (re, -im, re, -im, ...) and
 * (im, re, im, re, ...), a column of B (re, im, re, im, ...), and D is as it lies. So results have `parts` rows for one
 * of D, and all that follows is real. */
typedef struct at_reference {
  at_gemm g;
  int parts; /* 2 for complex problems, else 1 */
  double gamma;
  double *product;                  /* A B: m x n x batch, packed; NULL: */
  float *narrow;                    /* in float, as a GPU's of halves comes */
  double *added;                    /* C, packed; NULL: none */
  double *row_norms, *column_norms; /* of op(A), op(B): m, n a batch */
  uint64_t gaps;                    /* of an in-place D, as it was */
  int64_t place[AT_SPECIAL_PLACES]; /* where special values are planted along k */
  int places;
  double *a_at, *b_at; /* op(A), op(B) there: by place, then line, those of the next matrix behind, then part */
  struct at_epilogue_reference *epilogue; /* reference_epilogue.h; NULL: none */
  bool scaled;   /* of 8-bit elements: g is the problem of what they and their scales are in f64, which A and B hold */
  at_gemm asked; /* then, the problem itself */
  double *wide_a, *wide_b, scale_d;
  const void *a, *b, *c; /* the inputs in host memory, while it is made */
  void *fetched[AT_MAX_BUFFERS];
} at_reference;

static inline double at_reference_product(const at_reference *r, size_t i) {
  return r->product ? r->product[i] : (double)r->narrow[i];
}

/* reference_cuda.c: r->product or r->narrow = op(A) op(B), by cuBLAS. */
attune_status at_reference_expect_on_cuda(at_reference *r, attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]);

/* What lies behind column j up to the next column or matrix of the batch: its first byte, how many into *bytes. */
const unsigned char *at_reference_gap(const at_gemm *g, const unsigned char *output, int64_t b, int64_t j,
                                      size_t *bytes);

/* Hash of all bytes of D that lie between its columns and matrices. */
uint64_t at_reference_gaps(const at_gemm *g, const void *output);

static inline double at_reference_value(const void *data, attune_dtype dtype, size_t i) {
  switch (dtype) {
  case ATTUNE_F64: return ((const double *)data)[i];
  case ATTUNE_F32: return (double)((const float *)data)[i];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)data)[i]);
  case ATTUNE_BF16: return (double)at_bf16_to_f32(((const uint16_t *)data)[i]);
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(((const uint8_t *)data)[i]);
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(((const uint8_t *)data)[i]);
  case ATTUNE_I8: return (double)((const int8_t *)data)[i];
  case ATTUNE_I32: return (double)((const int32_t *)data)[i];
  default: break; /* no GEMM has the others */
  }
  return NAN;
}

/* reference_scaled.c: makes g, A and B of what was asked for and of `seen`, the inputs in host memory. */
attune_status at_reference_widen(at_reference *r, const void *const seen[AT_MAX_BUFFERS]);
double at_reference_scaled_gamma(const at_gemm *asked);

/* What one column of a scaled D is worth, as compare_column has it; amax[0] rises to the largest |V| expected there,
 * amax[1] to the error that is allowed of one. */
double at_reference_scaled_column(const at_reference *r, at_gemm_scalars s, const void *output, int64_t b, int64_t j,
                                  double amax[2]);

/* Unit roundoff of the dtype; half of its smallest subnormal, which is what rounding to zero costs. */
double at_reference_roundoff(attune_dtype dtype);
double at_reference_underflow(attune_dtype dtype);

/* A matrix of any dtype (column-major, from element `first`) to packed double. */
void at_reference_convert(double *to, const void *from, attune_dtype dtype, size_t first, int64_t rows, int64_t cols,
                          int64_t ld);

#endif
