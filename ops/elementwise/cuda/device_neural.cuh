/* SPDX-License-Identifier: Apache-2.0
 * device_neural.cuh: the functions of neural networks on real numbers, after device_math.cuh. Written so that neither
 * tail loses its relative accuracy. */
template <int P, class T> AT_INLINE T at_exp(T x) {
  return fn_exp<P, T>(x);
}

/* e is exp(-|x|): factor e / (1 + e) left of 0, factor / (1 + e) right of it. */
AT_INLINE float at_logistic(bool left, at_two e, float scale, float factor) {
  const float high = e.high * scale, d = 1.0f + high, d_low = ((1.0f - d) + high) + e.low * scale;
  const at_two y = at_quotient_two(left ? e.high : 1.0f, left ? e.low : 0.0f, d, d_low);
  return __fmaf_rn(factor, y.high, factor * y.low) * (left ? scale : 1.0f);
}
AT_INLINE float at_logistic(float x, float factor) {
  float scale;
  const at_two e = at_exp_two(fabsf(x), scale);
  return at_logistic(x < 0.0f, e, scale, factor);
}
/* exp(-|x|) times 2^64, which is a normal number where the result is one; 0 below 2^-190. */
AT_INLINE float at_exp_raised(float x) {
  return at_fast_exp2(__fmaf_rn(fabsf(x), -0x1.715476p+0f, 64.0f));
}
AT_INLINE float at_logistic_narrow(float x, float e, float factor) {
  const float y = factor * at_fast_reciprocal(__fmaf_rn(e, 0x1p-64f, 1.0f));
  return x < 0.0f ? y * e * 0x1p-64f : y;
}
AT_FUNCTION1(fn_sigmoid) {
  if constexpr (AT_IS_F32 && P != AT_STRICT) {
    return at_logistic_narrow(x, at_exp_raised(x), 1.0f);
  } else if constexpr (AT_IS_F32) {
    return x != x ? x : at_logistic(x, 1.0f);
  } else if constexpr (P == AT_STRICT) {
    return at_sigmoid_double(x);
  } else {
    const T e = at_exp<P>(-at_abs(x));
    return (x < (T)0 ? e : (T)1) / ((T)1 + e);
  }
}
AT_FUNCTION1(fn_silu) {
  if constexpr (AT_IS_F32 && P != AT_STRICT) {
    return at_logistic_narrow(x, at_exp_raised(x), x);
  } else if constexpr (AT_IS_F32) {
    return fabsf(x) <= 110.0f ? at_logistic(x, x) : x < 0.0f ? x * 0.0f : x; /* NaN of -inf */
  } else if constexpr (P == AT_STRICT) {
    return at_silu_double(x);
  } else {
    const T e = at_exp<P>(-at_abs(x));
    return (x < (T)0 ? x * e : x) / ((T)1 + e);
  }
}
AT_FUNCTION1(fn_softplus) {
  if constexpr (AT_IS_F32 && P == AT_STRICT) {
    float scale;
    const at_two e = at_exp_two(fabsf(x), scale);
    const float high = e.high * scale, rest = e.low * scale;
    const float low = log1pf(high), more = __fdividef(rest, 1.0f + high);
    return x > 0.0f ? x + (low + more) : x != x ? x : scale < 1.0f ? (e.high + e.low) * scale : low + more;
  } else if constexpr (P == AT_STRICT) {
    return at_softplus_double(x);
  } else {
    const T e = at_exp<P>(-at_abs(x)), low = fn_log1p<P, T>(e);
    return x > (T)0 ? x + low : x != x ? x : low;
  }
}
AT_FUNCTION1(fn_softsign) {
  return x / ((T)1 + at_abs(x));
}
/* x n / (n + 2) with n = exp(x) (exp(x) + 2), in terms of e = exp(-|x|): left of 0 n is e (e + 2), right of it the
 * quotient is (1 + 2 e) / (1 + 2 e + 2 e^2). */
