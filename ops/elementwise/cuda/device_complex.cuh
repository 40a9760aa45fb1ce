/* SPDX-License-Identifier: Apache-2.0
 * device_complex.cuh: the functions of functions.def on complex numbers, written out. Sums and products are rounded one
 * by one; quotients and roots are scaled, so that no square overflows. Strict functions of c64 are computed in c128. */
AT_INLINE at_c128 at_widen(at_c64 x) {
  return at_c128{(double)x.re, (double)x.im};
}
AT_INLINE at_c64 at_narrow(at_c128 x) {
  return at_c64{(float)x.re, (float)x.im};
}
#define AT_BOTH_COMPLEX(define) define(at_c64, float) define(at_c128, double)

#define AT_COMPLEX_ARITHMETIC(C, R)                                                           \
  template <int P> AT_INLINE C fn_add(C x, C y) {                                             \
    return C{fn_add<P, R>(x.re, y.re), fn_add<P, R>(x.im, y.im)};                             \
  }                                                                                           \
  template <int P> AT_INLINE C fn_subtract(C x, C y) {                                        \
    return C{fn_subtract<P, R>(x.re, y.re), fn_subtract<P, R>(x.im, y.im)};                   \
  }                                                                                           \
  template <int P> AT_INLINE C fn_multiply(C x, C y) {                                        \
    return C{fn_subtract<P, R>(fn_multiply<P, R>(x.re, y.re), fn_multiply<P, R>(x.im, y.im)), \
             fn_add<P, R>(fn_multiply<P, R>(x.re, y.im), fn_multiply<P, R>(x.im, y.re))};     \
  }                                                                                           \
  /* Smith's: divides by the larger part first. */                                            \
  template <int P> AT_INLINE C fn_divide(C x, C y) {                                          \
    if (at_abs(y.re) >= at_abs(y.im)) {                                                       \
      if (y.re == (R)0 && y.im == (R)0) return C{x.re / at_abs(y.re), x.im / at_abs(y.re)};   \
      const R ratio = y.im / y.re, d = y.re + y.im * ratio;                                   \
      return C{(x.re + x.im * ratio) / d, (x.im - x.re * ratio) / d};                         \
    }                                                                                         \
    const R ratio = y.re / y.im, d = y.re * ratio + y.im;                                     \
    return C{(x.re * ratio + x.im) / d, (x.im * ratio - x.re) / d};                           \
  }                                                                                           \
  template <int P> AT_INLINE C fn_negate(C x) {                                               \
    return C{-x.re, -x.im};                                                                   \
  }                                                                                           \
  template <int P> AT_INLINE C fn_conjugate(C x) {                                            \
    return C{x.re, -x.im};                                                                    \
  }                                                                                           \
  template <int P> AT_INLINE bool fn_equal(C x, C y) {                                        \
    return x.re == y.re && x.im == y.im;                                                      \
  }                                                                                           \
  template <int P> AT_INLINE bool fn_unequal(C x, C y) {                                      \
    return x.re != y.re || x.im != y.im;                                                      \
  }                                                                                           \
  template <int P> AT_INLINE R fn_real_part(C x) {                                            \
    return x.re;                                                                              \
  }                                                                                           \
  template <int P> AT_INLINE R fn_imaginary_part(C x) {                                       \
    return x.im;                                                                              \
  }                                                                                           \
  template <int P> AT_INLINE R fn_magnitude(C x) {                                            \
    return fn_hypot<P, R>(x.re, x.im);                                                        \
  }                                                                                           \
  template <int P> AT_INLINE R fn_angle(C x) {                                                \
    return fn_atan2<P, R>(x.im, x.re);                                                        \
  }                                                                                           \
  template <int P> AT_INLINE C fn_complex(R x, R y) {                                         \
    return C{x, y};                                                                           \
  }
AT_BOTH_COMPLEX(AT_COMPLEX_ARITHMETIC)

#define AT_SMALL(R) (at_same<R, float>::yes ? (R)1e-30f : (R)1e-290)

