/* SPDX-License-Identifier: Apache-2.0
 * fold_real.c: functions of real constants of f32 and f64. The four operations, sqrt and fma are IEEE's. */
#include <math.h>

#include "ops/elementwise/fold.h"

/* A sum, product, quotient or root in f64 rounded to f32 is the one of f32: 53 digits are more than twice 24, and 2. */
static bool basic(at_function function, const double *x, double *out) {
  switch (function) {
  case AT_FN_ADD: *out = x[0] + x[1]; return true;
  case AT_FN_SUBTRACT: *out = x[0] - x[1]; return true;
  case AT_FN_MULTIPLY: *out = x[0] * x[1]; return true;
  case AT_FN_DIVIDE: *out = x[0] / x[1]; return true;
  case AT_FN_RECIPROCAL: *out = 1.0 / x[0]; return true;
  case AT_FN_SQRT: *out = sqrt(x[0]); return true;
  case AT_FN_NEGATE: *out = -x[0]; return true;
  case AT_FN_ABS: *out = fabs(x[0]); return true;
  case AT_FN_SIGN: *out = (double)((x[0] > 0.0) - (x[0] < 0.0)); return x[0] != 0.0;
  case AT_FN_COPYSIGN: *out = copysign(x[0], x[1]); return true;
  case AT_FN_FMOD: *out = fmod(x[0], x[1]); return true;
  case AT_FN_FLOOR: *out = floor(x[0]); return x[0] != 0.0;
  case AT_FN_CEIL: *out = ceil(x[0]); return *out != 0.0;
  case AT_FN_TRUNC: *out = trunc(x[0]); return *out != 0.0;
  case AT_FN_ROUND: *out = rint(x[0]); return *out != 0.0;
  case AT_FN_RELU: *out = x[0] > 0.0 ? x[0] : 0.0; return x[0] != 0.0;
  case AT_FN_HARDTANH: *out = fmin(fmax(x[0], -1.0), 1.0); return true;
  default: return false;
  }
}

/* Zeros of two signs have no order that every device keeps. */
static bool ordered(const double *x, int count) {
  for (int i = 1; i < count; i++)
    if (x[i] == x[i - 1] && signbit(x[i]) != signbit(x[i - 1])) return false;
  return true;
}

static bool choice(at_function function, const double *x, double *out) {
  switch (function) {
  case AT_FN_MINIMUM:
  case AT_FN_FMINIMUM: *out = fmin(x[0], x[1]); return ordered(x, 2);
  case AT_FN_MAXIMUM:
  case AT_FN_FMAXIMUM: *out = fmax(x[0], x[1]); return ordered(x, 2);
  case AT_FN_CLAMP: *out = fmin(fmax(x[0], x[1]), x[2]); return ordered(x, 3) && *out != 0.0;
  default: return false;
  }
}

static bool compare(at_function function, const double *x, at_constant *out) {
  switch (function) {
  case AT_FN_EQUAL: out->integer = x[0] == x[1]; return true;
  case AT_FN_UNEQUAL: out->integer = x[0] != x[1]; return true;
  case AT_FN_LESS: out->integer = x[0] < x[1]; return true;
  case AT_FN_LESS_EQUAL: out->integer = x[0] <= x[1]; return true;
  case AT_FN_ISNAN: out->integer = isnan(x[0]) != 0; return true;
  case AT_FN_ISINF: out->integer = isinf(x[0]) != 0; return true;
  case AT_FN_ISFINITE: out->integer = isfinite(x[0]) != 0; return true;
  case AT_FN_SIGNBIT: out->integer = signbit(x[0]) != 0; return !isnan(x[0]);
  default: return false;
  }
}

static double step_to(attune_dtype dtype, double x, double toward) {
  return dtype == ATTUNE_F32 ? (double)nextafterf((float)x, (float)toward) : nextafter(x, toward);
}

static double fused(attune_dtype dtype, const double *x) {
  return dtype == ATTUNE_F32 ? (double)fmaf((float)x[0], (float)x[1], (float)x[2]) : fma(x[0], x[1], x[2]);
}

/* Functions of two numbers in long double. */
static bool of_two(at_function function, const double *x, long double *out) {
  const long double a = (long double)x[0], b = (long double)x[1];
  switch (function) {
  case AT_FN_POWER: *out = powl(a, b); return true;
  case AT_FN_HYPOT: *out = hypotl(a, b); return true;
  case AT_FN_ATAN2: *out = atan2l(a, b); return true;
  case AT_FN_LDEXP: *out = a * exp2l(b); return true;
  case AT_FN_ELU: *out = a > 0.0L ? a : b * expm1l(a); return true;
  case AT_FN_LEAKY_RELU: *out = a > 0.0L ? a : b * a; return true;
  default: return false;
  }
}

static bool rounded(attune_dtype dtype, long double x, at_constant *out) {
  out->re = dtype == ATTUNE_F32 ? (double)(float)x : (double)x;
  return !isnan(out->re);
}

bool at_fold_real(at_function function, attune_dtype dtype, const double *x, at_constant *out) {
  double value;
  long double wide;
  if (compare(function, x, out)) return true;
  for (int i = 0; i < at_function_arity(function); i++)
    if (isnan(x[i])) return false;
  if (function == AT_FN_SIGNBIT) return false;
  if (function == AT_FN_FMA || function == AT_FN_NEXTAFTER) {
    out->re = function == AT_FN_FMA ? fused(dtype, x) : step_to(dtype, x[0], x[1]);
    return !isnan(out->re);
  }
  if (basic(function, x, &value) || choice(function, x, &value)) {
    out->re = at_round_to(dtype, value);
    return !isnan(out->re);
  }
  return (of_two(function, x, &wide) || at_transcendental(function, (long double)x[0], &wide)) &&
         rounded(dtype, wide, out);
}
