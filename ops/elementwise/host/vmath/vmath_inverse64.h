/* SPDX-License-Identifier: Apache-2.0
 * vmath_inverse64.h: cube root, arc sine, inverse hyperbolic functions, logit, softplus and mish of f64, for CPUs with
 * fused multiply-add; within 2 units in the last place. log1p takes a rounded number and what it lost. See
 * vmath_activation64.h. */
#ifndef AT_VMATH_INVERSE64_H
#define AT_VMATH_INVERSE64_H

#include "ops/elementwise/host/vmath/vmath_activation64.h"

#ifdef __FMA__
#define LN_2 0x1.62e42fefa39efp-1

/* y is x^(-1/3) but for a part e / 3: a step leaves e^4 / 7 of it. */
FLAT double nearer_inverse_cbrt64(double x, double y) {
  const double e = MAC64(-x * y * y, y, 1.0);
  return MAC64(y * e, MAC64(e, MAC64(e, 0x1.61f9add3c0ca4p-3, 0x1.c71c71c71c71cp-3), 0x1.5555555555555p-2), y);
}
/* From the inverse root, whose steps need no division and whose first guess is made of the exponent's bits. */
FLAT double cbrt64(double x) {
  const double a = __builtin_fabs(x);
  const bool tiny = a < 0x1p-1022;
  const double m = tiny ? a * 0x1p54 : a;
  const double high = f64_of(at_bits_of_f64(m) >> 32 | 0x4330000000000000u) - 0x1p52;
  double y = f64_of(at_bits_of_f64(MAC64(high, -0x1.5555555555555p-2, 0x1.8p52 + 1430187600.0)) << 32);
  y = nearer_inverse_cbrt64(m, nearer_inverse_cbrt64(m, y));
  const double yy = y * y, t = m * yy, square = t * t, square_low = MAC64(t, t, -square);
  const double rest = MAC64(-square, t, m) - square_low * t; /* m - t^3 */
  const double root = MAC64(rest * yy, 0x1.5555555555555p-2, t) * (tiny ? 0x1p-18 : 1.0);
  return ((a > 0.0) & (a < __builtin_inf())) ? __builtin_copysign(root, x) : x;
}

/* |x| <= 1/2: x + x^3 p(x^2), p off by 2^-56; beyond pi / 2 - 2 asin(s), s^2 = (1 - |x|) / 2. */
FLAT double asin64(double x) {
  const double a = __builtin_fabs(x);
  const bool near = a <= 0.5;
  const double z = near ? a * a : MAC64(a, -0.5, 0.5), zz = z * z, s = near ? a : __builtin_sqrt(z);
  double p = FOUR64(0x1.049be87edf413p-5, z, zz, zz * zz, -0x1.07353e43b29ecp-6, 0x1.3e1e37a6be8ccp-6,
                    0x1.aeca294501614p-8, 0x1.8e605ea137ca8p-7);
  p = FOUR64(p, z, zz, zz * zz, 0x1.c70eb80c22334p-7, 0x1.1c6ae6572e80bp-6, 0x1.6e8a079b1f015p-6, 0x1.f1c72b43db939p-6);
  p = MAC64(MAC64(MAC64(p, z, 0x1.6db6db461bf3ap-5), z, 0x1.33333333674ecp-4), z, 0x1.55555555553e6p-3) * (s * z);
  const double first = MAC64(-2.0, s, 0x1.921fb54442d18p+0), back = MAC64(-2.0, s, 0x1.921fb54442d18p+0 - first);
  const double far = first + MAC64(-2.0, p, back + 0x1.1a62633145c07p-54);
  return __builtin_copysign(near ? s + p : far, x);
}

