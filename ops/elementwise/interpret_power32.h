/* SPDX-License-Identifier: Apache-2.0
 * interpret_power32.h: powers of f32, x^y for 0 < x < infinity and finite y, as 2^(y log2(x)). Within 2 units in the last
 * place. See interpret_math.h. */
#ifndef AT_INTERPRET_POWER32_H
#define AT_INTERPRET_POWER32_H

#include "ops/elementwise/interpret_math32.h"

#ifdef __FMA__
/* A rounded number and what it lost. */
typedef struct pair32_of {
  float high, low;
} pair32_of;

/* The sum of two numbers, of which a is the larger one or 0. */
FLAT pair32_of sum_32(float a, float b) {
  const float high = a + b;
  return (pair32_of){high, (a - high) + b};
}

/* log2(x), off by 2^-33 of itself: x = 2^e (1 + f), s = f / (2 + f), ln(1 + f) = 2 atanh(s). In units of s that is 2 / ln(2)
 * times 1 + z / 3 + z^2 p(z), z = s^2; all but p in two parts, for an error here is multiplied by y. What takes longest is
 * added last. */
FLAT pair32_of log2_pair32(float x) {
  const split_log32 split = split_for_log32(x);
  const float f = split.f, d = 2.0f + f, d_low = f - (d - 2.0f), over = 1.0f / d, s = f * over;
  const float s_low = MAC32(MAC32(-s, d, f), over, -s * (d_low * over));
  const float z = s * s, w = z * 0x1.ec709ep-1f, p = MAC32(MAC32(0x1.547f04p-2f, z, 0x1.a5f49ep-2f), z, 0x1.2776ccp-1f);
  const float constants = MAC32(z, -0x1.e2fe02p-28f, 0x1.4ae0cp-25f), z_low = MAC32(s, s, -z);
  const float w_low = MAC32(z * z, p, MAC32(z_low, 0x1.ec709ep-1f, constants) + MAC32(z, 0x1.ec709ep-1f, -w));
  const pair32_of g = sum_32(0x1.715476p+1f, w);
  const float h = s * g.high, slope = MAC32(w, 3.0f, 0x1.715476p+1f); /* how fast it grows with s */
  const float h_low = MAC32(s, g.low + w_low, MAC32(s_low, slope, MAC32(s, g.high, -h)));
  const pair32_of y = sum_32(split.e, h);
  return (pair32_of){y.high, y.low + h_low};
}

/* 2^r is off by 2^-28, as in exp2_32. Far out t_low may be NaN, which is replaced at the end. */
FLAT float power32(float x, float y) {
  const pair32_of log = log2_pair32(x);
  const float t = y * log.high, t_low = MAC32(y, log.low, MAC32(y, log.high, -t)), shifted = t + 0x1.8p23f;
  const float r = (t - (shifted - 0x1.8p23f)) + t_low, z = r * r;
  const int32_t n = (int32_t)(at_bits_of_f32(shifted) - 0x4b400000u), half = n >> 1;
  float q = MAC32(0x1.41fbaap-13f, r, 0x1.5f3e4ep-10f);
  q = TWO32(q, r, z, 0x1.3b2d4ep-7f, 0x1.c6aee8p-5f);
  q = TWO32(q, r, z, 0x1.ebfbdcp-3f, 0x1.62e43p-1f);
  const float first = power_of_2(half);
  float power = MAC32(first, r * q, first) * power_of_2(n - half);
  power = t > 160.0f ? __builtin_inff() : power;
  return t < -160.0f ? 0.0f : power;
}
#else
/* The logarithm is off by 2^-37, what 2^n is multiplied by by 2^-28. 1 / (2 + f) of f32, improved once, takes the place of
 * a division. */
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

#endif
