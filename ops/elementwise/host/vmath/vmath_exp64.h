/* SPDX-License-Identifier: Apache-2.0
 * vmath_exp64.h: exp, sinh and cosh of f64, for CPUs with fused multiply-add; within 2 units in the last place. See
 * vmath.h. */
#ifndef AT_VMATH_EXP64_H
#define AT_VMATH_EXP64_H

#include "ops/elementwise/host/vmath/vmath.h"

#ifdef __FMA__
FLAT double power_of_2_64(int64_t n) {
  return f64_of((uint64_t)(n + 1023) << 52);
}

/* exp(x) = 2^n (1 + small) for |x| <= 750; else anything, NaN for NaN. */
typedef struct split_exp64 {
  double small;
  int64_t n;
} split_exp64;
FLAT split_exp64 split_64(double x) {
  const double shifted = __builtin_fma(x, LOG2_E, 0x1.8p52), n = shifted - 0x1.8p52;
  const double r = __builtin_fma(n, -0x1.abc9e3b39803fp-56, __builtin_fma(n, -0x1.62e42fefa39efp-1, x));
  return (split_exp64){expm1_reduced(r), (int64_t)(at_bits_of_f64(shifted) - 0x4338000000000000u)};
}

/* n is added to the exponent of 1 + small; where the result may be below the normal numbers, 128 more, which a product
 * takes off again. What is far out is set right at the end, where no later step waits for it. */
FLAT double exp64(double x) {
  const split_exp64 e = split_64(x);
  const bool deep = x < -700.0;
  const uint64_t n = (uint64_t)e.n + (deep ? 128u : 0u);
  double y = f64_of(at_bits_of_f64(1.0 + e.small) + (n << 52));
  y = deep ? 0x1p-128 * y : y;
  y = x <= 0x1.62e42fefa39efp+9 ? y : x + __builtin_inf(); /* of NaN, too */
  return x < -750.0 ? 0.0 : y;
}

/* h = exp(|x|) / 4, and what it lost. */
typedef struct quarter_exp64 {
  double h, low;
} quarter_exp64;
FLAT quarter_exp64 quarter_exp_64(double x) {
  double a = __builtin_fabs(x);
  a = a > 710.6 ? 710.6 : a; /* 2 h is infinite from 710.48 on */
  const split_exp64 e = split_64(a);
  const double power = power_of_2_64(e.n - 2), h = __builtin_fma(power, e.small, power);
  return (quarter_exp64){h, __builtin_fma(power, e.small, power - h)};
}

/* |x| < 1: x + x^3 p(x^2), p off by 2^-60; beyond 2 (h - 1 / (16 h)). */
FLAT double sinh64(double x) {
  const quarter_exp64 e = quarter_exp_64(x);
  const double far = 2.0 * (e.h + (e.low - 0.0625 / e.h)), z = x * x, zz = z * z;
  double p = __builtin_fma(__builtin_fma(0x1.b5cbba9146034p-41, z, 0x1.6116ecefad768p-33), z, 0x1.ae64700263ecbp-26);
  p = FOUR64(p, z, zz, zz * zz, 0x1.71de3a3afd2a6p-19, 0x1.a01a01a0372b4p-13, 0x1.111111111101ep-7,
             0x1.5555555555556p-3);
  const double near = __builtin_fma(x * z, p, x), y = __builtin_copysign(far, x);
  return ((x != x) | (__builtin_fabs(x) < 1.0)) ? near : y;
}
FLAT double cosh64(double x) {
  const quarter_exp64 e = quarter_exp_64(x);
  return x != x ? x : 2.0 * (e.h + (0.0625 / e.h + e.low));
}

/* ln(1 + x + low): 1 + x = u + lost = 2^k (m + c), m from sqrt(1/2) to sqrt(2), f = m - 1, s = f / (2 + f), ln(1 + f) =
 * f
 * - (f^2 / 2 - s (f^2 / 2 + R)) with R = s^2 P(s^2), P as log_64's; c and low add their part / (1 + f), and 1 / (1 + f)
 * is (1 - s) / (1 + s). For k = 0 f is x itself. */
FLAT double log1p_pair64(double x, double low_part) {
  const double u = 1.0 + x, a = __builtin_fabs(x) > 1.0 ? x : 1.0, b = __builtin_fabs(x) > 1.0 ? 1.0 : x;
  const double lost = b - (u - a);
  const uint64_t bits = at_bits_of_f64(u), k = (bits - 0x3fe6a09e667f3bcdu) & 0xfff0000000000000u;
  const double m = f64_of(bits - k), e = f64_of(((k >> 52) ^ 0x800u) | 0x4330000000000000u) - (0x1p52 + 2048.0);
  const double c = e > 60.0 ? 0.0 : (lost + low_part) * f64_of(0x3ff0000000000000u - k);
  const double f = e == 0.0 ? x : m - 1.0, rest = e == 0.0 ? low_part : c, s = f / (2.0 + f), z = s * s, zz = z * z;
  const double half = 0.5 * f * f;
  double p = __builtin_fma(__builtin_fma(0x1.2b662a48f0b95p-3, z, 0x1.39fd3412f6f6fp-3), z, 0x1.7462be2c20333p-3);
  p = FOUR64(p, z, zz, zz * zz, 0x1.c71c62c21853cp-3, 0x1.2492492e0f049p-2, 0x1.99999999951bfp-2, 0x1.5555555555558p-1);
  const double turned = __builtin_fma(s, __builtin_fma(s, __builtin_fma(s, -2.0, 2.0), -2.0), 1.0);
  const double low = __builtin_fma(e, 0x1.a39ef35793c76p-33, rest * turned);
  const double less = half - __builtin_fma(s, __builtin_fma(z, p, half), low);
  double y = __builtin_fma(e, 0x1.62e42feep-1, f - less);
  y = u == 0.0 ? -__builtin_inf() : y;
  y = u < 0.0 ? (double)__builtin_nanf("") : y;
  y = u == __builtin_inf() ? u : y;
  return x != x ? x : __builtin_copysign(y, x);
}
FLAT double log1p64(double x) {
  return log1p_pair64(x, 0.0);
}
#endif

#endif
