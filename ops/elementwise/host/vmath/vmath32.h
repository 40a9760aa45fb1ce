/* SPDX-License-Identifier: Apache-2.0
 * vmath32.h: the most frequent functions in f32 arithmetic, for CPUs with fused multiply-add, where a vector has
 * twice the elements that it has in f64. Each is within 2 units in the last place. Polynomials: vmath.h. */
#ifndef AT_VMATH32_H
#define AT_VMATH32_H

#include "ops/elementwise/host/vmath/vmath.h"

/* x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2). */
typedef struct split_log32 {
  float e, f;
} split_log32;
FLAT split_log32 split_for_log32(float x) {
  const float up = x < 0x1p-126f ? x * 0x1p24f : x, less = x < 0x1p-126f ? 24.0f : 0.0f;
  const uint32_t bits = at_bits_of_f32(up), k = (bits - 0x3f3504f3u) & 0xff800000u;
  return (split_log32){(float)((int32_t)k >> 23) - less, at_f32_of_bits(bits - k) - 1.0f};
}

#ifdef __FMA__
#define MAC32 __builtin_fmaf
/* A step of a polynomial in x by two powers at once: y x^2 + a x + b. Half as many steps wait for each other. */
#define TWO32(y, x, xx, a, b) MAC32(y, xx, MAC32(x, a, b))

/* x = n ln(2) + r, |r| <= ln(2) / 2, for |x| <= 104; else anything. n is `shifted` less 1.5 * 2^23. */
FLAT float exp_rest32(float x, float shifted) {
  const float n = shifted - 0x1.8p23f;
  return MAC32(n, -0x1.7f7d1cp-20f, MAC32(n, -0x1.62e4p-1f, x));
}

/* exp(x) = 2^n (1 + small) for |x| <= 104, and n; else anything, NaN for NaN. q is off by 2^-28. */
typedef struct split_exp32 {
  float small;
  int32_t n;
} split_exp32;
FLAT split_exp32 split_from_rest32(float r, float shifted) {
  const float z = r * r;
  const float q =
      TWO32(TWO32(0x1.6a2366p-10f, r, z, 0x1.123a6cp-7f, 0x1.5558f4p-5f), r, z, 0x1.55549p-3f, 0x1.fffffcp-2f);
  return (split_exp32){MAC32(z, q, r), (int32_t)(at_bits_of_f32(shifted) - 0x4b400000u)};
}
FLAT split_exp32 split_32(float x) {
  const float shifted = MAC32(x, 0x1.715476p+0f, 0x1.8p23f);
  return split_from_rest32(exp_rest32(x, shifted), shifted);
}
/* Of x + low. */
FLAT split_exp32 split_pair32(float x, float low) {
  const float shifted = MAC32(x, 0x1.715476p+0f, 0x1.8p23f);
  return split_from_rest32(exp_rest32(x, shifted) + low, shifted);
}
FLAT float power_of_2(int32_t n) {
  return at_f32_of_bits(((uint32_t)n + 127u) << 23);
}

/* exp(x), 2^n in two factors, for it may be outside of the normal numbers. What is far out is set right at the end,
 * where no later step waits for it. */
FLAT float exp32(float x) {
  const split_exp32 e = split_32(x);
  const int32_t half = e.n >> 1;
  const float first = power_of_2(half);
  float y = MAC32(first, e.small, first) * power_of_2(e.n - half);
  y = x > 104.0f ? __builtin_inff() : y;
  return x < -104.0f ? 0.0f : y;
}

