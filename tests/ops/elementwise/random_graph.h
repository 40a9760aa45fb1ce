/* SPDX-License-Identifier: Apache-2.0
 * random_graph.h: random expressions for kernels. Every function's result is an output, so that each can be compared
 * with the function of what the kernel itself had as arguments; half floats are results of functions that are seen as
 * that alone. */
#ifndef AT_TESTS_RANDOM_GRAPH_H
#define AT_TESTS_RANDOM_GRAPH_H

#include "tests/ops/elementwise/elementwise_case.h"

enum { RANDOM_INPUTS = 3, RANDOM_TENSORS = AT_EXPRESSION_OUTPUTS + RANDOM_INPUTS };

/* Random arguments say something about it: what is left out is looked at by itself. */
static inline bool random_takes(at_function f, attune_dtype d) {
  const at_type_rule rule = graph_functions[f].rule;
  if (f == AT_FN_LDEXP || f == AT_FN_LGAMMA || f == AT_FN_TGAMMA || f == AT_FN_POWER || !graph_computes(f, d))
    return false;
  if (at_dtype_kind_of(d) != AT_KIND_COMPLEX) return f != AT_FN_COMPLEX;
  return f == AT_FN_ADD || f == AT_FN_SUBTRACT || f == AT_FN_NEGATE || f == AT_FN_MULTIPLY || rule == AT_RULE_EQUAL ||
         rule == AT_RULE_PART;
}

/* A node of dtype `d`: one that is there, or a cast. */
static inline int random_argument(graph *g, const int *nodes, int count, attune_dtype d, uint64_t *state) {
  return graph_cast(g, d, nodes[case_random(state) % (uint64_t)count]);
}

static inline void random_graph(graph *g, uint64_t seed) {
  uint64_t state = seed * 7919 + 17;
  int nodes[RANDOM_TENSORS + 3], count = 0;
  graph_begin(g);
  for (int i = 0; i < RANDOM_INPUTS; i++)
    nodes[count++] = graph_input(g, (attune_dtype)(1 + case_random(&state) % AT_DTYPE_LAST));
  nodes[count++] = graph_constant(g, ATTUNE_F32, 0.75);
  nodes[count++] = graph_node(g, AT_NODE_ELEMENT, ATTUNE_I64, 0);
  nodes[count++] = graph_node(g, AT_NODE_POSITION, ATTUNE_I64, 1);
  g->e.max_position = 1;
  g->e.element = true;
  while (g->e.output_count < AT_EXPRESSION_OUTPUTS) {
    const at_function f = (at_function)(case_random(&state) % AT_FN_COUNT);
    const int first = nodes[case_random(&state) % (uint64_t)count];
    const attune_dtype d = (attune_dtype)g->nodes[first].dtype;
    if (!random_takes(f, d)) continue;
    const attune_dtype computes = graph_computes(f, d);
    int x[3] = {first, 0, 0};
    for (int a = 1; a < graph_functions[f].arity; a++) x[a] = random_argument(g, nodes, count, computes, &state);
    const int node = graph_apply(g, f, d, x[0], x[1], x[2]);
    const bool half = g->nodes[node].dtype == ATTUNE_F32 && case_random(&state) % 4 == 0;
    const int seen = half ? graph_cast(g, case_random(&state) % 2 ? ATTUNE_F16 : ATTUNE_BF16, node) : node;
    graph_output(g, seen);
    nodes[count++] = seen;
  }
}

/* The value of a node for an element, from what the kernel wrote where it wrote it: `outputs`, with edges as a
 * case's. */
static inline at_wide_value random_value(const ecase *c, unsigned char *const *outputs, int node, int64_t element,
                                         bool computed) {
  const graph *g = c->g;
  const at_node *n = &g->nodes[node];
  const attune_dtype dtype = (attune_dtype)n->dtype;
  const size_t at = CASE_EDGE + (size_t)element * attune_dtype_size(dtype);
  for (int k = 0; !computed && k < g->e.output_count; k++)
    if (g->e.outputs[k] == node) return at_wide_value_load(dtype, outputs[k] + at);
  switch ((at_node_kind)n->kind) {
  case AT_NODE_INPUT: return at_wide_value_load(dtype, c->operands[g->e.output_count + n->index].memory + at);
  case AT_NODE_CONSTANT: return (at_wide_value){.re = n->constant.re, .integer = n->constant.integer};
  case AT_NODE_ELEMENT: return (at_wide_value){.integer = element};
  case AT_NODE_POSITION: return (at_wide_value){.integer = element / c->shape.sizes[1]}; /* of dimension 1 of 2 */
  default: break;
  }
  at_wide_value x[3] = {{0}};
  attune_dtype from = dtype;
  for (int a = 0; a < n->count; a++) {
    x[a] = random_value(c, outputs, n->argument[a], element, false);
    from = (attune_dtype)g->nodes[n->argument[a]].dtype;
  }
  if (n->kind == AT_NODE_CAST) return at_wide_value_cast(dtype, from, x[0]);
  return at_wide_value_round(dtype, at_evaluate_function((at_function)n->function, from, dtype, x));
}

/* Sets what each output should be, given what the kernel wrote; the units that it may be off. */
static inline void random_expect(ecase *c, unsigned char *const *outputs, double *allowed) {
  const graph *g = c->g;
  for (int k = 0; k < g->e.output_count; k++) {
    const int node = g->e.outputs[k];
    const attune_dtype dtype = (attune_dtype)g->nodes[node].dtype;
    const size_t size = attune_dtype_size(dtype);
    const int64_t count = c->shape.sizes[0] * c->shape.sizes[1];
    allowed[k] =
        g->nodes[node].kind == AT_NODE_FUNCTION ? case_allowed((at_function)g->nodes[node].function, dtype) : 1;
    for (int64_t i = 0; i < count; i++)
      at_wide_value_store(dtype, c->expected[k].memory + CASE_EDGE + (size_t)i * size,
                          random_value(c, outputs, node, i, true));
  }
}

/* The fault of an element of an output, in words. */
static inline const char *random_tell(const ecase *c, int k, const unsigned char *got, int64_t place) {
  static char text[256];
  const graph *g = c->g;
  const at_node *n = &g->nodes[g->e.outputs[k]];
  const at_node *f = n->kind == AT_NODE_CAST ? &g->nodes[n->argument[0]] : n;
  const attune_dtype dtype = (attune_dtype)n->dtype;
  const size_t at = CASE_EDGE + (size_t)(place < 0 ? 0 : place) * attune_dtype_size(dtype);
  snprintf(text, sizeof text, "output %d, element %lld, %s to %s: %.17g, should be %.17g", k, (long long)place,
           f->kind == AT_NODE_FUNCTION ? graph_functions[f->function].id : "cast", attune_dtype_name(dtype),
           case_double(dtype, got + at), case_double(dtype, c->expected[k].memory + at));
  return text;
}

/* A case of the graph, its choice one of the candidates. */
static inline void random_case(ecase *c, graph *g, at_cuda_choice *choice, int capability, uint64_t seed) {
  static const lie ways[RANDOM_TENSORS] = {PACKED};
  at_cuda_choice list[64];
  random_graph(g, seed);
  OK(case_make(c, g, &(at_shape){2, {15, 20}}, ways, NULL, false, false, seed));
  const int count = at_cuda_candidates(&c->problem, capability, list, 64);
  assert_true(count > 0);
  *choice = list[seed % (uint64_t)count];
}

#endif