AT_INLINE float at_mish(float x) {
  float scale;
  const at_two e = at_exp_two(fabsf(x), scale);
  const float h = e.high * scale, l = e.low * scale;
  if (scale < 1.0f) return x < 0.0f ? __fmaf_rn(x, e.high, x * e.low) * scale : x;
  if (x < 0.0f) {
    const float s = 2.0f + h, s_low = ((2.0f - s) + h) + 2.0f * l, n = h * s;
    const float n_low = __fmaf_rn(h, s, -n) + __fmaf_rn(h, s_low, 2.0f * l), d = 2.0f + n;
    const at_two y = at_quotient_two(n, n_low, d, ((2.0f - d) + n) + n_low);
    return __fmaf_rn(x, y.high, x * y.low);
  }
  const float n = __fmaf_rn(2.0f, h, 1.0f), n_low = __fmaf_rn(2.0f, h, 1.0f - n) + 2.0f * l, g = 2.0f * h * h;
  const float d = n + g, d_low = ((n - d) + g) + (n_low + __fmaf_rn(4.0f * h, l, __fmaf_rn(2.0f * h, h, -g)));
  const at_two y = at_quotient_two(n, n_low, d, d_low);
  return __fmaf_rn(x, y.high, x * y.low);
}
AT_FUNCTION1(fn_mish) {
  if constexpr (AT_IS_F32 && P != AT_STRICT) {
    const bool left = x < 0.0f;
    const float raised = at_exp_raised(x), e = raised * 0x1p-64f, n = left ? e + 2.0f : __fmaf_rn(2.0f, e, 1.0f);
    const float d = left ? __fmaf_rn(e, n, 2.0f) : __fmaf_rn(e + e, e, n), y = x * (n * at_fast_reciprocal(d));
    return left ? y * raised * 0x1p-64f : y;
  } else if constexpr (AT_IS_F32) {
    return fabsf(x) <= 110.0f ? at_mish(x) : x < 0.0f ? x * 0.0f : x; /* NaN of -inf */
  } else if constexpr (P == AT_STRICT) {
    return at_mish_double(x);
  } else {
    const T e = at_exp<P>(-at_abs(x)), n = x < (T)0 ? e * (e + (T)2) : (T)2 * e + (T)1;
    return x * (n / (x < (T)0 ? n + (T)2 : n + (T)2 * e * e));
  }
}
/* Near 1/2 the quotient is near 1, but 2 x - 1 is exact. */
AT_INLINE float at_logit(float x) {
  const bool near = x >= 0.25f && x <= 0.75f;
  const float rest = 1.0f - x, rest_low = (1.0f - rest) - x;
  const at_two q = at_quotient_two(near ? __fmaf_rn(2.0f, x, -1.0f) : x, 0.0f, rest, rest_low);
  const float y = near ? log1pf(q.high) : logf(q.high);
  return x > 0x1p-20f && x < 1.0f ? y + __fdividef(q.low, near ? 1.0f + q.high : q.high) : y;
}
AT_FUNCTION1(fn_logit) {
  if constexpr (AT_IS_F32) {
    return at_logit(x);
  } else if constexpr (P == AT_STRICT) {
    return at_logit_double(x);
  } else {
    const T rest = (T)1 - x;
    return x >= (T)0.25 && x <= (T)0.75 ? log1p((x + x - (T)1) / rest) : log(x / rest);
  }
}
AT_FUNCTION2(fn_elu) {
  if constexpr (P != AT_STRICT)
    return x > (T)0 ? x : y * fn_expm1<P, T>(x);
  else if constexpr (AT_IS_F32)
    return x > (T)0 ? x : at_elu_single(x, y);
  else
    return x > (T)0 ? x : at_elu_double(x, y);
}
AT_FUNCTION2(fn_leaky_relu) {
  return x < (T)0 ? x * y : x;
}
AT_FUNCTION1(fn_hardtanh) {
  return x < (T)-1 ? (T)-1 : x > (T)1 ? (T)1 : x;
}
template <class T> AT_INLINE T at_ramp(T x) {
  const T y = x + (T)3;
  return y < (T)0 ? (T)0 : y > (T)6 ? (T)6 : y;
}
AT_FUNCTION1(fn_hardsigmoid) {
  return at_ramp(x) / (T)6;
}
AT_FUNCTION1(fn_hardswish) {
  if constexpr (AT_IS_F32 && P == AT_STRICT) return at_hardswish_single(x);
  return x * (at_ramp(x) / (T)6);
}

