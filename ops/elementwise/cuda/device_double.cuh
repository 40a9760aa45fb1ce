/* SPDX-License-Identifier: Apache-2.0
 * device_double.cuh: strict functions of f64, before device_math.cuh in kernels that compute with f64. A pair of
 * doubles carries what one cannot hold; what magnifies an error of its argument is computed in pairs from the start.
 * Each result is within one unit in the last place, most within 0.6. */

/* For what is used more than once or long: compiling it takes longer than calling it. */
#define AT_CALLED static __device__ __noinline__

/* A number of f64 and what it lacks. */
struct at_signature_pair {
  double high, low;
};
/* The exact sum of a and b, |a| >= |b| or a = 0; of any two; their exact product. */
AT_INLINE at_signature_pair at_sum_sorted(double a, double b) {
  const double s = __dadd_rn(a, b);
  return at_signature_pair{s, __dadd_rn(b, -__dadd_rn(s, -a))};
}
AT_INLINE at_signature_pair at_sum(double a, double b) {
  const double s = __dadd_rn(a, b), back = __dadd_rn(s, -a);
  return at_signature_pair{s, __dadd_rn(__dadd_rn(a, -__dadd_rn(s, -back)), __dadd_rn(b, -back))};
}
AT_INLINE at_signature_pair at_product(double a, double b) {
  const double p = __dmul_rn(a, b);
  return at_signature_pair{p, __fma_rn(a, b, -p)};
}
/* To about 2^-102 of the result. */
AT_INLINE at_signature_pair at_plus(at_signature_pair a, at_signature_pair b) {
  const at_signature_pair s = at_sum(a.high, b.high), t = at_sum(a.low, b.low), u = at_sum_sorted(s.high, s.low + t.high);
  return at_sum_sorted(u.high, u.low + t.low);
}
AT_INLINE at_signature_pair at_minus(at_signature_pair a) {
  return at_signature_pair{-a.high, -a.low};
}
AT_INLINE at_signature_pair at_times(at_signature_pair a, at_signature_pair b) {
  const at_signature_pair p = at_product(a.high, b.high);
  return at_sum_sorted(p.high, p.low + __fma_rn(a.high, b.low, a.low * b.high));
}
AT_CALLED at_signature_pair at_over(at_signature_pair a, at_signature_pair b) {
  const double y = __ddiv_rn(a.high, b.high), rest = __fma_rn(-y, b.high, a.high) + __fma_rn(-y, b.low, a.low);
  return at_sum_sorted(y, __ddiv_rn(rest, b.high));
}
AT_INLINE at_signature_pair at_root(at_signature_pair a) {
  const double y = __dsqrt_rn(a.high);
  return a.high > 0.0 ? at_sum_sorted(y, (__fma_rn(-y, y, a.high) + a.low) * __ddiv_rn(0.5, y)) : at_signature_pair{y, 0.0};
}
AT_INLINE at_signature_pair at_scaled(at_signature_pair a, double power) {
  return at_signature_pair{a.high * power, a.low * power};
}
/* factor times a times a power of 2, rounded once where the result is no normal number. */
AT_INLINE double at_rounded(at_signature_pair a, double factor, double power) {
  const at_signature_pair p = at_product(factor, a.high);
  if (!(p.high != 0.0 && fabs(p.high) <= 0x1.fffffffffffffp1023)) return p.high;
  const double low = __fma_rn(factor, a.low, p.low);
  return __fma_rn(p.high, power, low * power);
}
/* Coefficients from the lowest on. */
template <int N> AT_INLINE double at_polynomial(const double (&c)[N], double x) {
  double y = c[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; i--) y = __fma_rn(y, x, c[i]);
  return y;
}
template <int N> AT_INLINE at_signature_pair at_polynomial_pair(const at_signature_pair (&c)[N], at_signature_pair x, double rest) {
  at_signature_pair y = at_plus(at_signature_pair{c[N - 1].high, c[N - 1].low}, at_product(x.high, rest));
#pragma unroll 1
  for (int i = N - 2; i >= 0; i--) {
    const at_signature_pair p = at_times(y, x), s = at_sum(c[i].high, p.high);
    y = at_sum_sorted(s.high, s.low + (c[i].low + p.low));
  }
  return y;
}

/* ---- exponential and logarithm ---- */

