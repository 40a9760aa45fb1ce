/* SPDX-License-Identifier: Apache-2.0
 * device_math.cuh: the functions of functions.def, fn_ and the id in small letters, on real numbers, integers and bool.
 * P says how exact: AT_STRICT, 2 units in the last place, no contraction of what was written apart; AT_NARROW, a
 * relative error below 2^-14, for what ends in a half or 8-bit float; AT_REDUCED, the fast instructions of the device.
 * Only f32 has the last two. */
#define AT_STRICT 0
#define AT_NARROW 1
#define AT_REDUCED 2

#define AT_FUNCTION1(name) template <int P, class T> AT_INLINE T name(T x)
#define AT_FUNCTION2(name) template <int P, class T> AT_INLINE T name(T x, T y)
#define AT_FUNCTION3(name) template <int P, class T> AT_INLINE T name(T x, T y, T z)
#define AT_IS_F32 at_same<T, float>::yes
#define AT_WIDE typename at_wide<(sizeof(T) == 8 ? 8 : 4)>::type

/* A function of f64: where it is strict and the device's own is off by more than 2 units, one of device_double.cuh. */
#define AT_OF_F64(wide, exact, ...) \
  if constexpr (P == AT_REDUCED)    \
    return wide(__VA_ARGS__);       \
  else                              \
    return exact(__VA_ARGS__);
/* Of f32: where it is strict and the device's own is off by more than 2 units, the device's f64 one. */
#define AT_REAL_FUNCTION1(name, narrow, wide, exact) \
  AT_FUNCTION1(name) {                               \
    if constexpr (!AT_IS_F32) {                      \
      AT_OF_F64(wide, exact, x)                      \
    } else if constexpr (P == AT_STRICT) {           \
      return (float)wide((double)x);                 \
    } else {                                         \
      return narrow(x);                              \
    }                                                \
  }
#define AT_REAL_FUNCTION2(name, narrow, wide, exact) \
  AT_FUNCTION2(name) {                               \
    if constexpr (!AT_IS_F32) {                      \
      AT_OF_F64(wide, exact, x, y)                   \
    } else if constexpr (P == AT_STRICT) {           \
      return (float)wide((double)x, (double)y);      \
    } else {                                         \
      return narrow(x, y);                           \
    }                                                \
  }
/* One whose f32 version is exact enough, and which may have a fast one. */
#define AT_PLAIN_FUNCTION1(name, single, wide, fast) AT_OWN_FUNCTION1(name, single, single, fast, wide, wide)
/* One with a version of its own where it is strict: device_single.cuh, device_double.cuh. */
#define AT_OWN_FUNCTION1(name, strict, narrow, fast, wide, exact) \
  AT_FUNCTION1(name) {                                            \
    if constexpr (!AT_IS_F32) {                                   \
      AT_OF_F64(wide, exact, x)                                   \
    } else if constexpr (P == AT_STRICT) {                        \
      return strict(x);                                           \
    } else if constexpr (P == AT_REDUCED) {                       \
      return fast(x);                                             \
    } else {                                                      \
      return narrow(x);                                           \
    }                                                             \
  }

/* ---- arithmetic ---- */

AT_FUNCTION2(fn_add) {
  if constexpr (at_is_integer<T>)
    return (T)((AT_WIDE)x + (AT_WIDE)y);
  else if constexpr (AT_IS_F32)
    return P == AT_REDUCED ? x + y : __fadd_rn(x, y);
  else
    return __dadd_rn(x, y);
}
AT_FUNCTION2(fn_subtract) {
  if constexpr (at_is_integer<T>)
    return (T)((AT_WIDE)x - (AT_WIDE)y);
  else if constexpr (AT_IS_F32)
    return P == AT_REDUCED ? x - y : __fadd_rn(x, -y);
  else
    return __dadd_rn(x, -y);
}
AT_FUNCTION2(fn_multiply) {
  if constexpr (at_is_integer<T>)
    return (T)((AT_WIDE)x * (AT_WIDE)y);
  else if constexpr (AT_IS_F32)
    return P == AT_REDUCED ? x * y : __fmul_rn(x, y);
  else
    return __dmul_rn(x, y);
}
AT_FUNCTION2(fn_divide) {
  if constexpr (AT_IS_F32)
    return P == AT_REDUCED ? __fdividef(x, y) : __fdiv_rn(x, y);
  else
    return __ddiv_rn(x, y);
}
AT_FUNCTION1(fn_negate) {
  if constexpr (at_is_integer<T>)
    return (T)(0u - (AT_WIDE)x);
  else
    return -x;
}
AT_FUNCTION3(fn_fma) {
  if constexpr (AT_IS_F32)
    return __fmaf_rn(x, y, z);
  else
    return __fma_rn(x, y, z);
}