/* gelu(x) is max(x, 0) - a times the normal distribution's share above a = |x|. That share is 2^(-a^2 / (2 ln 2)) times
 * a function that a polynomial in t = 1 / (a + 4) gives, so the left tail of gelu keeps its relative accuracy. Every
 * instruction counts: an H200 has time for 56 an element when it reads and writes f32. */
AT_INLINE float at_gelu(float x) {
  const float a = fminf(fabsf(x), 14.4f); /* beyond, the result is x or -0 */
  /* Without its last two bits 1 - 4 t is exact; t (1 + off) is 1 / (a + 4). */
  const float t = __uint_as_float(__float_as_uint(at_fast_reciprocal(a + 4.0f)) & ~3u);
  const float off = __fmaf_rn(-a, t, __fmaf_rn(t, -4.0f, 1.0f)), s = __fmaf_rn(t, off, t - 0x1.07cp-3f);
  float r = 0x1.16e1dep-10f; /* all times 2^-24 */
  r = __fmaf_rn(r, s, 0x1.be388ap-13f);
  r = __fmaf_rn(r, s, -0x1.8e7ce2p-13f);
  r = __fmaf_rn(r, s, -0x1.f76e6ap-15f);
  r = __fmaf_rn(r, s, 0x1.c16d24p-17f);
  r = __fmaf_rn(r, s, 0x1.f7bf02p-17f);
  r = __fmaf_rn(r, s, 0x1.8d1e54p-18f);
  r = __fmaf_rn(r, s, 0x1.9e1de0p-20f);
  r = __fmaf_rn(r, s, 0x1.4382acp-22f);
  const float r_high = __fmaf_rn(r, s, 0x1.8c500cp-25f), r_low = __fmaf_rn(r, s, 0x1.8c500cp-25f - r_high);
  const float p = __fmul_rn(t, r_high), p_low = __fmaf_rn(t, r_low, __fmaf_rn(p, off, __fmaf_rn(t, r_high, -p)));
  /* a (b + b_low) is a^2 / 2 times the f32 next to 1 / ln 2; what that is off by is in the polynomial above. It is
   * f - n; n + 151 is in the low bits of `shifted`, and 1 + e is 2^f. */
  const float b = a * 0x1.715476p-1f, b_low = __fmaf_rn(a, 0x1.715476p-1f, -b);
  const float shifted = __fmaf_rn(-a, b, 0x1.8p23f + 151.0f), n = shifted - (0x1.8p23f + 151.0f);
  const float f = __fmaf_rn(-a, b_low, __fmaf_rn(-a, b, -n));
  float e = 0x1.439486p-13f;
  e = __fmaf_rn(e, f, 0x1.5ef17ap-10f);
  e = __fmaf_rn(e, f, 0x1.3b2ae6p-7f);
  e = __fmaf_rn(e, f, 0x1.c6afa2p-5f);
  e = __fmaf_rn(e, f, 0x1.ebfbep-3f);
  e = __fmaf_rn(e, f, 0x1.62e43p-1f) * f;
  /* The share is 2^(n + 24) (p + rest). The last step alone rounds where the result is below the normal numbers. x
   * times 0 is NaN for -inf, as x (1 + erf(x)) / 2 has it. */
  const float rest = __fmaf_rn(p, e, __fmaf_rn(p_low, e, p_low));
  const float scaled = a * __uint_as_float(__float_as_uint(shifted) << 23);
  return __fmaf_rn(x, x > 0.0f ? 1.0f : 0.0f, -__fmaf_rn(scaled, p, scaled * rest));
}
/* Times 2^64, so that it is a normal number up to a of 16. */
AT_INLINE float at_share_above_narrow(float a) {
  const float t = at_fast_reciprocal(__fmaf_rn(a, 0.375f, 1.0f)), s = t - 0x1.28p-1f;
  float r = -0x1.71f67cp-4f;
  r = __fmaf_rn(r, s, -0x1.30b678p-7f);
  r = __fmaf_rn(r, s, 0x1.fe2f02p-3f);
  r = __fmaf_rn(r, s, 0x1.8a5b1cp-2f);
  r = __fmaf_rn(r, s, 0x1.2fe08cp-2f);
  return at_fast_exp2(__fmaf_rn(a, a * -0x1.715476p-1f, 64.0f)) * (t * r);
}
AT_FUNCTION1(fn_gelu) {
  if constexpr (AT_IS_F32) {
    if constexpr (P == AT_STRICT) {
      return at_gelu(x);
    } else {
      const float q = at_share_above_narrow(fabsf(x)); /* far out 0; of infinity too */
      return x < 0.0f ? x * q * 0x1p-64f : x * __fmaf_rn(q, -0x1p-64f, 1.0f);
    }
  } else {
    if constexpr (P == AT_STRICT) return at_gelu_double(x);
    const double q = fabs(x) < 40.0 ? 0.5 * erfc(fabs(x) * 0x1.6a09e667f3bcdp-1) : 0.0;
    return x < 0.0 ? x * q : x * (1.0 - q);
  }
}
/* x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3). 2 u is computed with what its rounding loses, which the
 * exponential magnifies. */
