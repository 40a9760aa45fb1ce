/* SPDX-License-Identifier: Apache-2.0
 * ir_build.c: casts and functions, folded and simplified where they can be. */
#include "ops/elementwise/ir/node_table.h"

#include <string.h>

#include "ops/elementwise/ir/fold.h"
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/ir/promote.h"
#include "ops/elementwise/ir/rewrites.h"

/* A scalar comes as a double, an int64, a bool or a complex double: converting it is a cast from that. */
static bool scalar_as(const at_node_table *b, const at_node *n, attune_dtype dtype) {
  return n->kind == AT_NODE_SCALAR && n->dtype == b->scalar_dtypes[n->index] && at_compute_dtype(dtype) == dtype;
}

static int add_cast(at_node_table *b, int node, attune_dtype dtype) {
  if (node < 0) return AT_NO_NODE;
  return at_build_add(
      b, &(at_node){.kind = AT_NODE_CAST, .dtype = (uint8_t)dtype, .count = 1, .argument = {(uint16_t)node}});
}

int at_build_cast(at_node_table *b, int node, attune_dtype dtype) {
  if (node < 0) return AT_NO_NODE;
  const at_node n = b->nodes[node];
  if (n.dtype == (uint8_t)dtype) return node;
  if (n.kind == AT_NODE_CONSTANT) {
    at_constant value = n.constant;
    const attune_dtype compute = at_compute_dtype(dtype);
    at_fold_cast((attune_dtype)n.dtype, dtype, &value);
    node = at_build_constant(b, compute, value); /* a half is a rounded f32, and its cast */
    return compute == dtype ? node : add_cast(b, node, dtype);
  }
  if (scalar_as(b, &n, dtype)) return at_build_leaf(b, AT_NODE_SCALAR, dtype, n.index);
  /* What was only made wider is taken as it was. */
  if (n.kind == AT_NODE_CAST &&
      at_rewrite_drops_cast((attune_dtype)b->nodes[n.argument[0]].dtype, (attune_dtype)n.dtype, dtype))
    return at_build_cast(b, n.argument[0], dtype);
  return add_cast(b, node, dtype);
}

static int add_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments) {
  at_node node = {.kind = AT_NODE_FUNCTION,
                  .dtype = (uint8_t)dtype,
                  .function = (uint8_t)function,
                  .count = (uint8_t)at_function_arity(function)};
  for (int i = 0; i < node.count; i++) node.argument[i] = (uint16_t)arguments[i];
  return at_build_add(b, &node);
}

static bool fold(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments, int *out) {
  at_constant values[3], result = {0};
  for (int i = 0; i < at_function_arity(function); i++) {
    if (!at_is_constant(b, arguments[i])) return false;
    values[i] = b->nodes[arguments[i]].constant;
  }
  const int last = arguments[at_function_arity(function) - 1]; /* the first one of where is a bool */
  if (!at_fold(function, (attune_dtype)b->nodes[last].dtype, dtype, values, &result)) return false;
  *out = at_build_constant(b, dtype, result);
  return true;
}

int at_build_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments) {
  const int count = at_function_arity(function);
  int out = AT_NO_NODE;
  for (int i = 0; i < count; i++)
    if (arguments[i] < 0) return AT_NO_NODE;
  if (fold(b, function, dtype, arguments, &out)) return out;
  const at_rewrite *row = at_rewrite_find(b, function, arguments);
  if (row) {
    int others[3] = {0};
    memcpy(others, arguments, (size_t)count * sizeof *others);
    return at_rewrite_apply(row, b, &function, dtype, others, &out) ? out
                                                                    : at_build_function(b, function, dtype, others);
  }
  if (!at_function_commutes(function) || arguments[0] <= arguments[1])
    return add_function(b, function, dtype, arguments);
  return add_function(b, function, dtype, (const int[]){arguments[1], arguments[0]});
}

int at_plain_cast(at_node_table *b, int node, attune_dtype dtype) {
  return node >= 0 && b->nodes[node].dtype == (uint8_t)dtype ? node : add_cast(b, node, dtype);
}

int at_plain_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments) {
  for (int i = 0; i < at_function_arity(function); i++)
    if (arguments[i] < 0) return AT_NO_NODE;
  return add_function(b, function, dtype, arguments);
}