template <class T> AT_INLINE T at_fmod(T x, T y) {
  if constexpr (AT_IS_F32)
    return fmodf(x, y);
  else
    return fmod(x, y);
}
template <class T> AT_INLINE T at_floor(T x) {
  if constexpr (AT_IS_F32)
    return floorf(x);
  else
    return floor(x);
}
template <class T> AT_INLINE T at_copysign(T x, T y) {
  if constexpr (AT_IS_F32)
    return copysignf(x, y);
  else
    return copysign(x, y);
}

/* Integers: by zero 0; the least by -1 wraps. */
template <class T> AT_INLINE T at_quotient(T x, T y) {
  if (y == (T)0) return (T)0;
  if constexpr (at_is_signed<T>()) {
    if (y == (T)-1) return (T)(0u - (AT_WIDE)x);
  }
  return (T)(x / y);
}
template <class T> AT_INLINE T at_rest(T x, T y) {
  return (T)((AT_WIDE)x - (AT_WIDE)at_quotient(x, y) * (AT_WIDE)y);
}
AT_FUNCTION2(fn_fmod) {
  if constexpr (at_is_integer<T>)
    return y == (T)0 ? (T)0 : at_rest(x, y);
  else
    return at_fmod(x, y);
}
/* The sign of y, of a zero, too. */
AT_FUNCTION2(fn_remainder) {
  const T rest = fn_fmod<P, T>(x, y);
  if constexpr (at_is_floating<T>) {
    if (rest == (T)0) return at_copysign((T)0, y);
  }
  return rest != (T)0 && (rest < (T)0) != (y < (T)0) ? (T)(rest + y) : rest;
}
/* Floats as Python's: exact where the quotient is. */
AT_FUNCTION2(fn_floor_divide) {
  if constexpr (at_is_integer<T>) {
    const T q = at_quotient(x, y);
    if (y == (T)0) return (T)0;
    return at_rest(x, y) != (T)0 && (x < (T)0) != (y < (T)0) ? (T)(q - 1) : q;
  } else {
    if (y == (T)0) return x / y;
    const T rest = at_fmod(x, y);
    T q = (x - rest) / y;
    if (rest != (T)0 && (y < (T)0) != (rest < (T)0)) q -= (T)1;
    if (q == (T)0) return at_copysign((T)0, x / y);
    const T whole = at_floor(q);
    return q - whole > (T)0.5 ? whole + (T)1 : whole;
  }
}

/* ---- bits, comparison, logic ---- */

AT_FUNCTION2(fn_or) {
  return (T)(x | y);
}
AT_FUNCTION2(fn_xor) {
  return (T)(x ^ y);
}
AT_FUNCTION2(fn_and) {
  return (T)(x & y);
}
AT_FUNCTION1(fn_invert) {
  if constexpr (at_is_bool<T>)
    return !x;
  else
    return (T)~x;
}
/* By as many bits as there are, or more: 0, or the sign. */
AT_FUNCTION2(fn_shift_left) {
  return (at_u64)y < 8 * sizeof(T) ? (T)((AT_WIDE)x << (int)y) : (T)0;
}
AT_FUNCTION2(fn_shift_right) {
  const int most = 8 * (int)sizeof(T) - 1;
  if ((at_u64)y <= (at_u64)most) return (T)(x >> (int)y);
  return x < (T)0 ? (T)-1 : (T)0;
}
AT_FUNCTION1(fn_popcount) {
  if constexpr (sizeof(T) == 8)
    return (T)__popcll((at_u64)x);
  else
    return (T)__popc((at_u32)x & (0xffffffffu >> (32 - 8 * sizeof(T))));
}
AT_FUNCTION1(fn_clz) {
  if constexpr (at_is_bool<T>)
    return !x;
  else if constexpr (sizeof(T) == 8)
    return (T)__clzll((long long)x);
  else
    return (T)(__clz((int)((at_u32)x & (0xffffffffu >> (32 - 8 * sizeof(T))))) - (32 - 8 * (int)sizeof(T)));
}