/* 2^x: x less the nearest whole number is exact, and so are powers for whole x. q is off by 2^-28. */
FLAT float exp2_32(float x) {
  const float shifted = x + 0x1.8p23f, f = x - (shifted - 0x1.8p23f), z = f * f;
  const int32_t n = (int32_t)(at_bits_of_f32(shifted) - 0x4b400000u), half = n >> 1;
  float q = MAC32(0x1.41fbaap-13f, f, 0x1.5f3e4ep-10f);
  q = TWO32(q, f, z, 0x1.3b2d4ep-7f, 0x1.c6aee8p-5f);
  q = TWO32(q, f, z, 0x1.ebfbdcp-3f, 0x1.62e43p-1f);
  const float first = power_of_2(half);
  float y = MAC32(first, f * q, first) * power_of_2(n - half);
  y = x > 160.0f ? __builtin_inff() : y;
  return x < -160.0f ? 0.0f : y;
}

/* exp(x) - 1, twice its half: 2^n may be beyond the largest number. */
FLAT float expm1_32(float x) {
  const split_exp32 e = split_32(x);
  const float power = power_of_2((int32_t)((uint32_t)e.n - 1u));
  float y = 2.0f * MAC32(power, e.small, power - 0.5f);
  y = x > 89.0f ? __builtin_inff() : y;
  y = x < -18.0f ? -1.0f : y;
  return __builtin_fabsf(x) < 0x1p-30f ? x : y;
}

/* em / (em + 2), em = exp(2 |x|) - 1. */
FLAT float tanh32(float x) {
  const float a = __builtin_fabsf(x);
  const split_exp32 e = split_32(2.0f * a);
  const float power = power_of_2(e.n), base = power - 1.0f, em = MAC32(power, e.small, base);
  const float em_low = (base - em) + power * e.small;
  const float d = em + 2.0f, d_low = ((2.0f - d) + em) + em_low, over = 1.0f / d, y = em * over;
  const float rest = (MAC32(-y, d, em) + (em_low - y * d_low)) * over;
  return __builtin_copysignf(a > 10.0f ? 1.0f : y + rest, x);
}

/* ln(1 + f) - f for 1 + f from sqrt(1/2) to sqrt(2): f^3 P(f) - f^2 / 2, P off by 2^-28 of f. */
FLAT float log1p_rest32(float f) {
  const float z = f * f;
  float p = TWO32(0x1.1d8f6p-4f, f, z, -0x1.d636dp-4f, 0x1.dea2cp-4f);
  p = TWO32(p, f, z, -0x1.fcf4a8p-4f, 0x1.23d214p-3f);
  p = TWO32(p, f, z, -0x1.555b4ap-3f, 0x1.999d5ap-3f);
  p = TWO32(p, f, z, -0x1.fffffcp-3f, 0x1.555554p-2f);
  return MAC32(z * f, p, -0.5f * z);
}

/* y, or what a logarithm is of 0, of negative numbers, infinity and NaN. */
FLAT float log_or_special32(float x, float y) {
  y = x == 0.0f ? -__builtin_inff() : y;
  y = x < 0.0f ? __builtin_nanf("") : y;
  y = x == __builtin_inff() ? x : y;
  return x != x ? x : y;
}
FLAT float log32(float x) {
  const split_log32 s = split_for_log32(x);
  return log_or_special32(x, MAC32(s.e, 0x1.62e4p-1f, s.f + MAC32(s.e, 0x1.7f7d1cp-20f, log1p_rest32(s.f))));
}
/* f times log2(e), which has two parts, and the rest. */
FLAT float log2_32(float x) {
  const split_log32 s = split_for_log32(x);
  const float low = MAC32(s.f, 0x1.4ae0cp-26f, log1p_rest32(s.f) * 0x1.715476p+0f);
  return log_or_special32(x, s.e + MAC32(s.f, 0x1.715476p+0f, low));
}
/* Likewise; e times the first part of log10(2) is exact. */
FLAT float log10_32(float x) {
  const split_log32 s = split_for_log32(x);
  const float low = MAC32(s.f, -0x1.5b235ep-27f, log1p_rest32(s.f) * 0x1.bcb7b2p-2f),
              part = MAC32(s.e, 0x1.3509f8p-18f, MAC32(s.f, 0x1.bcb7b2p-2f, low));
  return log_or_special32(x, MAC32(s.e, 0x1.344p-2f, part));
}
/* ln(1 + x + low), of u = 1 + x; what u lost, and low, are put back as their share of u's mantissa. Near 0 u loses
 * nothing: f is x. */
