/* SPDX-License-Identifier: Apache-2.0
 * evaluate_complex.c: functions of complex numbers in long double. */
#include "ops/elementwise/ir/evaluate.h"

#include <complex.h>
#include <math.h>

typedef long double complex number;

/* CMPLXL, which not every compiler has: re + im I would lose the sign of a zero. */
static number number_of(long double re, long double im) {
  const union {
    long double parts[2];
    number z;
  } u = {{re, im}};
  return u.z;
}

/* Without the rescue of infinities that C's operators make: products and sums of parts. */
static number multiply(at_wide_value x, at_wide_value y) {
  return number_of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

static number power(number x, number y) {
  if (y == 0) return 1;
  if (x == 0) return 0;
  return cpowl(x, y);
}

static number apply(at_function function, const at_wide_value *v) {
  const number x = number_of(v[0].re, v[0].im), y = number_of(v[1].re, v[1].im);
  switch (function) {
  case AT_FN_ADD: return x + y;
  case AT_FN_SUBTRACT: return x - y;
  case AT_FN_MULTIPLY: return multiply(v[0], v[1]);
  case AT_FN_DIVIDE: return x / y;
  case AT_FN_NEGATE: return -x;
  case AT_FN_POWER: return power(x, y);
  case AT_FN_SQRT: return csqrtl(x);
  case AT_FN_RSQRT: return 1.0L / csqrtl(x);
  case AT_FN_RECIPROCAL: return 1.0L / x;
  case AT_FN_EXP: return cexpl(x);
  case AT_FN_LOG: return clogl(x);
  case AT_FN_SIN: return csinl(x);
  case AT_FN_COS: return ccosl(x);
  default: return conjl(x); /* AT_FN_CONJUGATE */
  }
}

at_wide_value at_evaluate_complex(at_function function, const at_wide_value *v) {
  const at_wide_value x = v[0], y = v[1];
  switch (function) {
  case AT_FN_EQUAL: return (at_wide_value){.integer = x.re == y.re && x.im == y.im};
  case AT_FN_UNEQUAL: return (at_wide_value){.integer = x.re != y.re || x.im != y.im};
  case AT_FN_ISNAN: return (at_wide_value){.integer = isnan(x.re) || isnan(x.im)};
  case AT_FN_ISINF: return (at_wide_value){.integer = isinf(x.re) || isinf(x.im)};
  case AT_FN_ISFINITE: return (at_wide_value){.integer = isfinite(x.re) && isfinite(x.im)};
  case AT_FN_SIGNBIT: return (at_wide_value){.integer = signbit(x.re) != 0};
  case AT_FN_MAGNITUDE:
  case AT_FN_ABS: return (at_wide_value){.re = hypotl(x.re, x.im)};
  case AT_FN_REAL_PART: return (at_wide_value){.re = x.re};
  case AT_FN_IMAGINARY_PART: return (at_wide_value){.re = x.im};
  case AT_FN_ANGLE: return (at_wide_value){.re = atan2l(x.im, x.re)};
  default: {
    const number z = apply(function, v);
    return (at_wide_value){.re = creall(z), .im = cimagl(z)};
  }
  }
}
