/* SPDX-License-Identifier: Apache-2.0
 * vmath_activation64.h: expm1, tanh, log1p, the error function and what neural networks make of them, of f64, for CPUs
 * with fused multiply-add; within 2 units in the last place. A rounded number and what it lost (`low`) go together
 * wherever an error would grow. See vmath.h, and vmath_activation32.h for the same in f32. */
#ifndef AT_VMATH_ACTIVATION64_H
#define AT_VMATH_ACTIVATION64_H

#include "ops/elementwise/host/vmath/vmath_exp64.h"

#ifdef __FMA__
#define MAC64 __builtin_fma

/* exp(x + low) = 2^n (1 + small + small_low), |x| <= 1100, |low| far below 1. */
typedef struct pair_exp64 {
  double n, small, small_low;
} pair_exp64;
FLAT pair_exp64 pair_exp_64(double x, double low) {
  const double shifted = MAC64(x, LOG2_E, 0x1.8p52), n = shifted - 0x1.8p52;
  const double first = MAC64(n, -0x1.62e42fefa39efp-1, x), r = MAC64(n, -0x1.abc9e3b39803fp-56, first);
  const double r_low = MAC64(n, -0x1.abc9e3b39803fp-56, first - r) + low;
  const double q = expm1_factor(r), square = r * r, small = MAC64(square, q, r);
  return (pair_exp64){n, small, MAC64(r_low, small, r_low) + MAC64(square, q, r - small)};
}
FLAT double whole_power_64(double n) {
  return f64_of((at_bits_of_f64(n + 0x1.8p52) + 1023u) << 52);
}

/* exp(x) - 1, halved, for -50 <= x <= 710. */
typedef struct pair64_of {
  double high, low;
} pair64_of;
FLAT pair64_of half_expm1_64(double x) {
  const pair_exp64 e = pair_exp_64(x, 0.0);
  const double power = whole_power_64(e.n - 1.0), less = power - 0.5, less_low = (power - less) - 0.5;
  const double high = MAC64(power, e.small, less), low = MAC64(power, e.small, less - high);
  return (pair64_of){high, MAC64(power, e.small_low, low + less_low)};
}
FLAT double expm1_whole64(double x) {
  double a = x > 710.0 ? 710.0 : x;
  a = a < -50.0 ? -50.0 : a;
  const pair64_of e = half_expm1_64(a);
  return __builtin_fabs(x) < 0x1p-54 ? x : 2.0 * (e.high + e.low);
}
/* h / (h + 1) with h = (exp(2 |x|) - 1) / 2. */
FLAT double tanh64(double x) {
  double a = __builtin_fabs(x);
  a = a > 20.0 ? 20.0 : a;
  const pair64_of e = half_expm1_64(2.0 * a);
  const double d = 1.0 + e.high, big = e.high > 1.0 ? e.high : 1.0, little = e.high > 1.0 ? 1.0 : e.high;
  const double d_low = ((big - d) + little) + e.low, inverse = 1.0 / d, y = e.high * inverse;
  const double rest = MAC64(-y, d, e.high) + MAC64(-y, d_low, e.low);
  return a < 0x1p-30 ? x : __builtin_copysign(MAC64(rest, inverse, y), x);
}

/* `factor` times exp(x) / (1 + exp(x)) or 1 / (1 + exp(-x)), of x + low: in terms of e = exp(-|x|) = high + rest, 2^200
 * times as much where it would be below the normal numbers, so that the last product alone rounds there. */
FLAT double logistic64(double x, double low, double factor) {
  double a = __builtin_fabs(x);
  a = a > 800.0 ? 800.0 : a;
  const bool under = x < 0.0;
  const pair_exp64 e = pair_exp_64(-a, under ? low : -low);
  const bool tiny = e.n < -900.0;
  const double scale = tiny ? 0x1p-200 : 1.0, power = whole_power_64(tiny ? e.n + 200.0 : e.n);
  const double high = MAC64(power, e.small, power);
  const double rest = MAC64(power, e.small_low, MAC64(power, e.small, power - high)), whole = high * scale;
  const double d = 1.0 + whole, d_low = MAC64(rest, scale, (1.0 - d) + whole);
  const double inverse = 1.0 / d, inverse_low = inverse * (MAC64(-d, inverse, 1.0) - d_low);
  const double left = under ? high : 1.0, top = factor * left;
  const double top_low = MAC64(factor, left, -top) + (under ? factor * rest : 0.0);
  return MAC64(top, inverse, MAC64(top, inverse_low, top_low * inverse)) * (under ? scale : 1.0);
}
FLAT double sigmoid64(double x) {
  const double y = logistic64(x, 0.0, 1.0);
  return x != x ? x : y;
}
FLAT double silu64(double x) {
  const double factor = x < -800.0 ? -800.0 : x; /* of -infinity NaN, below */
  const double y = __builtin_copysign(logistic64(x, 0.0, factor), x);
  return x > 800.0 ? x : x == -__builtin_inf() ? (double)__builtin_nanf("") : y;
}
/* x / (1 + exp(-u)), u = x (k + j x^2) in two parts, k = 2 sqrt(2 / pi), j = 0.044715 k. */
FLAT double gelu_tanh64(double x) {
  double a = x > 30.0 ? 30.0 : x; /* beyond, the result is x or -0 */
  a = a < -30.0 ? -30.0 : a;
  const double z = a * a, z_low = MAC64(a, a, -z), jz = z * 0x1.2444f2a4d8b4bp-4;
  const double jz_low =
      MAC64(z, 0x1.2444f2a4d8b4bp-4, -jz) + MAC64(z_low, 0x1.2444f2a4d8b4bp-4, z * -0x1.6c843a29d1c7p-61);
  const double k = 0x1.9884533d43651p+0, p = jz + k, big = jz > k ? jz : k, little = jz > k ? k : jz;
  const double p_low = ((big - p) + little) + (jz_low - 0x1.cbc0d30ebfd15p-54), u = a * p;
  const double y = __builtin_copysign(logistic64(u, MAC64(a, p_low, MAC64(a, p, -u)), a), x);
  return x > 30.0 ? x : x == -__builtin_inf() ? (double)__builtin_nanf("") : x != x ? x : y;
}
#endif

#endif