FLAT float log1p_pair32(float x, float low) {
  const float u = 1.0f + x, lost = __builtin_fabsf(x) > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const uint32_t bits = at_bits_of_f32(u), k = (bits - 0x3f3504f3u) & 0xff800000u;
  const float e = (float)((int32_t)k >> 23), m = at_f32_of_bits(bits - k), f = k == 0 ? x : m - 1.0f;
  const float more = (k == 0 ? low : (lost + low) * at_f32_of_bits(0x3f800000u - k)) * MAC32(f, f - 1.0f, 1.0f);
  const float part = x > 0x1p30f ? 0.0f : more;
  const float y = MAC32(e, 0x1.62e4p-1f, f + MAC32(e, 0x1.7f7d1cp-20f, part + log1p_rest32(f)));
  return x == 0.0f ? x : log_or_special32(u, y);
}
FLAT float log1p_32(float x) {
  return log1p_pair32(x, 0.0f);
}

/* exp(a) and exp(-a) for 0 <= a <= 89.5 are 2^n (1 + c + s) and 2^-n (1 + c - s), with cosh(r) = 1 + c and sinh(r) = s
 * of the rest r: no division. more and less are a quarter of 2^n + 2^-n and 2^n - 2^-n. c is off by 2^-34, s by
 * 2^-28. */
typedef struct both_exp32 {
  float more, less, c, s;
} both_exp32;
FLAT both_exp32 both_32(float a) {
  const float shifted = MAC32(a, 0x1.715476p+0f, 0x1.8p23f), r = exp_rest32(a, shifted), z = r * r;
  const int32_t n = (int32_t)(at_bits_of_f32(shifted) - 0x4b400000u), no_more = n < 100 ? n : 100;
  const float up = power_of_2(n - 2), down = power_of_2(-2 - no_more);
  const float c = MAC32(MAC32(0x1.6d97ep-10f, z, 0x1.55547ep-5f), z, 0.5f) * z;
  const float s = MAC32(MAC32(0x1.123b94p-7f, z, 0x1.55548ep-3f), z * r, r);
  return (both_exp32){up + down, up - down, c, s};
}
/* |x| < 1: x + x^3 p(x^2), p off by 2^-31. */
FLAT float sinh32(float x) {
  const float a = __builtin_fabsf(x), z = x * x;
  const both_exp32 e = both_32(a);
  float far = 2.0f * (e.less + MAC32(e.less, e.c, e.more * e.s));
  far = __builtin_copysignf(a > 89.5f ? __builtin_inff() : far, x);
  float p = MAC32(0x1.756ca6p-19f, z, 0x1.a022bap-13f);
  p = TWO32(p, z, z * z, 0x1.1110e0p-7f, 0x1.555556p-3f);
  return a < 1.0f ? MAC32(x * z, p, x) : far;
}
FLAT float cosh32(float x) {
  const float a = __builtin_fabsf(x);
  const both_exp32 e = both_32(a);
  return a > 89.5f ? __builtin_inff() : 2.0f * (e.more + MAC32(e.more, e.c, e.less * e.s));
}

