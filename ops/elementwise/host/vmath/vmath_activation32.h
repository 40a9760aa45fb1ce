/* SPDX-License-Identifier: Apache-2.0
 * vmath_activation32.h: the functions of neural networks on f32, in f32 arithmetic on CPUs with fused multiply-add. See
 * vmath32.h. */
#ifndef AT_VMATH_ACTIVATION32_H
#define AT_VMATH_ACTIVATION32_H

#include "ops/elementwise/host/vmath/vmath32.h"

#ifdef __FMA__
/* `factor` times exp(x) / (1 + exp(x)) or 1 / (1 + exp(-x)), of x + low: in terms of e = exp(-|x|) = high + rest, 2^40
 * times as much where it would be below the normal numbers, so that the last product alone rounds there. */
FLAT float logistic32(float x, float low, float factor) {
  float a = __builtin_fabsf(x);
  a = a > 110.0f ? 110.0f : a;
  const bool under = x < 0.0f;
  const split_exp32 e = split_pair32(-a, under ? low : -low);
  const bool tiny = e.n < -100;
  const float scale = tiny ? 0x1p-40f : 1.0f, power = power_of_2(tiny ? e.n + 40 : e.n);
  const float high = MAC32(power, e.small, power), rest = MAC32(power, e.small, power - high), whole = high * scale;
  const float d = 1.0f + whole, d_low = MAC32(rest, scale, (1.0f - d) + whole);
  const float inverse = 1.0f / d, inverse_low = inverse * (MAC32(-d, inverse, 1.0f) - d_low);
  const float left = under ? high : 1.0f, top = factor * left;
  const float top_low = MAC32(factor, left, -top) + (under ? factor * rest : 0.0f);
  return MAC32(top, inverse, MAC32(top, inverse_low, top_low * inverse)) * (under ? scale : 1.0f);
}
FLAT float sigmoid32(float x) {
  const float y = logistic32(x, 0.0f, 1.0f);
  return x != x ? x : y;
}
FLAT float silu32(float x) {
  float factor = x < -110.0f ? -110.0f : x;                            /* of -infinity NaN, below */
  const float y = __builtin_copysignf(logistic32(x, 0.0f, factor), x); /* of 0 too */
  return x > 110.0f ? x : x == -__builtin_inff() ? __builtin_nanf("") : y;
}

/* max(x, 0) - a times the share of the normal distribution above a = |x|. That share is 2^(-a^2 / (2 ln 2)) times a
 * function that a polynomial in t = 1 / (a + 4) gives. */
FLAT float gelu32(float x) {
  float a = __builtin_fabsf(x);
  a = a > 14.4f ? 14.4f : a; /* beyond, the result is x or -0 */
  /* Without its last two bits 1 - 4 t is exact; t (1 + off) is 1 / (a + 4). */
  const float t = at_f32_of_bits(at_bits_of_f32(1.0f / (a + 4.0f)) & ~UINT32_C(3));
  const float off = MAC32(-a, t, MAC32(t, -4.0f, 1.0f)), s = MAC32(t, off, t - 0x1.07cp-3f);
  float r = 0x1.16e1dep-10f; /* all times 2^-24 */
  r = MAC32(r, s, 0x1.be388ap-13f);
  r = MAC32(r, s, -0x1.8e7ce2p-13f);
  r = MAC32(r, s, -0x1.f76e6ap-15f);
  r = MAC32(r, s, 0x1.c16d24p-17f);
  r = MAC32(r, s, 0x1.f7bf02p-17f);
  r = MAC32(r, s, 0x1.8d1e54p-18f);
  r = MAC32(r, s, 0x1.9e1de0p-20f);
  r = MAC32(r, s, 0x1.4382acp-22f);
  const float r_high = MAC32(r, s, 0x1.8c500cp-25f), r_low = MAC32(r, s, 0x1.8c500cp-25f - r_high);
  const float p = t * r_high, p_low = MAC32(t, r_low, MAC32(p, off, MAC32(t, r_high, -p)));
  /* a (b + b_low) is a^2 / 2 times the f32 next to 1 / ln 2; what that is off by is in the polynomial above. It is
   * f - n; n + 151 is in the low bits of `shifted`, and 1 + e is 2^f. */
  const float b = a * 0x1.715476p-1f, b_low = MAC32(a, 0x1.715476p-1f, -b);
  const float shifted = MAC32(-a, b, 0x1.8p23f + 151.0f), n = shifted - (0x1.8p23f + 151.0f);
  const float f = MAC32(-a, b_low, MAC32(-a, b, -n));
  float e = 0x1.439486p-13f;
  e = MAC32(e, f, 0x1.5ef17ap-10f);
  e = MAC32(e, f, 0x1.3b2ae6p-7f);
  e = MAC32(e, f, 0x1.c6afa2p-5f);
  e = MAC32(e, f, 0x1.ebfbep-3f);
  e = MAC32(e, f, 0x1.62e43p-1f) * f;
  /* The share is 2^(n + 24) (p + rest); the last step alone rounds where the result is below the normal numbers. */
  const float rest = MAC32(p, e, MAC32(p_low, e, p_low)), scaled = a * at_f32_of_bits(at_bits_of_f32(shifted) << 23);
  return (x > 0.0f ? x : x * 0.0f) - MAC32(scaled, p, scaled * rest);
}