/* ln of the length of a + bi, a >= b >= 0, where it is near 1: a^2 + b^2 - 1 is summed with what is lost. */
AT_INLINE double at_log_near_1(double a, double b) {
  const double h = __dmul_rn(a, a), l = __fma_rn(a, a, -h), g = __dmul_rn(b, b), k = __fma_rn(b, b, -g);
  const double rest = __dadd_rn(h, -1.0), sum = __dadd_rn(rest, g), back = __dadd_rn(sum, -rest);
  const double lost = __dadd_rn(__dadd_rn(rest, -__dadd_rn(sum, -back)), __dadd_rn(g, -back));
  return 0.5 * log1p(sum + (lost + (l + k)));
}
AT_INLINE float at_log_near_1(float a, float b) {
  return (float)at_log_near_1((double)a, (double)b);
}

#define AT_COMPLEX_FUNCTIONS(C, R, WIDER)                                                                        \
  template <int P> AT_INLINE C fn_reciprocal(C x) {                                                              \
    return fn_divide<P>(C{(R)1, (R)0}, x);                                                                       \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_exp(C x) {                                                                     \
    WIDER(fn_exp<P>(at_widen(x)))                                                                                \
    const R size = fn_exp<P, R>(x.re);                                                                           \
    if (x.im == (R)0) return C{size, x.im};                                                                      \
    if (size == (R)0) return C{at_copysign((R)0, fn_cos<P, R>(x.im)), at_copysign((R)0, fn_sin<P, R>(x.im))};    \
    return C{size * fn_cos<P, R>(x.im), size * fn_sin<P, R>(x.im)};                                              \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_log(C x) {                                                                     \
    WIDER(fn_log<P>(at_widen(x)))                                                                                \
    const R a = at_abs(x.re), b = at_abs(x.im), length = a < (R)2 && b < (R)2 ? a * a + b * b : (R)0;            \
    if (length > (R)0.5 && length < (R)2) return C{at_log_near_1(a > b ? a : b, a > b ? b : a), fn_angle<P>(x)}; \
    return C{fn_log<P, R>(fn_magnitude<P>(x)), fn_angle<P>(x)};                                                  \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_sqrt(C x) {                                                                    \
    WIDER(fn_sqrt<P>(at_widen(x)))                                                                               \
    if (x.re == (R)0 && x.im == (R)0) return C{(R)0, x.im};                                                      \
    const bool small = at_abs(x.re) < AT_SMALL(R) && at_abs(x.im) < AT_SMALL(R);                                 \
    const R up = small ? (R)0x1p106 : (R)0.25, down = small ? (R)0x1p-53 : (R)2;                                 \
    const R a = at_abs(x.re) * up, b = x.im * up, t = fn_sqrt<P, R>((fn_hypot<P, R>(a, b) + a) * (R)0.5);        \
    if (x.re >= (R)0) return C{t * down, b / ((R)2 * t) * down};                                                 \
    return C{at_abs(b) / ((R)2 * t) * down, at_copysign(t * down, x.im)};                                        \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_rsqrt(C x) {                                                                   \
    WIDER(fn_rsqrt<P>(at_widen(x)))                                                                              \
    return fn_reciprocal<P>(fn_sqrt<P>(x));                                                                      \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_sin(C x) {                                                                     \
    WIDER(fn_sin<P>(at_widen(x)))                                                                                \
    return C{fn_sin<P, R>(x.re) * fn_cosh<P, R>(x.im), fn_cos<P, R>(x.re) * fn_sinh<P, R>(x.im)};                \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_cos(C x) {                                                                     \
    WIDER(fn_cos<P>(at_widen(x)))                                                                                \
    return C{fn_cos<P, R>(x.re) * fn_cosh<P, R>(x.im), -(fn_sin<P, R>(x.re) * fn_sinh<P, R>(x.im))};             \
  }                                                                                                              \
  template <int P> AT_INLINE C fn_power(C x, C y) {                                                              \
    WIDER(fn_power<P>(at_widen(x), at_widen(y)))                                                                 \
    if (y.re == (R)0 && y.im == (R)0) return C{(R)1, (R)0};                                                      \
    if (x.re == (R)0 && x.im == (R)0) return C{(R)0, (R)0};                                                      \
    return fn_exp<P>(fn_multiply<P>(y, fn_log<P>(x)));                                                           \
  }
#define AT_IN_C128(...) \
  if constexpr (P == AT_STRICT) return at_narrow(__VA_ARGS__);
#define AT_IN_ITSELF(...)
AT_COMPLEX_FUNCTIONS(at_c128, double, AT_IN_ITSELF)
AT_COMPLEX_FUNCTIONS(at_c64, float, AT_IN_C128)
