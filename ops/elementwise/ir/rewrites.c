/* SPDX-License-Identifier: Apache-2.0
 * rewrites.c: finds a row of rewrites.def that a call fits, and does what it says. */
#include "ops/elementwise/ir/rewrites.h"

#include <math.h>

#include "ops/elementwise/ir/node_table.h"
#include "ops/elementwise/ir/promote.h"
#include "ops/elementwise/ir/wide_value.h"

#define BOOL (unsigned)AT_DTYPES_BOOL
#define SIGNED (unsigned)AT_DTYPES_SIGNED
#define UNSIGNED (unsigned)AT_DTYPES_UNSIGNED
#define FLOATS (unsigned)AT_DTYPES_FLOATS
#define COMPLEX (unsigned)AT_DTYPES_COMPLEX
#define INTEGERS (unsigned)AT_DTYPES_INTEGERS
#define ANY (unsigned)AT_DTYPES_ANY
#define HELD 1

const at_rewrite at_rewrites[] = {
#define AT_REWRITE(function, dtypes, when, number, then, text) \
  {AT_FN_##function, dtypes, AT_WHEN_##when, number, AT_THEN_##then, text},
#define AT_CAST_REWRITE(source, wide, narrow, held, text)
#include "ops/elementwise/ir/rewrites.def"
#undef AT_REWRITE
#undef AT_CAST_REWRITE
};
const int at_rewrite_count = (int)AT_COUNT(at_rewrites);

const at_cast_rewrite at_cast_rewrites[] = {
#define AT_REWRITE(function, dtypes, when, number, then, text)
#define AT_CAST_REWRITE(source, wide, narrow, held, text) {source, wide, narrow, held, text},
#include "ops/elementwise/ir/rewrites.def"
#undef AT_REWRITE
#undef AT_CAST_REWRITE
};
const int at_cast_rewrite_count = (int)AT_COUNT(at_cast_rewrites);

at_dtypes at_dtypes_of(attune_dtype dtype) {
  switch (at_dtype_kind_of(dtype)) {
  case AT_KIND_BOOL: return AT_DTYPES_BOOL;
  case AT_KIND_INTEGER: return at_dtype_unsigned(dtype) ? AT_DTYPES_UNSIGNED : AT_DTYPES_SIGNED;
  case AT_KIND_COMPLEX: return AT_DTYPES_COMPLEX;
  default: return AT_DTYPES_FLOATS;
  }
}

/* ---- when ---- */

/* Is the node this constant? A zero must have its sign; no complex one is. */
static bool is(const at_node_table *b, int node, double value) {
  const at_node *n = &b->nodes[node];
  if (n->kind != AT_NODE_CONSTANT || at_dtype_kind_of((attune_dtype)n->dtype) == AT_KIND_COMPLEX) return false;
  if (at_dtype_whole((attune_dtype)n->dtype)) return n->constant.integer == (int64_t)value && !signbit(value);
  return n->constant.re == value && !signbit(n->constant.re) == !signbit(value);
}

static const at_node *call_of(const at_node_table *b, int node, at_function function) {
  const at_node *n = &b->nodes[node];
  return n->kind == AT_NODE_FUNCTION && n->function == (uint8_t)function ? n : NULL;
}

static bool is_power_of_2(const at_node_table *b, int node) {
  const at_node *n = &b->nodes[node];
  int exponent;
  if (n->kind != AT_NODE_CONSTANT || !isfinite(n->constant.re) || fabs(frexp(n->constant.re, &exponent)) != 0.5)
    return false;
  const int most = n->dtype == ATTUNE_F32 ? 126 : 1022;
  return exponent - 1 <= most && exponent - 1 >= -most;
}

static bool is_too_far(const at_node_table *b, int node) {
  const at_node *n = &b->nodes[node];
  const int64_t x = n->constant.integer;
  return n->kind == AT_NODE_CONSTANT && (x < 0 || x >= at_integer_bits((attune_dtype)n->dtype));
}

static bool is_negative(const at_node_table *b, int node) {
  return b->nodes[node].kind == AT_NODE_CONSTANT && b->nodes[node].constant.integer < 0;
}

static bool fits(const at_rewrite *row, const at_node_table *b, const int *x) {
  switch (row->when) {
  case AT_WHEN_ALWAYS: return true;
  case AT_WHEN_SECOND_IS: return is(b, x[1], row->number);
  case AT_WHEN_EITHER_IS: return is(b, x[0], row->number) || is(b, x[1], row->number);
  case AT_WHEN_SECOND_IS_POWER_OF_2: return is_power_of_2(b, x[1]);
  case AT_WHEN_SECOND_IS_TOO_FAR: return is_too_far(b, x[1]);
  case AT_WHEN_SECOND_IS_NEGATIVE: return is_negative(b, x[1]);
  case AT_WHEN_SAME: return x[0] == x[1];
  case AT_WHEN_TWICE: return call_of(b, x[0], row->function) != NULL;
  case AT_WHEN_NEGATED: return call_of(b, x[0], AT_FN_NEGATE) != NULL;
  case AT_WHEN_SAME_CHOICES: return x[1] == x[2];
  default: return is(b, x[0], row->number); /* AT_WHEN_CHOSEN */
  }
}

const at_rewrite *at_rewrite_find(const at_node_table *b, at_function function, const int *arguments) {
  const int last = arguments[at_function_arity(function) - 1];
  const unsigned dtypes = (unsigned)at_dtypes_of((attune_dtype)b->nodes[last].dtype);
  for (int i = 0; i < at_rewrite_count; i++) {
    const at_rewrite *row = &at_rewrites[i];
    if (row->function == function && (row->dtypes & dtypes) && fits(row, b, arguments)) return row;
  }
  return NULL;
}

/* ---- then ---- */

static bool give(int node, int *out) {
  *out = node;
  return true;
}

static int number_of(at_node_table *b, attune_dtype dtype, int value) {
  return at_dtype_whole(dtype) ? at_build_integer(b, dtype, value)
                               : at_build_constant(b, dtype, (at_constant){.re = (double)value});
}

static bool swap(at_function *function, at_function other, int *arguments) {
  const int first = arguments[0];
  *function = other;
  arguments[0] = arguments[1];
  arguments[1] = first;
  return false;
}

/* abs(x) == 1, and for an odd power that times x. */
static int power_of_units(at_node_table *b, attune_dtype dtype, const int *arguments) {
  const bool odd = b->nodes[arguments[1]].constant.integer & 1;
  const int size = at_build_function(b, AT_FN_ABS, dtype, arguments), one = number_of(b, dtype, 1);
  const int unit = at_build_cast(b, at_build_function(b, AT_FN_EQUAL, ATTUNE_BOOL, (const int[]){size, one}), dtype);
  return odd ? at_build_function(b, AT_FN_MULTIPLY, dtype, (const int[]){arguments[0], unit}) : unit;
}

bool at_rewrite_apply(const at_rewrite *row, at_node_table *b, at_function *function, attune_dtype dtype,
                      int *arguments, int *out) {
  switch (row->then) {
  case AT_THEN_FIRST: return give(arguments[0], out);
  case AT_THEN_SECOND: return give(arguments[1], out);
  case AT_THEN_THIRD: return give(arguments[2], out);
  case AT_THEN_THE_OTHER: return give(arguments[is(b, arguments[0], row->number) ? 1 : 0], out);
  case AT_THEN_INNER: return give(b->nodes[arguments[0]].argument[0], out);
  case AT_THEN_ZERO: return give(number_of(b, dtype, 0), out);
  case AT_THEN_ONE: return give(number_of(b, dtype, 1), out);
  case AT_THEN_AS_LESS: return swap(function, AT_FN_LESS, arguments);
  case AT_THEN_AS_LESS_EQUAL: return swap(function, AT_FN_LESS_EQUAL, arguments);
  case AT_THEN_OF_INNER: arguments[0] = b->nodes[arguments[0]].argument[0]; return false;
  case AT_THEN_SIGN_BITS: arguments[1] = number_of(b, dtype, at_integer_bits(dtype) - 1); return false;
  case AT_THEN_OF_UNITS: return give(power_of_units(b, dtype, arguments), out);
  case AT_THEN_SQUARE: arguments[1] = arguments[0]; break;
  default: { /* AT_THEN_RECIPROCAL */
    const at_node n = b->nodes[arguments[1]];
    arguments[1] = at_build_constant(b, (attune_dtype)n.dtype, (at_constant){.re = 1.0 / n.constant.re});
  }
  }
  *function = AT_FN_MULTIPLY;
  return false;
}

bool at_rewrite_drops_cast(attune_dtype source, attune_dtype wide, attune_dtype narrow) {
  if (!at_holds(wide, source)) return false;
  for (int i = 0; i < at_cast_rewrite_count; i++) {
    const at_cast_rewrite *row = &at_cast_rewrites[i];
    if ((row->source & (unsigned)at_dtypes_of(source)) && (row->wide & (unsigned)at_dtypes_of(wide)) &&
        (row->narrow & (unsigned)at_dtypes_of(narrow)))
      return !row->held || at_holds(narrow, source);
  }
  return false;
}