AT_INLINE float at_gelu_tanh_single(float x) {
  if (!(fabsf(x) < 12.0f)) return x > 0.0f ? x : x * 0.0f; /* NaN of -inf */
  const float h = __fmul_rn(x, x), p = __fmul_rn(h, 0x1.2444f2p-4f), g = __fadd_rn(p, 0x1.988454p+0f);
  const float back = __fadd_rn(g, -p), lost = __fadd_rn(p, -__fadd_rn(g, -back)) + __fadd_rn(0x1.988454p+0f, -back);
  const float p_low = __fmaf_rn(h, 0x1.49b16ap-29f, __fmaf_rn(h, 0x1.2444f2p-4f, -p));
  const float h_low = __fmaf_rn(x, x, -h), g_low = lost + __fmaf_rn(h_low, 0x1.2444f2p-4f, p_low - 0x1.857936p-25f);
  const float u = __fmul_rn(x, g), low = __fmaf_rn(x, g, -u) + x * g_low;
  float scale;
  at_two e = at_exp_two(fabsf(u), scale);
  e.low = __fmaf_rn(e.high, x < 0.0f ? low : -low, e.low);
  return at_logistic(x < 0.0f, e, scale, x);
}
AT_FUNCTION1(fn_gelu_tanh) {
  if constexpr (AT_IS_F32 && P != AT_STRICT) {
    const float h = x * x, u = x * __fmaf_rn(h, -0x1.a5a7dp-4f, -0x1.26aec2p+1f); /* -2 u / ln 2 */
    const float e = at_fast_exp2(64.0f - fabsf(u)); /* times 2^64: normal where the result is */
    return (x < 0.0f ? x * e * 0x1p-64f : x) * at_fast_reciprocal(__fmaf_rn(e, 0x1p-64f, 1.0f));
  } else if constexpr (AT_IS_F32) {
    return at_gelu_tanh_single(x);
  } else if constexpr (P == AT_STRICT) {
    return at_gelu_tanh_double(x);
  } else {
    const double u = x * (x * x * 0x1.2444f2a4d8b4bp-4 + 0x1.9884533d43651p+0), e = exp(-fabs(u));
    return (x < 0.0 ? x * e : x) / (1.0 + e);
  }
}
