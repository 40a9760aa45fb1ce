/* SPDX-License-Identifier: Apache-2.0
 * type_inference.c: from values to the nodes of a function: which dtype they have in common, which the function takes,
 * the casts in between, and what is refused because it can never be right. */
#include "ops/elementwise/ir/fold.h"
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"

#define NAME(dtype) attune_dtype_name(dtype)

/* A call in the making: the dtype that its arguments get, and what is asked. */
typedef struct call {
  at_parser *p;
  size_t at;
  at_function function;
  at_value values[3], common;
} call;

#define FAIL(c, ...) AT_PARSE_FAIL((c)->p, (c)->at, __VA_ARGS__)

static at_dtype_kind kind_of(const call *c) {
  return at_dtype_kind_of(c->common.dtype);
}

/* ---- numbers of the text ---- */

/* The number that the value is, as it is written; NULL: it is none. Only such a one is refused: of every other constant
 * the results are those of a value that is known when it runs, and rewrites.def makes them of it, so that no canonical
 * text has what is refused. */
static const at_node *written(const at_parser *p, const at_value *value) {
  return value->written && at_is_constant(&p->build, value->node) ? &p->build.nodes[value->node] : NULL;
}

/* ---- casts ---- */

/* A literal for an integer dtype that does not hold it: torch refuses it too; negative ones wrap where there is no
 * sign. */
static bool fits(at_parser *p, const at_value *value, attune_dtype dtype) {
  const at_node *number = written(p, value);
  if (!value->weak || !number || at_dtype_kind_of(dtype) != AT_KIND_INTEGER) return true;
  const int64_t x = number->constant.integer;
  if (value->dtype == ATTUNE_U64) return dtype == ATTUNE_U64;
  if (at_dtype_unsigned(dtype))
    return x >= 0 ? at_integer_wrap(dtype, x) == x : at_integer_wrap(dtype, (int64_t)(0 - (uint64_t)x)) == -x;
  return at_integer_wrap(dtype, x) == x;
}

/* A value's nodes in another dtype. */
static void cast(at_parser *p, at_value *value, attune_dtype dtype) {
  value->node = at_build_cast(&p->build, value->node, dtype);
  if (p->keeps_plain) value->plain = at_plain_cast(&p->plain, value->plain, dtype);
}

static bool convert(call *c, at_value *value, attune_dtype dtype) {
  if (!fits(c->p, value, dtype)) {
    FAIL(c, "%lld does not fit into %s, the dtype of the other operand; cast that operand to a wider one, as in i64(x)",
         (long long)c->p->build.nodes[value->node].constant.integer, NAME(dtype));
    return false;
  }
  cast(c->p, value, at_compute_dtype(dtype));
  return true;
}

at_value at_type_cast(at_parser *p, size_t at, attune_dtype dtype, at_value value) {
  if (value.node < 0) return AT_NONE;
  const attune_dtype compute = at_compute_dtype(dtype);
  at_value out = {.node = value.node, .plain = value.plain, .dtype = dtype, .written = value.written};
  if (at_is_constant(&p->build, value.node)) {
    const at_node n = p->build.nodes[value.node];
    at_constant x = n.constant;
    if (written(p, &value) && !at_fold_holds((attune_dtype)n.dtype, dtype, &x))
      return AT_PARSE_FAIL(p, at, "%g does not fit into %s; should be a whole number in its range", n.constant.re,
                           NAME(dtype));
    at_fold_cast((attune_dtype)n.dtype, dtype, &x);
    out.node = at_build_constant(&p->build, compute, x);
    if (p->keeps_plain) out.plain = at_plain_cast(&p->plain, value.plain, dtype);
    return out;
  }
  cast(p, &out, dtype);
  return out;
}

void at_type_output(at_parser *p, at_value *value) {
  if (value->weak && !p->canonical)
    value->dtype = value->dtype == ATTUNE_F64 ? ATTUNE_F32 : value->dtype == ATTUNE_C128 ? ATTUNE_C64 : value->dtype;
  cast(p, value, value->dtype);
}

/* ---- which dtypes a function has ---- */

static const char *article(const call *c) {
  const int arity = at_function_arity(c->function);
  return arity == 1 ? "an argument" : "arguments";
}

static at_value refuse(const call *c, const char *lacks, const char *remedy) {
  return FAIL(c, "%s has no %s; %s", at_function_name(c->function), lacks, remedy);
}