/* x / (1 + exp(-u)), u = x (k + j x^2) in two parts, k = 2 sqrt(2 / pi), j = 0.044715 k. k's first part has 21 bits, so
 * that p is taken off it without rounding. */
FLAT float gelu_tanh32(float x) {
  float a = x > 14.0f ? 14.0f : x; /* beyond, the result is x or -0 */
  a = a < -14.0f ? -14.0f : a;
  const float z = a * a, p = MAC32(z, 0x1.2444f2p-4f, 0x1.98845p+0f);
  const float less = MAC32(z, 0x1.49b16ap-29f, MAC32(MAC32(a, a, -z), 0x1.2444f2p-4f, 0x1.9ea1b2p-23f));
  const float u = a * p, p_low = MAC32(z, 0x1.2444f2p-4f, 0x1.98845p+0f - p) + less;
  const float y = __builtin_copysignf(logistic32(u, MAC32(a, p_low, MAC32(a, p, -u)), a), x);
  return x > 14.0f ? x : x == -__builtin_inff() ? __builtin_nanf("") : x != x ? x : y;
}

/* max(x, 0) + ln(1 + e), e = exp(-|x|): above sqrt(2) - 1 as ln(2) + ln((1 + e) / 2). */
FLAT float softplus32(float x) {
  const float e = exp32(-__builtin_fabsf(x)), f = e > 0x1.a8279ap-2f ? MAC32(e, 0.5f, -0.5f) : e;
  const float low = (e > 0x1.a8279ap-2f ? 0x1.62e43p-1f : 0.0f) + (f + log1p_rest32(f));
  return x > 0.0f ? x + low : low;
}

/* x times top / bottom: (2 e + e^2) / (2 + 2 e + e^2) with e = exp(x) for x < 0, else (1 + 2 e) / (1 + 2 e + 2 e^2)
 * with e = exp(-x); each in two parts, and scaled as logistic32's. */
FLAT float mish32(float x) {
  float a = __builtin_fabsf(x);
  a = a > 110.0f ? 110.0f : a;
  const split_exp32 e = split_32(-a);
  const float scale = e.n < -100 ? 0x1p-40f : 1.0f, power = power_of_2(e.n < -100 ? e.n + 40 : e.n);
  const float high = MAC32(power, e.small, power), low = (power - high) + power * e.small, whole = high * scale;
  const float square = whole * high, square_low = MAC32(whole, high, -square) + 2.0f * whole * low;
  const bool under = x < 0.0f;
  const float one = under ? 2.0f * high : 1.0f, more = under ? square : 2.0f * high, top = one + more;
  const float top_low = ((one - top) + more) + (2.0f * low + (under ? square_low : 0.0f));
  const float rest = under ? 2.0f : 2.0f * square, all = top * scale,
              bottom = (under ? 2.0f : all) + (under ? all : rest);
  const float bottom_low = (((under ? 2.0f : all) - bottom) + (under ? all : rest)) + top_low * scale;
  const float y = top / bottom, y_low = (MAC32(-y, bottom, top) + (top_low - y * bottom_low)) / bottom;
  const float factor = x < -110.0f ? -110.0f : x;
  const float result = __builtin_copysignf(MAC32(factor, y, factor * y_low) * scale, x);
  return x > 110.0f ? x : x == -__builtin_inff() ? __builtin_nanf("") : x != x ? x : result;
}

#else
FLAT float sigmoid32(float x) {
  return (float)(1 / (1 + exp_64(-(double)x)));
}
FLAT float silu32(float x) {
  const double wide = x, y = wide / (1.0 + exp_64(-wide));
  return (float)(wide < -200.0 ? wide * 0.0 : y);
}
/* x Q, Q the share below x. */
FLAT float gelu32(float x) {
  double a = __builtin_fabs((double)x);
  a = a > 15.0 ? 15.0 : a;
  const double above = share_above_64(a), wide = x;
  return (float)(x < -14.9f ? wide * 0.0 : x < 0.0f ? wide * above : wide * (1.0 - above));
}
FLAT float softplus32(float x) {
  const double wide = x, low = log1p_64(exp_64(-__builtin_fabs(wide)));
  return (float)(x > 0.0f ? wide + low : x != x ? wide : low);
}
/* x n / (n + 2), n = exp(x) (exp(x) + 2): tanh of softplus. */
FLAT float mish32(float x) {
  const double wide = x, e = exp_64(wide > 100.0 ? 100.0 : wide), n = e * (e + 2.0);
  return (float)(wide * (wide < -200.0 ? 0.0 : n / (n + 2.0)));
}
/* x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3). */
FLAT float gelu_tanh32(float x) {
  const double wide = x, u2 = wide * (wide * wide * 0x1.2444f2a4d8b4bp-4 + 0x1.9884533d43651p+0);
  const double y = wide / (1.0 + exp_64(-u2));
  return (float)(wide < -100.0 ? wide * 0.0 : y);
}
#endif

#endif
