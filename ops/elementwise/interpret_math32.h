/* SPDX-License-Identifier: Apache-2.0
 * interpret_math32.h: the most frequent functions in f32 arithmetic, for CPUs with fused multiply-add, where a vector has
 * twice the elements that it has in f64. Each is within 2 units in the last place. Polynomials: interpret_math.h. */
#ifndef AT_INTERPRET_MATH32_H
#define AT_INTERPRET_MATH32_H

#include "ops/elementwise/interpret_math.h"

#ifdef __FMA__
#define MAC32 __builtin_fmaf

/* exp(x) = 2^n (1 + small) for |x| <= 104, and n. q is off by 2^-28. */
typedef struct split_exp32 {
  float small;
  int32_t n;
} split_exp32;
FLAT split_exp32 split_32(float x, float low) {
  const float shifted = MAC32(x, 0x1.715476p+0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = MAC32(n, -0x1.7f7d1cp-20f, MAC32(n, -0x1.62e4p-1f, x)) + low;
  float q = 0x1.6a2366p-10f;
  q = MAC32(q, r, 0x1.123a6cp-7f);
  q = MAC32(q, r, 0x1.5558f4p-5f);
  q = MAC32(q, r, 0x1.55549p-3f);
  q = MAC32(q, r, 0x1.fffffcp-2f);
  return (split_exp32){MAC32(r * r, q, r), (int32_t)(at_bits_of_f32(shifted) - 0x4b400000u)};
}
FLAT float power_of_2(int32_t n) {
  return at_f32_of_bits((uint32_t)(n + 127) << 23);
}

/* exp(x), 2^n in two factors, for it may be outside of the normal numbers. */
FLAT float exp32(float x) {
  x = x > 104.0f ? 104.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const split_exp32 e = split_32(x, 0.0f);
  const int32_t half = e.n >> 1;
  const float first = power_of_2(half);
  return MAC32(first, e.small, first) * power_of_2(e.n - half);
}

/* x or 1, times exp(x) / (1 + exp(x)) or 1 / (1 + exp(-x)): in terms of e = exp(-|x|) = e_high + e_low, 2^24 times as much
 * where it would be below the normal numbers, so that the last product alone rounds there. */
FLAT float logistic32(float x, float factor) {
  float a = __builtin_fabsf(x);
  a = a > 110.0f ? 110.0f : a;
  const split_exp32 e = split_32(-a, 0.0f);
  const float scale = e.n < -100 ? 0x1p-40f : 1.0f, power = power_of_2(e.n < -100 ? e.n + 40 : e.n);
  const float high = MAC32(power, e.small, power), low = (power - high) + power * e.small;
  const float true_high = high * scale, d = 1.0f + true_high, d_low = ((1.0f - d) + true_high) + low * scale;
  const float inverse = 1.0f / d, inverse_low = inverse * (MAC32(-d, inverse, 1.0f) - d_low);
  const float top = x < 0.0f ? high : 1.0f, top_low = x < 0.0f ? low : 0.0f;
  const float y = top * inverse, y_low = MAC32(top, inverse, -y) + MAC32(top, inverse_low, top_low * inverse);
  return MAC32(factor, y, factor * y_low) * (x < 0.0f ? scale : 1.0f);
}
FLAT float sigmoid32(float x) {
  const float y = logistic32(x, 1.0f);
  return x != x ? x : y;
}
FLAT float silu32(float x) {
  float factor = x < -110.0f ? -110.0f : x; /* of -infinity NaN, below */
  const float y = logistic32(x, factor);
  return x > 110.0f ? x : x == -__builtin_inff() ? __builtin_nanf("") : y;
}

/* em / (em + 2), em = exp(2 |x|) - 1. */
FLAT float tanh32(float x) {
  float a = __builtin_fabsf(x);
  a = a > 10.0f ? 10.0f : a;
  const split_exp32 e = split_32(2.0f * a, 0.0f);
  const float power = power_of_2(e.n), base = power - 1.0f, em = MAC32(power, e.small, base);
  const float em_low = (base - em) + power * e.small;
  const float d = em + 2.0f, d_low = ((2.0f - d) + em) + em_low, y = em / d;
  const float rest = (MAC32(-y, d, em) + (em_low - y * d_low)) / d;
  return __builtin_copysignf(y + rest, x);
}

/* max(x, 0) - |x| times the share of the normal distribution above a = |x|, which is exp(-a^2 / 2) t R(t) with
 * t = 1 / (1 + a / 4). R in powers of t - 0.609375, all times 2^-24. */
FLAT float gelu32(float x) {
  float a = __builtin_fabsf(x);
  a = a > 14.4f ? 14.4f : a; /* beyond, the result is x or -0 */
  const float d = MAC32(a, 0.25f, 1.0f), left = MAC32(a, 0.25f, 1.0f - d);
  const float t = 1.0f / d, t_low = t * (MAC32(-d, t, 1.0f) - left * t), s = (t - 0x1.38p-1f) + t_low;
  float r = -0x1.846eaep-31f;
  r = MAC32(r, s, 0x1.fa6ec2p-31f);
  r = MAC32(r, s, 0x1.0a8652p-29f);
  r = MAC32(r, s, -0x1.09b5cap-29f);
  r = MAC32(r, s, -0x1.6ebe6ap-28f);
  r = MAC32(r, s, 0x1.82613ep-31f);
  r = MAC32(r, s, 0x1.0ca092p-26f);
  r = MAC32(r, s, 0x1.efdebp-26f);
  r = MAC32(r, s, 0x1.0e1936p-25f);
  r = MAC32(r, s, 0x1.9d0112p-26f);
  const float r_high = MAC32(r, s, 0x1.d158f2p-27f), r_low = MAC32(r, s, 0x1.d158f2p-27f - r_high);
  const float h = a * a, l = MAC32(a, a, -h);
  /* exp(-a^2 / 2) is 2^n (1 + f + e f^2), where f carries what squaring lost; n + 151 is in the low bits of `shifted`. */
  const float shifted = MAC32(h, -0x1.715476p-1f, 0x1.8p23f + 151.0f), n = shifted - (0x1.8p23f + 151.0f);
  const float f = MAC32(n, -0x1.62e4p-1f, -0.5f * h) + MAC32(n, -0x1.7f7d1cp-20f, -0.5f * l);
  float e = 0x1.6ab8cep-10f;
  e = MAC32(e, f, 0x1.126dbep-7f);
  e = MAC32(e, f, 0x1.55589ep-5f);
  e = MAC32(e, f, 0x1.55540ap-3f);
  e = MAC32(e, f, 0x1.fffffap-2f);
  const float p = t * r_high, p_low = MAC32(t, r_high, -p) + MAC32(t, r_low, t_low * r_high);
  const float rest = MAC32(p, f, MAC32(p, e * f * f, MAC32(p_low, f, p_low)));
  const float q = p + rest, q_low = (p - q) + rest, w = MAC32(a, q, a * q_low);
  const float y = MAC32(-w, at_f32_of_bits(at_bits_of_f32(shifted) << 23), x > 0.0f ? x : x * 0.0f);
  return __builtin_fabsf(x) < 0x1p-60f ? 0.5f * x : y;
}

/* ln(x): x = 2^k m, m from sqrt(1/2) to sqrt(2), f = m - 1: f - f^2 / 2 + f^3 P(f), P off by 2^-28 of f. */
FLAT float log32(float x) {
  const float up = x < 0x1p-126f ? x * 0x1p24f : x, less = x < 0x1p-126f ? 24.0f : 0.0f;
  const uint32_t bits = at_bits_of_f32(up), k = (bits - 0x3f3504f3u) & 0xff800000u;
  const float m = at_f32_of_bits(bits - k), e = (float)((int32_t)k >> 23) - less, f = m - 1.0f;
  float p = 0x1.1d8f6p-4f;
  p = MAC32(p, f, -0x1.d636dp-4f);
  p = MAC32(p, f, 0x1.dea2cp-4f);
  p = MAC32(p, f, -0x1.fcf4a8p-4f);
  p = MAC32(p, f, 0x1.23d214p-3f);
  p = MAC32(p, f, -0x1.555b4ap-3f);
  p = MAC32(p, f, 0x1.999d5ap-3f);
  p = MAC32(p, f, -0x1.fffffcp-3f);
  p = MAC32(p, f, 0x1.555554p-2f);
  const float z = f * f, small = MAC32(e, 0x1.7f7d1cp-20f, MAC32(z * f, p, -0.5f * z));
  float y = MAC32(e, 0x1.62e4p-1f, f + small);
  y = x == 0.0f ? -__builtin_inff() : y;
  y = x < 0.0f ? __builtin_nanf("") : y;
  y = x == __builtin_inff() ? x : y;
  return x != x ? x : y;
}

#else
FLAT float exp32(float x) {
  return (float)exp_64((double)x);
}
FLAT float sigmoid32(float x) {
  return (float)(1 / (1 + exp_64(-(double)x)));
}
FLAT float silu32(float x) {
  const double wide = x, y = wide / (1.0 + exp_64(-wide));
  return (float)(wide < -200.0 ? wide * 0.0 : y);
}
FLAT float tanh32(float x) {
  const double e = expm1_64(2.0 * __builtin_fabs((double)x)), y = e / (e + 2.0);
  return (float)__builtin_copysign(y, (double)x);
}
/* x Q, Q the share below x. */
FLAT float gelu32(float x) {
  double a = __builtin_fabs((double)x);
  a = a > 15.0 ? 15.0 : a;
  const double above = share_above_64(a), wide = x;
  return (float)(x < -14.9f ? wide * 0.0 : x < 0.0f ? wide * above : wide * (1.0 - above));
}
FLAT float log32(float x) {
  return (float)log_64((double)x);
}
#endif

#endif
