/* SPDX-License-Identifier: Apache-2.0
 * simplify.c: functions that are one of their arguments, or another function, for every input: also for NaN, for
 * infinity and for a zero of either sign. x + 0 stays, since -0 + 0 is 0; x * 0 stays for floats. */
#include "ops/elementwise/simplify.h"

#include <math.h>

typedef struct term {
  at_builder *b;
  attune_dtype dtype; /* of the first argument */
  bool whole, real;   /* an integer or bool; a float that is not complex */
  const int *arguments;
} term;

/* Argument i is the constant `value`; a zero must have its sign. */
static bool is(const term *t, int i, double value) {
  const at_node *n = &t->b->nodes[t->arguments[i]];
  if (n->kind != AT_NODE_CONSTANT) return false;
  if (at_dtype_whole((attune_dtype)n->dtype))
    return value >= 0.0 ? n->constant.integer == (int64_t)value && !signbit(value) : false;
  return n->constant.im == 0.0 && n->constant.re == value && !signbit(n->constant.re) == !signbit(value);
}

static bool take(const term *t, int i, int *out) {
  *out = t->arguments[i];
  return true;
}

static bool give(const term *t, attune_dtype dtype, int64_t value, int *out) {
  *out = at_build_integer(t->b, dtype, value);
  return true;
}

static const at_node *function_at(const term *t, int i, at_function function) {
  const at_node *n = &t->b->nodes[t->arguments[i]];
  return n->kind == AT_NODE_FUNCTION && n->function == (uint8_t)function ? n : NULL;
}

static bool arithmetic(const term *t, at_function function, attune_dtype dtype, int *out) {
  const bool plain = t->whole || t->real, same = t->arguments[0] == t->arguments[1];
  switch (function) {
  case AT_FN_ADD:
    for (int i = 0; i < 2 && plain; i++)
      if (is(t, i, t->whole ? 0.0 : -0.0)) return take(t, 1 - i, out);
    return false;
  case AT_FN_SUBTRACT:
    if (t->whole && same) return give(t, dtype, 0, out);
    return plain && is(t, 1, 0.0) && take(t, 0, out);
  case AT_FN_MULTIPLY:
    for (int i = 0; i < 2 && plain; i++) {
      if (is(t, i, 1.0)) return take(t, 1 - i, out);
      if (t->whole && is(t, i, 0.0)) return take(t, i, out);
    }
    return false;
  case AT_FN_DIVIDE: return t->real && is(t, 1, 1.0) && take(t, 0, out);
  case AT_FN_FLOOR_DIVIDE: return t->whole && is(t, 1, 1.0) && take(t, 0, out);
  case AT_FN_REMAINDER: return t->whole && is(t, 1, 1.0) && give(t, dtype, 0, out);
  default: /* a power */
    if (!plain) return false;
    if (is(t, 1, 1.0)) return take(t, 0, out);
    if (!is(t, 1, 0.0)) return false;
    if (t->whole) return give(t, dtype, 1, out);
    *out = at_build_constant(t->b, dtype, (at_constant){.re = 1.0});
    return true;
  }
}

static bool logic(const term *t, at_function function, attune_dtype dtype, int *out) {
  const bool same = t->arguments[0] == t->arguments[1];
  for (int i = 0; i < 2; i++) switch (function) {
    case AT_FN_AND:
    case AT_FN_AND_ALSO:
      if (same || is(t, i, 0.0)) return take(t, i, out);
      if (t->dtype == ATTUNE_BOOL && is(t, i, 1.0)) return take(t, 1 - i, out);
      break;
    case AT_FN_OR:
    case AT_FN_OR_ELSE:
      if (same || is(t, i, 0.0)) return take(t, 1 - i, out);
      if (t->dtype == ATTUNE_BOOL && is(t, i, 1.0)) return take(t, i, out);
      break;
    case AT_FN_XOR:
      if (same) return give(t, dtype, 0, out);
      if (is(t, i, 0.0)) return take(t, 1 - i, out);
      break;
    default: /* a shift */ return is(t, 1, 0.0) && take(t, 0, out);
    }
  return false;
}

static bool compare(const term *t, at_function function, int *out) {
  if (!t->whole || t->arguments[0] != t->arguments[1]) return false;
  return give(t, ATTUNE_BOOL, function == AT_FN_EQUAL || function == AT_FN_LESS_EQUAL, out);
}

static bool choose(const term *t, int *out) {
  if (t->arguments[1] == t->arguments[2]) return take(t, 1, out);
  return at_is_constant(t->b, t->arguments[0]) && take(t, is(t, 0, 0.0) ? 2 : 1, out);
}