template <int P> AT_INLINE bool fn_or_else(bool x, bool y) {
  return x || y;
}
template <int P> AT_INLINE bool fn_and_also(bool x, bool y) {
  return x && y;
}
template <int P> AT_INLINE bool fn_not(bool x) {
  return !x;
}
template <int P, class T> AT_INLINE bool fn_equal(T x, T y) {
  return x == y;
}
template <int P, class T> AT_INLINE bool fn_unequal(T x, T y) {
  return x != y;
}
template <int P, class T> AT_INLINE bool fn_less(T x, T y) {
  return x < y;
}
template <int P, class T> AT_INLINE bool fn_less_equal(T x, T y) {
  return x <= y;
}
template <int P, class T> AT_INLINE bool fn_greater(T x, T y) {
  return x > y;
}
template <int P, class T> AT_INLINE bool fn_greater_equal(T x, T y) {
  return x >= y;
}
/* Integers of 8 and 16 bits are chosen between as 32 bits, in words that the compiler cannot make narrower: ptxas of
 * CUDA 13.0 takes a minimum of 16 bits and its comparison with one of the two together, and answers for the wrong
 * half. */
template <class T> constexpr bool at_is_short = at_is_integer<T> && sizeof(T) < 4;
template <class T> AT_INLINE T at_lesser_short(T x, T y) {
#ifdef __CUDA_ARCH__
  int m;
  asm("min.s32 %0, %1, %2;" : "=r"(m) : "r"((int)x), "r"((int)y));
  return (T)m;
#else
  return x < y ? x : y;
#endif
}
template <class T> AT_INLINE T at_greater_short(T x, T y) {
#ifdef __CUDA_ARCH__
  int m;
  asm("max.s32 %0, %1, %2;" : "=r"(m) : "r"((int)x), "r"((int)y));
  return (T)m;
#else
  return x > y ? x : y;
#endif
}
template <int P, class T> AT_INLINE T fn_select(bool c, T x, T y) {
#ifdef __CUDA_ARCH__
  if constexpr (at_is_short<T>) {
    int m;
    asm("{\n.reg .pred p;\nsetp.ne.s32 p, %1, 0;\nselp.b32 %0, %2, %3, p;\n}" : "=r"(m) : "r"((int)c), "r"((int)x), "r"((int)y));
    return (T)m;
  }
#endif
  return c ? x : y;
}

template <int P, class T> AT_INLINE bool fn_isnan(T x) {
  if constexpr (at_is_complex<T>)
    return x.re != x.re || x.im != x.im;
  else
    return x != x;
}
template <class T> AT_INLINE T at_abs(T x) {
  if constexpr (AT_IS_F32)
    return fabsf(x);
  else
    return fabs(x);
}
template <class T> AT_INLINE T at_infinity() {
  if constexpr (AT_IS_F32)
    return __int_as_float(0x7f800000);
  else
    return __longlong_as_double(0x7ff0000000000000ll);
}
template <int P, class T> AT_INLINE bool fn_isinf(T x) {
  if constexpr (at_is_complex<T>)
    return fn_isinf<P>(x.re) || fn_isinf<P>(x.im);
  else
    return at_abs(x) == at_infinity<T>();
}
template <int P, class T> AT_INLINE bool fn_isfinite(T x) {
  if constexpr (at_is_complex<T>)
    return fn_isfinite<P>(x.re) && fn_isfinite<P>(x.im);
  else
    return at_abs(x) < at_infinity<T>();
}
template <int P, class T> AT_INLINE bool fn_signbit(T x) {
  if constexpr (at_is_complex<T>)
    return fn_signbit<P>(x.re);
  else if constexpr (AT_IS_F32)
    return __float_as_int(x) < 0;
  else
    return __double_as_longlong(x) < 0;
}

/* ---- choosing and rounding ---- */