/* exp(x) = 2^n (1 + the result), to 2^-58 of the result; |x| < 2000. */
AT_CALLED at_signature_pair at_exp_rest(at_signature_pair x, int &n) {
  static constexpr double coefficients[] = {0x1.5555555555555p-3,  0x1.5555555555555p-5,  0x1.1111111111111p-7,
                                            0x1.6c16c16c16c17p-10, 0x1.a01a01a0196a7p-13, 0x1.a01a01a019b61p-16,
                                            0x1.71de3a5aa9dc9p-19, 0x1.27e4fb7a28932p-22, 0x1.ae642c777eecbp-26,
                                            0x1.1eed79fc4aa76p-29, 0x1.61bfbf339abc9p-33, 0x1.9432a4db90609p-37};
  const double shifted = __fma_rn(x.high, 0x1.71547652b82fep+0, 0x1.8p52), k = shifted - 0x1.8p52;
  const at_signature_pair part = at_sum(__fma_rn(k, -0x1.62e42fefa38p-1, x.high), k * -0x1.ef35793c76p-45);
  const at_signature_pair r = at_sum(part.high, __fma_rn(k, -0x1.cc01f97b57a08p-87, part.low + x.low));
  const at_signature_pair square = at_product(r.high, r.high);
  const double cubic = square.high * r.high * at_polynomial(coefficients, r.high);
  const at_signature_pair sum = at_sum_sorted(r.high, 0.5 * square.high);
  n = (int)(at_u32)(at_u64)__double_as_longlong(shifted);
  return at_sum_sorted(sum.high, sum.low + (__fma_rn(r.high, r.low, r.low) + __fma_rn(0.5, square.low, cubic)));
}
AT_INLINE double at_power_of_2(int n) {
  return __longlong_as_double((long long)(n + 1023) << 52);
}
/* exp(x) / scale; the scale keeps it a normal number where exp(x) is none. Below -800 it is exp(-800), which is 0; up
 * to 700. */
AT_INLINE at_signature_pair at_exp_pair(at_signature_pair x, double &scale) {
  int n;
  const at_signature_pair rest = at_exp_rest(x.high < -800.0 ? at_signature_pair{-800.0, 0.0} : x, n);
  const at_signature_pair one = at_sum_sorted(1.0, rest.high);
  const bool tiny = n < -900;
  scale = tiny ? 0x1p-200 : 1.0;
  return at_scaled(at_sum_sorted(one.high, one.low + rest.low), at_power_of_2(tiny ? n + 200 : n));
}
/* exp(x) - 1 for x <= 0. */
AT_INLINE at_signature_pair at_expm1_pair(at_signature_pair x) {
  int n;
  const at_signature_pair rest = at_exp_rest(x.high < -50.0 ? at_signature_pair{-50.0, 0.0} : x, n);
  const double power = at_power_of_2(n);
  const at_signature_pair sum = at_sum(power - 1.0, power * rest.high);
  return at_sum_sorted(sum.high, __fma_rn(power, rest.low, sum.low));
}
/* 2 atanh(f) for |f| < 0.1716. */
AT_INLINE at_signature_pair at_twice_atanh(at_signature_pair f) {
  static constexpr double coefficients[] = {
      0x1.5555555555555p-2, 0x1.999999999999ap-3, 0x1.2492492492486p-3, 0x1.c71c71c71f277p-4, 0x1.745d17437c9c6p-4,
      0x1.3b13b261b7707p-4, 0x1.1110b8a8a4c9ep-4, 0x1.e202a1674bd3dp-5, 0x1.ab83066e27c95p-5, 0x1.bee1cf6181aa5p-5};
  const double z = f.high * f.high,
               low = __fma_rn(f.low, z, __fma_rn(f.high * z, at_polynomial(coefficients, z), f.low));
  return at_sum_sorted(2.0 * f.high, 2.0 * low);
}
/* v: a normal number. */
AT_CALLED at_signature_pair at_log_pair(at_signature_pair v) {
  const long long bits = __double_as_longlong(v.high), k = bits - 0x3fe6a09e667f3bcdll;
  const int n = (int)(k >> 52);
  const double power = at_power_of_2(n < 1000 ? -n : -n + 10), more = n < 1000 ? 1.0 : 0x1p-10;
  const double m = v.high * more * power, m_low = v.low * more * power, e = (double)n;
  const at_signature_pair log = at_twice_atanh(at_over(at_sum(m - 1.0, m_low), at_plus(at_signature_pair{m, m_low}, at_signature_pair{1.0, 0.0})));
  const at_signature_pair sum = at_sum(e * 0x1.62e42fefa38p-1, log.high);
  return at_sum_sorted(sum.high, sum.low + __fma_rn(e, 0x1.ef35793c7673p-45, log.low));
}
/* log(1 + s) */
AT_CALLED at_signature_pair at_log1p_pair(at_signature_pair s) {
  if (s.high > -0.29 && s.high < 0.41) return at_twice_atanh(at_over(s, at_plus(s, at_signature_pair{2.0, 0.0})));
  return at_log_pair(at_plus(s, at_signature_pair{1.0, 0.0}));
}