/* Twice is not at all: -(-x), !!x, ~~x, conj(conj(x)). */
static bool undo(const term *t, at_function function, int *out) {
  const at_node *inner = function_at(t, 0, function);
  if (!inner) return function == AT_FN_CONJUGATE && (t->whole || t->real) && take(t, 0, out);
  *out = inner->argument[0];
  return true;
}

/* Twice is once: abs(abs(x)), floor(floor(x)); nothing to do: floor of an integer, abs of an unsigned one. */
static bool settle(const term *t, at_function function, int *out) {
  if (function_at(t, 0, function)) return take(t, 0, out);
  if (function == AT_FN_ABS || function == AT_FN_RELU) {
    if (at_dtype_unsigned(t->dtype)) return take(t, 0, out);
    return false;
  }
  return t->whole && take(t, 0, out);
}

static term term_of(at_builder *b, const int *arguments) {
  const attune_dtype first = (attune_dtype)b->nodes[arguments[0]].dtype;
  return (term){.b = b,
                .dtype = first,
                .whole = at_dtype_whole(first),
                .real = at_dtype_kind_of(first) == AT_KIND_FLOAT,
                .arguments = arguments};
}

bool at_simplify(at_builder *b, at_function function, attune_dtype dtype, const int *arguments, int *out) {
  const term t = term_of(b, arguments);
  switch (function) {
  case AT_FN_ADD:
  case AT_FN_SUBTRACT:
  case AT_FN_MULTIPLY:
  case AT_FN_DIVIDE:
  case AT_FN_FLOOR_DIVIDE:
  case AT_FN_REMAINDER:
  case AT_FN_POWER: return arithmetic(&t, function, dtype, out);
  case AT_FN_AND:
  case AT_FN_OR:
  case AT_FN_XOR:
  case AT_FN_AND_ALSO:
  case AT_FN_OR_ELSE:
  case AT_FN_SHIFT_LEFT:
  case AT_FN_SHIFT_RIGHT: return logic(&t, function, dtype, out);
  case AT_FN_EQUAL:
  case AT_FN_UNEQUAL:
  case AT_FN_LESS:
  case AT_FN_LESS_EQUAL: return compare(&t, function, out);
  case AT_FN_SELECT: return choose(&t, out);
  case AT_FN_NEGATE:
  case AT_FN_NOT:
  case AT_FN_INVERT:
  case AT_FN_CONJUGATE: return undo(&t, function, out);
  case AT_FN_ABS:
  case AT_FN_RELU:
  case AT_FN_FLOOR:
  case AT_FN_CEIL:
  case AT_FN_TRUNC:
  case AT_FN_ROUND: return settle(&t, function, out);
  case AT_FN_MINIMUM:
  case AT_FN_MAXIMUM:
  case AT_FN_FMINIMUM:
  case AT_FN_FMAXIMUM: return arguments[0] == arguments[1] && take(&t, 0, out);
  default: return false;
  }
}

/* ---- other functions ---- */

/* x / 4 is x * 0.25, exactly, where the reciprocal is a normal number. */
static bool divides_by_power(const term *t, double *reciprocal) {
  if (!t->real || !at_is_constant(t->b, t->arguments[1]) || is(t, 1, 1.0)) return false;
  const double divisor = t->b->nodes[t->arguments[1]].constant.re;
  int exponent;
  if (!isfinite(divisor) || fabs(frexp(divisor, &exponent)) != 0.5) return false;
  const int most = t->dtype == ATTUNE_F32 ? 126 : 1022;
  *reciprocal = 1.0 / divisor;
  return exponent - 1 <= most && exponent - 1 >= -most;
}

bool at_rewrite(at_builder *b, at_function *function, int *arguments) {
  const term t = term_of(b, arguments);
  double reciprocal;
  if (*function == AT_FN_DIVIDE && divides_by_power(&t, &reciprocal)) {
    *function = AT_FN_MULTIPLY;
    arguments[1] = at_build_constant(b, t.dtype, (at_constant){.re = reciprocal});
    return true;
  }
  if (*function == AT_FN_POWER && (t.whole || t.real) && is(&t, 1, 2.0)) {
    *function = AT_FN_MULTIPLY;
    arguments[1] = arguments[0];
    return true;
  }
  if (*function == AT_FN_GREATER || *function == AT_FN_GREATER_EQUAL) {
    *function = *function == AT_FN_GREATER ? AT_FN_LESS : AT_FN_LESS_EQUAL;
    const int first = arguments[0];
    arguments[0] = arguments[1];
    arguments[1] = first;
    return true;
  }
  const at_node *negated = *function == AT_FN_ABS ? function_at(&t, 0, AT_FN_NEGATE) : NULL;
  if (negated) arguments[0] = negated->argument[0];
  return negated != NULL;
}
