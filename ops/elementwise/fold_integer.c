/* SPDX-License-Identifier: Apache-2.0
 * fold_integer.c: functions of integer and bool constants, which wrap. Division rounds down, as Python's and torch's: the
 * remainder has the sign of the divisor. */
#include "ops/elementwise/fold.h"

/* For a dtype without sign the numbers are compared as they are, for others with their sign. */
static bool less(attune_dtype dtype, int64_t a, int64_t b) {
  return at_dtype_unsigned(dtype) ? (uint64_t)a < (uint64_t)b : a < b;
}

static uint64_t quotient(attune_dtype dtype, int64_t a, int64_t b) {
  if (at_dtype_unsigned(dtype)) return (uint64_t)a / (uint64_t)b;
  if (b == -1) return 0 - (uint64_t)a;
  return (uint64_t)(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));
}

/* C's: cut, not rounded down. */
static uint64_t c_remainder(attune_dtype dtype, int64_t a, int64_t b) {
  if (at_dtype_unsigned(dtype)) return (uint64_t)a % (uint64_t)b;
  return b == -1 ? 0 : (uint64_t)(a % b);
}

static uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t out = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) out *= base;
  return out;
}

static int width(attune_dtype dtype) {
  return 8 * (int)attune_dtype_size(dtype);
}

static uint64_t low_bits(attune_dtype dtype, int64_t x) {
  return width(dtype) == 64 ? (uint64_t)x : (uint64_t)x & ((UINT64_C(1) << width(dtype)) - 1);
}

static bool shift(at_function function, attune_dtype dtype, int64_t a, int64_t by, uint64_t *out) {
  if (by < 0 || by >= width(dtype)) return false;
  *out = function == AT_FN_SHIFT_LEFT ? (uint64_t)a << by
         : at_dtype_unsigned(dtype)   ? (uint64_t)a >> by
                                      : (uint64_t)(a >> by);
  return true;
}

static bool arithmetic(at_function function, attune_dtype dtype, const int64_t *x, uint64_t *out) {
  const uint64_t a = (uint64_t)x[0], b = (uint64_t)x[1];
  switch (function) {
  case AT_FN_ADD: *out = a + b; return true;
  case AT_FN_SUBTRACT: *out = a - b; return true;
  case AT_FN_MULTIPLY: *out = a * b; return true;
  case AT_FN_NEGATE: *out = 0 - a; return true;
  case AT_FN_ABS: *out = less(dtype, x[0], 0) ? 0 - a : a; return true;
  case AT_FN_SIGN: *out = less(dtype, x[0], 0) ? ~UINT64_C(0) : a != 0; return true;
  case AT_FN_RELU: *out = less(dtype, x[0], 0) ? 0 : a; return true;
  case AT_FN_FLOOR_DIVIDE: *out = b ? quotient(dtype, x[0], x[1]) : 0; return b != 0;
  case AT_FN_REMAINDER: *out = b ? a - b * quotient(dtype, x[0], x[1]) : 0; return b != 0;
  case AT_FN_FMOD: *out = b ? c_remainder(dtype, x[0], x[1]) : 0; return b != 0;
  case AT_FN_POWER: *out = power(a, b); return !less(dtype, x[1], 0);
  default: return false;
  }
}

static bool bits(at_function function, attune_dtype dtype, const int64_t *x, uint64_t *out) {
  const uint64_t a = (uint64_t)x[0], b = (uint64_t)x[1];
  switch (function) {
  case AT_FN_OR: *out = a | b; return true;
  case AT_FN_XOR: *out = a ^ b; return true;
  case AT_FN_AND: *out = a & b; return true;
  case AT_FN_INVERT: *out = dtype == ATTUNE_BOOL ? !a : ~a; return true;
  case AT_FN_POPCOUNT: *out = (uint64_t)__builtin_popcountll(low_bits(dtype, x[0])); return true;
  case AT_FN_CLZ: {
    const uint64_t low = low_bits(dtype, x[0]);
    *out = low ? (uint64_t)(__builtin_clzll(low) - (64 - width(dtype))) : (uint64_t)width(dtype);
    return true;
  }
  default: return shift(function, dtype, x[0], x[1], out);
  }
}

static bool choice(at_function function, attune_dtype dtype, const int64_t *x, uint64_t *out) {
  const int64_t least = less(dtype, x[1], x[0]) ? x[1] : x[0], most = less(dtype, x[0], x[1]) ? x[1] : x[0];
  switch (function) {
  case AT_FN_MINIMUM:
  case AT_FN_FMINIMUM: *out = (uint64_t)least; return true;
  case AT_FN_MAXIMUM:
  case AT_FN_FMAXIMUM: *out = (uint64_t)most; return true;
  case AT_FN_CLAMP: *out = (uint64_t)(less(dtype, x[2], most) ? x[2] : most); return true;
  case AT_FN_FLOOR:
  case AT_FN_CEIL:
  case AT_FN_TRUNC:
  case AT_FN_ROUND: *out = (uint64_t)x[0]; return true;
  default: return false;
  }
}

/* The comparisons, whose result is a bool. */
static bool compare(at_function function, attune_dtype dtype, const int64_t *x, at_constant *out) {
  switch (function) {
  case AT_FN_EQUAL: out->integer = x[0] == x[1]; return true;
  case AT_FN_UNEQUAL: out->integer = x[0] != x[1]; return true;
  case AT_FN_LESS: out->integer = less(dtype, x[0], x[1]); return true;
  case AT_FN_LESS_EQUAL: out->integer = !less(dtype, x[1], x[0]); return true;
  case AT_FN_AND_ALSO: out->integer = x[0] && x[1]; return true;
  case AT_FN_OR_ELSE: out->integer = x[0] || x[1]; return true;
  case AT_FN_NOT: out->integer = !x[0]; return true;
  default: return false;
  }
}

bool at_fold_integer(at_function function, attune_dtype dtype, const int64_t *x, at_constant *out) {
  uint64_t value = 0;
  if (compare(function, dtype, x, out)) return true;
  if (!arithmetic(function, dtype, x, &value) && !choice(function, dtype, x, &value) &&
      !bits(function, dtype, x, &value))
    return false;
  out->integer = at_wrap(dtype, value);
  return true;
}
