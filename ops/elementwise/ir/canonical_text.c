/* SPDX-License-Identifier: Apache-2.0
 * canonical_text.c: the text of a numbered graph: "f32 i0, f64 s0: t0 = i0 + i0 * f32(s0); t0, gelu(t0)". Every cast is
 * written, so that nothing is left to promotion, and the fewest parentheses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/fold.h"
#include "ops/elementwise/ir/keywords.h"
#include "src/base/string_builder.h"

enum { ATOM = 100 }; /* the precedence of what needs no parentheses */

typedef struct writer {
  const at_expression *e;
  const bool *named;
  int *name; /* t's number of a named node */
  at_string_builder text;
} writer;

static void put(writer *w, const char *words) {
  at_string_builder_put(&w->text, words, strlen(words));
}

/* ---- constants ---- */

/* The fewest digits that give the number of `dtype` back, with a point or an exponent: it is no integer. */
static void put_real(writer *w, attune_dtype dtype, double x) {
  char digits[40];
  if (isnan(x) || isinf(x)) {
    put(w, isnan(x) ? "nan" : x < 0.0 ? "-inf" : "inf");
    return;
  }
  if (fabs(x) < 1e9 && trunc(x) == x) {
    at_string_builder_add(&w->text, "%.1f", x);
    return;
  }
  for (int precision = 1; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, x);
    double back = 0.0; /* 0 too where it rounds up to infinity */
    if (at_read_number(&back, digits) && (double)at_wide_value_round(dtype, (at_wide_value){.re = back}).re == x) break;
  }
  put(w, digits);
  if (!strpbrk(digits, ".e")) put(w, ".0");
}

static void put_constant(writer *w, const at_node *n) {
  const attune_dtype dtype = (attune_dtype)n->dtype;
  const at_constant c = n->constant;
  switch (dtype) {
  case ATTUNE_BOOL: put(w, c.integer ? "true" : "false"); return;
  case ATTUNE_I64: at_string_builder_add(&w->text, "%lld", (long long)c.integer); return;
  case ATTUNE_F64: put_real(w, dtype, c.re); return;
  case ATTUNE_C64:
  case ATTUNE_C128:
    put(w, dtype == ATTUNE_C64 ? "complex(f32(" : "complex(");
    put_real(w, dtype, c.re);
    put(w, dtype == ATTUNE_C64 ? "), f32(" : ", ");
    put_real(w, dtype, c.im);
    put(w, dtype == ATTUNE_C64 ? "))" : ")");
    return;
  default: break;
  }
  at_string_builder_add(&w->text, "%s(", attune_dtype_name(dtype));
  if (at_dtype_kind_of(dtype) == AT_KIND_FLOAT)
    put_real(w, dtype, c.re);
  else if (dtype == ATTUNE_U64)
    at_string_builder_add(&w->text, "%llu", (unsigned long long)c.integer);
  else
    at_string_builder_add(&w->text, "%lld", (long long)c.integer);
  put(w, ")");
}

/* ---- nodes ---- */

static void put_node(writer *w, int i, int least);

static int precedence_of(const writer *w, int i) {
  const at_node *n = &w->e->nodes[i];
  if (w->named[i]) return ATOM;
  if (n->kind == AT_NODE_FUNCTION && at_function_precedence((at_function)n->function))
    return at_function_precedence((at_function)n->function);
  const bool minus = n->kind == AT_NODE_CONSTANT && ((n->dtype == ATTUNE_I64 && n->constant.integer < 0) ||
                                                     (n->dtype == ATTUNE_F64 && signbit(n->constant.re)));
  return minus && !isnan(n->constant.re) ? at_function_precedence(AT_FN_NEGATE) : ATOM;
}

static bool compares(at_function function) {
  const at_type_rule rule = at_function_rule(function);
  return rule == AT_RULE_COMPARE || rule == AT_RULE_EQUAL;
}

static void put_operator(writer *w, const at_node *n) {
  const at_function function = (at_function)n->function;
  const int own = at_function_precedence(function);
  if (n->count == 1) {
    put(w, at_function_name(function));
    put_node(w, n->argument[0], own);
    return;
  }
  /* a - (b - c) and (a < b) < c need parentheses; so do (-a) ** b and (a ** b) ** c. */
  int left = own, right = own + 1;
  if (compares(function)) left = right = at_function_precedence(AT_FN_LESS) + 1;
  if (function == AT_FN_POWER) left = ATOM, right = at_function_precedence(AT_FN_NEGATE);
  put_node(w, n->argument[0], left);
  at_string_builder_add(&w->text, " %s ", at_function_name(function));
  put_node(w, n->argument[1], right);
}