/* -0 is less than 0, as it is for PTX. */
template <class T> AT_INLINE bool at_is_lesser(T x, T y) {
  if constexpr (at_is_floating<T>)
    return x < y || (x == y && fn_signbit<AT_STRICT>(x));
  else
    return x < y;
}

/* NaN if either is. */
AT_FUNCTION2(fn_minimum) {
#ifdef __CUDA_ARCH__
  if constexpr (AT_IS_F32) {
    float m;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
    return m;
  }
#endif
  if constexpr (at_is_short<T>)
    return at_lesser_short(x, y);
  else
    return x != x || at_is_lesser(x, y) ? x : y;
}
AT_FUNCTION2(fn_maximum) {
#ifdef __CUDA_ARCH__
  if constexpr (AT_IS_F32) {
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
    return m;
  }
#endif
  if constexpr (at_is_short<T>)
    return at_greater_short(x, y);
  else
    return x != x || at_is_lesser(y, x) ? x : y;
}
/* The other one if one is NaN. */
AT_FUNCTION2(fn_fminimum) {
#ifdef __CUDA_ARCH__
  if constexpr (AT_IS_F32) {
    float m;
    asm("min.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
    return m;
  }
#endif
  if constexpr (at_is_short<T>)
    return at_lesser_short(x, y);
  else
    return y != y || at_is_lesser(x, y) ? x : y;
}
AT_FUNCTION2(fn_fmaximum) {
#ifdef __CUDA_ARCH__
  if constexpr (AT_IS_F32) {
    float m;
    asm("max.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
    return m;
  }
#endif
  if constexpr (at_is_short<T>)
    return at_greater_short(x, y);
  else
    return y != y || at_is_lesser(y, x) ? x : y;
}
AT_FUNCTION3(fn_clamp) {
  return fn_minimum<P, T>(fn_maximum<P, T>(x, y), z);
}
AT_FUNCTION1(fn_relu) {
  if constexpr (at_is_short<T>)
    return at_greater_short(x, (T)0);
  else
    return x <= (T)0 ? (T)0 : x; /* NaN stays, and -0 becomes 0 */
}
AT_FUNCTION1(fn_abs) {
  if constexpr (at_is_floating<T>)
    return at_abs(x);
  else
    return x < (T)0 ? (T)(0u - (AT_WIDE)x) : x;
}
AT_FUNCTION1(fn_sign) {
  return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x != x ? x : (T)0;
}
AT_FUNCTION1(fn_conjugate) {
  return x;
}
AT_FUNCTION2(fn_copysign) {
  return at_copysign(x, y);
}
#define AT_ROUNDING(name, single, wide)                     \
  AT_FUNCTION1(name) {                                      \
    if constexpr (AT_IS_F32)                                \
      return single(x);                                     \
    else if constexpr (sizeof(T) == 8 && at_is_floating<T>) \
      return wide(x);                                       \
    else                                                    \
      return x;                                             \
  }
AT_ROUNDING(fn_floor, floorf, floor)
AT_ROUNDING(fn_ceil, ceilf, ceil)
AT_ROUNDING(fn_trunc, truncf, trunc)
AT_ROUNDING(fn_round, rintf, rint)

/* ---- functions of real numbers ---- */

AT_INLINE double at_reciprocal_wide(double x) {
  return __ddiv_rn(1.0, x);
}
AT_INLINE float at_reciprocal(float x) {
  return __fdiv_rn(1.0f, x);
}
AT_INLINE double at_rsqrt_wide(double x) {
  return __ddiv_rn(1.0, __dsqrt_rn(x));
}
AT_PLAIN_FUNCTION1(fn_sqrt, __fsqrt_rn, __dsqrt_rn, __fsqrt_rn)
AT_PLAIN_FUNCTION1(fn_rsqrt, at_fast_rsqrt, at_rsqrt_wide, at_fast_rsqrt)
AT_PLAIN_FUNCTION1(fn_cbrt, cbrtf, cbrt, cbrtf)
AT_PLAIN_FUNCTION1(fn_reciprocal, at_reciprocal, at_reciprocal_wide, at_fast_reciprocal)
AT_PLAIN_FUNCTION1(fn_exp, expf, exp, __expf)
AT_OWN_FUNCTION1(fn_exp2, at_exp2_single, exp2f, exp2f, exp2, exp2)
AT_PLAIN_FUNCTION1(fn_expm1, expm1f, expm1, expm1f)
AT_PLAIN_FUNCTION1(fn_log, logf, log, __logf)
AT_PLAIN_FUNCTION1(fn_log2, log2f, log2, __log2f)
AT_OWN_FUNCTION1(fn_log10, at_log10_single, log10f, __log10f, log10, log10)
AT_PLAIN_FUNCTION1(fn_log1p, log1pf, log1p, log1pf)
AT_PLAIN_FUNCTION1(fn_sin, sinf, sin, __sinf)
AT_PLAIN_FUNCTION1(fn_cos, cosf, cos, __cosf)
AT_REAL_FUNCTION1(fn_tan, tanf, tan, tan)
AT_PLAIN_FUNCTION1(fn_asin, asinf, asin, asinf)
AT_PLAIN_FUNCTION1(fn_acos, acosf, acos, acosf)
AT_PLAIN_FUNCTION1(fn_atan, atanf, atan, atanf)
AT_REAL_FUNCTION1(fn_sinh, sinhf, sinh, sinh)
AT_OWN_FUNCTION1(fn_cosh, at_cosh_single, coshf, coshf, cosh, cosh)
AT_PLAIN_FUNCTION1(fn_tanh, tanhf, tanh, at_fast_tanh)
AT_REAL_FUNCTION1(fn_asinh, asinhf, asinh, at_asinh_double)
AT_REAL_FUNCTION1(fn_acosh, acoshf, acosh, at_acosh_double)
AT_REAL_FUNCTION1(fn_atanh, atanhf, atanh, at_atanh_double)
AT_PLAIN_FUNCTION1(fn_erf, erff, erf, erff)
AT_REAL_FUNCTION1(fn_erfc, erfcf, erfc, at_erfc_double)
AT_REAL_FUNCTION1(fn_lgamma, lgammaf, lgamma, at_lgamma_double)
AT_REAL_FUNCTION1(fn_tgamma, tgammaf, tgamma, at_tgamma_double)
AT_OWN_FUNCTION1(fn_erfinv, at_erfinv_single, erfinvf, erfinvf, erfinv, at_erfinv_double)
AT_REAL_FUNCTION2(fn_hypot, hypotf, hypot, at_hypot_double)
AT_REAL_FUNCTION2(fn_atan2, atan2f, atan2, atan2)

AT_FUNCTION2(fn_nextafter) {
  if constexpr (AT_IS_F32)
    return nextafterf(x, y);
  else
    return nextafter(x, y);
}

/* x 2^y; y need not be whole. The whole part goes into the exponent, once. */
AT_FUNCTION2(fn_ldexp) {
  if constexpr (AT_IS_F32 && P != AT_STRICT) {
    const float root = exp2f(0.5f * y);
    return x * root * root;
  } else if constexpr (AT_IS_F32) {
    return (float)fn_ldexp<P, double>((double)x, (double)y);
  } else {
    if (!(fabs(y) < 10000.0)) return x * exp2(y);
    const double whole = trunc(y), part = exp2(y - whole);
    const int small = fabs(x) < 1e-290 ? 64 : 0; /* x times a part of 2 would lose bits */
    return scalbn(scalbn(x, small) * part, (int)whole - small);
  }
}

/* Integers wrap; to a negative power what 1 / x truncates to, 0 for 0. */
AT_FUNCTION2(fn_power) {
  if constexpr (at_is_integer<T>) {
    if (y < (T)0) return x == (T)1 ? (T)1 : x == (T)-1 ? ((at_u32)y & 1u ? (T)-1 : (T)1) : (T)0;
    AT_WIDE base = (AT_WIDE)x, product = 1;
    for (at_u64 left = (at_u64)y; left; left >>= 1) {
      if (left & 1u) product *= base;
      base *= base;
    }
    return (T)product;
  } else if constexpr (!AT_IS_F32) {
    return pow(x, y);
  } else if constexpr (P == AT_STRICT) {
    return (float)pow((double)x, (double)y);
  } else {
    return powf(x, y);
  }
}
