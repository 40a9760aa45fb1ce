/* SPDX-License-Identifier: Apache-2.0
 * interpret_neural32.h: the functions of neural networks on f32, in f32 arithmetic on CPUs with fused multiply-add. See
 * interpret_math32.h. */
#ifndef AT_INTERPRET_NEURAL32_H
#define AT_INTERPRET_NEURAL32_H

#include "ops/elementwise/interpret_math32.h"

#ifdef __FMA__
/* `factor` times exp(x) / (1 + exp(x)) or 1 / (1 + exp(-x)), of x + low: in terms of e = exp(-|x|) = high + rest, 2^40
 * times as much where it would be below the normal numbers, so that the last product alone rounds there. */
FLAT float logistic32(float x, float low, float factor) {
  float a = __builtin_fabsf(x);
  a = a > 110.0f ? 110.0f : a;
  const bool under = x < 0.0f;
  const split_exp32 e = split_32(-a, under ? low : -low);
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
  const float last = MAC32(r, s, 0x1.9d0112p-26f), lost = MAC32(r, s, 0x1.9d0112p-26f - last);
  const float r_high = MAC32(last, s, 0x1.d158f2p-27f),
              r_low = MAC32(lost, s, MAC32(last, s, 0x1.d158f2p-27f - r_high));
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

/* x times top / bottom: (2 e + e^2) / (2 + 2 e + e^2) with e = exp(x) for x < 0, else (1 + 2 e) / (1 + 2 e + 2 e^2) with
 * e = exp(-x); each in two parts, and scaled as logistic32's. */
FLAT float mish32(float x) {
  float a = __builtin_fabsf(x);
  a = a > 110.0f ? 110.0f : a;
  const split_exp32 e = split_32(-a, 0.0f);
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
