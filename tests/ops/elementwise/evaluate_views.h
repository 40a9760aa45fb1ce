/* SPDX-License-Identifier: Apache-2.0
 * evaluate_views.h: the reference, evaluate.h, over whole tensors. */
#ifndef AT_TESTS_EVALUATE_VIEWS_H
#define AT_TESTS_EVALUATE_VIEWS_H

#include "ops/elementwise/ir/evaluate.h"
#include "ops/elementwise/layout/layout.h"

#include <stdlib.h>

/* The element's number after `number`, and the coordinates with it. */
static inline void evaluate_step(at_element *element, const at_shape *shape) {
  element->number++;
  for (int d = 0; d < shape->dims; d++) {
    if (++element->position[d] < shape->sizes[shape->dims - 1 - d]) return;
    element->position[d] = 0;
  }
}

static inline char *evaluate_address(const at_view *view, const at_element *element) {
  int64_t offset = 0;
  for (int d = 0; d < view->shape.dims; d++)
    if (view->shape.sizes[view->shape.dims - 1 - d] > 1)
      offset += element->position[d] * view->strides[view->shape.dims - 1 - d];
  return (char *)(uintptr_t)view->data + offset * (int64_t)attune_dtype_size(view->dtype);
}

/* The expression over whole tensors: outputs are written in their own dtype, which may differ from the node's. */
static inline attune_status at_evaluate_views(const at_expression *expression, const at_view *outputs,
                                              const at_view *inputs, const at_constant *scalars,
                                              const at_random_draws *draws, at_rounding rounding) {
  at_element element = {.scalars = scalars, .draws = draws};
  const at_shape *shape = &outputs[0].shape;
  at_layout layout; /* for its checks */
  at_view views[AT_EXPRESSION_INPUTS + 1] = {outputs[0]};
  for (int i = 0; i < expression->input_count; i++) views[i + 1] = inputs[i];
  const attune_status status = at_layout_make(&layout, shape, views, expression->input_count + 1);
  if (status != ATTUNE_OK) return status;
  at_wide_value *values = calloc((size_t)expression->node_count, sizeof *values);
  if (!values) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d values", expression->node_count);
  element.count = layout.count;
  while (element.number < layout.count) {
    for (int i = 0; i < expression->input_count; i++) element.inputs[i] = evaluate_address(&inputs[i], &element);
    at_evaluate(values, expression, &element, rounding);
    for (int i = 0; i < expression->output_count; i++) {
      const at_node *node = &expression->nodes[expression->outputs[i]];
      const at_wide_value value =
          at_wide_value_cast(outputs[i].dtype, (attune_dtype)node->dtype, values[expression->outputs[i]]);
      at_wide_value_store(outputs[i].dtype, evaluate_address(&outputs[i], &element), value);
    }
    evaluate_step(&element, shape);
  }
  free(values);
  return ATTUNE_OK;
}

#endif
