/* SPDX-License-Identifier: Apache-2.0
 * evaluate_integer.c: functions of integers and bools, exact. A value is the sign- or zero-extended element; results
 * are wrapped to their dtype by the caller. */
#include "ops/elementwise/ir/evaluate.h"

/* x and y as one of the two kinds: -1, 0 or 1. */
static int compare(bool is_unsigned, int64_t x, int64_t y) {
  if (is_unsigned) return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
  return (x > y) - (x < y);
}

static int64_t least(bool is_unsigned, int64_t x, int64_t y) {
  return compare(is_unsigned, x, y) <= 0 ? x : y;
}
static int64_t greatest(bool is_unsigned, int64_t x, int64_t y) {
  return compare(is_unsigned, x, y) >= 0 ? x : y;
}

/* The quotient toward zero, 0 for y = 0; the least by -1 wraps. */
static int64_t quotient(bool is_unsigned, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (is_unsigned) return (int64_t)((uint64_t)x / (uint64_t)y);
  return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t rest(bool is_unsigned, int64_t x, int64_t y) {
  return y == 0 ? 0 : (int64_t)((uint64_t)x - (uint64_t)quotient(is_unsigned, x, y) * (uint64_t)y);
}

static bool rounds_down(bool is_unsigned, int64_t x, int64_t y) {
  return !is_unsigned && rest(is_unsigned, x, y) != 0 && (x < 0) != (y < 0);
}

static int64_t power(bool is_unsigned, int64_t x, int64_t n) {
  if (!is_unsigned && n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)x;
  for (uint64_t left = (uint64_t)n; left != 0; left >>= 1) {
    if (left & 1u) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

static int64_t shift_left(int bits, int64_t x, int64_t n) {
  return n < 0 || n >= bits ? 0 : (int64_t)((uint64_t)x << n);
}

static int64_t shift_right(bool is_unsigned, int bits, int64_t x, int64_t n) {
  const bool all = n < 0 || n >= bits;
  if (is_unsigned) return all ? 0 : (int64_t)((uint64_t)x >> n);
  return x >> (all ? 63 : n);
}

static int64_t popcount(int bits, int64_t x) {
  int64_t count = 0;
  for (int i = 0; i < bits; i++) count += x >> i & 1;
  return count;
}

static int64_t leading_zeros(int bits, int64_t x) {
  int64_t count = 0;
  while (count < bits && !(x >> (bits - 1 - count) & 1)) count++;
  return count;
}

static int64_t apply(at_function function, attune_dtype dtype, int64_t x, int64_t y, int64_t z) {
  const bool u = at_dtype_unsigned(dtype);
  const int bits = at_integer_bits(dtype);
  switch (function) {
  case AT_FN_OR_ELSE:
  case AT_FN_OR: return x | y;
  case AT_FN_AND_ALSO:
  case AT_FN_AND: return x & y;
  case AT_FN_XOR: return x ^ y;
  case AT_FN_EQUAL: return x == y;
  case AT_FN_UNEQUAL: return x != y;
  case AT_FN_LESS: return compare(u, x, y) < 0;
  case AT_FN_LESS_EQUAL: return compare(u, x, y) <= 0;
  case AT_FN_GREATER: return compare(u, x, y) > 0;
  case AT_FN_GREATER_EQUAL: return compare(u, x, y) >= 0;
  case AT_FN_SHIFT_LEFT: return shift_left(bits, x, y);
  case AT_FN_SHIFT_RIGHT: return shift_right(u, bits, x, y);
  case AT_FN_ADD: return (int64_t)((uint64_t)x + (uint64_t)y);
  case AT_FN_SUBTRACT: return (int64_t)((uint64_t)x - (uint64_t)y);
  case AT_FN_MULTIPLY: return (int64_t)((uint64_t)x * (uint64_t)y);
  case AT_FN_FLOOR_DIVIDE: return quotient(u, x, y) - rounds_down(u, x, y);
  case AT_FN_REMAINDER: return rest(u, x, y) + (rounds_down(u, x, y) ? y : 0);
  case AT_FN_FMOD: return rest(u, x, y);
  case AT_FN_NEGATE: return (int64_t)(0 - (uint64_t)x);
  case AT_FN_NOT: return !x;
  case AT_FN_INVERT: return ~x;
  case AT_FN_POWER: return power(u, x, y);
  case AT_FN_MINIMUM:
  case AT_FN_FMINIMUM: return least(u, x, y);
  case AT_FN_MAXIMUM:
  case AT_FN_FMAXIMUM: return greatest(u, x, y);
  case AT_FN_CLAMP: return least(u, greatest(u, x, y), z);
  case AT_FN_ABS: return !u && x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
  case AT_FN_SIGN: return compare(u, x, 0);
  case AT_FN_RELU: return greatest(u, x, 0);
  case AT_FN_POPCOUNT: return popcount(bits, x);
  case AT_FN_CLZ: return leading_zeros(bits, x);
  default: return x; /* floor, ceil, trunc, round, conj */
  }
}

at_wide_value at_evaluate_integer(at_function function, attune_dtype dtype, const at_wide_value *x) {
  return (at_wide_value){.integer = apply(function, dtype, x[0].integer, x[1].integer, x[2].integer)};
}
