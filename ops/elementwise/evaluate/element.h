/* SPDX-License-Identifier: Apache-2.0
 * element.h: single elements of a problem, by their place in the layout's order, and their values by evaluate.h. */
#ifndef AT_ELEMENTWISE_ELEMENT_H
#define AT_ELEMENTWISE_ELEMENT_H

#include "ops/elementwise/ir/evaluate.h"
#include "ops/elementwise/problem/problem.h"

/* How the operands of one call lie. */
typedef struct at_elements {
  const at_expression *expression;
  const at_layout *layout; /* outputs, inputs, numbers of the element, as in problem.h */
  bool number;             /* the first of those is its number in row-major order */
  void *const *tensors;    /* outputs, inputs */
  const at_constant *scalars;
  at_random_draws draws;
} at_elements;

/* Element `walked` of operand `operand`, counted from its first element walked. */
int64_t at_element_offset(const at_layout *layout, int operand, int64_t walked);

/* Every node's value for it; element->inputs may be changed before. values[expression->node_count]. */
void at_element_values(at_wide_value *values, const at_elements *all, int64_t walked, at_rounding rounding);

/* All elements, each output stored as its dtype in `dtypes`. values[expression->node_count]. Plain and slow. */
void at_elements_compute(const at_elements *all, const uint8_t *dtypes, at_wide_value *values);

/* ---- the graph of the text as it is written (language/plain.h) ---- */

/* Room for the values of a graph's nodes: at_evaluate; NULL: no memory. The caller frees it. */
at_wide_value *at_plain_values(const at_expression *plain);

/* Have both graphs' outputs the same bits but for a NaN's? `values` are e's, `plain` those of e->plain. */
bool at_plain_same(const at_expression *e, const at_wide_value *values, const at_wide_value *plain);

/* Does e->plain give element `walked` the outputs that `values` of e has, bit for bit but for a NaN's? `room` is of
 * at_plain_values. */
bool at_plain_agrees(at_wide_value *room, const at_elements *all, int64_t walked, const at_wide_value *values);

/* Whether e->plain gives what e does, for some hundred elements of special, arbitrary and small numbers. Errors:
 * INTERNAL (it does not: a rule of rewrites.def is wrong), OUT_OF_MEMORY. */
attune_status at_plain_check(const at_expression *e);

#endif
