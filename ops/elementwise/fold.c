/* SPDX-License-Identifier: Apache-2.0
 * fold.c: casts of constants, complex numbers, and which part folds a function. */
#include "ops/elementwise/fold.h"

#include <math.h>

/* ---- casts ---- */

/* Every NaN is this one: constants are compared by their bits. */
static double one_nan(double x) {
  return isnan(x) ? (double)NAN : x;
}

/* An integer as the float dtype has it, rounded once: by way of f64 it might be twice. */
static double real_of(attune_dtype from, int64_t x, attune_dtype to) {
  const bool big = from == ATTUNE_U64;
  if (to == ATTUNE_F32 || to == ATTUNE_C64) return big ? (double)(float)(uint64_t)x : (double)(float)x;
  return at_round_to(to, big ? (double)(uint64_t)x : (double)x);
}

/* Cut to a whole number; false where the dtype has no such number. */
static bool integer_of(double x, attune_dtype to, int64_t *out) {
  const int bits = 8 * (int)attune_dtype_size(to) - !at_dtype_unsigned(to);
  const double whole = trunc(x), end = ldexp(1.0, bits);
  if (!(whole < end && whole >= (at_dtype_unsigned(to) ? 0.0 : -end))) return false;
  *out = to == ATTUNE_U64 ? (int64_t)(uint64_t)whole : (int64_t)whole;
  return true;
}

bool at_fold_cast(attune_dtype from, attune_dtype to, at_constant *value) {
  const at_constant x = *value;
  const bool whole = at_dtype_whole(from);
  *value = (at_constant){0};
  switch (at_dtype_kind_of(to)) {
  case AT_KIND_BOOL: value->integer = whole ? x.integer != 0 : x.re != 0.0 || x.im != 0.0; return true;
  case AT_KIND_INTEGER:
    if (!whole) return integer_of(x.re, to, &value->integer);
    value->integer = at_wrap(to, (uint64_t)x.integer);
    return true;
  default:
    value->re = whole ? real_of(from, x.integer, to) : one_nan(at_round_to(to, x.re));
    if (at_dtype_kind_of(to) == AT_KIND_COMPLEX && !whole) value->im = one_nan(at_round_to(to, x.im));
    return true;
  }
}

/* ---- complex numbers: what is exact, and sums and products by their definition ---- */

static bool keep(attune_dtype dtype, double re, double im, at_constant *out) {
  *out = (at_constant){.re = at_round_to(dtype, re), .im = at_round_to(dtype, im)};
  return isfinite(out->re) && isfinite(out->im);
}

static bool fold_complex(at_function function, attune_dtype dtype, const at_constant *x, at_constant *out) {
  switch (function) {
  case AT_FN_ADD: return keep(dtype, x[0].re + x[1].re, x[0].im + x[1].im, out);
  case AT_FN_SUBTRACT: return keep(dtype, x[0].re - x[1].re, x[0].im - x[1].im, out);
  case AT_FN_NEGATE: return keep(dtype, -x[0].re, -x[0].im, out);
  case AT_FN_CONJUGATE: return keep(dtype, x[0].re, -x[0].im, out);
  case AT_FN_REAL_PART: *out = (at_constant){.re = x[0].re}; return !isnan(x[0].re);
  case AT_FN_IMAGINARY_PART: *out = (at_constant){.re = x[0].im}; return !isnan(x[0].im);
  case AT_FN_EQUAL:
  case AT_FN_UNEQUAL:
    *out = (at_constant){.integer = (x[0].re == x[1].re && x[0].im == x[1].im) == (function == AT_FN_EQUAL)};
    return true;
  case AT_FN_MULTIPLY: /* exact in f64 only where each part is one product: a scale, a turn by i */
    if ((x[0].re != 0.0 && x[0].im != 0.0) || (x[1].re != 0.0 && x[1].im != 0.0)) return false;
    return keep(dtype, x[0].re * x[1].re - x[0].im * x[1].im, x[0].re * x[1].im + x[0].im * x[1].re, out);
  default: return false;
  }
}

bool at_fold(at_function function, attune_dtype dtype, const at_constant *values, at_constant *out) {
  const int count = at_function_arity(function);
  if (function == AT_FN_SELECT) {
    *out = values[values[0].integer ? 1 : 2];
    return true;
  }
  if (function == AT_FN_COMPLEX) {
    *out = (at_constant){.re = values[0].re, .im = values[1].re};
    return true;
  }
  if (at_dtype_kind_of(dtype) == AT_KIND_COMPLEX) return fold_complex(function, dtype, values, out);
  int64_t integers[3] = {0};
  double reals[3] = {0};
  for (int i = 0; i < count; i++) {
    integers[i] = values[i].integer;
    reals[i] = values[i].re;
  }
  *out = (at_constant){0};
  return at_dtype_whole(dtype) ? at_fold_integer(function, dtype, integers, out)
                               : at_fold_real(function, dtype, reals, out);
}
