/* SPDX-License-Identifier: Apache-2.0
 * call_binding.c: a caller's tensor as a view, and the end of a prepared call. */
#include "ops/elementwise/call/call_binding.h"

#include <stdlib.h>
#include <string.h>

attune_status at_call_binding_accuracy_fail(const attune_elementwise_operands *o) {
  return AT_INVALID("operands.accuracy is %d; should be ATTUNE_STRICT, ATTUNE_EQUIVALENT or ATTUNE_REDUCED",
                    (int)o->accuracy);
}

void at_call_binding_view(at_view *out, const attune_tensor *t) {
  at_shape shape = {.dims = t->dims};
  memcpy(shape.sizes, t->sizes, (size_t)t->dims * sizeof *shape.sizes);
  *out = at_view_packed(t->data, t->dtype, &shape);
  if (t->strides) memcpy(out->strides, t->strides, (size_t)t->dims * sizeof *out->strides);
  out->name = t->name;
}

void at_call_binding_destroy(at_call_binding *p) {
  if (!p) return;
  at_expression_destroy(p->expression);
  free(p->problem);
  free(p);
}
