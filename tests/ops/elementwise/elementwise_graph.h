/* SPDX-License-Identifier: Apache-2.0
 * elementwise_graph.h: expression graphs made by hand, and numbers to try them on. */
#ifndef AT_TEST_ELEMENTWISE_GRAPH_H
#define AT_TEST_ELEMENTWISE_GRAPH_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/ir/evaluate.h"
#include "src/base/splitmix64.h"

typedef struct graph {
  at_expression e;
  at_node nodes[AT_EXPRESSION_NODES];
} graph;

static inline void graph_start(graph *g) {
  memset(g, 0, sizeof *g);
  g->e.nodes = g->nodes;
  g->e.max_position = -1;
}

static inline int graph_add(graph *g, at_node node) {
  g->nodes[g->e.node_count] = node;
  return g->e.node_count++;
}

static inline int graph_input(graph *g, attune_dtype dtype) {
  g->e.inputs[g->e.input_count].dtype = (uint8_t)dtype;
  return graph_add(g, (at_node){.kind = AT_NODE_INPUT, .dtype = (uint8_t)dtype, .index = (uint16_t)g->e.input_count++});
}

static inline int graph_function(graph *g, at_function function, attune_dtype result, const int *arguments, int count) {
  at_node node = {
      .kind = AT_NODE_FUNCTION, .dtype = (uint8_t)result, .function = (uint8_t)function, .count = (uint8_t)count};
  for (int k = 0; k < count; k++) node.argument[k] = (uint16_t)arguments[k];
  return graph_add(g, node);
}

static inline int graph_cast(graph *g, attune_dtype to, int from) {
  return graph_add(g, (at_node){.kind = AT_NODE_CAST, .dtype = (uint8_t)to, .argument = {(uint16_t)from}});
}

static inline void graph_output(graph *g, int node) {
  g->e.outputs[g->e.output_count++] = (uint16_t)node;
}

/* What a function of `dtype` gives by its rule; 0: the dtype lacks it. */
static inline attune_dtype graph_result(at_function f, attune_dtype dtype) {
  const at_dtype_kind kind = at_dtype_kind_of(dtype);
  const bool computed = dtype != ATTUNE_F16 && dtype != ATTUNE_BF16 && dtype != ATTUNE_F8E4M3 && dtype != ATTUNE_F8E5M2;
  const bool floating = kind == AT_KIND_FLOAT, complex = kind == AT_KIND_COMPLEX, integer = kind == AT_KIND_INTEGER;
  if (!computed) return (attune_dtype)0;
  if (f == AT_FN_COMPLEX) return dtype == ATTUNE_F32 ? ATTUNE_C64 : dtype == ATTUNE_F64 ? ATTUNE_C128 : (attune_dtype)0;
  switch (at_function_rule(f)) {
  case AT_RULE_NUMBER: return kind != AT_KIND_BOOL ? dtype : (attune_dtype)0;
  case AT_RULE_FLOAT: return floating || complex ? dtype : (attune_dtype)0;
  case AT_RULE_REAL: return floating || integer ? dtype : (attune_dtype)0;
  case AT_RULE_FLOATING_REAL: return floating ? dtype : (attune_dtype)0;
  case AT_RULE_COMPARE: return complex ? (attune_dtype)0 : ATTUNE_BOOL;
  case AT_RULE_EQUAL: return ATTUNE_BOOL;
  case AT_RULE_BITS: return integer || kind == AT_KIND_BOOL ? dtype : (attune_dtype)0;
  case AT_RULE_SHIFT: return integer ? dtype : (attune_dtype)0;
  case AT_RULE_LOGIC: return kind == AT_KIND_BOOL ? ATTUNE_BOOL : (attune_dtype)0;
  case AT_RULE_SELECT: return dtype;
  case AT_RULE_CLASSIFY: return floating ? ATTUNE_BOOL : (attune_dtype)0;
  case AT_RULE_PART: return dtype == ATTUNE_C64 ? ATTUNE_F32 : dtype == ATTUNE_C128 ? ATTUNE_F64 : (attune_dtype)0;
  }
  return (attune_dtype)0;
}

/* ---- numbers ---- */

/* One element: mostly moderate numbers, sometimes any bits, special values or small whole numbers. */
static inline void draw_element(void *out, attune_dtype dtype, uint64_t *state) {
  static const double special[] = {0.0,       -0.0, 1.0,   -1.0,    0.5,  2.0,  INFINITY,
                                   -INFINITY, NAN,  1e-40, -1e-310, 3e38, 1e308};
  const uint64_t how = at_splitmix64(state) % 8;
  uint64_t bits[2] = {at_splitmix64(state), at_splitmix64(state)};
  const size_t size = attune_dtype_size(dtype);
  if (dtype == ATTUNE_BOOL) {
    bits[0] &= 1u;
    memcpy(out, bits, 1);
  } else if (how == 0 || (at_dtype_whole(dtype) && how < 4)) {
    memcpy(out, bits, size);
  } else if (at_dtype_whole(dtype)) {
    static const int64_t edge[] = {0, 1, -1, INT64_MIN, INT64_MAX, 63, 31, 7};
    const int64_t value = how < 6 ? (int64_t)(bits[0] % 21) - 10 : edge[bits[1] % 8];
    at_wide_value_store(dtype, out, at_wide_value_cast(dtype, ATTUNE_I64, (at_wide_value){.integer = value}));
  } else {
    at_wide_value value = {.re = how == 1   ? (long double)special[bits[0] % AT_COUNT(special)]
                                 : how == 2 ? (long double)((int64_t)(bits[0] % 21) - 10)
                                            : ldexpl((long double)(int64_t)bits[0], (int)(bits[1] % 12) - 66)};
    if (size > 8 || dtype == ATTUNE_C64) value.im = ldexpl((long double)(int64_t)bits[1], (int)(bits[0] % 12) - 66);
    at_wide_value_store(dtype, out, value);
  }
}

/* ---- errors ---- */

/* How far `got` is from `exact` in units in the last place of `dtype` at `exact`; 0 where both are NaN or both
 * overflow.
 */
static inline double units_off(attune_dtype dtype, long double got, long double exact) {
  int digits = 53, least = -1074;
  long double most = 0x1.fffffffffffffp1023L;
  if (dtype == ATTUNE_F32 || dtype == ATTUNE_C64) digits = 24, least = -149, most = 0x1.fffffep127L;
  if (dtype == ATTUNE_F16) digits = 11, least = -24, most = 65504.0L;
  if (dtype == ATTUNE_BF16) digits = 8, least = -133, most = 0x1.fep127L;
  if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0.0 : INFINITY;
  if (got == exact) return 0.0;
  if (isinf(exact) || (isinf(got) && fabsl(exact) < most)) return INFINITY;
  if (isinf(got)) return 0.0; /* rounded up */
  int exponent;
  frexpl(exact, &exponent);
  const int place = exponent - digits > least ? exponent - digits : least;
  return (double)(fabsl(got - exact) / ldexpl(1.0L, place));
}

#endif
