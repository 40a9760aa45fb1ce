/* SPDX-License-Identifier: Apache-2.0
 * vmath_log64.h: logarithms of f64 to bases 2 and 10, for CPUs with fused multiply-add; within 1.2 units in the
 * last place, where the C library's vectors of AVX2 are off by 2.1 next to 1. See vmath.h. */
#ifndef AT_VMATH_LOG64_H
#define AT_VMATH_LOG64_H

#include "ops/elementwise/host/vmath/vmath.h"

#ifdef __FMA__
/* From 2^-1022 to the largest number, by one comparison of bits. What is not, 0 too, is rare: the loops give it to the
 * C library. */
FLAT bool is_normal_64(double x) {
  return (int64_t)(at_bits_of_f64(x) + 0x7ff0000000000000u) < -0x0020000000000000;
}

/* x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2), and ln(1 + f) = f - s g with s = f / (2 + f), g = f - z P(z),
 * z = s^2, P as log_64's. s g is at most a fifth of the whole, so that errors of s and g count little. */
typedef struct split_log64 {
  double e, f, s, g;
} split_log64;
FLAT split_log64 split_for_log64(double x) {
  const uint64_t bits = at_bits_of_f64(x) + 0x00095f619980c433u; /* its exponent steps up where x passes sqrt(2) 2^e */
  const double e = f64_of(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1023.0);
  const double f = f64_of((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f), z = s * s, zz = z * z;
  double p = __builtin_fma(0x1.2b662a48f0b95p-3, z, 0x1.39fd3412f6f6fp-3);
  p = __builtin_fma(p, zz, __builtin_fma(0x1.7462be2c20333p-3, z, 0x1.c71c62c21853cp-3));
  p = __builtin_fma(p, zz, __builtin_fma(0x1.2492492e0f049p-2, z, 0x1.99999999951bfp-2));
  p = __builtin_fma(p, z, 0x1.5555555555558p-1);
  return (split_log64){e, f, s, __builtin_fma(-z, p, f)};
}

/* The constants are log2(e), log10(e) and log10(2), of which rounding takes off less than a quarter of a unit; only the
 * products of f and e with them are as large as the result, and those are fused. */
FLAT double log2_64(double x) {
  const split_log64 l = split_for_log64(x);
  return l.e + __builtin_fma(l.f, 0x1.71547652b82fep+0, -(l.s * 0x1.71547652b82fep+0) * l.g);
}
FLAT double log10_64(double x) {
  const split_log64 l = split_for_log64(x);
  const double part = __builtin_fma(l.f, 0x1.bcb7b1526e50ep-2, -(l.s * 0x1.bcb7b1526e50ep-2) * l.g);
  return __builtin_fma(l.e, 0x1.34413509f79ffp-2, part);
}
#endif

#endif
