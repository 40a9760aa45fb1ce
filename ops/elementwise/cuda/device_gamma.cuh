/* SPDX-License-Identifier: Apache-2.0
 * device_gamma.cuh: the gamma function of f64 and its logarithm, after device_double.cuh in kernels that need them. */

/* 1 / gamma(1 + s) - 1 for 0 <= s <= 1, given s and 1 - s: their product times a polynomial in 2 s - 1. */
AT_INLINE at_signature_pair at_gamma_rest(at_signature_pair s, at_signature_pair other) {
  static constexpr at_signature_pair first[] = {
      {0x1.06eba8214db69p-1, -0x1.ca38add6025p-55},     {-0x1.514d3d90584b3p-4, -0x1.f217f14a98ef3p-58},
      {-0x1.ae7f941ca486p-7, -0x1.4c2891362bb06p-62},   {0x1.54ea68a3b3e12p-8, 0x1.2dc5953f4905dp-64},
      {-0x1.9f4a6bce37717p-12, 0x1.c3193308fdfe8p-67},  {-0x1.1ad8e56f9a41fp-14, 0x1.24ad47feda37p-68},
      {0x1.2179817abd36ap-16, 0x1.db6ad6b4d0843p-72},   {-0x1.383d43a6ad719p-20, -0x1.7af8932668827p-74},
      {-0x1.b256fe4275455p-24, -0x1.bd50d76339dccp-78}, {0x1.d1c7133e5f04fp-26, -0x1.c07fabb5dd16p-80},
      {-0x1.1e66f3e113249p-29, -0x1.2cf57682b508ep-83}, {-0x1.0b276a778089fp-35, -0x1.3454d33011319p-90},
      {0x1.7fd06b62e3175p-36, -0x1.233e1b5a04723p-90},  {-0x1.24acf11f27ea4p-39, -0x1.f909fcae23584p-93},
      {0x1.f5c6e761ed6e5p-45, 0x1.a8e5ad33df69ep-100},  {0x1.28e98017b93fep-47, 0x1.e9543216a1ed4p-102},
      {-0x1.47f28ebf5e978p-50, 0x1.5a2f3a3df4f0ep-104}, {0x1.186e4ed379b21p-54, 0x1.3793f21607785p-109},
      {0x1.98daf79f132e4p-62, 0x1.8dbd37d1b2f72p-116}};
  static constexpr double rest[] = {-0x1.7ea451c20f512p-62, 0x1.f5921bcbb586fp-66, -0x1.0b510459138dcp-70,
                                    -0x1.304172abcea93p-75, 0x1.c0d6a91541e8p-78,  -0x1.ad995168c6557p-82,
                                    0x1.1fe1f9a7345c9p-87,  0x1.484f7f2252115p-91};
  const at_signature_pair t = at_plus(s, at_minus(other));
  return at_times(at_polynomial_pair(first, t, at_polynomial(rest, t.high)), at_times(s, other));
}
AT_CALLED at_signature_pair at_gamma_rest_of(double x) {
  const double whole = floor(x);
  return at_gamma_rest(at_sum(x, -whole), at_sum(whole + 1.0, -x));
}
/* start (x - 1) (x - 2) ... down to a factor in [1, 2); start for x < 2. */
AT_CALLED at_signature_pair at_falling(double x, double start) {
  at_signature_pair p = {start, 0.0};
#pragma unroll 1
  for (double factor = x - 1.0; factor >= 1.0; factor -= 1.0) p = at_times(p, at_signature_pair{factor, 0.0});
  return p;
}
/* start x (x + 1) ... up to a factor in [0, 1), for x < 1. */
AT_CALLED at_signature_pair at_rising(double x, double start) {
  at_signature_pair p = {start, 0.0};
#pragma unroll 1
  for (double k = 0.0; k <= -floor(x); k += 1.0) p = at_times(p, at_sum(x, k));
  return p;
}
AT_INLINE double at_tgamma_double(double x) {
  if (x == 0.0) return __ddiv_rn(1.0, x);
  if (x < 0.0 && x == floor(x)) return __longlong_as_double(0x7ff8000000000000ll); /* -inf too */
  if (x >= 172.0) return __longlong_as_double(0x7ff0000000000000ll);
  if (x != x) return x;
  if (x <= -185.0) return fmod(floor(x), 2.0) == 0.0 ? 0.0 : -0.0;
  if (fabs(x) < 0x1p-60) return __ddiv_rn(1.0, x);
  const at_signature_pair one = at_plus(at_gamma_rest_of(x), at_signature_pair{1.0, 0.0});
  if (x >= 1.0) return at_rounded(at_over(at_falling(x, 0x1p-200), one), 1.0, 0x1p200);
  return at_rounded(at_over(at_signature_pair{1.0, 0.0}, at_times(at_rising(x, 0x1p-200), one)), 1.0, 0x1p-200);
}

