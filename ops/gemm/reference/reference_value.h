/* SPDX-License-Identifier: Apache-2.0
 * reference_value.h: elements of any dtype as double, and what rounding to a dtype costs. */
#ifndef AT_GEMM_REFERENCE_VALUE_H
#define AT_GEMM_REFERENCE_VALUE_H

#include <math.h>

#include "src/base/backend.h"
#include "src/base/half.h"

static inline double at_reference_value(const void *data, attune_dtype dtype, size_t i) {
  switch (dtype) {
  case ATTUNE_F64: return ((const double *)data)[i];
  case ATTUNE_F32: return (double)((const float *)data)[i];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)data)[i]);
  case ATTUNE_BF16: return (double)at_bf16_to_f32(((const uint16_t *)data)[i]);
  default: break; /* no GEMM has the others */
  }
  return NAN;
}

/* Unit roundoff of the dtype; half of its smallest subnormal, which is what rounding to zero costs. */
double at_reference_roundoff(attune_dtype dtype);
double at_reference_underflow(attune_dtype dtype);

/* A matrix of any dtype (column-major, from element `first`) to packed double. */
void at_reference_convert(double *to, const void *from, attune_dtype dtype, size_t first, int64_t rows, int64_t cols,
                          int64_t ld);

#endif
