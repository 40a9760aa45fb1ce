/* SPDX-License-Identifier: Apache-2.0
 * canonical.c: from the nodes that were built to the finished expression: live ones only, numbered in the order in
 * which the canonical text has them, so that the text read again gives the same numbers. */
#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/user_function.h"

#include <stdlib.h>
#include <string.h>

enum { NEST = 32 }; /* the text nests no deeper: what is deeper gets a name */

/* ---- live nodes ---- */

void at_graph_destroy(at_graph *graph) {
  free(graph->nodes);
  free(graph->uses);
  free(graph->height);
  free(graph->named);
  *graph = (at_graph){0};
}

/* Marks what an output needs; the number of such nodes. */
static int mark(const at_node_table *built, const int *outputs, int output_count, int *number) {
  int count = 0;
  memset(number, 0, (size_t)built->count * sizeof *number);
  for (int i = 0; i < output_count; i++) number[outputs[i]] = 1;
  for (int i = built->count - 1; i >= 0; i--)
    for (int k = 0; number[i] && k < built->nodes[i].count; k++) number[built->nodes[i].argument[k]] = 1;
  for (int i = 0; i < built->count; i++)
    if (number[i])
      number[i] = count++;
    else
      number[i] = -1;
  return count;
}

static void fill(at_graph *g, const at_node_table *built, const int *outputs, const int *number) {
  for (int i = 0; i < built->count; i++) {
    if (number[i] < 0) continue;
    at_node *n = &g->nodes[number[i]];
    *n = built->nodes[i];
    for (int k = 0; k < n->count; k++) {
      const int argument = number[n->argument[k]];
      n->argument[k] = (uint16_t)argument;
      g->uses[argument]++;
      if (g->height[argument] >= g->height[number[i]]) g->height[number[i]] = (uint16_t)(g->height[argument] + 1);
    }
  }
  for (int i = 0; i < g->output_count; i++) {
    g->outputs[i] = number[outputs[i]];
    g->uses[g->outputs[i]]++;
  }
}

attune_status at_graph_create(at_graph *out, const at_node_table *built, const int *outputs, int output_count) {
  int *number = malloc((size_t)built->count * sizeof *number);
  const int count = number ? mark(built, outputs, output_count, number) : 0;
  attune_status status = number ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  if (count > AT_EXPRESSION_NODES)
    status =
        AT_INVALID("the expression has %d operations and operands; should be at most %d: split it into two expressions",
                   count, AT_EXPRESSION_NODES);
  *out = (at_graph){.count = count, .output_count = output_count, .scalar_dtypes = built->scalar_dtypes};
  if (status == ATTUNE_OK) {
    out->nodes = calloc((size_t)count, sizeof *out->nodes);
    out->uses = calloc((size_t)count, sizeof *out->uses);
    out->height = calloc((size_t)count, sizeof *out->height);
    out->named = calloc((size_t)count, sizeof *out->named);
    if (out->nodes && out->uses && out->height && out->named)
      fill(out, built, outputs, number);
    else
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  }
  if (status != ATTUNE_OK) at_graph_destroy(out);
  free(number);
  return status;
}

/* ---- names ---- */

static void choose_names(at_graph *g) {
  uint16_t *nest = g->height; /* no longer needed */
  for (int i = 0; i < g->count; i++) {
    const at_node *n = &g->nodes[i];
    nest[i] = 0;
    for (int k = 0; k < n->count; k++)
      if (nest[n->argument[k]] >= nest[i]) nest[i] = (uint16_t)(nest[n->argument[k]] + 1);
    g->named[i] = !at_is_leaf(n) && (g->uses[i] > 1 || nest[i] > NEST);
    if (g->named[i]) nest[i] = 0;
  }
}

/* ---- numbers ---- */

typedef struct numbering {
  const at_graph *g;
  const at_signature *signature;
  at_expression *e;
  int *number; /* of each node of the graph in the expression; -1: none yet */
  int inputs[AT_EXPRESSION_INPUTS], scalars[AT_EXPRESSION_SCALARS]; /* new numbers; -1: none yet */
  bool *named;                                                      /* by new number */
} numbering;

static uint16_t operand_number(int *numbers, int index, int *count, at_operand_name *into,
                               const at_operand_name *from) {
  if (numbers[index] < 0) {
    numbers[index] = *count;
    into[(*count)++] = from[index];
  }
  return (uint16_t)numbers[index];
}