/* |x| < 0.9: x + x p(x^2), p off by 2^-37; beyond 1 - exp(-q(|x|)), q off by 2^-34 of the result. */
FLAT float erf32(float x) {
  const float a = __builtin_fabsf(x), z = x * x, zz = z * z;
  float p = MAC32(-0x1.5f4698p-17f, z, 0x1.e26dd2p-14f);
  p = TWO32(p, z, zz, -0x1.be3d1p-11f, 0x1.564476p-8f);
  p = TWO32(p, z, zz, -0x1.b82bbp-6f, 0x1.ce2f1ap-4f);
  p = TWO32(p, z, zz, -0x1.812746p-2f, 0x1.06eba8p-3f);
  float q = MAC32(0x1.5d725ap-16f, a, -0x1.c45966p-12f);
  q = TWO32(q, a, z, 0x1.106268p-8f, -0x1.9aebbep-6f);
  q = TWO32(q, a, z, 0x1.bb454ep-4f, 0x1.444d1ep-1f);
  q = TWO32(q, a, z, 0x1.212626p+0f, -0x1.62d98ep-13f);
  const split_exp32 e = split_32(-q);
  const float power = power_of_2(e.n), far = MAC32(-power, e.small, 1.0f - power);
  return a < 0.9f ? MAC32(x, p, x) : __builtin_copysignf(a > 4.0f ? 1.0f : far, x);
}

FLAT float rsqrt32(float x) {
  return 1.0f / __builtin_sqrtf(x);
}

#else
FLAT float exp32(float x) {
  return (float)exp_64((double)x);
}
/* 2^y; whole y give exact powers. */
FLAT float exp2_32(float y) {
  double x = y;
  x = x > 1000.0 ? 1000.0 : x;
  x = x < -1000.0 ? -1000.0 : x;
  const double shifted = x + 0x1.8p52, n = shifted - 0x1.8p52, scale = f64_of((at_bits_of_f64(shifted) + 1023u) << 52);
  return (float)mac(scale, expm1_reduced((x - n) * 0.69314718055994531), scale);
}
FLAT float expm1_32(float x) {
  return x == 0.0f ? x : (float)expm1_64((double)x);
}
FLAT float tanh32(float x) {
  const double e = expm1_64(2.0 * __builtin_fabs((double)x)), y = e / (e + 2.0);
  return (float)__builtin_copysign(y, (double)x);
}
FLAT float log32(float x) {
  return (float)log_64((double)x);
}
FLAT float log2_32(float x) {
  return (float)(log_64((double)x) * LOG2_E);
}
FLAT float log10_32(float x) {
  return (float)(log_64((double)x) * LOG10_E);
}
FLAT float log1p_32(float x) {
  return (float)log1p_64((double)x);
}
FLAT float sinh32(float x) {
  const double e = expm1_64(__builtin_fabs((double)x)), y = 0.5 * (e + e / (e + 1.0));
  return (float)__builtin_copysign(y, (double)x);
}
FLAT float cosh32(float x) {
  const double e = exp_64((double)x);
  return (float)(0.5 * (e + 1.0 / e));
}
/* |x| < 1: x p(x^2), off by 2^-45; beyond by the share above sqrt(2) |x|. */
FLAT float erf32(float x) {
  double a = __builtin_fabs((double)x);
  a = a > 6.0 ? 6.0 : a;
  const double z = a * a;
  double p = -0x1.c01736124c885p-24;
  p = mac(p, z, 0x1.9a7817f326772p-20);
  p = mac(p, z, -0x1.f0599cbdba7e1p-17);
  p = mac(p, z, 0x1.f93f186970a4bp-14);
  p = mac(p, z, -0x1.c0283ef8f56b0p-11);
  p = mac(p, z, 0x1.565b9e75f864dp-8);
  p = mac(p, z, -0x1.b82ce1484c669p-6);
  p = mac(p, z, 0x1.ce2f21974ec43p-4);
  p = mac(p, z, -0x1.812746b0263c4p-2);
  p = mac(p, z, 0x1.20dd750429b14p+0);
  const double far = 1.0 - 2.0 * share_above_64(a * 1.4142135623730951), y = a < 1.0 ? a * p : far;
  return (float)__builtin_copysign(y, (double)x);
}
FLAT float rsqrt32(float x) {
  return (float)(1.0 / __builtin_sqrt((double)x));
}
#endif

#endif
