/* SPDX-License-Identifier: Apache-2.0
 * plain.c: see plain.h. */
#include "ops/elementwise/language/plain.h"

#include <stdlib.h>
#include <string.h>

/* Where each operand and draw of the text is in the rewritten graph. */
typedef struct numbers {
  int inputs[AT_EXPRESSION_INPUTS], scalars[AT_EXPRESSION_SCALARS];
  int uniforms[AT_EXPRESSION_DRAWS], normals[AT_EXPRESSION_DRAWS];
} numbers;

/* `count` names of the text, `known` of which the rewritten graph has; the others come after these. */
static void number_operands(int *out, at_operand_name *into, const at_operand_name *names, int count, int known) {
  int more = known;
  for (int i = 0; i < count; i++) {
    out[i] = -1;
    for (int k = 0; k < known; k++)
      if (strcmp(names[i].name, into[k].name) == 0) out[i] = k;
    if (out[i] >= 0) continue;
    out[i] = more;
    into[more++] = names[i];
  }
}

/* A draw that the rewritten graph lacks is another one. */
static void number_draws(int *out, const uint8_t *of, int known) {
  for (int i = 0; i < AT_EXPRESSION_DRAWS; i++) out[i] = AT_EXPRESSION_DRAWS + i;
  for (int k = 0; k < known; k++) out[of[k]] = k;
}

static void renumber(at_node *n, const numbers *to) {
  switch (n->kind) {
  case AT_NODE_INPUT: n->index = (uint16_t)to->inputs[n->index]; break;
  case AT_NODE_SCALAR: n->index = (uint16_t)to->scalars[n->index]; break;
  case AT_NODE_UNIFORM: n->index = (uint16_t)to->uniforms[n->index]; break;
  case AT_NODE_NORMAL: n->index = (uint16_t)to->normals[n->index]; break;
  default: break;
  }
}

attune_status at_plain_create(at_expression **out, const at_parser *p, const at_expression *like) {
  const at_signature *s = p->signature;
  const size_t count = (size_t)p->plain.count;
  numbers to;
  at_expression *e = malloc(sizeof *e);
  if (e) {
    *e = *like;
    e->text = NULL, e->function = NULL, e->plain = NULL;
    e->nodes = malloc((count + 1) * sizeof *e->nodes);
  }
  *out = e;
  if (!e || !e->nodes) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  number_operands(to.inputs, e->inputs, s->tensors, s->tensor_count, like->input_count);
  number_operands(to.scalars, e->scalars, s->scalars, s->scalar_count, like->scalar_count);
  number_draws(to.uniforms, like->uniform_of, like->uniform_count);
  number_draws(to.normals, like->normal_of, like->normal_count);
  memcpy(e->nodes, p->plain.nodes, count * sizeof *e->nodes);
  e->node_count = p->plain.count;
  for (int i = 0; i < e->node_count; i++) renumber(&e->nodes[i], &to);
  for (int i = 0; i < p->output_count; i++) e->outputs[i] = (uint16_t)p->outputs[i].plain;
  return ATTUNE_OK;
}
