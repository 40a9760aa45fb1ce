/* SPDX-License-Identifier: Apache-2.0
 * evaluate.c: walks the graph, for one element and for whole tensors. */
#include "ops/elementwise/ir/evaluate.h"

#include <stdlib.h>

at_wide_value at_evaluate_function(at_function function, attune_dtype dtype, attune_dtype result,
                                   const at_wide_value *x) {
  if (function == AT_FN_SELECT) return x[x[0].integer ? 1 : 2];
  at_wide_value value;
  switch (at_dtype_kind_of(dtype)) {
  case AT_KIND_COMPLEX: value = at_evaluate_complex(function, x); break;
  case AT_KIND_FLOAT: value = at_evaluate_real(function, dtype, x); break;
  default: value = at_evaluate_integer(function, dtype, x); break;
  }
  if (at_dtype_whole(result)) value.integer = at_integer_wrap(result, value.integer);
  return value;
}

at_wide_value at_evaluate_rounded(at_function function, attune_dtype dtype, attune_dtype result,
                                  const at_wide_value *x) {
  at_wide_value basic = {0};
  if (at_evaluate_basic(function, dtype, x, &basic.re)) return basic;
  return at_wide_value_round(result, at_evaluate_function(function, dtype, result, x));
}

static at_wide_value draw_of(const at_expression *expression, const at_node *node, const at_element *element) {
  const int normal = node->kind == AT_NODE_NORMAL;
  const int draw = node->index + (normal ? expression->uniform_count : 0);
  float x = 0.0f;
  if (element->draws) at_draw_row(&x, element->draws, element->count, draw, normal, element->number, 1);
  return (at_wide_value){.re = x};
}

/* Value of a node without arguments. */
static at_wide_value leaf(const at_expression *expression, const at_node *node, const at_element *element) {
  const attune_dtype dtype = (attune_dtype)node->dtype;
  switch (node->kind) {
  case AT_NODE_INPUT: {
    const attune_dtype own = (attune_dtype)expression->inputs[node->index].dtype;
    return at_wide_value_cast(dtype, own, at_wide_value_load(own, element->inputs[node->index]));
  }
  case AT_NODE_SCALAR:
    return at_wide_value_of_constant(dtype, (attune_dtype)expression->scalars[node->index].dtype,
                                     element->scalars[node->index]);
  case AT_NODE_CONSTANT: return at_wide_value_of_constant(dtype, dtype, node->constant);
  case AT_NODE_POSITION: return (at_wide_value){.integer = node->index < AT_DIMS ? element->position[node->index] : 0};
  case AT_NODE_ELEMENT: return (at_wide_value){.integer = element->number};
  default: return draw_of(expression, node, element);
  }
}

void at_evaluate(at_wide_value *values, const at_expression *expression, const at_element *element,
                 at_rounding rounding) {
  for (int i = 0; i < expression->node_count; i++) {
    const at_node *node = &expression->nodes[i];
    const attune_dtype dtype = (attune_dtype)node->dtype;
    if (node->kind == AT_NODE_CAST) {
      const at_node *from = &expression->nodes[node->argument[0]];
      values[i] = at_wide_value_cast(dtype, (attune_dtype)from->dtype, values[node->argument[0]]);
    } else if (node->kind == AT_NODE_FUNCTION) {
      at_wide_value x[3] = {{0}};
      for (int k = 0; k < node->count; k++) x[k] = values[node->argument[k]];
      const at_node *last = &expression->nodes[node->argument[node->count - 1]];
      values[i] = (rounding == AT_ROUND_NODES ? at_evaluate_rounded : at_evaluate_function)(
          (at_function)node->function, (attune_dtype)last->dtype, dtype, x);
    } else {
      values[i] = leaf(expression, node, element);
    }
  }
}