static bool need_real(const call *c) {
  if (kind_of(c) != AT_KIND_COMPLEX) return true;
  refuse(c, NAME(c->common.dtype), "take real(z), imag(z) or abs(z)");
  return false;
}

/* Integers become f32, or f64 where they are numbers of the text. */
static void make_float(call *c) {
  if (kind_of(c) == AT_KIND_BOOL || kind_of(c) == AT_KIND_INTEGER)
    c->common.dtype = c->common.weak ? ATTUNE_F64 : ATTUNE_F32;
}

static void bool_to_integer(call *c) {
  if (kind_of(c) == AT_KIND_BOOL) c->common.dtype = ATTUNE_I64;
}

static bool need_bits(const call *c) {
  const bool counts = c->function == AT_FN_CLZ || at_function_rule(c->function) == AT_RULE_SHIFT;
  if (kind_of(c) == AT_KIND_INTEGER || (kind_of(c) == AT_KIND_BOOL && !counts)) return true;
  if (kind_of(c) == AT_KIND_BOOL)
    refuse(c, "bool", "cast it to an integer, as in u8(x)");
  else
    FAIL(c, "%s needs integers%s, but has %s of %s; %s", at_function_name(c->function), counts ? "" : " or bools",
         article(c), NAME(c->common.dtype),
         c->function == AT_FN_XOR ? "for a power write x ** y; otherwise cast, as in i32(x)" : "cast as in i32(x)");
  return false;
}

static bool find_common(call *c, int first) {
  attune_dtype one, other;
  const int count = at_function_arity(c->function);
  if (at_common(c->values + first, count - first, &c->common, &one, &other)) return true;
  FAIL(c, "%s of %s and %s: these have no common dtype; cast one of them, as in f32(x)", at_function_name(c->function),
       NAME(one), NAME(other));
  return false;
}

/* ---- what can never be right ---- */

static bool constant_of(const call *c, int i, int64_t *out) {
  const at_node *n = written(c->p, &c->values[i]);
  if (!n) return false;
  *out = n->constant.integer;
  return at_dtype_whole((attune_dtype)n->dtype);
}

static bool check_second(const call *c) {
  int64_t x;
  if (kind_of(c) != AT_KIND_INTEGER || at_function_arity(c->function) != 2 || !constant_of(c, 1, &x)) return true;
  const int bits = 8 * (int)attune_dtype_size(c->common.dtype);
  const bool divides = c->function == AT_FN_FLOOR_DIVIDE || c->function == AT_FN_REMAINDER || c->function == AT_FN_FMOD;
  if (divides && x == 0)
    FAIL(c, "an integer is divided by 0; the divisor should be another number, or a floating-point one as in 0.0");
  else if (at_function_rule(c->function) == AT_RULE_SHIFT && (x < 0 || x >= bits))
    FAIL(c, "%s is shifted by %lld; should be by 0 to %d", NAME(c->common.dtype), (long long)x, bits - 1);
  else if (c->function == AT_FN_POWER && x < 0 && c->values[1].dtype != ATTUNE_U64)
    FAIL(c, "an integer to the power %lld is not an integer; cast it, as in f32(x) ** %lld", (long long)x,
         (long long)x);
  else
    return true;
  return false;
}

/* ---- building ---- */

/* The function of values that have their dtypes. */
static at_value apply(call *c, attune_dtype result) {
  const attune_dtype compute = at_compute_dtype(result);
  int nodes[3], plain[3];
  bool all = true;
  for (int i = 0; i < at_function_arity(c->function); i++) {
    nodes[i] = c->values[i].node, plain[i] = c->values[i].plain;
    all = all && c->values[i].written;
  }
  return (at_value){.node = at_build_function(&c->p->build, c->function, compute, nodes),
                    .plain =
                        c->p->keeps_plain ? at_plain_function(&c->p->plain, c->function, compute, plain) : AT_NO_NODE,
                    .dtype = result,
                    .weak = c->common.weak,
                    .written = all};
}

static at_value build(call *c, attune_dtype result) {
  if (!check_second(c)) return AT_NONE;
  for (int i = 0; i < at_function_arity(c->function); i++)
    if (!convert(c, &c->values[i], c->common.dtype)) return AT_NONE;
  return apply(c, result);
}

static at_value build_logic(call *c) {
  c->common.dtype = ATTUNE_BOOL;
  return build(c, ATTUNE_BOOL);
}

