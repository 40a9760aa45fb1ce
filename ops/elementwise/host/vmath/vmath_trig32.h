/* SPDX-License-Identifier: Apache-2.0
 * vmath_trig32.h: sin, cos and tan of f32 that are not too large, and the angle of two numbers. */
#ifndef AT_VMATH_TRIG32_H
#define AT_VMATH_TRIG32_H

#include "ops/elementwise/host/vmath/vmath32.h"
#include "ops/elementwise/host/vmath/vmath_f32_via_f64.h"

#define NEAR_CIRCLE 1e5f

#ifdef __FMA__
/* x = n pi/2 + r + low for |x| <= 1e5, with pi/2 in three parts of 24 bits: n times the first is taken off x without
 * rounding. The low bits of `turns` are those of n. */
typedef struct split_circle32 {
  float r, low;
  uint32_t turns;
} split_circle32;
FLAT split_circle32 split_circle_32(float x) {
  const float shifted = MAC32(x, 0x1.45f306p-1f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float first = MAC32(n, -0x1.921fb6p+0f, x), second = n * 0x1.777a5cp-25f, r = first + second, back = r - first;
  const float lost = (first - (r - back)) + (second - back); /* either may be the larger one */
  const float low = MAC32(n, 0x1.ee59dap-50f, MAC32(n, 0x1.777a5cp-25f, -second) + lost);
  return (split_circle32){r, low, at_bits_of_f32(shifted)};
}

/* sin (turn = 0) and cos (turn = 1) for |x| <= 1e5: x = (n + turn / 2) pi + r + low, with pi in three parts of 24 bits.
 * Where r is small, the first is taken off x without rounding. `fine` has the shares of low and of what z lost; the
 * polynomial is off by 2^-27. */
FLAT float circle32(float x, uint32_t turn) {
  const float half = turn ? 0.5f : 0.0f, shifted = MAC32(x, 0x1.45f306p-2f, -half) + 0x1.8p23f;
  const float n = (shifted - 0x1.8p23f) + half;
  const float first = MAC32(n, -0x1.921fb6p+1f, x), r = MAC32(n, 0x1.777a5cp-24f, first), z = r * r;
  const float lost = __builtin_fabsf(r) > 0.25f ? MAC32(n, 0x1.777a5cp-24f, first - r) : 0.0f; /* first - r is exact */
  const float low = MAC32(n, 0x1.ee59dap-49f, lost);
  float s = TWO32(0x1.5dbd16p-19f, z, z * z, -0x1.9f6ff6p-13f, 0x1.110ed4p-7f);
  const float fine = MAC32(r * -0.14f, MAC32(r, r, -z), MAC32(z * -0.42f, low, low));
  s = r + MAC32(MAC32(s, z, -0x1.55554cp-3f), r * z, fine);
  const float y = at_f32_of_bits(at_bits_of_f32(s) ^ (at_bits_of_f32(shifted) + turn) << 31);
  return ((turn == 0) & (x == 0.0f)) ? x : y;
}

/* tan(x) for |x| <= 1e5: t = tan(r + low), off by 2^-29, or -1 / t. At most 1.97 ulp, over all x. */
FLAT float tan32(float x) {
  const split_circle32 split = split_circle_32(x);
  const float r = split.r, z = r * r, zz = z * z;
  float p = TWO32(0x1.1f1a94p-8f, z, zz, 0x1.5c4e96p-14f, 0x1.632562p-7f);
  p = TWO32(p, z, zz, 0x1.5cb1e0p-6f, 0x1.badae6p-5f);
  p = MAC32(MAC32(p, z, 0x1.110d9ap-3f), z, 0x1.555560p-2f);
  const float t = r + MAC32(r * z, p, MAC32(z, split.low, split.low)), y = split.turns & 1u ? -1.0f / t : t;
  return x == 0.0f ? x : y;
}

/* The angle of (x, y): j pi/2 plus or less atan(q), 0 <= q <= 1; the polynomial is off by 2^-28. Of the bits
 * vmath_trig64.h speaks. */
FLAT float atan2_32(float y, float x) {
  const float a = __builtin_fabsf(y), b = __builtin_fabsf(x), high = a > b ? a : b, low = a > b ? b : a;
  float q = low == high ? 1.0f : low / high;
  q = low == 0.0f ? 0.0f : q;
  const float z = q * q, zz = z * z;
  float p = TWO32(-0x1.d55452p-10f, z, zz, 0x1.65278ap-7f, -0x1.fe56d6p-6f);
  p = TWO32(p, z, zz, 0x1.da89bep-5f, -0x1.5820e2p-4f);
  p = TWO32(p, z, zz, 0x1.c092dap-4f, -0x1.2420fap-3f);
  p = TWO32(p, z, zz, 0x1.9991eap-3f, -0x1.55553ep-2f);
  const uint32_t lead = at_bits_of_f32(b - a), steep = 0u - (lead >> 31), behind = 0u - (at_bits_of_f32(x) >> 31);
  const float j = at_f32_of_bits((steep & 0x3f800000u) | (~steep & behind & 0x40000000u));
  const float turn = at_f32_of_bits(at_bits_of_f32(MAC32(q * z, p, q)) ^ (steep ^ behind) << 31);
  const float angle = MAC32(j, 0x1.921fb6p+0f, MAC32(j, -0x1.777a5cp-25f, turn));
  return ((x != x) | (y != y)) ? x + y : __builtin_copysignf(angle, y);
}
#else
/* sin (turn = 0) and cos (turn = 1) for |x| <= 1e5: x = n pi/2 + r, with pi/2 in three parts; the polynomials are off
 * by 2^-55 and 2^-48 of what they add to 1. */
FLAT float circle32(float x, uint64_t turn) {
  const double wide = x, shifted = wide * 0.63661977236758138 + 0x1.8p52, n = shifted - 0x1.8p52;
  const double r = mac(n, -0x1.3198a2e037073p-69, mac(n, -0x1.0b4611a6p-34, mac(n, -0x1.921fb544p+0, wide))), z = r * r;
  const uint64_t quadrant = at_bits_of_f64(shifted) + turn;
  double s = 0x1.5e0b0498ddbbap-33, c = 0x1.1c81b824dbc69p-29;
  s = mac(s, z, -0x1.ae600acd65338p-26);
  c = mac(c, z, -0x1.27e25f39eece7p-22);
  s = mac(s, z, 0x1.71de37965e2d6p-19);
  c = mac(c, z, 0x1.a019ff539a5c7p-16);
  s = mac(s, z, -0x1.a01a019e83906p-13);
  c = mac(c, z, -0x1.6c16c16b61512p-10);
  s = mac(s, z, 0x1.1111111110bb2p-7);
  c = mac(c, z, 0x1.5555555555437p-5);
  s = mac(s, z, -0x1.5555555555555p-3);
  s = mac(s * z, r, r);
  c = mac(z * z, c, 1.0 - 0.5 * z);
  const uint64_t sine = at_bits_of_f64(s), cosine = at_bits_of_f64(c), odd = 0u - (quadrant & 1u);
  const float y = (float)f64_of(((cosine & odd) | (sine & ~odd)) ^ (quadrant & 2u) << 62);
  return ((turn == 0) & (x == 0.0f)) ? x : y;
}

/* tan(x) for |x| <= 1e5, reduced as the sine of vmath_trig32.h is in f64. */
FLAT float tan32(float x) {
  const double wide = x, shifted = wide * 0.63661977236758138 + 0x1.8p52, n = shifted - 0x1.8p52;
  const double r = mac(n, -0x1.3198a2e037073p-69, mac(n, -0x1.0b4611a6p-34, mac(n, -0x1.921fb544p+0, wide))), z = r * r;
  double s = 0x1.5e0b0498ddbbap-33, c = 0x1.1c81b824dbc69p-29;
  s = mac(s, z, -0x1.ae600acd65338p-26);
  c = mac(c, z, -0x1.27e25f39eece7p-22);
  s = mac(s, z, 0x1.71de37965e2d6p-19);
  c = mac(c, z, 0x1.a019ff539a5c7p-16);
  s = mac(s, z, -0x1.a01a019e83906p-13);
  c = mac(c, z, -0x1.6c16c16b61512p-10);
  s = mac(s, z, 0x1.1111111110bb2p-7);
  c = mac(c, z, 0x1.5555555555437p-5);
  s = mac(s, z, -0x1.5555555555555p-3);
  s = mac(s * z, r, r);
  c = mac(z * z, c, 1.0 - 0.5 * z);
  const uint64_t odd = 0u - (at_bits_of_f64(shifted) & 1u), sine = at_bits_of_f64(s), cosine = at_bits_of_f64(c);
  const double top = f64_of((cosine & odd) | (sine & ~odd)), bottom = f64_of((sine & odd) | (cosine & ~odd));
  const float y = (float)(odd ? -top / bottom : top / bottom);
  return x == 0.0f ? x : y;
}
/* The angle of (x, y). */
FLAT float atan2_32(float y, float x) {
  const double a = __builtin_fabs((double)y), b = __builtin_fabs((double)x), q = a == b ? 1.0 : a / b;
  const double angle = atan_64(a == 0.0 ? 0.0 : q),
               whole = __builtin_copysignf(1.0f, x) < 0.0f ? 2.0 * HALF_PI - angle : angle;
  return ((x != x) | (y != y)) ? x + y : __builtin_copysignf((float)whole, y);
}
#endif

#endif