/* Beyond 2^28 asinh and acosh are ln(2 |x|), taken as ln(1 + (|x| - 1)) and ln(2). */
FLAT double asinh64(double x) {
  const double a = __builtin_fabs(x), more = a * a / (1.0 + __builtin_sqrt(MAC64(a, a, 1.0)));
  const bool far = a > 0x1p28;
  const double t = far ? a - 1.0 : a + more, low = far ? 0.0 : (a - t) + more, y = log1p_pair64(t, low);
  return a < 0x1p-28 ? x : __builtin_copysign(far ? y + LN_2 : y, x);
}
FLAT double acosh64(double x) {
  const double t = x - 1.0, u = t + 2.0, p = t * u, p_low = MAC64(t, (2.0 - u) + t, MAC64(t, u, -p));
  const double s = __builtin_sqrt(p), s_low = s > 0.0 ? 0.5 * (MAC64(-s, s, p) + p_low) / s : 0.0;
  const bool far = x > 0x1p28;
  const double sum = far ? t : s + t, low = far ? 0.0 : ((s - sum) + t) + s_low, y = log1p_pair64(sum, low);
  return x < 1.0 ? (double)__builtin_nanf("") : far ? y + LN_2 : y;
}
/* ln(1 + n / d), n + n_low = n; infinite for d = 0. */
FLAT double log1p_ratio64(double n, double n_low, double d, double d_low) {
  const double over = 1.0 / d, q = n * over;
  const double low = over * (MAC64(-q, d, n) + MAC64(-q, d_low, n_low));
  return log1p_pair64(q, __builtin_fabs(q) < __builtin_inf() ? low : 0.0);
}
FLAT double atanh64(double x) {
  const double a = __builtin_fabs(x), d = 1.0 - a;
  const double y = 0.5 * log1p_ratio64(2.0 * a, 0.0, d, (1.0 - d) - a);
  return a < 0x1p-28 ? x : __builtin_copysign(y, x);
}
/* Of 1 - x the negative: so the ratio is not below 1. */
FLAT double logit64(double x) {
  const bool under = x < 0.5, tiny = __builtin_fabs(x) < 0x1p-1000;
  const double twice = 2.0 * x, n = under ? 1.0 - twice : twice - 1.0;
  const double d = tiny ? x * 0x1p100 + 0.0 : under ? x : 1.0 - x;
  const double y = log1p_ratio64(n, under ? (1.0 - n) - twice : 0.0, d, 0.0) + (tiny ? 100.0 * LN_2 : 0.0);
  return under ? -y : y;
}

/* exp(x) = (high + low) scale, for x <= 0; scale is not 1 where the result is next to the subnormal numbers. */
typedef struct scaled_exp64 {
  double high, low, scale;
  bool tiny;
} scaled_exp64;
FLAT scaled_exp64 scaled_exp_64(double x) {
  const pair_exp64 e = pair_exp_64(x < -800.0 ? -800.0 : x, 0.0);
  const bool tiny = e.n < -900.0;
  const double power = whole_power_64(tiny ? e.n + 200.0 : e.n), high = MAC64(power, e.small, power);
  const double low = MAC64(power, e.small_low, MAC64(power, e.small, power - high));
  return (scaled_exp64){high, low, tiny ? 0x1p-200 : 1.0, tiny};
}
/* max(x, 0) + ln(1 + exp(-|x|)). */
FLAT double softplus64(double x) {
  const scaled_exp64 e = scaled_exp_64(-__builtin_fabs(x));
  const double y = e.tiny ? e.high * e.scale : log1p_pair64(e.high, e.low);
  return x > 0.0 ? x + y : x != x ? x : y;
}
/* x n / (n + 2), n = e (e + 2), e = exp(x): divided by e^2 where x is above 0. */
FLAT double mish64(double x) {
  const scaled_exp64 e = scaled_exp_64(-__builtin_fabs(x));
  const bool over = x > 0.0;
  /* e u, or u = 1 + 2 e, over 2 + 2 e + e^2, or 1 + 2 e + 2 e^2 */
  const double h = e.tiny ? 0.0 : e.high, l = e.tiny ? 0.0 : e.low;
  const double first = over ? 1.0 : 2.0, part = over ? 2.0 * h : h, part_low = over ? 2.0 * l : l;
  const double u = first + part, u_low = ((first - u) + part) + part_low;
  const double square = h * h, square_low = MAC64(h, h, -square) + 2.0 * h * l;
  const double twice = over ? 2.0 * square : square, twice_low = over ? 2.0 * square_low : square_low;
  const double base = over ? u : 2.0 + 2.0 * h, base_low = over ? u_low : ((2.0 - base) + 2.0 * h) + 2.0 * l;
  const double d = base + twice, d_low = ((base - d) + twice) + (base_low + twice_low);
  const double inverse = 1.0 / d, q = u * inverse, q_low = inverse * (MAC64(-q, d, u) + MAC64(-q, d_low, u_low));
  const double f = over ? 1.0 : e.high, f_low = over ? 0.0 : e.low, z = q * f;
  const double z_low = MAC64(q, f, -z) + MAC64(q, f_low, q_low * f), a = x < -800.0 ? -800.0 : x;
  const double y = MAC64(a, z, a * z_low) * (over ? 1.0 : e.scale);
  return x > 40.0 ? x : x == -__builtin_inf() ? (double)__builtin_nanf("") : x != x ? x : y;
}
#endif

#endif
