/* SPDX-License-Identifier: Apache-2.0
 * evaluate_real.c: functions of real floating numbers in long double. */
#include "ops/elementwise/ir/evaluate.h"

#include <math.h>

#define PI 3.14159265358979323846264338327950288L

typedef long double real;

/* NaN if either is; of two zeros -0 is the lesser one. */
static real least(real x, real y) {
  if (isnan(x) || isnan(y)) return isnan(x) ? x : y;
  return x < y || (x == y && signbit(x)) ? x : y;
}
static real greatest(real x, real y) {
  if (isnan(x) || isnan(y)) return isnan(x) ? x : y;
  return x > y || (x == y && !signbit(x)) ? x : y;
}

/* Python's and torch's: exact where the quotient is. */
static real floor_divide(real x, real y) {
  if (y == 0.0L) return x / y;
  const real rest = fmodl(x, y);
  real q = (x - rest) / y;
  if (rest != 0.0L && (y < 0.0L) != (rest < 0.0L)) q -= 1.0L;
  if (q == 0.0L) return copysignl(0.0L, x / y);
  const real whole = floorl(q);
  return q - whole > 0.5L ? whole + 1.0L : whole;
}

/* Python's and NumPy's: the sign of y, of a zero, too. */
static real floor_remainder(real x, real y) {
  const real rest = fmodl(x, y);
  if (rest == 0.0L) return copysignl(0.0L, y);
  return (rest < 0.0L) != (y < 0.0L) ? rest + y : rest;
}

/* Newton's steps from a start of four digits (Winitzki's formula); the tail's in terms of the complement. */
static real erf_inverse(real x) {
  if (!(fabsl(x) < 1.0L)) return fabsl(x) == 1.0L ? copysignl(INFINITY, x) : NAN;
  if (fabsl(x) < 1e-18L) return x * sqrtl(PI) / 2;
  const real a = 0.147L, l = logl((1.0L - x) * (1.0L + x)), b = 2.0L / (PI * a) + l / 2.0L;
  real y = copysignl(sqrtl(sqrtl(b * b - l / a) - b), x);
  const real rest = 1.0L - fabsl(x);
  for (int i = 0; i < 6; i++) {
    const real off = fabsl(x) < 0.5L ? erfl(y) - x : (rest - erfcl(fabsl(y))) * (x < 0.0L ? -1.0L : 1.0L);
    const real slope = 2.0L / sqrtl(PI) * expl(-y * y), u = off / slope;
    y -= u / (1.0L + y * u);
  }
  return y;
}

static real next_after(attune_dtype dtype, real x, real y) {
  return dtype == ATTUNE_F64 ? (real)nextafter((double)x, (double)y) : (real)nextafterf((float)x, (float)y);
}