/* ---- hyperbolic ones ---- */

AT_INLINE double at_hypot_double(double x, double y) {
  const double a = fmax(fabs(x), fabs(y)), b = fmin(fabs(x), fabs(y));
  if (x != x || y != y || !(b > a * 0x1p-60) || !(a < 0x1.fffffffffffffp1023)) return hypot(x, y);
  const double scale = a > 0x1p500 ? 0x1p-600 : a < 0x1p-400 ? 0x1p600 : 1.0, p = a * scale, q = b * scale;
  const at_signature_pair u = at_product(p, p), v = at_product(q, q), s = at_sum_sorted(u.high, v.high);
  const at_signature_pair y2 = at_root(at_signature_pair{s.high, s.low + (u.low + v.low)});
  return at_rounded(y2, 1.0, scale > 1.0 ? 0x1p-600 : scale < 1.0 ? 0x1p600 : 1.0);
}
AT_INLINE at_signature_pair at_log_of_twice(double a) {
  return at_plus(at_log_pair(at_signature_pair{a, 0.0}), at_signature_pair{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56});
}
AT_INLINE double at_asinh_double(double x) {
  const double a = fabs(x);
  if (!(a <= 0x1.fffffffffffffp1023)) return asinh(x);
  if (a < 0x1p-28) return copysign(__fma_rn(a * a, a * -0x1.5555555555555p-3, a), x);
  at_signature_pair y;
  if (a > 0x1p60) {
    y = at_log_of_twice(a);
  } else {
    const at_signature_pair square = at_product(a, a), root = at_root(at_plus(square, at_signature_pair{1.0, 0.0}));
    y = a < 0.5 ? at_log1p_pair(at_plus(at_signature_pair{a, 0.0}, at_sum_sorted(root.high - 1.0, root.low)))
                : at_log_pair(at_plus(at_signature_pair{a, 0.0}, root));
  }
  return copysign(y.high, x);
}
AT_INLINE double at_acosh_double(double x) {
  if (!(x > 1.0 && x <= 0x1.fffffffffffffp1023)) return acosh(x);
  if (x > 0x1p60) return at_log_of_twice(x).high;
  const at_signature_pair over = {x - 1.0, 0.0}; /* exact up to 2 */
  if (x < 2.0) return at_log1p_pair(at_plus(over, at_root(at_times(over, at_sum(x, 1.0))))).high;
  return at_log_pair(at_plus(at_signature_pair{x, 0.0}, at_root(at_plus(at_product(x, x), at_signature_pair{-1.0, 0.0})))).high;
}
AT_INLINE double at_atanh_double(double x) {
  const double a = fabs(x);
  if (!(a < 1.0) || a < 0x1p-500) return atanh(x);
  const at_signature_pair y =
      a < 0.1715 ? at_twice_atanh(at_signature_pair{a, 0.0}) : at_log_pair(at_over(at_sum(1.0, a), at_sum(1.0, -a)));
  return copysign(0.5 * y.high, x);
}
AT_INLINE double at_elu_double(double x, double y) {
  if (x > -0x1p-60) return x * y;
  return at_rounded(at_expm1_pair(at_signature_pair{x, 0.0}), y, 1.0);
}

/* ---- error function ---- */

