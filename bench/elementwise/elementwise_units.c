/* SPDX-License-Identifier: Apache-2.0
 * elementwise_units.c: see elementwise_ulp.h. */
#include <math.h>
#include <string.h>

#include "bench/elementwise/elementwise_ulp.h"
#include "ops/elementwise/ir/evaluate.h"

double ulp_units(attune_dtype dtype, long double got, long double exact) {
  const int digits = dtype == ATTUNE_F64 ? 53 : dtype == ATTUNE_F32 ? 24 : dtype == ATTUNE_F16 ? 11 : 8;
  const int least = dtype == ATTUNE_F64 ? -1074 : dtype == ATTUNE_F32 ? -149 : dtype == ATTUNE_F16 ? -24 : -133;
  const int top = dtype == ATTUNE_F64 ? 1024 : dtype == ATTUNE_F16 ? 16 : 128;
  int exponent;
  if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0.0 : INFINITY;
  if (got == exact) return 0.0;
  if (isinf(got))
    return fabsl(exact) >= ldexpl(1.0L - ldexpl(1.0L, -digits - 1), top)  ? 0.0
           : fabsl(exact) > ldexpl(1.0L - ldexpl(1.0L, -digits + 1), top) ? 1.0
                                                                          : INFINITY;
  if (isinf(exact)) return INFINITY;
  (void)frexpl(exact, &exponent);
  const int place = exponent - digits > least ? exponent - digits : least;
  return (double)(fabsl(got - exact) / ldexpl(1.0L, place));
}

/* 1 more or less 2^-k with any mantissa, k up to 54; in pairs one of the 64 smallest numbers. */
static long double hard_number(attune_dtype dtype, int arguments, uint64_t bits) {
  const int least = dtype == ATTUNE_F64 ? -1074 : dtype == ATTUNE_F32 ? -149 : dtype == ATTUNE_F16 ? -24 : -133;
  const long double sign = bits & 1u ? -1.0L : 1.0L, part = ldexpl((long double)(bits >> 12) + 0x1p52L, -53);
  if (arguments == 2) return sign * ldexpl((long double)(bits >> 58), least);
  return 1.0L + sign * ldexpl(part, -(int)(bits >> 1 & 63u) % 54);
}

void ulp_put_number(attune_dtype dtype, int arguments, unsigned char *to, int64_t i, uint64_t bits) {
  const size_t size = attune_dtype_size(dtype);
  memcpy(to, &bits, size);
  if ((i % 2 == 0 && i % 8 != 6) || (arguments == 1 && size != 8)) return;
  const long double tame = ldexpl((long double)(int64_t)bits, (int)(bits & 15u) - 70);
  at_wide_value_store(dtype, to, (at_wide_value){.re = i % 2 ? tame : hard_number(dtype, arguments, bits)});
}
