/* SPDX-License-Identifier: Apache-2.0
 * interpret_libm.c: functions that the C library computes one element at a time: the few of f32 that have no loop of
 * their own in f64, so that they are rounded once; those of f64 in f64 where the library is within 2 units in the last
 * place, else in long double; and complex ones. */
#include "ops/elementwise/host/interpret_kernels.h"

#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

#include "ops/elementwise/ir/evaluate.h"
#include "src/base/dtype.h"
#include "src/process/library.h"

typedef struct pair32 {
  float re, im;
} pair32;
typedef struct pair64 {
  double re, im;
} pair64;

/* Functions that the C library lacks are computed like in the reference. */
static double reference1(at_function function, double x) {
  const at_wide_value v[3] = {{.re = x}};
  return (double)at_evaluate_real(function, ATTUNE_F64, v).re;
}
static double reference2(at_function function, double x, double y) {
  const at_wide_value v[3] = {{.re = x}, {.re = y}};
  return (double)at_evaluate_real(function, ATTUNE_F64, v).re;
}
static at_wide_value complex_reference(at_function function, pair64 x, pair64 y) {
  const at_wide_value v[3] = {{.re = x.re, .im = x.im}, {.re = y.re, .im = y.im}};
  return at_evaluate_complex(function, v);
}
static pair64 complex_of(at_wide_value v) {
  return (pair64){(double)v.re, (double)v.im};
}
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/* clang-format off */
/* AT_LIBM(function, dtype, result, argument, expression in x, y, z). */
#define AT_LIST(AT_LIBM) \
  AT_WIDE1(AT_LIBM, CBRT, cbrtl) AT_WIDE1(AT_LIBM, TAN, tan) AT_WIDE1(AT_LIBM, ASIN, asin) \
  AT_WIDE1(AT_LIBM, ACOS, acos) AT_WIDE1(AT_LIBM, ATAN, atan) AT_WIDE1(AT_LIBM, ASINH, asinhl) \
  AT_WIDE1(AT_LIBM, ACOSH, acoshl) AT_WIDE1(AT_LIBM, ATANH, atanhl) AT_WIDE1(AT_LIBM, ERFC, erfcl) \
  AT_WIDE2(AT_LIBM, HYPOT, hypot) AT_WIDE2(AT_LIBM, ATAN2, atan2) AT_WIDE2(AT_LIBM, POWER, pow) \
  AT_WIDE2(AT_LIBM, FMOD, fmod) AT_LIBM(FMOD, F32, float, float, (float)fmod((double)x, (double)y)) \
  AT_WIDE2(AT_LIBM, REMAINDER, remainder64) AT_LIBM(REMAINDER, F32, float, float, remainder32(x, y)) \
  AT_WIDE2(AT_LIBM, NEXTAFTER, nextafter) AT_LIBM(NEXTAFTER, F32, float, float, nextafterf(x, y)) \
  AT_WIDE1(AT_LIBM, EXP, exp) AT_WIDE1(AT_LIBM, EXP2, exp2) AT_WIDE1(AT_LIBM, EXPM1, expm1) \
  AT_WIDE1(AT_LIBM, LOG, log) AT_WIDE1(AT_LIBM, LOG2, log2) AT_WIDE1(AT_LIBM, LOG10, log10) \
  AT_WIDE1(AT_LIBM, LOG1P, log1p) AT_WIDE1(AT_LIBM, SIN, sin) AT_WIDE1(AT_LIBM, COS, cos) \
  AT_WIDE1(AT_LIBM, SINH, sinhl) AT_WIDE1(AT_LIBM, COSH, coshl) AT_WIDE1(AT_LIBM, TANH, tanhl) \
  AT_WIDE1(AT_LIBM, ERF, erf) AT_LIBM(ELU, F64, double, double, x > 0 ? x : y * expm1(x)) \
  AT_BOTH_REFERENCE1(AT_LIBM, ERFINV) AT_BOTH_REFERENCE1(AT_LIBM, TGAMMA) AT_REFERENCE1(AT_LIBM, LOGIT) \
  AT_LIBM(LGAMMA, F32, float, float, (float)log_gamma(x)) AT_REFERENCE1(AT_LIBM, LGAMMA) \
  AT_LIBM(LDEXP, F32, float, float, (float)reference2(AT_FN_LDEXP, x, y)) AT_REFERENCE2(AT_LIBM, LDEXP) \
  AT_REFERENCE2(AT_LIBM, FLOOR_DIVIDE) AT_REFERENCE1(AT_LIBM, GELU) AT_REFERENCE1(AT_LIBM, GELU_TANH) \
  AT_REFERENCE1(AT_LIBM, SIGMOID) AT_REFERENCE1(AT_LIBM, SILU) AT_REFERENCE1(AT_LIBM, SOFTPLUS) \
  AT_REFERENCE1(AT_LIBM, MISH) \
  AT_LIBM(COMPLEX, F32, pair32, float, ((pair32){x, y})) AT_LIBM(COMPLEX, F64, pair64, double, ((pair64){x, y})) \
  AT_COMPLEX_LIST(AT_LIBM, C64, pair32, float) AT_COMPLEX_LIST(AT_LIBM, C128, pair64, double)