static real softplus(real x) {
  return x > 0.0L ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static real ramp(real x) {
  return least(greatest(x + 3.0L, 0.0L), 6.0L);
}

/* (log of x / (1 - x): near 1/2 the quotient is near 1, but 2 x - 1 is exact.) */
static real logit(real x) {
  const real rest = 1.0L - x;
  return x >= 0.25L && x <= 0.75L ? log1pl((x - rest) / rest) : logl(x / rest);
}

static real log_gamma(real x) {
  int sign;
  return lgammal_r(x, &sign);
}

static real elementary(at_function function, real x) {
  switch (function) {
  case AT_FN_SQRT: return sqrtl(x);
  case AT_FN_RSQRT: return 1.0L / sqrtl(x);
  case AT_FN_CBRT: return cbrtl(x);
  case AT_FN_RECIPROCAL: return 1.0L / x;
  case AT_FN_EXP: return expl(x);
  case AT_FN_EXP2: return exp2l(x);
  case AT_FN_EXPM1: return expm1l(x);
  case AT_FN_LOG: return logl(x);
  case AT_FN_LOG2: return log2l(x);
  case AT_FN_LOG10: return log10l(x);
  case AT_FN_LOG1P: return log1pl(x);
  case AT_FN_SIN: return sinl(x);
  case AT_FN_COS: return cosl(x);
  case AT_FN_TAN: return tanl(x);
  case AT_FN_ASIN: return asinl(x);
  case AT_FN_ACOS: return acosl(x);
  case AT_FN_ATAN: return atanl(x);
  case AT_FN_SINH: return sinhl(x);
  case AT_FN_COSH: return coshl(x);
  case AT_FN_TANH: return tanhl(x);
  case AT_FN_ASINH: return asinhl(x);
  case AT_FN_ACOSH: return acoshl(x);
  case AT_FN_ATANH: return atanhl(x);
  case AT_FN_ERF: return erfl(x);
  case AT_FN_ERFC: return erfcl(x);
  case AT_FN_ERFINV: return erf_inverse(x);
  case AT_FN_LGAMMA: return log_gamma(x);
  case AT_FN_TGAMMA: return tgammal(x);
  default: return NAN;
  }
}

static real neural(at_function function, real x, real y) {
  switch (function) {
  case AT_FN_RELU: return greatest(x, 0.0L);
  case AT_FN_GELU: return at_evaluate_gelu(x);
  case AT_FN_GELU_TANH: return at_evaluate_gelu_tanh(x);
  case AT_FN_SIGMOID: return 1.0L / (1.0L + expl(-x));
  case AT_FN_SILU: return x / (1.0L + expl(-x));
  case AT_FN_SOFTPLUS: return softplus(x);
  case AT_FN_SOFTSIGN: return x / (1.0L + fabsl(x));
  case AT_FN_MISH: return x * tanhl(softplus(x));
  case AT_FN_LOGIT: return logit(x);
  case AT_FN_ELU: return x > 0.0L ? x : y * expm1l(x);
  case AT_FN_LEAKY_RELU: return x < 0.0L ? x * y : x;
  case AT_FN_HARDTANH: return least(greatest(x, -1.0L), 1.0L);
  case AT_FN_HARDSIGMOID: return ramp(x) / 6.0L;
  case AT_FN_HARDSWISH: return x * ramp(x) / 6.0L;
  default: return elementary(function, x);
  }
}

static real arithmetic(at_function function, attune_dtype dtype, real x, real y, real z) {
  switch (function) {
  case AT_FN_ADD: return x + y;
  case AT_FN_SUBTRACT: return x - y;
  case AT_FN_MULTIPLY: return x * y;
  case AT_FN_DIVIDE: return x / y;
  case AT_FN_FLOOR_DIVIDE: return floor_divide(x, y);
  case AT_FN_REMAINDER: return floor_remainder(x, y);
  case AT_FN_NEGATE: return -x;
  case AT_FN_CONJUGATE: return x;
  case AT_FN_POWER: return powl(x, y);
  case AT_FN_MINIMUM: return least(x, y);
  case AT_FN_MAXIMUM: return greatest(x, y);
  case AT_FN_FMINIMUM: return isnan(x) ? y : isnan(y) ? x : least(x, y);
  case AT_FN_FMAXIMUM: return isnan(x) ? y : isnan(y) ? x : greatest(x, y);
  case AT_FN_CLAMP: return least(greatest(x, y), z);
  case AT_FN_ABS: return fabsl(x);
  case AT_FN_SIGN: return isnan(x) ? x : (real)((x > 0.0L) - (x < 0.0L));
  case AT_FN_FMA: return fmal(x, y, z);
  case AT_FN_FMOD: return fmodl(x, y);
  case AT_FN_COPYSIGN: return copysignl(x, y);
  case AT_FN_HYPOT: return hypotl(x, y);
  case AT_FN_ATAN2: return atan2l(x, y);
  case AT_FN_LDEXP: return x * exp2l(y);
  case AT_FN_NEXTAFTER: return next_after(dtype, x, y);
  case AT_FN_FLOOR: return floorl(x);
  case AT_FN_CEIL: return ceill(x);
  case AT_FN_TRUNC: return truncl(x);
  case AT_FN_ROUND: return rintl(x);
  default: return neural(function, x, y);
  }
}

at_wide_value at_evaluate_real(at_function function, attune_dtype dtype, const at_wide_value *v) {
  const real x = v[0].re, y = v[1].re, z = v[2].re;
  switch (function) {
  case AT_FN_EQUAL: return (at_wide_value){.integer = x == y};
  case AT_FN_UNEQUAL: return (at_wide_value){.integer = x != y};
  case AT_FN_LESS: return (at_wide_value){.integer = x < y};
  case AT_FN_LESS_EQUAL: return (at_wide_value){.integer = x <= y};
  case AT_FN_GREATER: return (at_wide_value){.integer = x > y};
  case AT_FN_GREATER_EQUAL: return (at_wide_value){.integer = x >= y};
  case AT_FN_ISNAN: return (at_wide_value){.integer = isnan(x)};
  case AT_FN_ISINF: return (at_wide_value){.integer = isinf((double)x) != 0};
  case AT_FN_ISFINITE: return (at_wide_value){.integer = isfinite(x) != 0};
  case AT_FN_SIGNBIT: return (at_wide_value){.integer = signbit(x) != 0};
  case AT_FN_COMPLEX: return (at_wide_value){.re = x, .im = y};
  default: return (at_wide_value){.re = arithmetic(function, dtype, x, y, z)};
  }
}

/* In the dtype's own arithmetic: by way of long double, digits of f64 would be rounded twice. */
#define AT_BASIC(T, root, fused)                                     \
  switch (function) {                                                \
  case AT_FN_ADD: *out = (real)((T)x + (T)y); return true;           \
  case AT_FN_SUBTRACT: *out = (real)((T)x - (T)y); return true;      \
  case AT_FN_MULTIPLY: *out = (real)((T)x * (T)y); return true;      \
  case AT_FN_POWER: /* a square is a product */                      \
    if (y == 2.0L) *out = (real)((T)x * (T)x);                       \
    return y == 2.0L;                                                \
  case AT_FN_DIVIDE: *out = (real)((T)x / (T)y); return true;        \
  case AT_FN_RECIPROCAL: *out = (real)((T)1 / (T)x); return true;    \
  case AT_FN_SQRT: *out = (real)root((T)x); return true;             \
  case AT_FN_FMA: *out = (real)fused((T)x, (T)y, (T)z); return true; \
  default: return false;                                             \
  }

bool at_evaluate_basic(at_function function, attune_dtype dtype, const at_wide_value *v, long double *out) {
  const real x = v[0].re, y = v[1].re, z = v[2].re;
  if (dtype == ATTUNE_F64) AT_BASIC(double, sqrt, fma)
  if (dtype == ATTUNE_F32) AT_BASIC(float, sqrtf, fmaf)
  return false;
}
