/* SPDX-License-Identifier: Apache-2.0
 * device_single.cuh: f32, before device_math.cuh: the device's fast instructions, and strict functions that carry what
 * f32 cannot hold in a second f32, so that nothing of f64 is needed. */
AT_INLINE float at_fast_reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}
/* 2^x; below 2^-126 0. */
AT_INLINE float at_fast_exp2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return x < -126.0f ? 0.0f : exp2f(x);
#endif
}
AT_INLINE float at_fast_tanh(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return tanhf(x);
#endif
}
AT_INLINE float at_fast_rsqrt(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / sqrtf(x);
#endif
}

/* A number of f32 and what it lacks. */
struct at_two {
  float high, low;
};
/* exp(-a) / scale for a >= 0, to 2^-27 of it. The scale keeps it a normal number; beyond 110 it is exp(-110). */
AT_INLINE at_two at_exp_two(float a, float &scale) {
  const float x = -fminf(a, 110.0f), shifted = __fmaf_rn(x, 0x1.715476p+0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = __fmaf_rn(n, -0x1.7f7d1cp-20f, __fmaf_rn(n, -0x1.62e4p-1f, x));
  float q = 0x1.6a2366p-10f;
  q = __fmaf_rn(q, r, 0x1.123a6cp-7f);
  q = __fmaf_rn(q, r, 0x1.5558f4p-5f);
  q = __fmaf_rn(q, r, 0x1.55549p-3f);
  q = __fmaf_rn(q, r, 0x1.fffffcp-2f);
  const float small = __fmaf_rn(r * r, q, r);
  const bool tiny = n < -100.0f;
  scale = tiny ? 0x1p-40f : 1.0f;
  const float power = __uint_as_float((__float_as_uint(shifted) + (tiny ? 167u : 127u)) << 23);
  const float high = __fmaf_rn(power, small, power);
  return at_two{high, __fmaf_rn(power, small, power - high)};
}
/* (n + n_low) / (d + d_low) */
AT_INLINE at_two at_quotient_two(float n, float n_low, float d, float d_low) {
  const float y = __fdiv_rn(n, d), rest = __fmaf_rn(-y, d, n) + __fmaf_rn(-y, d_low, n_low);
  return at_two{y, rest * at_fast_reciprocal(d)};
}

/* 2^x. The power of 2 stays a normal number; the last product alone rounds where the result is below those. */
AT_INLINE float at_exp2_single(float x) {
  const float bound = x > 128.0f ? 128.0f : x < -160.0f ? -160.0f : x; /* NaN stays */
  const float shifted = bound + 0x1.8p23f, n = shifted - 0x1.8p23f, f = bound - n;
  float e = 0x1.44138ap-13f;
  e = __fmaf_rn(e, f, 0x1.5f089p-10f);
  e = __fmaf_rn(e, f, 0x1.3b2a54p-7f);
  e = __fmaf_rn(e, f, 0x1.c6af6cp-5f);
  e = __fmaf_rn(e, f, 0x1.ebfbep-3f);
  e = __fmaf_rn(e, f, 0x1.62e43p-1f) * f;
  const bool small = n < 0.0f;
  const float power = __uint_as_float((__float_as_uint(shifted) + (small ? 191u : 126u)) << 23);
  return __fmaf_rn(power, e, power) * (small ? 0x1p-64f : 2.0f);
}
/* log10(x) = n log10(2) + log10(m), m = 1 + f in [0.707, 1.414): n times the first part of log10(2) is exact. */
AT_INLINE float at_log10_single(float x) {
  if (!(x > 0.0f && x < __int_as_float(0x7f800000))) return log10f(x);
  const bool tiny = x < 0x1p-126f;
  const at_u32 bits = __float_as_uint(tiny ? x * 0x1p23f : x), k = bits - 0x3f3504f3u;
  const float n = (float)((int)k >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = __fadd_rn(__uint_as_float((k & 0x7fffffu) + 0x3f3504f3u), -1.0f);
  float q = -0x1.111c8ap-5f;
  q = __fmaf_rn(q, f, 0x1.c4b914p-5f);
  q = __fmaf_rn(q, f, -0x1.d30c24p-5f);
  q = __fmaf_rn(q, f, 0x1.f95c96p-5f);
  q = __fmaf_rn(q, f, -0x1.27c40ap-4f);
  q = __fmaf_rn(q, f, 0x1.63cbd2p-4f);
  q = __fmaf_rn(q, f, -0x1.bcbb42p-4f);
  q = __fmaf_rn(q, f, 0x1.287a74p-3f);
  q = __fmaf_rn(q, f, -0x1.bcb7bp-3f);
  const float t = __fmul_rn(f, 0x1.bcb7b2p-2f),
              t_low = __fmaf_rn(f, -0x1.5b235ep-27f, __fmaf_rn(f, 0x1.bcb7b2p-2f, -t));
  const float head = __fmul_rn(n, 0x1.344p-2f), sum = __fadd_rn(head, t); /* head is 0 or the larger one */
  const float sum_low = __fadd_rn(t, -__fadd_rn(sum, -head));
  return sum + (__fmaf_rn(n, 0x1.3509f8p-18f, sum_low) + __fmaf_rn(f * f, q, t_low));
}
/* cosh(x) is 4 (d + e / 8) with e = exp(-|x|), d = 1 / (8 e), which does not overflow before it is due. */
AT_INLINE float at_cosh_single(float x) {
  if (!(fabsf(x) < 92.0f)) return fabsf(x) * __int_as_float(0x7f800000); /* infinity, or NaN */
  float scale;
  const at_two e = at_exp_two(fabsf(x), scale), d = at_quotient_two(0.125f, 0.0f, e.high, e.low);
  const float small = 0.125f * e.high, sum = __fadd_rn(d.high, small);
  const float low = __fadd_rn(small, -__fadd_rn(sum, -d.high)) + __fmaf_rn(0.125f, e.low, d.low);
  return (sum + low) * (scale < 1.0f ? 0x1p42f : 4.0f);
}
/* exp(x) - 1 for x <= 0, to 2^-27 of it. */
AT_INLINE at_two at_expm1_two(float x) {
  const float a = x < -24.0f ? -24.0f : x, shifted = __fmaf_rn(a, 0x1.715476p+0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float part = __fmaf_rn(n, -0x1.62e4p-1f, a), r = __fmaf_rn(n, -0x1.7f7d1cp-20f, part);
  const float r_low = __fmaf_rn(n, -0x1.7f7d1cp-20f, __fadd_rn(part, -r));
  float q = 0x1.6a2366p-10f;
  q = __fmaf_rn(q, r, 0x1.123a6cp-7f);
  q = __fmaf_rn(q, r, 0x1.5558f4p-5f);
  q = __fmaf_rn(q, r, 0x1.55549p-3f);
  q = __fmaf_rn(q, r, 0x1.fffffcp-2f);
  const float square = __fmul_rn(r, r), small = __fmaf_rn(square, q, r);
  const float small_low = __fmaf_rn(square, q, __fadd_rn(r, -small)) + r_low;
  const float power = __uint_as_float((__float_as_uint(shifted) + 127u) << 23), base = power - 1.0f;
  const float high = __fmaf_rn(power, small, base), low = __fmaf_rn(power, small, __fadd_rn(base, -high));
  return at_two{high, __fmaf_rn(power, small_low, low)};
}
/* y (exp(x) - 1) for x <= 0. */
AT_INLINE float at_elu_single(float x, float y) {
  if (!(x <= -0x1p-30f && fabsf(y) < __int_as_float(0x7f800000))) return y * (x <= -0x1p-30f ? -1.0f : x); /* -0 too */
  const at_two e = at_expm1_two(x);
  return y == 0.0f ? y * e.high : __fmaf_rn(y, e.high, y * e.low); /* a zero has the sign of the product */
}
/* x times a polynomial in w = -log(1 - x^2), or in its root where x is near 1. */
AT_INLINE float at_erfinv_single(float x) {
  if (!(fabsf(x) < 1.0f)) return erfinvf(x);
  const float w = -logf(__fmaf_rn(-x, x, 1.0f));
  float p, u, first, low;
  if (w < 5.0f) {
    u = w - 2.5f;
    p = -0x1.32e60ep-27f;
    p = __fmaf_rn(p, u, 0x1.90e8acp-26f);
    p = __fmaf_rn(p, u, 0x1.f6a6f8p-22f);
    p = __fmaf_rn(p, u, -0x1.d0edap-19f);
    p = __fmaf_rn(p, u, -0x1.4db186p-18f);
    p = __fmaf_rn(p, u, 0x1.c9e97p-13f);
    p = __fmaf_rn(p, u, -0x1.48650cp-10f);
    p = __fmaf_rn(p, u, -0x1.11c506p-8f);
    p = __fmaf_rn(p, u, 0x1.f91e8ap-3f);
    first = 0x1.805c5ep+0f, low = -0x1.b5ea46p-25f;
  } else {
    u = __fsqrt_rn(w) - 3.0f;
    p = -0x1.530fa8p-18f;
    p = __fmaf_rn(p, u, -0x1.8445cep-16f);
    p = __fmaf_rn(p, u, 0x1.628e22p-13f);
    p = __fmaf_rn(p, u, -0x1.2e2cf6p-12f);
    p = __fmaf_rn(p, u, -0x1.07c4c4p-13f);
    p = __fmaf_rn(p, u, 0x1.845a32p-10f);
    p = __fmaf_rn(p, u, -0x1.d34a24p-9f);
    p = __fmaf_rn(p, u, 0x1.74a61cp-8f);
    p = __fmaf_rn(p, u, -0x1.f4e5a8p-8f);
    p = __fmaf_rn(p, u, 0x1.3581fep-7f);
    p = __fmaf_rn(p, u, 0x1.006dcap+0f);
    first = 0x1.6a9efcp+1f, low = -0x1.377056p-26f;
  }
  const float high = __fmaf_rn(p, u, first), rest = __fmaf_rn(p, u, first - high) + low;
  return copysignf(__fmaf_rn(x, high, x * rest), x);
}
/* x min(max(x + 3, 0), 6) / 6 */
AT_INLINE float at_hardswish_single(float x) {
  if (!(x > -3.0f && x < 3.0f)) return x < 0.0f ? x * 0.0f : x;
  const float y = x + 3.0f, y_low = fabsf(x) < 3.0f ? x - (y - 3.0f) : 0.0f;
  const float p = __fmul_rn(x, y), p_low = __fmaf_rn(x, y_low, __fmaf_rn(x, y, -p));
  const float q = __fmul_rn(p, 0x1.555556p-3f), rest = __fmaf_rn(-6.0f, q, p) + p_low;
  return __fmaf_rn(rest, 0x1.555556p-3f, q);
}
