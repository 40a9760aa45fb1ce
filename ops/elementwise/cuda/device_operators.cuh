/* SPDX-License-Identifier: Apache-2.0
 * device_operators.cuh: complex numbers as a program's own functions write them: operators, and a few functions under
 * their usual names. */
#define AT_COMPLEX_OPERATORS(C, R)                                                                                \
  AT_INLINE C operator-(C x) { return fn_negate<AT_STRICT>(x); }                                                  \
  AT_INLINE bool operator==(C x, C y) { return fn_equal<AT_STRICT>(x, y); }                                       \
  AT_INLINE bool operator!=(C x, C y) { return fn_unequal<AT_STRICT>(x, y); }                                     \
  AT_COMPLEX_OPERATOR(C, R, +, fn_add)                                                                            \
  AT_COMPLEX_OPERATOR(C, R, -, fn_subtract)                                                                       \
  AT_COMPLEX_OPERATOR(C, R, *, fn_multiply)                                                                       \
  AT_COMPLEX_OPERATOR(C, R, /, fn_divide)                                                                         \
  AT_INLINE C exp(C x) { return fn_exp<AT_STRICT>(x); }                                                           \
  AT_INLINE C log(C x) { return fn_log<AT_STRICT>(x); }                                                           \
  AT_INLINE C sqrt(C x) { return fn_sqrt<AT_STRICT>(x); }                                                         \
  AT_INLINE C sin(C x) { return fn_sin<AT_STRICT>(x); }                                                           \
  AT_INLINE C cos(C x) { return fn_cos<AT_STRICT>(x); }                                                           \
  AT_INLINE C conj(C x) { return fn_conjugate<AT_STRICT>(x); }                                                    \
  AT_INLINE R abs(C x) { return fn_magnitude<AT_STRICT>(x); }

#define AT_COMPLEX_OPERATOR(C, R, sign, function)                                                                 \
  AT_INLINE C operator sign(C x, C y) { return function<AT_STRICT>(x, y); }                                       \
  AT_INLINE C operator sign(C x, R y) { return function<AT_STRICT>(x, C{y, (R)0}); }                              \
  AT_INLINE C operator sign(R x, C y) { return function<AT_STRICT>(C{x, (R)0}, y); }

AT_BOTH_COMPLEX(AT_COMPLEX_OPERATORS)
