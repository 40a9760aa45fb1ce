/* SPDX-License-Identifier: Apache-2.0
 * vmath_erf64.h: the error function and gelu of f64, for CPUs with fused multiply-add; within 2 units in the last
 * place. See vmath_activation64.h. */
#ifndef AT_VMATH_ERF64_H
#define AT_VMATH_ERF64_H

#include "ops/elementwise/host/vmath/vmath_activation64.h"

#ifdef __FMA__
/* y v + c. */
FLAT pair64_of step_64(pair64_of y, pair64_of v, double c, double c_low) {
  const double p = y.high * v.high, p_low = MAC64(y.high, v.high, -p) + MAC64(y.high, v.low, y.low * v.high);
  const double s = c + p, back = s - c;
  return (pair64_of){s, ((c - (s - back)) + (p - back)) + (c_low + p_low)};
}

/* erfc(z) exp(z^2) for 0 <= z <= 28 is w f(w - 9/64) with w = 1 / (z + 4); f is off by 2^-60 of its value. The last
 * steps are taken in pairs, for there errors of w count. */
FLAT pair64_of scaled_erfc_64(double z, double z_low) {
  const double d = z + 4.0, big = z > 4.0 ? z : 4.0, little = z > 4.0 ? 4.0 : z, d_low = ((big - d) + little) + z_low;
  const double w = 1.0 / d, w_low = w * MAC64(-w, d_low, MAC64(-w, d, 1.0));
  const double v = w - 0.140625, v_low = (w - (v + 0.140625)) + w_low;
  const double vv = v * v, vvvv = vv * vv;
  double p = MAC64(MAC64(-0x1.bdfea5a261b98p+37, v, 0x1.f265d5c20520fp+35), vv,
                   MAC64(0x1.52af2c0645cfdp+35, v, -0x1.604df3d3900e4p+33));
  p = FOUR64(p, v, vv, vvvv, -0x1.57fd068f4aad3p+32, 0x1.3debf8402616fp+30, 0x1.5815d50c891dfp+29,
             -0x1.b3b36b3168de6p+26);
  p = FOUR64(p, v, vv, vvvv, -0x1.7359f6d347cc0p+26, 0x1.5066f5790f0dep+21, 0x1.90cdad5778fc5p+23,
             0x1.0d0674ca243fdp+21);
  p = FOUR64(p, v, vv, vvvv, -0x1.4840dd5669d74p+20, -0x1.69f6cda4b2540p+19, -0x1.cb166798c5176p+15,
             0x1.8c9813fa2c5ecp+16);
  p = FOUR64(p, v, vv, vvvv, 0x1.0a65e66d2468ep+16, 0x1.a267a161fff5fp+14, 0x1.eccbcbc669644p+12,
             0x1.d671b460d561bp+10);
  const pair64_of at = {v, v_low};
  pair64_of f = step_64((pair64_of){p, 0.0}, at, 0x1.792f364cf2bcbp+8, 0x1.17069a51fa17bp-46);
  f = step_64(f, at, 0x1.02bfff5f3fe77p+6, 0x1.018e0b0ce8b38p-48);
  f = step_64(f, at, 0x1.32b1220caf334p+3, -0x1.47fe0e4cecfa3p-58);
  f = step_64(f, at, 0x1.3b35b725c71c9p+0, 0x1.5be016a980102p-57);
  const double y = f.high * w;
  return (pair64_of){y, MAC64(f.high, w, -y) + MAC64(f.high, w_low, f.low * w)};
}

/* erfc(z + z_low) = scale (high + low) for 0 <= z <= 28, its square given. */
typedef struct erfc_64 {
  double high, low, scale;
} erfc_64;
FLAT erfc_64 pair_erfc_64(double z, double z_low, double square, double square_low) {
  const pair64_of f = scaled_erfc_64(z, z_low);
  const pair_exp64 e = pair_exp_64(-square, -square_low);
  const bool tiny = e.n < -900.0;
  const double power = whole_power_64(tiny ? e.n + 200.0 : e.n), one = 1.0 + e.small;
  const double one_low = ((1.0 - one) + e.small) + e.small_low, y = f.high * one;
  const double low = MAC64(f.high, one, -y) + MAC64(f.high, one_low, f.low * one);
  return (erfc_64){y * power, low * power, tiny ? 0x1p-200 : 1.0};
}
FLAT double erfc64(double x) {
  double a = __builtin_fabs(x);
  a = a > 28.0 ? 28.0 : a;
  const double square = a * a;
  const erfc_64 e = pair_erfc_64(a, 0.0, square, MAC64(a, a, -square));
  const double under = 2.0 - e.high * e.scale, under_low = ((2.0 - under) - e.high * e.scale) - e.low * e.scale;
  return x < 0.0 ? under + under_low : MAC64(e.high, e.scale, e.low * e.scale);
}
/* |x| < 0.75: x + x p(x^2), p off by 2^-60; beyond 1 - erfc. */
FLAT double erf64(double x) {
  double a = __builtin_fabs(x);
  a = a > 6.0 ? 6.0 : a;
  const double z = a * a;
  const double zz = z * z, zzzz = zz * zz;
  double p = MAC64(MAC64(0x1.8a4a791e121bep-27, z, -0x1.5653e47051610p-23), z, 0x1.b90f77799e4fep-20);
  p = FOUR64(p, z, zz, zzzz, -0x1.f4c5ecd3ef97cp-17, 0x1.f9a2b057e9dc4p-14, -0x1.c02db127a110dp-11,
             0x1.565bcd038063cp-8);
  p = FOUR64(p, z, zz, zzzz, -0x1.b82ce31257d63p-6, 0x1.ce2f21a0424ddp-4, -0x1.812746b0379e0p-2, 0x1.06eba8214db69p-3);
  const erfc_64 e = pair_erfc_64(a, 0.0, z, MAC64(a, a, -z));
  const double far = 1.0 - e.high, y = far + (((1.0 - far) - e.high) - e.low);
  return a < 0.75 ? MAC64(x, p, x) : __builtin_copysign(y, x);
}
/* max(x, 0) less |x| erfc(|x| / sqrt(2)) / 2. */
FLAT double gelu64(double x) {
  double a = __builtin_fabs(x);
  a = a > 39.0 ? 39.0 : a; /* beyond, the result is x or -0 */
  const double z = a * 0x1.6a09e667f3bcdp-1, square = a * a;
  const double z_low = MAC64(a, -0x1.bdd3413b26456p-55, MAC64(a, 0x1.6a09e667f3bcdp-1, -z));
  const erfc_64 e = pair_erfc_64(z, z_low, 0.5 * square, 0.5 * MAC64(a, a, -square));
  const double half = 0.5 * a, p = half * e.high, p_low = MAC64(half, e.high, -p) + half * e.low;
  const double under = MAC64(p, e.scale, p_low * e.scale), over = x - p * e.scale;
  const double over_low = ((x - over) - p * e.scale) - p_low * e.scale;
  const double y = x > 0.0 ? over + over_low : -under;
  return ((x > 39.0) | (x == 0.0)) ? x : x == -__builtin_inf() ? (double)__builtin_nanf("") : y;
}
#endif

#endif
