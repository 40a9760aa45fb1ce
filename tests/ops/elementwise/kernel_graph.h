/* SPDX-License-Identifier: Apache-2.0
 * kernel_graph.h: expressions made by hand, and problems of kernels from views. */
#ifndef AT_TESTS_KERNEL_GRAPH_H
#define AT_TESTS_KERNEL_GRAPH_H

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/cuda/cuda_kernel.h"
#include "src/base/dtype.h"

typedef struct graph {
  at_expression e;
  at_node nodes[AT_EXPRESSION_NODES];
} graph;

static const struct {
  const char *id;
  int arity;
  at_type_rule rule;
} graph_functions[] = {
#define AT_FUNCTION(id, name, arity, rule, precedence, commutes) {#id, arity, rule},
#include "ops/elementwise/ir/functions.def"
#undef AT_FUNCTION
};

static inline void graph_begin(graph *g) {
  memset(g, 0, sizeof *g);
  g->e.nodes = g->nodes;
  g->e.max_position = -1;
}

static inline int graph_node(graph *g, at_node_kind kind, attune_dtype dtype, int index) {
  g->nodes[g->e.node_count] = (at_node){.kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .index = (uint16_t)index};
  return g->e.node_count++;
}

static inline int graph_input(graph *g, attune_dtype dtype) {
  g->e.inputs[g->e.input_count].dtype = (uint8_t)dtype;
  return graph_node(g, AT_NODE_INPUT, dtype, g->e.input_count++);
}

static inline int graph_scalar(graph *g, attune_dtype kind, attune_dtype dtype) {
  g->e.scalars[g->e.scalar_count].dtype = (uint8_t)kind;
  return graph_node(g, AT_NODE_SCALAR, dtype, g->e.scalar_count++);
}

static inline int graph_constant(graph *g, attune_dtype dtype, double x) {
  const int node = graph_node(g, AT_NODE_CONSTANT, dtype, 0);
  g->nodes[node].constant = (at_constant){.re = x, .integer = (int64_t)x};
  return node;
}

static inline int graph_cast(graph *g, attune_dtype dtype, int x) {
  if (g->nodes[x].dtype == dtype) return x;
  const int node = graph_node(g, AT_NODE_CAST, dtype, 0);
  g->nodes[node].count = 1;
  g->nodes[node].argument[0] = (uint16_t)x;
  return node;
}

static inline bool graph_is_half(attune_dtype d) {
  return d == ATTUNE_F16 || d == ATTUNE_BF16 || d == ATTUNE_F8E4M3 || d == ATTUNE_F8E5M2;
}

/* The dtype that a function computes arguments of this one in; 0: it does not take it. */
static inline attune_dtype graph_computes(at_function f, attune_dtype d) {
  const at_dtype_kind kind = at_dtype_kind_of(d);
  const bool whole = kind == AT_KIND_INTEGER || kind == AT_KIND_BOOL, complex = kind == AT_KIND_COMPLEX;
  const attune_dtype real = graph_is_half(d) ? ATTUNE_F32 : d, number = kind == AT_KIND_BOOL ? ATTUNE_I64 : real;
  switch (graph_functions[f].rule) {
  case AT_RULE_NUMBER: return f == AT_FN_CONJUGATE && !complex ? 0 : number;
  case AT_RULE_FLOAT: return whole ? ATTUNE_F32 : real;
  case AT_RULE_REAL: return complex ? 0 : number;
  case AT_RULE_FLOATING_REAL: return complex ? 0 : whole ? ATTUNE_F32 : real;
  case AT_RULE_COMPARE: return complex ? 0 : real;
  case AT_RULE_EQUAL: return real;
  case AT_RULE_BITS: return whole ? d : 0;
  case AT_RULE_SHIFT: return kind == AT_KIND_INTEGER ? d : 0;
  case AT_RULE_LOGIC: return ATTUNE_BOOL;
  case AT_RULE_SELECT: return real;
  case AT_RULE_CLASSIFY: return whole ? ATTUNE_F32 : real;
  case AT_RULE_PART: return complex ? d : 0;
  }
  return 0;
}

static inline attune_dtype graph_gives(at_function f, attune_dtype computes) {
  switch (graph_functions[f].rule) {
  case AT_RULE_COMPARE:
  case AT_RULE_EQUAL:
  case AT_RULE_LOGIC:
  case AT_RULE_CLASSIFY: return ATTUNE_BOOL;
  case AT_RULE_PART: return computes == ATTUNE_C64 ? ATTUNE_F32 : ATTUNE_F64;
  default: break;
  }
  if (f == AT_FN_COMPLEX) return computes == ATTUNE_F64 ? ATTUNE_C128 : ATTUNE_C64;
  return computes;
}

/* A function of nodes, with the casts that the parser would write; `d` is the arguments' common dtype. */
static inline int graph_apply(graph *g, at_function f, attune_dtype d, int x, int y, int z) {
  const attune_dtype computes = graph_computes(f, d);
  int arguments[3] = {x, y, z};
  const int count = graph_functions[f].arity;
  for (int a = 0; a < count; a++)
    arguments[a] = graph_cast(g, f == AT_FN_SELECT && a == 0 ? ATTUNE_BOOL : computes, arguments[a]);
  const int node = graph_node(g, AT_NODE_FUNCTION, graph_gives(f, computes), 0);
  g->nodes[node].function = (uint8_t)f;
  g->nodes[node].count = (uint8_t)count;
  for (int a = 0; a < count; a++) g->nodes[node].argument[a] = (uint16_t)arguments[a];
  return node;
}

static inline void graph_output(graph *g, int node) {
  g->e.outputs[g->e.output_count++] = (uint16_t)node;
}

/* f(inputs of dtype d), stored as torch would: half types again. False: the function does not take it. */
static inline bool graph_of_function(graph *g, at_function f, attune_dtype d) {
  int x[3] = {0, 0, 0};
  if (!graph_computes(f, d)) return false;
  graph_begin(g);
  for (int a = 0; a < graph_functions[f].arity; a++) x[a] = graph_input(g, d);
  int node = graph_apply(g, f, d, x[0], x[1], x[2]);
  if (graph_is_half(d) && g->nodes[node].dtype == ATTUNE_F32) node = graph_cast(g, d, node);
  graph_output(g, node);
  return true;
}

/* The problem over `shape`: views of outputs and inputs; data may be addresses of anything, which give the
 * alignment. */
static inline attune_status graph_problem(at_cuda_problem *p, const graph *g, const at_shape *shape,
                                          const at_view *views) {
  at_view all[AT_LAYOUT_OPERANDS];
  int indices[AT_CUDA_INDICES];
  const int tensors = g->e.output_count + g->e.input_count, count = at_cuda_indices(&g->e, indices);
  const void *data[AT_CUDA_TENSORS];
  memset(p, 0, sizeof *p);
  p->expression = &g->e;
  for (int k = 0; k < tensors; k++) all[k] = views[k];
  for (int k = 0; k < g->e.output_count; k++) p->outputs[k] = (uint8_t)views[k].dtype;
  for (int k = 0; k < count; k++)
    all[tensors + k] = indices[k] < 0 ? at_view_of_number(shape) : at_view_of_position(shape, indices[k]);
  const attune_status status = at_layout_make(&p->layout, shape, all, tensors + count);
  for (int k = 0; k < tensors; k++)
    data[k] = (const char *)views[k].data + p->layout.operands[k].offset * (int64_t)attune_dtype_size(views[k].dtype);
  if (status == ATTUNE_OK) at_cuda_align(p, data);
  return status;
}

#endif
