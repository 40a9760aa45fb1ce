/* SPDX-License-Identifier: Apache-2.0
 * vmath_pow32.h: powers of f32, x^y for 0 < x < infinity and finite y, as 2^(y log2(x)) in f64. AVX2 and AVX-512
 * have their own (vmath_pow256.h, vmath_pow512.h). See vmath.h. */
#ifndef AT_VMATH_POW32_H
#define AT_VMATH_POW32_H

#include "ops/elementwise/host/vmath/vmath32.h"

/* The logarithm is off by 2^-37, what 2^n is multiplied by by 2^-28. 1 / (2 + f) of f32, improved once, takes the place
 * of a division. */
FLAT float power32(float x, float y) {
  const split_log32 split = split_for_log32(x);
  const double f = split.f, over = 1.0f / (2.0f + split.f), near = f * over;
  const double s = mac(over, mac(-near, 2.0 + f, f), near), z = s * s;
  double p = 0x1.5ce84ead39423p-2;
  p = mac(p, z, 0x1.a58d8926dc142p-2);
  p = mac(p, z, 0x1.27777fe78af88p-1);
  p = mac(p, z, 0x1.ec709d12d1237p-1);
  p = mac(p, z, 0x1.71547652bedf1p+1);
  double t = (double)y * mac(s, p, (double)split.e);
  t = t > 200.0 ? 200.0 : t;
  t = t < -200.0 ? -200.0 : t;
  const double shifted = t + 0x1.8p52, r = t - (shifted - 0x1.8p52);
  double q = 0x1.41fd2f7c9040ap-13;
  q = mac(q, r, 0x1.5f402f363b031p-10);
  q = mac(q, r, 0x1.3b2d4ee658393p-7);
  q = mac(q, r, 0x1.c6aee4dbfbb03p-5);
  q = mac(q, r, 0x1.ebfbdc3429c96p-3);
  q = mac(q, r, 0x1.62e430b1dd74bp-1);
  const double scale = f64_of((at_bits_of_f64(shifted) + 1023u) << 52);
  return (float)mac(scale * r, q, scale);
}

#endif