/* Of f64; f32 has loops of its own. */
#define AT_WIDE1(AT_LIBM, F, f) AT_LIBM(F, F64, double, double, (double)f(x))
#define AT_WIDE2(AT_LIBM, F, f) AT_LIBM(F, F64, double, double, f(x, y))
#define AT_REFERENCE1(AT_LIBM, F) AT_LIBM(F, F64, double, double, reference1(AT_FN_##F, x))
#define AT_REFERENCE2(AT_LIBM, F) AT_LIBM(F, F64, double, double, reference2(AT_FN_##F, x, y))
#define AT_BOTH_REFERENCE1(AT_LIBM, F)                           \
  AT_LIBM(F, F32, float, float, (float)reference1(AT_FN_##F, x)) \
  AT_REFERENCE1(AT_LIBM, F)

#define WIDE(v) ((pair64){v.re, v.im})
#define AT_COMPLEX_LIST(AT_LIBM, D, P, R)                                                                           \
  AT_LIBM(EQUAL, D, uint8_t, P, (x.re == y.re) & (x.im == y.im))                                                    \
  AT_LIBM(UNEQUAL, D, uint8_t, P, (x.re != y.re) | (x.im != y.im))                                                  \
  AT_LIBM(ADD, D, P, P, ((P){x.re + y.re, x.im + y.im}))                                                            \
  AT_LIBM(SUBTRACT, D, P, P, ((P){x.re - y.re, x.im - y.im}))                                                       \
  AT_LIBM(MULTIPLY, D, P, P, NARROW(P, R, multiply(WIDE(x), WIDE(y))))                                              \
  AT_LIBM(NEGATE, D, P, P, ((P){-x.re, -x.im}))                                                                     \
  AT_LIBM(CONJUGATE, D, P, P, ((P){x.re, -x.im}))                                                                   \
  AT_LIBM(REAL_PART, D, R, P, x.re)                                                                                 \
  AT_LIBM(IMAGINARY_PART, D, R, P, x.im)                                                                            \
  AT_LIBM(MAGNITUDE, D, R, P, (R)hypot((double)x.re, (double)x.im))                                                 \
  AT_LIBM(ANGLE, D, R, P, (R)atan2((double)x.im, (double)x.re))                                                     \
  AT_LIBM(ISNAN, D, uint8_t, P, (x.re != x.re) | (x.im != x.im))                                                    \
  AT_LIBM(ISINF, D, uint8_t, P, (isinf(x.re) != 0) | (isinf(x.im) != 0))                                            \
  AT_LIBM(ISFINITE, D, uint8_t, P, (isfinite(x.re) != 0) & (isfinite(x.im) != 0))                                   \
  AT_LIBM(SIGNBIT, D, uint8_t, P, signbit(x.re) != 0)                                                               \
  AT_COMPLEX1(AT_LIBM, D, P, R, DIVIDE)                                                                             \
  AT_COMPLEX1(AT_LIBM, D, P, R, POWER)                                                                              \
  AT_COMPLEX1(AT_LIBM, D, P, R, SQRT)                                                                               \
  AT_COMPLEX1(AT_LIBM, D, P, R, RSQRT) AT_COMPLEX1(AT_LIBM, D, P, R, RECIPROCAL) AT_COMPLEX1(AT_LIBM, D, P, R, EXP) \
  AT_COMPLEX1(AT_LIBM, D, P, R, LOG) AT_COMPLEX1(AT_LIBM, D, P, R, SIN) AT_COMPLEX1(AT_LIBM, D, P, R, COS)
#define AT_COMPLEX1(AT_LIBM, D, P, R, F) \
  AT_LIBM(F, D, P, P, NARROW(P, R, complex_of(complex_reference(AT_FN_##F, WIDE(x), WIDE(y)))))
#define NARROW(P, R, value) narrow_##P(value)
/* clang-format on */

static pair32 narrow_pair32(pair64 z) {
  return (pair32){(float)z.re, (float)z.im};
}
static pair64 narrow_pair64(pair64 z) {
  return z;
}
static pair64 multiply(pair64 x, pair64 y) {
  return (pair64){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

static double remainder64(double x, double y) {
  const double rest = fmod(x, y);
  if (rest == 0.0) return copysign(0.0, y);
  return (rest < 0.0) != (y < 0.0) ? rest + y : rest;
}
static float remainder32(float x, float y) {
  return (float)remainder64((double)x, (double)y);
}

#define AT_DEFINE(F, D, R, A, expression)                                                    \
  static void F##_##D(void *out, const void *xs, const void *ys, const void *zs, size_t n) { \
    R *o = out;                                                                              \
    const A *xp = xs, *yp = ys;                                                              \
    (void)zs;                                                                                \
    for (size_t i = 0; i < n; i++) {                                                         \
      const A x = xp[i], y = yp[i];                                                          \
      (void)x, (void)y;                                                                      \
      o[i] = (expression);                                                                   \
    }                                                                                        \
  }
AT_LIST(AT_DEFINE)

at_kernel at_libm_kernel(at_function function, attune_dtype dtype) {
  static const at_kernel table[AT_FN_COUNT][AT_DTYPE_LAST + 1] = {
#define AT_ROW(F, D, R, A, expression) [AT_FN_##F][ATTUNE_##D] = F##_##D,
      AT_LIST(AT_ROW)
#undef AT_ROW
  };
  return table[function][dtype];
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static at_library library; /* written once */

static void open_library(void) {
  (void)at_library_open(&library, "libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
}

bool at_libmvec_function(const char *name, void *function_out) {
  pthread_once(&once, open_library);
  return at_library_function(&library, name, function_out);
}
