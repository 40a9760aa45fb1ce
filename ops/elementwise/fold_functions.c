/* SPDX-License-Identifier: Apache-2.0
 * fold_functions.c: functions of one real number in long double. erfinv has no long double: it is not folded. */
#include <math.h>

#include "ops/elementwise/fold.h"

static bool elementary(at_function function, long double x, long double *out) {
  switch (function) {
  case AT_FN_RSQRT: *out = 1.0L / sqrtl(x); return true;
  case AT_FN_CBRT: *out = cbrtl(x); return true;
  case AT_FN_EXP: *out = expl(x); return true;
  case AT_FN_EXP2: *out = exp2l(x); return true;
  case AT_FN_EXPM1: *out = expm1l(x); return true;
  case AT_FN_LOG: *out = logl(x); return true;
  case AT_FN_LOG2: *out = log2l(x); return true;
  case AT_FN_LOG10: *out = log10l(x); return true;
  case AT_FN_LOG1P: *out = log1pl(x); return true;
  case AT_FN_ERF: *out = erfl(x); return true;
  case AT_FN_ERFC: *out = erfcl(x); return true;
  case AT_FN_TGAMMA: *out = tgammal(x); return true;
  case AT_FN_LGAMMA: {
    int sign; /* lgammal would write a variable of the process */
    *out = lgammal_r(x, &sign);
    return true;
  }
  default: return false;
  }
}

static bool trigonometric(at_function function, long double x, long double *out) {
  switch (function) {
  case AT_FN_SIN: *out = sinl(x); return true;
  case AT_FN_COS: *out = cosl(x); return true;
  case AT_FN_TAN: *out = tanl(x); return true;
  case AT_FN_ASIN: *out = asinl(x); return true;
  case AT_FN_ACOS: *out = acosl(x); return true;
  case AT_FN_ATAN: *out = atanl(x); return true;
  case AT_FN_SINH: *out = sinhl(x); return true;
  case AT_FN_COSH: *out = coshl(x); return true;
  case AT_FN_TANH: *out = tanhl(x); return true;
  case AT_FN_ASINH: *out = asinhl(x); return true;
  case AT_FN_ACOSH: *out = acoshl(x); return true;
  case AT_FN_ATANH: *out = atanhl(x); return true;
  default: return false;
  }
}

static long double softplus(long double x) {
  return (x > 0.0L ? x : 0.0L) + log1pl(expl(-fabsl(x)));
}

static long double gelu_tanh(long double x) {
  const long double root = sqrtl(2.0L / acosl(-1.0L));
  return x / (1.0L + expl(-2.0L * root * (x + 0.044715L * x * x * x)));
}

/* (x + 3) / 6 between 0 and 1. */
static long double ramp(long double x) {
  const long double y = x + 3.0L;
  return (y < 0.0L ? 0.0L : y > 6.0L ? 6.0L : y) / 6.0L;
}

static bool neural(at_function function, long double x, long double *out) {
  switch (function) {
  case AT_FN_GELU: *out = x * 0.5L * erfcl(-x / sqrtl(2.0L)); return true;
  case AT_FN_GELU_TANH: *out = gelu_tanh(x); return true;
  case AT_FN_SIGMOID: *out = 1.0L / (1.0L + expl(-x)); return true;
  case AT_FN_SILU: *out = x / (1.0L + expl(-x)); return true;
  case AT_FN_SOFTPLUS: *out = softplus(x); return true;
  case AT_FN_SOFTSIGN: *out = x / (1.0L + fabsl(x)); return true;
  case AT_FN_MISH: *out = x * tanhl(softplus(x)); return true;
  case AT_FN_LOGIT: *out = logl(x / (1.0L - x)); return true;
  case AT_FN_HARDSIGMOID: *out = ramp(x); return true;
  case AT_FN_HARDSWISH: *out = x * ramp(x); return true;
  default: return false;
  }
}

bool at_transcendental(at_function function, long double x, long double *out) {
  return elementary(function, x, out) || trigonometric(function, x, out) || neural(function, x, out);
}
