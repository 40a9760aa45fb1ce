/* SPDX-License-Identifier: Apache-2.0
 * builder.h: a graph in the making: its table of nodes. Equal nodes are one node. */
#ifndef AT_ELEMENTWISE_BUILDER_H
#define AT_ELEMENTWISE_BUILDER_H

#include "ops/elementwise/expression.h"
#include "src/dtype.h"

typedef struct at_builder {
  at_node *nodes;
  int count, room;
  int *slots; /* hash table of node numbers, -1: free; a power of two of them, at most half full */
  int slot_count;
  uint8_t scalar_dtypes[AT_EXPRESSION_SCALARS]; /* as they are given */
  bool no_memory, full;
} at_builder;

#define AT_NO_NODE (-1) /* after no_memory or full */

void at_builder_free(at_builder *b);

/* A node without arguments. A draw's index is a new one. */
int at_build_leaf(at_builder *b, at_node_kind kind, attune_dtype dtype, int index);
int at_build_constant(at_builder *b, attune_dtype dtype, at_constant value);
int at_build_integer(at_builder *b, attune_dtype dtype, int64_t value);

/* Puts the node there as it is, or finds its like. */
int at_build_add(at_builder *b, const at_node *node);

static inline bool at_is_constant(const at_builder *b, int node) {
  return node >= 0 && b->nodes[node].kind == AT_NODE_CONSTANT;
}

#endif