static void put_call(writer *w, const char *name, const at_node *n) {
  put(w, name);
  for (int k = 0; k < n->count; k++) {
    put(w, k ? ", " : "(");
    put_node(w, n->argument[k], 0);
  }
  put(w, ")");
}

static void put_leaf(writer *w, const at_node *n) {
  const char *dtype = attune_dtype_name((attune_dtype)n->dtype);
  switch (n->kind) {
  case AT_NODE_INPUT: put(w, at_canonical_tensor(n->index)); return;
  case AT_NODE_SCALAR:
    if (n->dtype == w->e->scalars[n->index].dtype)
      at_string_builder_add(&w->text, "s%d", n->index);
    else
      at_string_builder_add(&w->text, "%s(s%d)", dtype, n->index);
    return;
  case AT_NODE_POSITION: at_string_builder_add(&w->text, "index(%d)", n->index); return;
  case AT_NODE_ELEMENT: put(w, "index()"); return;
  case AT_NODE_UNIFORM: put(w, "rand()"); return;
  case AT_NODE_NORMAL: put(w, "randn()"); return;
  default: put_constant(w, n); return;
  }
}

/* Text of node i, without its name. */
static void put_meaning(writer *w, int i) {
  const at_node *n = &w->e->nodes[i];
  if (n->count == 0)
    put_leaf(w, n);
  else if (n->kind == AT_NODE_CAST)
    put_call(w, attune_dtype_name((attune_dtype)n->dtype), n);
  else if (at_function_precedence((at_function)n->function))
    put_operator(w, n);
  else
    put_call(w, at_function_name((at_function)n->function), n);
}

/* With parentheses if it binds less than `least`. The text nests less than canonical.c's NEST. */
static void put_node(writer *w, int i, int least) {
  const bool parentheses = precedence_of(w, i) < least;
  if (w->named[i]) {
    at_string_builder_add(&w->text, "t%d", w->name[i]);
    return;
  }
  if (parentheses) put(w, "(");
  put_meaning(w, i);
  if (parentheses) put(w, ")");
}

const char *at_canonical_tensor(int number) {
  static const char *const names[] = {"i0",  "i1",  "i2",  "i3",  "i4",  "i5",  "i6",  "i7",
                                      "i08", "i09", "i10", "i11", "i12", "i13", "i14", "i15"};
  _Static_assert(AT_COUNT(names) == AT_EXPRESSION_INPUTS, "a name for each");
  return names[number];
}

static void put_operands(writer *w) {
  const at_expression *e = w->e;
  for (int i = 0; i < e->input_count + e->scalar_count; i++) {
    const bool tensor = i < e->input_count;
    const int number = tensor ? i : i - e->input_count;
    const uint8_t dtype = tensor ? e->inputs[number].dtype : e->scalars[number].dtype;
    at_string_builder_add(&w->text, "%s%s ", i ? ", " : "", attune_dtype_name((attune_dtype)dtype));
    if (tensor)
      put(w, at_canonical_tensor(number));
    else
      at_string_builder_add(&w->text, "s%d", number);
  }
  put(w, ": ");
}

char *at_canonical_text(const at_expression *expression, const bool *named) {
  writer w = {.e = expression, .named = named};
  int names = 0;
  w.name = malloc((size_t)expression->node_count * sizeof *w.name);
  if (!w.name) return NULL;
  put_operands(&w);
  for (int i = 0; i < expression->node_count; i++) {
    if (!named[i]) continue;
    at_string_builder_add(&w.text, "t%d = ", names);
    put_meaning(&w, i);
    put(&w, "; ");
    w.name[i] = names++;
  }
  for (int i = 0; i < expression->output_count; i++) {
    if (i) put(&w, ", ");
    put_node(&w, expression->outputs[i], 0);
  }
  free(w.name);
  if (!w.text.failed) return w.text.data;
  free(w.text.data);
  return NULL;
}
