/* SPDX-License-Identifier: Apache-2.0
 * node_table.h: a graph in the making: its table of nodes. Equal nodes are one node. */
#ifndef AT_ELEMENTWISE_NODE_TABLE_H
#define AT_ELEMENTWISE_NODE_TABLE_H

#include "ops/elementwise/ir/expression.h"
#include "src/base/dtype.h"

typedef struct at_node_table {
  at_node *nodes;
  int count, room;
  int *slots; /* hash table of node numbers, -1: free; a power of two of them, at most half full */
  int slot_count;
  uint8_t scalar_dtypes[AT_EXPRESSION_SCALARS]; /* as they are given */
  bool no_memory, full;
} at_node_table;

#define AT_NO_NODE (-1) /* after no_memory or full */

void at_node_table_free(at_node_table *b);

/* A node without arguments. A draw's index is a new one. */
int at_build_leaf(at_node_table *b, at_node_kind kind, attune_dtype dtype, int index);
int at_build_constant(at_node_table *b, attune_dtype dtype, at_constant value);
int at_build_integer(at_node_table *b, attune_dtype dtype, int64_t value);

/* Puts the node there as it is, or finds its like. */
int at_build_add(at_node_table *b, const at_node *node);

static inline bool at_is_constant(const at_node_table *b, int node) {
  return node >= 0 && b->nodes[node].kind == AT_NODE_CONSTANT;
}

/* ir_build.c: casts and functions: what is known is folded, what changes nothing is left out. */
int at_build_cast(at_node_table *b, int node, attune_dtype dtype);
int at_build_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments);

/* The same as they are written: nothing is folded, left out or changed. */
int at_plain_cast(at_node_table *b, int node, attune_dtype dtype);
int at_plain_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments);

#endif
