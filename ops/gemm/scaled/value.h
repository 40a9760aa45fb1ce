/* SPDX-License-Identifier: Apache-2.0
 * value.h: elements of 8-bit products as numbers, and what becomes of a sum: V = alpha scales sum + beta C, amax, D. */
#ifndef AT_GEMM_SCALED_VALUE_H
#define AT_GEMM_SCALED_VALUE_H

#include "ops/gemm/problem/scaling.h"
#include "src/base/float8.h"

/* A byte of f8 or i8. */
static inline float at_scaled_byte(uint8_t byte, attune_dtype dtype) {
  return dtype == ATTUNE_I8       ? (float)(int8_t)byte
         : dtype == ATTUNE_F8E4M3 ? at_f8e4m3_to_f32(byte)
                                  : at_f8e5m2_to_f32(byte);
}

/* Element `at` of a matrix of any dtype that these products have. */
static inline double at_scaled_load(const void *p, int64_t at, attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(((const uint8_t *)p)[at]);
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(((const uint8_t *)p)[at]);
  case ATTUNE_I8: return (double)((const int8_t *)p)[at];
  case ATTUNE_I32: return (double)((const int32_t *)p)[at];
  case ATTUNE_F32: return (double)((const float *)p)[at];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)p)[at]);
  default: return (double)at_bf16_to_f32(((const uint16_t *)p)[at]);
  }
}

/* Rounds to nearest even; 8-bit types saturate. Not for i32. */
void at_scaled_store(void *p, int64_t at, attune_dtype dtype, double x);

/* A scalar of an i32 problem: towards zero, at most an i32. */
static inline int32_t at_scaled_integer(double x) {
  return x != x ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : (int32_t)x;
}

/* What all elements of D share. */
typedef struct at_scaled_end {
  const at_gemm *g;
  const at_gemm_operands *o;
  double alpha, beta, scale_d;    /* alpha: times the scales of tensors */
  const float *scale_a, *scale_b; /* of vectors; else NULL */
} at_scaled_end;
at_scaled_end at_scaled_end_of(const at_gemm *g, const at_gemm_operands *o);

/* Element (i,j) of matrix `batch` of D from its sum; the larger of `most` and |V|. */
float at_scaled_put(const at_scaled_end *end, int64_t batch, int64_t i, int64_t j, double sum, float most);

/* The same for an exact sum of an i32 D, of which only the lowest 32 bits count. */
void at_scaled_put_i32(const at_scaled_end *end, int64_t batch, int64_t i, int64_t j, uint32_t sum);

/* *amax becomes `most` if that is more, whatever other threads do. */
void at_scaled_raise(float *amax, float most);

#endif