static at_value build_select(call *c) {
  cast(c->p, &c->values[0], ATTUNE_BOOL);
  if (!find_common(c, 1)) return AT_NONE;
  for (int i = 1; i < 3; i++)
    if (!convert(c, &c->values[i], c->common.dtype)) return AT_NONE;
  return apply(c, c->common.dtype);
}

static attune_dtype part_of(attune_dtype dtype) {
  return dtype == ATTUNE_C64 ? ATTUNE_F32 : ATTUNE_F64;
}

/* isnan of a complex number: of either part; isfinite: of both. */
static at_value classify_complex(call *c) {
  const at_function both = c->function == AT_FN_ISFINITE ? AT_FN_AND_ALSO : AT_FN_OR_ELSE;
  at_value parts[2];
  for (int i = 0; i < 2; i++) {
    parts[i] = at_type_function(c->p, c->at, i ? AT_FN_IMAGINARY_PART : AT_FN_REAL_PART, c->values);
    parts[i] = at_type_function(c->p, c->at, c->function, &parts[i]);
  }
  return at_type_function(c->p, c->at, both, parts);
}

static at_value build_classify(call *c) {
  if (kind_of(c) == AT_KIND_COMPLEX && c->function != AT_FN_SIGNBIT) return classify_complex(c);
  if (!need_real(c)) return AT_NONE;
  make_float(c);
  return build(c, ATTUNE_BOOL);
}

static at_value build_part(call *c) {
  if (kind_of(c) == AT_KIND_COMPLEX) return build(c, part_of(c->common.dtype));
  if (c->function == AT_FN_REAL_PART) return c->values[0];
  return FAIL(c, "%s needs a complex number, but has %s; %s", at_function_name(c->function), NAME(c->common.dtype),
              c->function == AT_FN_ANGLE ? "write where(x < 0, pi, 0.0)" : "a real number has no imaginary part");
}

static at_value build_floating_real(call *c) {
  const attune_dtype asked = c->common.dtype;
  if (!need_real(c)) return AT_NONE;
  make_float(c);
  if (c->function == AT_FN_NEXTAFTER && at_compute_dtype(asked) != asked)
    return refuse(c, NAME(asked), "it has f32 and f64: cast as in f32(x)");
  if (c->function != AT_FN_COMPLEX) return build(c, c->common.dtype);
  return build(c, c->common.dtype == ATTUNE_F64 ? ATTUNE_C128 : ATTUNE_C64);
}

static at_value build_by_rule(call *c) {
  switch (at_function_rule(c->function)) {
  case AT_RULE_NUMBER: bool_to_integer(c); return build(c, c->common.dtype);
  case AT_RULE_FLOAT: make_float(c); return build(c, c->common.dtype);
  case AT_RULE_REAL:
    if (!need_real(c)) return AT_NONE;
    bool_to_integer(c);
    return build(c, c->common.dtype);
  case AT_RULE_FLOATING_REAL: return build_floating_real(c);
  case AT_RULE_COMPARE: return need_real(c) ? build(c, ATTUNE_BOOL) : AT_NONE;
  case AT_RULE_EQUAL: return build(c, ATTUNE_BOOL);
  case AT_RULE_BITS:
  case AT_RULE_SHIFT: return need_bits(c) ? build(c, c->common.dtype) : AT_NONE;
  case AT_RULE_CLASSIFY: return build_classify(c);
  default: return build_part(c);
  }
}

at_value at_type_function(at_parser *p, size_t at, at_function function, const at_value *values) {
  call c = {.p = p, .at = at, .function = function};
  for (int i = 0; i < at_function_arity(function); i++) {
    if (values[i].node < 0) return AT_NONE;
    c.values[i] = values[i];
  }
  if (at_function_rule(function) == AT_RULE_SELECT) return build_select(&c);
  if (at_function_rule(function) == AT_RULE_LOGIC) {
    bool weak = true;
    for (int i = 0; i < at_function_arity(function); i++) weak = weak && values[i].weak;
    c.common.weak = weak;
    return build_logic(&c);
  }
  if (!find_common(&c, 0)) return AT_NONE;
  if (function == AT_FN_ABS && kind_of(&c) == AT_KIND_COMPLEX) c.function = AT_FN_MAGNITUDE;
  return build_by_rule(&c);
}

at_value at_type_plus(at_parser *p, at_value value) {
  if (value.node >= 0 && value.dtype == ATTUNE_BOOL) {
    value.dtype = ATTUNE_I64;
    cast(p, &value, ATTUNE_I64);
  }
  return value;
}