/* erfc(z) exp(z^2) for 0 <= z <= 28: (z + 4) times it is a polynomial in 1 / (z + 4). */
AT_INLINE at_signature_pair at_erfcx_pair(at_signature_pair z) {
  static constexpr at_signature_pair first[] = {
      {0x1.3b35b725c71c9p+0, 0x1.55843c899427p-57},   {0x1.0c5afdcb194cep+0, -0x1.bfceefdc01ec9p-54},
      {0x1.8c35ff09d9da7p-1, 0x1.6985410b33e55p-56},  {0x1.f95e41c119394p-2, 0x1.01809f074992ap-56},
      {0x1.13c406cc03107p-2, 0x1.a7fcdb72d51e7p-58},  {0x1.f984debd3d778p-4, 0x1.f8e1def196952p-59},
      {0x1.778e65869201p-5, -0x1.bc0724ed3b67ap-61},  {0x1.a27424e144428p-7, -0x1.45c0a51575556p-63},
      {0x1.108be7d5d7318p-9, -0x1.e2a10051df9e9p-63}, {-0x1.140e75747e4e6p-13, 0x1.2aa40e054c528p-68}};
  static constexpr double rest[] = {-0x1.7ce5474e25de3p-13, -0x1.2e3e844c7efadp-15, 0x1.b17d34e249105p-18,
                                    0x1.1a8dcb50c5419p-18,  0x1.9f40544d20923p-24,  -0x1.90f7d9e550c5fp-22,
                                    -0x1.9c5a01983d077p-25, 0x1.1d7babe9f828fp-25,  0x1.d332b5ccaaf7fp-28,
                                    -0x1.c2c4764c9bf27p-29, -0x1.b0cff84d7eb8bp-31, 0x1.8c6a50064d14bp-32,
                                    0x1.6554e8c80c801p-34,  -0x1.5210fb25bd6e6p-35, -0x1.ea31b6e0ca083p-38,
                                    0x1.7aeb2d0e79ccbp-39,  0x1.a262083ae822fp-42};
  const at_signature_pair w = at_over(at_signature_pair{1.0, 0.0}, at_plus(z, at_signature_pair{4.0, 0.0}));
  const at_signature_pair u = at_plus(at_times(w, at_signature_pair{0x1.2492492492492p+3, 0x1.2492492492492p-51}),
                            at_signature_pair{-0x1.4924924924925p+0, 0x1.b6db6db6db6dbp-54});
  return at_times(at_polynomial_pair(first, u, at_polynomial(rest, u.high)), w);
}
/* erfc(z) / scale for z >= 0, z^2 given; beyond 28 it is that of 28, which is 0. */
AT_CALLED at_signature_pair at_erfc_pair(at_signature_pair z, at_signature_pair square, double &scale) {
  const at_signature_pair e = at_exp_pair(at_minus(square), scale);
  return at_times(e, at_erfcx_pair(z.high < 28.0 ? z : at_signature_pair{28.0, 0.0}));
}
AT_INLINE double at_erfc_double(double x) {
  if (x != x) return x;
  const double a = fmin(fabs(x), 28.0);
  double scale;
  const at_signature_pair y = at_erfc_pair(at_signature_pair{a, 0.0}, at_product(a, a), scale);
  if (x >= 0.0) return at_rounded(y, 1.0, scale);
  const at_signature_pair rest = at_sum_sorted(2.0, -y.high * scale);
  return rest.high + (rest.low - y.low * scale);
}
/* x times half erfc(-x / sqrt(2)). */
AT_INLINE double at_gelu_double(double x) {
  if (!(fabs(x) < 39.0)) return x > 0.0 ? x : x * 0.0; /* NaN of -inf */
  const double a = fabs(x);
  const at_signature_pair p = at_product(a, 0x1.6a09e667f3bcdp-1), square = at_product(a, a);
  double scale;
  const at_signature_pair z = at_sum_sorted(p.high, __fma_rn(a, -0x1.bdd3413b26456p-55, p.low));
  const at_signature_pair y = at_scaled(at_erfc_pair(z, at_scaled(square, 0.5), scale), 0.5);
  if (x < 0.0) return at_rounded(y, x, scale);
  const at_signature_pair share = at_sum_sorted(1.0, -y.high * scale);
  return at_rounded(at_signature_pair{share.high, share.low - y.low * scale}, x, 1.0);
}
/* One step of Newton's from the device's own. */
AT_INLINE double at_erfinv_double(double x) {
  static constexpr double coefficients[] = {-0x1.812746b0379e7p-2,  0x1.ce2f21a042be2p-4,   -0x1.b82ce31288b51p-6,
                                            0x1.565bcd0e6a509p-8,   -0x1.c02db4003d058p-11, 0x1.f9a326f75cb9ep-14,
                                            -0x1.f4d25b4dce88dp-17, 0x1.b9e68c6c4ee43p-20,  -0x1.5f6a128d89504p-23,
                                            0x1.fab2b16a2b713p-27,  -0x1.32d2abf119492p-30};
  const double a = fabs(x), y = erfinv(a), z = y * y;
  if (!(a < 1.0)) return erfinv(x);
  if (a < 0x1p-100) return at_rounded(at_signature_pair{0x1.c5bf891b4ef6bp-1, -0x1.618f13eb7ca89p-55}, x, 1.0);
  double off;
  if (a <= 0.5) {
    const at_signature_pair line = at_product(y, 0x1.20dd750429b6dp+0), left = at_sum(line.high, -a);
    const double more = __fma_rn(y, 0x1.1ae3a914fed8p-56, y * z * at_polynomial(coefficients, z));
    off = (left.high + more + (left.low + line.low)) * exp(z);
  } else {
    double scale;
    const at_signature_pair over = at_erfc_pair(at_signature_pair{y, 0.0}, at_product(y, y), scale);
    off = ((1.0 - a) - over.high - over.low) * exp(z);
  }
  return copysign(__fma_rn(off, -0x1.c5bf891b4ef6bp-1, y), x);
}

