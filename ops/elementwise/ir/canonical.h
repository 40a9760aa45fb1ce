/* SPDX-License-Identifier: Apache-2.0
 * canonical.h: one form for equal expressions: which argument of a commuting function is first, which operand is i0,
 * which node is number 0. Nothing of it depends on how names are spelled. */
#ifndef AT_ELEMENTWISE_CANONICAL_H
#define AT_ELEMENTWISE_CANONICAL_H

#include "ops/elementwise/ir/node_table.h"

/* The nodes that reach an output, arguments first. */
typedef struct at_graph {
  int count, output_count;
  at_node *nodes;
  int outputs[AT_EXPRESSION_OUTPUTS];
  uint16_t *uses;   /* by nodes and outputs */
  uint16_t *height; /* above the leaves */
  bool *named;      /* has a name of its own in the text, t0 ... */
  const uint8_t *scalar_dtypes;
  const at_signature *signature;
} at_graph;

/* Takes the live nodes of what was built. INVALID_ARGUMENT: too many; OUT_OF_MEMORY. */
attune_status at_graph_create(at_graph *out, const at_node_table *built, const int *outputs, int output_count);
void at_graph_destroy(at_graph *graph);

/* Puts the arguments of commuting functions in order. */
attune_status at_canonical_order(at_graph *graph);

/* Numbers nodes, operands and draws in the order of the text, and makes the text. */
attune_status at_canonical_finish(at_graph *graph, const at_signature *signature, at_expression **out);

/* The text of a finished expression, whose nodes are numbered: `named` of each node. The caller frees it; NULL: no
 * memory. */
char *at_canonical_text(const at_expression *expression, const bool *named);

/* Leaves are written out at each use, but not a draw: each one written is another. */
static inline bool at_is_leaf(const at_node *n) {
  return n->count == 0 && n->kind != AT_NODE_UNIFORM && n->kind != AT_NODE_NORMAL;
}

/* The name of tensor `number` in a canonical text: i0 to i7, then i08 to i15. i8 is a dtype. */
const char *at_canonical_tensor(int number);

#endif
