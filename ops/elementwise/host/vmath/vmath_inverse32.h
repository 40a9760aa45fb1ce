/* SPDX-License-Identifier: Apache-2.0
 * vmath_inverse32.h: roots, inverse circular and inverse hyperbolic functions in f32 arithmetic, for CPUs with fused
 * multiply-add; within 2 units in the last place. See vmath32.h, and vmath_inverse64.h for the same in f64. */
#ifndef AT_VMATH_INVERSE32_H
#define AT_VMATH_INVERSE32_H

#include "ops/elementwise/host/vmath/vmath_trig32.h"

#ifdef __FMA__
#define LN_2_32 0x1.62e43p-1f

/* Both are divided by the larger one's power of 2. */
FLAT float hypot32(float x, float y) {
  const uint32_t least = 0x00800000u, most = 0x7e800000u;
  const float a = __builtin_fabsf(x), b = __builtin_fabsf(y), high = a > b ? a : b, low = a > b ? b : a;
  uint32_t power = at_bits_of_f32(high) & 0x7f800000u;
  power = power < least ? least : power;
  power = power > most ? most : power;
  const float scale = at_f32_of_bits(0x7f000000u - power), u = high * scale, v = low * scale, far = __builtin_inff();
  const float z = __builtin_sqrtf(MAC32(u, u, v * v)) * at_f32_of_bits(power);
  return ((a == far) | (b == far)) ? far : z;
}

/* From x^(-1/3), whose steps need no division and whose first guess is made of the exponent's bits. */
FLAT float cbrt32(float x) {
  const float a = __builtin_fabsf(x);
  const bool tiny = a < 0x1p-126f;
  const float m = tiny ? a * 0x1p24f : a,
              guess = MAC32((float)(int32_t)at_bits_of_f32(m), -0x1.555556p-2f, 1419910442.0f);
  float y = at_f32_of_bits((uint32_t)(int32_t)guess), e = MAC32(-m * y * y, y, 1.0f);
  y = MAC32(y * e, MAC32(e, MAC32(e, 0x1.61f9aep-3f, 0x1.c71c72p-3f), 0x1.555556p-2f), y);
  e = MAC32(-m * y * y, y, 1.0f);
  y = MAC32(y * e, 0x1.555556p-2f, y);
  const float yy = y * y, t = m * yy, square = t * t, square_low = MAC32(t, t, -square);
  const float rest = MAC32(-square, t, m) - square_low * t; /* m - t^3 */
  const float root = MAC32(rest * yy, 0x1.555556p-2f, t) * (tiny ? 0x1p-8f : 1.0f);
  return ((a > 0.0f) & (a < __builtin_inff())) ? __builtin_copysignf(root, x) : x;
}

FLAT float atan32(float x) {
  return atan2_32(x, 1.0f);
}

/* a = |x| <= 1/2: asin(a) = a + a^3 p(a^2), p off by 2^-28; beyond pi / 2 - 2 asin(s), s^2 = (1 - a) / 2. */
typedef struct half_asin32 {
  float s, more; /* asin of a, or of the square root */
  bool near;
} half_asin32;
FLAT half_asin32 half_asin_32(float a) {
  const bool near = a <= 0.5f;
  const float z = near ? a * a : MAC32(a, -0.5f, 0.5f), zz = z * z, s = near ? a : __builtin_sqrtf(z);
  float p = TWO32(0x1.595b78p-5f, z, zz, 0x1.8c4d4ap-6f, 0x1.74782cp-5f);
  p = TWO32(p, z, zz, 0x1.330248p-4f, 0x1.5555c6p-3f);
  return (half_asin32){s, p * (s * z), near};
}
FLAT float asin32(float x) {
  const half_asin32 h = half_asin_32(__builtin_fabsf(x));
  const float first = MAC32(-2.0f, h.s, 0x1.921fb6p+0f), back = MAC32(-2.0f, h.s, 0x1.921fb6p+0f - first);
  const float far = first + MAC32(-2.0f, h.more, back - 0x1.777a5cp-25f);
  return __builtin_copysignf(h.near ? h.s + h.more : far, x);
}
/* pi / 2 less the arc sine, or twice that of the square root, or pi less that. */
FLAT float acos32(float x) {
  const half_asin32 h = half_asin_32(__builtin_fabsf(x));
  const float pi = x < 0.0f ? 0x1.921fb6p+1f : 0.0f, base = h.near ? 0x1.921fb6p+0f : pi;
  const float factor = at_f32_of_bits(at_bits_of_f32(h.near ? -1.0f : 2.0f) ^ (at_bits_of_f32(x) & 0x80000000u));
  const float first = MAC32(factor, h.s, base), back = MAC32(factor, h.s, base - first);
  return first + MAC32(factor, h.more, MAC32(base, -0x1.de12cap-26f, back)); /* what pi loses in f32 */
}

/* Beyond 2^12 asinh and acosh are ln(2 |x|), taken as ln(1 + (|x| - 1)) and ln(2). */
FLAT float asinh32(float x) {
  const float a = __builtin_fabsf(x), more = a * a / (1.0f + __builtin_sqrtf(MAC32(a, a, 1.0f)));
  const bool far = a > 0x1p12f;
  const float t = far ? a - 1.0f : a + more, low = far ? 0.0f : (a - t) + more, y = log1p_pair32(t, low);
  return a < 0x1p-13f ? x : __builtin_copysignf(far ? y + LN_2_32 : y, x);
}
FLAT float acosh32(float x) {
  const float t = x - 1.0f, u = t + 2.0f, p = t * u, p_low = MAC32(t, (2.0f - u) + t, MAC32(t, u, -p));
  const float s = __builtin_sqrtf(p), s_low = s > 0.0f ? 0.5f * (MAC32(-s, s, p) + p_low) / s : 0.0f;
  const bool far = x > 0x1p12f;
  const float sum = far ? t : s + t, low = far ? 0.0f : ((s - sum) + t) + s_low, y = log1p_pair32(sum, low);
  return x < 1.0f ? __builtin_nanf("") : far ? y + LN_2_32 : y;
}
/* ln(1 + 2 a / (1 - a)) / 2. */
FLAT float atanh32(float x) {
  const float a = __builtin_fabsf(x), d = 1.0f - a, n = 2.0f * a, over = 1.0f / d, q = n * over;
  const float low = over * MAC32(-q, (1.0f - d) - a, MAC32(-q, d, n));
  const float y = 0.5f * log1p_pair32(q, q < __builtin_inff() ? low : 0.0f);
  return a < 0x1p-13f ? x : __builtin_copysignf(y, x);
}
#endif

#endif
