/* SPDX-License-Identifier: Apache-2.0
 * overlap.c: which operands may share memory. layout.h has the rules. */
#include "ops/elementwise/layout/layout.h"

#include <string.h>

#include "tuning/op/extent.h"

_Static_assert((int)AT_DIMS <= (int)AT_EXTENT_DIMS, "an extent has room for every dimension");

/* The bytes of a view over the whole shape. */
static at_extent extent_of(const at_view *view) {
  at_extent e = {.low = (uintptr_t)view->data, .element = (int64_t)attune_dtype_size(view->dtype)};
  e.high = e.low + (uintptr_t)e.element;
  for (int d = 0; d < view->shape.dims; d++)
    if (view->shape.sizes[d] > 1) at_extent_add(&e, view->shape.sizes[d], view->strides[d] * e.element);
  return e;
}

static bool in_place(const at_view *output, const at_view *input) {
  if (output->data != input->data || attune_dtype_size(output->dtype) != attune_dtype_size(input->dtype)) return false;
  for (int d = 0; d < output->shape.dims; d++) {
    if (output->shape.sizes[d] == 1) continue;
    const int own = d - output->shape.dims + input->shape.dims;
    if (own < 0 || input->shape.sizes[own] == 1 || input->strides[own] != output->strides[d]) return false;
  }
  return true;
}

static const char *name_of(char *out, size_t size, const at_view *view, const char *kind, int i) {
  size_t at = 0;
  if (view->name)
    (void)at_append(out, size, &at, "%s %s", kind, view->name);
  else
    (void)at_append(out, size, &at, "%s %d", kind, i);
  return out;
}

static attune_status check_one(const at_view *view, const char *kind, int i) {
  char name[96];
  if (attune_dtype_size(view->dtype) == 0)
    return AT_INVALID("%s has dtype %d; should be an attune_dtype", name_of(name, sizeof name, view, kind, i),
                      (int)view->dtype);
  if (!view->data)
    return AT_INVALID("%s is NULL; should be the address of its elements", name_of(name, sizeof name, view, kind, i));
  if ((uintptr_t)view->data % at_element_alignment(view->dtype) != 0)
    return AT_INVALID("%s is not aligned for its dtype, %s; should be a multiple of %zu bytes",
                      name_of(name, sizeof name, view, kind, i), attune_dtype_name(view->dtype),
                      at_element_alignment(view->dtype));
  return ATTUNE_OK;
}

static attune_status check_output(const at_shape *shape, const at_view *view, int i) {
  char name[96];
  if (!at_shape_equal(&view->shape, shape))
    return AT_INVALID("%s differs in shape from the other outputs; outputs do not broadcast",
                      name_of(name, sizeof name, view, "output", i));
  for (int d = 0; d < shape->dims; d++)
    if (shape->sizes[d] > 1 && view->strides[d] == 0)
      return AT_INVALID("%s has stride 0 in dimension %d of size %lld; each of its elements needs its own memory",
                        name_of(name, sizeof name, view, "output", i), d, (long long)shape->sizes[d]);
  const at_extent extent = extent_of(view);
  if (!at_extent_distinct(&extent))
    return AT_INVALID("elements of %s may overlap; use strides that keep them apart",
                      name_of(name, sizeof name, view, "output", i));
  return ATTUNE_OK;
}

static attune_status refuse(const at_view *output, int i, const at_view *other, const char *kind, int j) {
  char one[96], two[96];
  return AT_INVALID(
      "%s overlaps %s; %s", name_of(one, sizeof one, output, "output", i), name_of(two, sizeof two, other, kind, j),
      kind[0] == 'i' ? "should be disjoint, or the same memory element for element" : "should be disjoint");
}

attune_status at_operands_check(const at_shape *shape, const at_view *outputs, int output_count, const at_view *inputs,
                                int input_count) {
  int64_t count;
  if (!at_shape_count(&count, shape)) return AT_INVALID("the shape has too many elements");
  if (count == 0) return ATTUNE_OK; /* no memory is touched */
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < input_count && status == ATTUNE_OK; i++) status = check_one(&inputs[i], "input", i);
  for (int i = 0; i < output_count && status == ATTUNE_OK; i++) {
    status = check_one(&outputs[i], "output", i);
    if (status == ATTUNE_OK) status = check_output(shape, &outputs[i], i);
  }
  for (int i = 0; i < output_count && status == ATTUNE_OK; i++) {
    const at_extent own = extent_of(&outputs[i]);
    for (int j = 0; j < i && status == ATTUNE_OK; j++) {
      const at_extent other = extent_of(&outputs[j]);
      if (!at_extents_apart(&own, &other)) status = refuse(&outputs[j], j, &outputs[i], "output", i);
    }
    for (int j = 0; j < input_count && status == ATTUNE_OK; j++) {
      const at_extent other = extent_of(&inputs[j]);
      if (!at_extents_apart(&own, &other) && !in_place(&outputs[i], &inputs[j]))
        status = refuse(&outputs[i], i, &inputs[j], "input", j);
    }
  }
  return status;
}
