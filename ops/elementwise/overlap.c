/* SPDX-License-Identifier: Apache-2.0
 * overlap.c: which operands may share memory. layout.h has the rules. */
#include "ops/elementwise/layout.h"

#include <string.h>

/* The bytes of a view over the whole shape: dimensions of more than one element, every step positive. */
typedef struct extent {
  uintptr_t low, high; /* the first byte, and the one after the last */
  int dims;
  int64_t element, sizes[AT_DIMS], steps[AT_DIMS]; /* in bytes */
} extent;

static extent extent_of(const at_view *view) {
  extent e = {.low = (uintptr_t)view->data, .element = (int64_t)attune_dtype_size(view->dtype)};
  e.high = e.low;
  for (int d = 0; d < view->shape.dims; d++) {
    if (view->shape.sizes[d] <= 1 || view->strides[d] == 0) continue;
    const int64_t step = view->strides[d] * e.element, reach = step * (view->shape.sizes[d] - 1);
    if (reach < 0)
      e.low -= (uintptr_t)-reach;
    else
      e.high += (uintptr_t)reach;
    e.sizes[e.dims] = view->shape.sizes[d];
    e.steps[e.dims++] = step < 0 ? -step : step;
  }
  e.high += (uintptr_t)e.element;
  return e;
}

static int64_t divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* How many bytes of every `period` the elements reach over, from the first one; more than the period: not known. */
static int64_t window(const extent *e, int64_t period) {
  int64_t width = e->element;
  for (int d = 0; d < e->dims; d++)
    if (e->steps[d] % period != 0) width += (e->sizes[d] - 1) * e->steps[d];
  return width;
}

static bool apart_by(const extent *a, const extent *b, int64_t period) {
  const int64_t wide_a = window(a, period), wide_b = window(b, period);
  if (wide_a > period || wide_b > period) return false;
  const uintptr_t unit = (uintptr_t)period;
  const int64_t phase = (int64_t)((b->low % unit + unit - a->low % unit) % unit); /* of b after a */
  return phase >= wide_a && phase + wide_b <= period;
}

static bool apart(const extent *a, const extent *b) {
  if (a->high <= b->low || b->high <= a->low) return true;
  int64_t common = 0;
  for (int d = 0; d < a->dims; d++) common = divisor(a->steps[d], common);
  for (int d = 0; d < b->dims; d++) common = divisor(b->steps[d], common);
  if (common > 0 && apart_by(a, b, common)) return true;
  for (int d = 0; d < a->dims; d++)
    if (apart_by(a, b, a->steps[d])) return true;
  for (int d = 0; d < b->dims; d++)
    if (apart_by(a, b, b->steps[d])) return true;
  return false;
}

/* Each dimension, from the smallest step on, steps over all that the ones before reach. */
static bool distinct(extent e) {
  int64_t reach = e.element;
  while (e.dims > 0) {
    int least = 0;
    for (int d = 1; d < e.dims; d++)
      if (e.steps[d] < e.steps[least]) least = d;
    if (e.steps[least] < reach) return false;
    reach += e.steps[least] * (e.sizes[least] - 1);
    e.dims--;
    e.steps[least] = e.steps[e.dims];
    e.sizes[least] = e.sizes[e.dims];
  }
  return true;
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
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s has dtype %d, which is none", name_of(name, sizeof name, view, kind, i),
                   (int)view->dtype);
  if (!view->data)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be the address of its elements",
                   name_of(name, sizeof name, view, kind, i));
  if ((uintptr_t)view->data % at_element_alignment(view->dtype) != 0)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is not aligned to its dtype, %s; should be a multiple of %zu bytes",
                   name_of(name, sizeof name, view, kind, i), attune_dtype_name(view->dtype),
                   at_element_alignment(view->dtype));
  return ATTUNE_OK;
}

static attune_status check_output(const at_shape *shape, const at_view *view, int i) {
  char name[96];
  if (!at_shape_equal(&view->shape, shape))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s has another shape than the others; outputs do not broadcast",
                   name_of(name, sizeof name, view, "output", i));
  for (int d = 0; d < shape->dims; d++)
    if (shape->sizes[d] > 1 && view->strides[d] == 0)
      return at_fail(ATTUNE_INVALID_ARGUMENT,
                     "%s has stride 0 in dimension %d of size %lld; its elements need memory each",
                     name_of(name, sizeof name, view, "output", i), d, (long long)shape->sizes[d]);
  if (!distinct(extent_of(view)))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "elements of %s may fall together; use strides that step over each other",
                   name_of(name, sizeof name, view, "output", i));
  return ATTUNE_OK;
}

static attune_status refuse(const at_view *output, int i, const at_view *other, const char *kind, int j) {
  char one[96], two[96];
  return at_fail(ATTUNE_INVALID_ARGUMENT, "%s overlaps %s; %s", name_of(one, sizeof one, output, "output", i),
                 name_of(two, sizeof two, other, kind, j),
                 kind[0] == 'i' ? "should be apart from it, or the same memory element for element"
                                : "should be apart from it");
}

attune_status at_operands_check(const at_shape *shape, const at_view *outputs, int output_count, const at_view *inputs,
                                int input_count) {
  int64_t count;
  if (!at_shape_count(&count, shape)) return at_fail(ATTUNE_INVALID_ARGUMENT, "the shape has too many elements");
  if (count == 0) return ATTUNE_OK; /* no memory is touched */
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < input_count && status == ATTUNE_OK; i++) status = check_one(&inputs[i], "input", i);
  for (int i = 0; i < output_count && status == ATTUNE_OK; i++) {
    status = check_one(&outputs[i], "output", i);
    if (status == ATTUNE_OK) status = check_output(shape, &outputs[i], i);
  }
  for (int i = 0; i < output_count && status == ATTUNE_OK; i++) {
    const extent own = extent_of(&outputs[i]);
    for (int j = 0; j < i && status == ATTUNE_OK; j++) {
      const extent other = extent_of(&outputs[j]);
      if (!apart(&own, &other)) status = refuse(&outputs[j], j, &outputs[i], "output", i);
    }
    for (int j = 0; j < input_count && status == ATTUNE_OK; j++) {
      const extent other = extent_of(&inputs[j]);
      if (!apart(&own, &other) && !in_place(&outputs[i], &inputs[j]))
        status = refuse(&outputs[i], i, &inputs[j], "input", j);
    }
  }
  return status;
}