/* ---- logistic function ---- */

/* factor / (1 + exp(-x)), x given as a pair. */
AT_INLINE double at_logistic_double(at_signature_pair x, double factor) {
  const bool left = x.high < 0.0;
  double scale;
  const at_signature_pair e = at_exp_pair(left ? x : at_minus(x), scale), small = at_scaled(e, scale);
  const at_signature_pair one = at_sum_sorted(1.0, small.high), d = at_sum_sorted(one.high, one.low + small.low);
  return at_rounded(at_over(left ? e : at_signature_pair{1.0, 0.0}, d), factor, left ? scale : 1.0);
}
AT_INLINE double at_sigmoid_double(double x) {
  return x != x ? x : at_logistic_double(at_signature_pair{x, 0.0}, 1.0);
}
AT_INLINE double at_silu_double(double x) {
  return fabs(x) <= 800.0 ? at_logistic_double(at_signature_pair{x, 0.0}, x) : x < 0.0 ? x * 0.0 : x; /* NaN of -inf */
}
/* log(1 + exp(x)) */
AT_INLINE double at_softplus_double(double x) {
  if (!(fabs(x) <= 800.0)) return x < 0.0 ? 0.0 : x;
  double scale;
  const at_signature_pair e = at_exp_pair(at_signature_pair{-fabs(x), 0.0}, scale);
  if (scale < 1.0) return x > 0.0 ? x : at_rounded(e, 1.0, scale);
  const at_signature_pair low = at_log1p_pair(e);
  if (x < 0.0) return low.high;
  const at_signature_pair sum = at_sum(x, low.high);
  return sum.high + (sum.low + low.low);
}
/* x n / (n + 2) with n = exp(x) (exp(x) + 2), in terms of e = exp(-|x|), as the f32 version. */
AT_INLINE double at_mish_double(double x) {
  if (!(fabs(x) <= 800.0)) return x < 0.0 ? x * 0.0 : x; /* NaN of -inf */
  double scale;
  const at_signature_pair e = at_exp_pair(at_signature_pair{-fabs(x), 0.0}, scale), two = {2.0, 0.0};
  if (scale < 1.0) return x < 0.0 ? at_rounded(e, x, scale) : x;
  const at_signature_pair n = x < 0.0 ? at_times(e, at_plus(two, e)) : at_plus(at_signature_pair{1.0, 0.0}, at_scaled(e, 2.0));
  return at_rounded(at_over(n, at_plus(n, x < 0.0 ? two : at_scaled(at_times(e, e), 2.0))), x, 1.0);
}
/* log(x / (1 - x)) is 2 atanh(2 x - 1). */
AT_INLINE double at_logit_double(double x) {
  if (!(x > 0x1p-60 && x < 1.0)) return log(__ddiv_rn(x, 1.0 - x));
  if (x > 0.415 && x < 0.585) return at_twice_atanh(at_signature_pair{__fma_rn(2.0, x, -1.0), 0.0}).high;
  return at_log_pair(at_over(at_signature_pair{x, 0.0}, at_sum(1.0, -x))).high;
}
/* x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3). */
AT_INLINE double at_gelu_tanh_double(double x) {
  if (!(fabs(x) < 30.0)) return x > 0.0 ? x : x * 0.0; /* NaN of -inf */
  const at_signature_pair square = at_product(x, x), slope = {0x1.2444f2a4d8b4bp-4, -0x1.6c843a29d1c7p-61};
  const at_signature_pair g = at_plus(at_times(square, slope), at_signature_pair{0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54});
  return at_logistic_double(at_times(g, at_signature_pair{x, 0.0}), x);
}