/* 2^-20 of log(gamma(x)) for x >= 16, after Stirling. */
AT_CALLED at_signature_pair at_lgamma_large(double x) {
  static constexpr double coefficients[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16a54p-9, 0x1.a01a019afa0ep-11,
                                            -0x1.38136b513ea58p-11, 0x1.b92774e327727p-11, -0x1.e39d0018dd46fp-10};
  const double y = __ddiv_rn(1.0, x);
  const at_signature_pair main = at_times(at_scaled(at_sum(x, -0.5), 0x1p-20), at_log_pair(at_signature_pair{x, 0.0}));
  const double more = 0x1p-20 * y * at_polynomial(coefficients, y * y);
  return at_plus(at_plus(main, at_signature_pair{x * -0x1p-20, 0.0}), at_sum(0x1.d67f1c864beb5p-21, more));
}
/* Of x in (-20, 1), not a whole number: its gamma is 1 / (p (1 + rest)), p = x (x + 1) ... Near x = 1 what p is short
 * of 1 is exact. */
AT_CALLED double at_lgamma_left(double x) {
  const at_signature_pair rest = at_gamma_rest_of(x), one = {1.0, 0.0};
  if (x > 0.0) {
    const at_signature_pair under = at_sum(x, -1.0);
    return -at_log1p_pair(at_plus(rest, at_plus(under, at_times(rest, under)))).high;
  }
  const at_signature_pair p = at_times(at_rising(x, 1.0), at_plus(rest, one)), size = p.high < 0.0 ? at_minus(p) : p;
  return -(size.high > 0.75 && size.high < 1.35 ? at_log1p_pair(at_plus(size, at_minus(one))) : at_log_pair(size)).high;
}
AT_INLINE double at_lgamma_double(double x) {
  if (x != x) return x;
  if (fabs(x) == __longlong_as_double(0x7ff0000000000000ll) || (x <= 0.0 && x == floor(x)))
    return __longlong_as_double(0x7ff0000000000000ll);
  if (fabs(x) < 0x1p-60) return -log(fabs(x));
  if (x >= 16.0) return at_rounded(at_lgamma_large(x), 1.0, 0x1p20);
  if (x <= -20.0) { /* pi / (-x sin(pi x) gamma(-x)) */
    const double part = fabs(x - rint(x)), sine = sin(part * 0x1.921fb54442d18p+1);
    const at_signature_pair left = at_scaled(at_log_pair(at_signature_pair{-x * sine * 0x1.45f306dc9c883p-2, 0.0}), 0x1p-20);
    return at_rounded(at_minus(at_plus(left, at_lgamma_large(-x))), 1.0, 0x1p20);
  }
  if (x < 1.0) return at_lgamma_left(x);
  const at_signature_pair rest = at_gamma_rest_of(x), one = at_plus(rest, at_signature_pair{1.0, 0.0});
  if (x < 2.0) return -at_log1p_pair(rest).high;
  if (x < 3.0) return at_log1p_pair(at_over(at_plus(at_signature_pair{x - 2.0, 0.0}, at_minus(rest)), one)).high;
  return at_log_pair(at_over(at_falling(x, 1.0), one)).high;
}
