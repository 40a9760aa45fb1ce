/* SPDX-License-Identifier: Apache-2.0
 * fold.c: which functions of which constants are computed at once, and by what. */
#include "ops/elementwise/ir/fold.h"

#include <math.h>

#include "ops/elementwise/ir/evaluate.h"

/* Every NaN is this one: constants are compared by their bits. */
static double one_nan(long double x) {
  return isnan(x) ? (double)NAN : (double)x;
}

static at_constant constant_of(at_wide_value x) {
  return (at_constant){.re = one_nan(x.re), .im = one_nan(x.im), .integer = x.integer};
}

static at_wide_value datum_of(attune_dtype dtype, const at_constant *x) {
  return at_dtype_whole(dtype) ? (at_wide_value){.integer = x->integer} : (at_wide_value){.re = x->re, .im = x->im};
}

/* Has the dtype the number's whole part? */
static bool has_whole(attune_dtype dtype, double x) {
  const double end = ldexp(1.0, at_integer_bits(dtype) - !at_dtype_unsigned(dtype)), whole = trunc(x);
  return whole < end && whole >= (at_dtype_unsigned(dtype) ? 0.0 : -end);
}

bool at_fold_holds(attune_dtype from, attune_dtype to, const at_constant *value) {
  return at_dtype_kind_of(to) != AT_KIND_INTEGER || at_dtype_whole(from) || has_whole(to, value->re);
}

void at_fold_cast(attune_dtype from, attune_dtype to, at_constant *value) {
  *value = constant_of(at_wide_value_cast(to, from, datum_of(from, value)));
}

/* Functions that test for a NaN, whatever its sign. */
static bool takes_nan(at_function function) {
  const at_type_rule rule = at_function_rule(function);
  return rule == AT_RULE_COMPARE || rule == AT_RULE_EQUAL || (rule == AT_RULE_CLASSIFY && function != AT_FN_SIGNBIT);
}

/* Of complex numbers what is exact: sums and products by their definition, of which each part is one product. */
static bool is_exact(at_function function, const at_constant *x) {
  switch (function) {
  case AT_FN_ADD:
  case AT_FN_SUBTRACT:
  case AT_FN_NEGATE:
  case AT_FN_CONJUGATE:
  case AT_FN_REAL_PART:
  case AT_FN_IMAGINARY_PART:
  case AT_FN_EQUAL:
  case AT_FN_UNEQUAL: return true;
  case AT_FN_MULTIPLY: return (x[0].re == 0.0 || x[0].im == 0.0) && (x[1].re == 0.0 || x[1].im == 0.0);
  default: return false;
  }
}

bool at_fold(at_function function, attune_dtype dtype, attune_dtype result, const at_constant *values,
             at_constant *out) {
  const bool complex = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX;
  at_wide_value x[3] = {{0}};
  if (function == AT_FN_SELECT || function == AT_FN_COMPLEX) { /* any number, a NaN, too */
    *out = function == AT_FN_COMPLEX ? (at_constant){.re = values[0].re, .im = values[1].re}
                                     : values[values[0].integer ? 1 : 2];
    return true;
  }
  if (complex && !is_exact(function, values)) return false;
  for (int i = 0; i < at_function_arity(function); i++) {
    x[i] = datum_of(dtype, &values[i]);
    if ((isnan(x[i].re) || isnan(x[i].im)) && !takes_nan(function)) return false;
  }
  *out = constant_of(at_evaluate_rounded(function, dtype, result, x));
  if (complex && at_function_rule(function) == AT_RULE_NUMBER) return isfinite(out->re) && isfinite(out->im);
  return !isnan(out->re) && !isnan(out->im);
}
