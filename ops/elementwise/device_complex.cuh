/* SPDX-License-Identifier: Apache-2.0
 * device_complex.cuh: the functions of functions.def on complex numbers, written out. Sums and products are rounded one by
 * one; quotients and roots are scaled, so that no square overflows. */
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

#define AT_COMPLEX_FUNCTIONS(C, R)                                                                                  \
  template <int P> AT_INLINE C fn_reciprocal(C x) {                                                                 \
    return fn_divide<P>(C{(R)1, (R)0}, x);                                                                          \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_exp(C x) {                                                                        \
    const R size = fn_exp<P, R>(x.re);                                                                              \
    if (x.im == (R)0) return C{size, x.im};                                                                         \
    if (size == (R)0) return C{at_copysign((R)0, fn_cos<P, R>(x.im)), at_copysign((R)0, fn_sin<P, R>(x.im))};       \
    return C{size * fn_cos<P, R>(x.im), size * fn_sin<P, R>(x.im)};                                                 \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_log(C x) {                                                                        \
    return C{fn_log<P, R>(fn_magnitude<P>(x)), fn_angle<P>(x)};                                                     \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_sqrt(C x) {                                                                       \
    if (x.re == (R)0 && x.im == (R)0) return C{(R)0, x.im};                                                         \
    const R a = at_abs(x.re) * (R)0.25, t = (R)2 * fn_sqrt<P, R>((fn_hypot<P, R>(a, x.im * (R)0.25) + a) * (R)0.5); \
    if (x.re >= (R)0) return C{t, x.im / ((R)2 * t)};                                                               \
    return C{at_abs(x.im) / ((R)2 * t), at_copysign(t, x.im)};                                                      \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_rsqrt(C x) {                                                                      \
    return fn_reciprocal<P>(fn_sqrt<P>(x));                                                                         \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_sin(C x) {                                                                        \
    return C{fn_sin<P, R>(x.re) * fn_cosh<P, R>(x.im), fn_cos<P, R>(x.re) * fn_sinh<P, R>(x.im)};                   \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_cos(C x) {                                                                        \
    return C{fn_cos<P, R>(x.re) * fn_cosh<P, R>(x.im), -(fn_sin<P, R>(x.re) * fn_sinh<P, R>(x.im))};                \
  }                                                                                                                 \
  template <int P> AT_INLINE C fn_power(C x, C y) {                                                                 \
    if (y.re == (R)0 && y.im == (R)0) return C{(R)1, (R)0};                                                         \
    if (x.re == (R)0 && x.im == (R)0) return C{(R)0, (R)0};                                                         \
    return fn_exp<P>(fn_multiply<P>(y, fn_log<P>(x)));                                                              \
  }
AT_BOTH_COMPLEX(AT_COMPLEX_FUNCTIONS)