static void number_leaf(numbering *s, at_node *n) {
  at_expression *e = s->e;
  switch (n->kind) {
  case AT_NODE_INPUT:
    n->index = operand_number(s->inputs, n->index, &e->input_count, e->inputs, s->signature->tensors);
    break;
  case AT_NODE_SCALAR:
    n->index = operand_number(s->scalars, n->index, &e->scalar_count, e->scalars, s->signature->scalars);
    break;
  case AT_NODE_UNIFORM:
    e->uniform_of[e->uniform_count] = (uint8_t)n->index;
    n->index = (uint16_t)e->uniform_count++;
    break;
  case AT_NODE_NORMAL:
    e->normal_of[e->normal_count] = (uint8_t)n->index;
    n->index = (uint16_t)e->normal_count++;
    break;
  case AT_NODE_POSITION:
    if (n->index > e->max_position) e->max_position = n->index;
    break;
  case AT_NODE_ELEMENT: e->element = true; break;
  default: break;
  }
}

/* Arguments first, left to right, as the text has them. Depth: the whole graph may be a chain, so the way back is kept
 * in a list. */
static void number_from(numbering *s, int root, int *path) {
  int depth = 0;
  path[depth++] = root;
  while (depth > 0) {
    const int i = path[depth - 1];
    const at_node *n = &s->g->nodes[i];
    int next = -1;
    for (int k = 0; k < n->count && next < 0; k++)
      if (s->number[n->argument[k]] < 0) next = n->argument[k];
    if (next >= 0) {
      path[depth++] = next;
      continue;
    }
    depth--;
    if (s->number[i] >= 0) continue;
    at_node copy = *n;
    for (int k = 0; k < n->count; k++) copy.argument[k] = (uint16_t)s->number[n->argument[k]];
    number_leaf(s, &copy);
    s->number[i] = s->e->node_count;
    s->named[s->e->node_count] = s->g->named[i];
    s->e->nodes[s->e->node_count++] = copy;
  }
}

/* The named nodes in the order in which outputs need them: what one stands for comes before it. */
static int list_named(const at_graph *g, int *list, bool *seen, int *path) {
  int count = 0;
  for (int o = 0; o < g->output_count; o++) {
    int depth = 0;
    if (!seen[g->outputs[o]]) path[depth++] = g->outputs[o];
    while (depth > 0) {
      const int i = path[depth - 1];
      const at_node *n = &g->nodes[i];
      int next = -1;
      for (int k = 0; k < n->count && next < 0; k++)
        if (!seen[n->argument[k]]) next = n->argument[k];
      if (next >= 0) {
        path[depth++] = next;
        continue;
      }
      depth--;
      seen[i] = true;
      if (g->named[i]) list[count++] = i;
    }
  }
  return count;
}

static bool number_all(numbering *s) {
  const size_t count = (size_t)s->g->count;
  int *list = malloc(count * sizeof *list), *path = malloc((count + 1) * sizeof *path);
  bool *seen = calloc(count, sizeof *seen);
  const bool ok = list && path && seen;
  if (ok) {
    const int named = list_named(s->g, list, seen, path);
    for (size_t i = 0; i < count; i++) s->number[i] = -1;
    for (int i = 0; i < named; i++) number_from(s, list[i], path);
    for (int i = 0; i < s->g->output_count; i++) {
      if (s->number[s->g->outputs[i]] < 0) number_from(s, s->g->outputs[i], path);
      s->e->outputs[i] = (uint16_t)s->number[s->g->outputs[i]];
    }
  }
  free(list);
  free(path);
  free(seen);
  return ok;
}

attune_status at_canonical_finish(at_graph *graph, const at_signature *signature, at_expression **out) {
  const size_t count = (size_t)graph->count;
  at_expression *e = calloc(1, sizeof *e);
  numbering s = {.g = graph,
                 .signature = signature,
                 .e = e,
                 .number = malloc(count * sizeof *s.number),
                 .named = calloc(count, sizeof *s.named)};
  memset(s.inputs, -1, sizeof s.inputs);
  memset(s.scalars, -1, sizeof s.scalars);
  choose_names(graph);
  bool ok = e && s.number && s.named && (e->nodes = calloc(count, sizeof *e->nodes));
  if (ok) {
    e->max_position = -1;
    e->output_count = graph->output_count;
    ok = number_all(&s) && (e->text = at_canonical_text(e, s.named));
  }
  free(s.number);
  free(s.named);
  if (ok) {
    *out = e;
    return ATTUNE_OK;
  }
  at_expression_destroy(e);
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
}

void at_expression_destroy(at_expression *expression) {
  if (!expression) return;
  at_user_function_release(expression->function);
  at_expression_destroy(expression->plain);
  free(expression->nodes);
  free(expression->text);
  free(expression);
}
