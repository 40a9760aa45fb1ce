/* SPDX-License-Identifier: Apache-2.0
 * layout.c: from views to the one order in which all are walked. */
#include "ops/elementwise/layout/layout.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 16 /* bytes of the largest element */

at_view at_view_packed(const void *data, attune_dtype dtype, const at_shape *shape) {
  at_view view = {.data = data, .dtype = dtype, .shape = *shape};
  int64_t stride = 1;
  for (int d = shape->dims - 1; d >= 0; d--) {
    view.strides[d] = stride;
    if (!at_mul_i64(&stride, stride, shape->sizes[d] > 0 ? shape->sizes[d] : 1)) stride = 0; /* refused elsewhere */
  }
  return view;
}

at_view at_view_of_number(const at_shape *shape) {
  return at_view_packed(NULL, ATTUNE_I64, shape);
}

at_view at_view_of_position(const at_shape *shape, int dimension) {
  at_view view = {.dtype = ATTUNE_I64, .shape = *shape};
  if (dimension < shape->dims) view.strides[shape->dims - 1 - dimension] = 1;
  return view;
}

bool at_shape_count(int64_t *out, const at_shape *shape) {
  bool empty = false;
  for (int d = 0; d < shape->dims; d++) {
    if (shape->sizes[d] < 0) return false;
    empty = empty || shape->sizes[d] == 0;
  }
  int64_t count = 1;
  for (int d = 0; d < shape->dims && !empty; d++)
    if (!at_mul_i64(&count, count, shape->sizes[d])) return false;
  *out = empty ? 0 : count;
  return true;
}

bool at_shape_equal(const at_shape *a, const at_shape *b) {
  return a->dims == b->dims && memcmp(a->sizes, b->sizes, (size_t)a->dims * sizeof *a->sizes) == 0;
}

/* "input 2", or the name it was given. */
static const char *name_of(char *out, size_t size, const at_view *views, int i) {
  size_t at = 0;
  if (views[i].name)
    (void)at_copy_text(out, size, views[i].name);
  else
    (void)at_append(out, size, &at, "operand %d", i);
  return out;
}

static attune_status check_shape(const at_view *views, int i) {
  char name[80];
  const at_shape *shape = &views[i].shape;
  if (shape->dims < 0 || shape->dims > AT_DIMS)
    return AT_INVALID("%s has %d dimensions; should be 0 to %d", name_of(name, sizeof name, views, i), shape->dims,
                      AT_DIMS);
  for (int d = 0; d < shape->dims; d++)
    if (shape->sizes[d] < 0)
      return AT_INVALID("%s has size %lld in dimension %d; should be 0 or more", name_of(name, sizeof name, views, i),
                        (long long)shape->sizes[d], d);
  return ATTUNE_OK;
}

/* Dimension d, counted from the innermost one: "last dimension", "dimension before the last", "dimension 3 before the
 * last". */
static const char *dimension_of(int d, char out[48]) {
  if (d < 2) return d == 0 ? "last dimension" : "dimension before the last";
  snprintf(out, 48, "dimension %d before the last", d);
  return out;
}

/* The strides of view i over `shape`, innermost first, 0 where it broadcasts. */
static attune_status spread(int64_t *strides, const at_shape *shape, const at_view *views, int i) {
  const at_view *view = &views[i];
  char name[80], which[48];
  AT_TRY(check_shape(views, i));
  if (view->shape.dims > shape->dims)
    return AT_INVALID("%s has %d dimensions; should have at most as many as the output, %d",
                      name_of(name, sizeof name, views, i), view->shape.dims, shape->dims);
  int64_t extent = 0;
  for (int d = 0; d < shape->dims; d++) {
    const int own = view->shape.dims - 1 - d;
    const int64_t size = own >= 0 ? view->shape.sizes[own] : 1, wanted = shape->sizes[shape->dims - 1 - d];
    if (size != wanted && size != 1)
      return AT_INVALID("%s has size %lld in its %s; should be %lld%s", name_of(name, sizeof name, views, i),
                        (long long)size, dimension_of(d, which), (long long)wanted,
                        wanted == 1 ? ", like the output" : " or 1");
    strides[d] = size > 1 ? view->strides[own] : 0;
    const bool least = strides[d] == INT64_MIN; /* has no opposite */
    const int64_t length = strides[d] < 0 && !least ? -strides[d] : strides[d];
    int64_t part;
    if (least || !at_mul_i64(&part, length, size > 0 ? size - 1 : 0) || !at_add_i64(&extent, extent, part) ||
        extent > INT64_MAX / WIDEST - 1)
      return AT_INVALID("%s spans more than 2^63 bytes; should have smaller strides",
                        name_of(name, sizeof name, views, i));
  }
  return ATTUNE_OK;
}

static int64_t magnitude(int64_t x) {
  return x < 0 ? -x : x;
}

/* Whether dimension a belongs inside of b: by the first operand, in order, that tells them apart. */
static bool inside(const at_layout *l, int a, int b) {
  for (int i = 0; i < l->operand_count; i++) {
    const int64_t *strides = l->operands[i].strides;
    if (magnitude(strides[a]) != magnitude(strides[b])) return magnitude(strides[a]) < magnitude(strides[b]);
  }
  return false;
}

static void swap(at_layout *l, int a, int b) {
  const int64_t size = l->sizes[a];
  l->sizes[a] = l->sizes[b];
  l->sizes[b] = size;
  for (int i = 0; i < l->operand_count; i++) {
    int64_t *strides = l->operands[i].strides;
    const int64_t stride = strides[a];
    strides[a] = strides[b];
    strides[b] = stride;
  }
}

/* Puts dimension `from` at `to`, which is not above. */
static void move(at_layout *l, int to, int from) {
  if (to != from) swap(l, to, from);
}

static void drop_ones(at_layout *l) {
  int kept = 0;
  for (int d = 0; d < l->dims; d++)
    if (l->sizes[d] != 1) move(l, kept++, d);
  l->dims = kept;
}

static void order(at_layout *l) {
  for (int d = 1; d < l->dims; d++)
    for (int e = d; e > 0 && inside(l, e, e - 1); e--) swap(l, e, e - 1);
}

/* Where the first operand runs backwards all run the other way round. */
static void turn(at_layout *l) {
  for (int d = 0; d < l->dims; d++) {
    if (l->operands[0].strides[d] >= 0) continue;
    for (int i = 0; i < l->operand_count; i++) {
      l->operands[i].offset += (l->sizes[d] - 1) * l->operands[i].strides[d];
      l->operands[i].strides[d] *= -1;
    }
  }
}

static bool one_walk(const at_layout *l, int inner, int outer) {
  for (int i = 0; i < l->operand_count; i++) {
    const int64_t *strides = l->operands[i].strides;
    int64_t whole; /* a product that overflows is no stride */
    if (__builtin_mul_overflow(strides[inner], l->sizes[inner], &whole) || strides[outer] != whole) return false;
  }
  return true;
}

static void collapse(at_layout *l) {
  int kept = 0;
  for (int d = 1; d < l->dims; d++) {
    if (one_walk(l, kept, d))
      l->sizes[kept] *= l->sizes[d]; /* at most the count */
    else
      move(l, ++kept, d);
  }
  l->dims = l->dims ? kept + 1 : 0;
}

static at_layout_class classify(const at_layout *l, const int64_t *strides) {
  bool all_zero = true, packed = true, again = true, unit = false;
  int64_t whole = 1, own = 1; /* elements inside of a dimension: of the shape, and of the operand itself */
  for (int d = 0; d < l->dims; d++) {
    all_zero = all_zero && strides[d] == 0;
    packed = packed && strides[d] == whole;
    again = again && (strides[d] == 0 || strides[d] == own);
    unit = unit || magnitude(strides[d]) == 1;
    whole *= l->sizes[d];
    if (strides[d] != 0) own *= l->sizes[d];
  }
  if (l->count <= 1 || packed) return AT_LAYOUT_CONTIGUOUS;
  if (all_zero) return AT_LAYOUT_ONE;
  if (strides[0] == 0) return AT_LAYOUT_BROADCAST_INNER;
  if (strides[0] == 1) return again ? AT_LAYOUT_BROADCAST_OUTER : AT_LAYOUT_ROWS;
  return unit && magnitude(strides[0]) != 1 ? AT_LAYOUT_TRANSPOSED : AT_LAYOUT_STRIDED;
}

void at_layout_classify(at_layout *layout) {
  for (int i = 0; i < layout->operand_count; i++)
    layout->operands[i].layout_class = classify(layout, layout->operands[i].strides);
}

attune_status at_layout_make(at_layout *out, const at_shape *shape, const at_view *views, int count) {
  *out = (at_layout){.dims = shape->dims, .operand_count = count};
  if (count < 1 || count > AT_LAYOUT_OPERANDS)
    return AT_INVALID("there are %d operands; should be 1 to %d", count, AT_LAYOUT_OPERANDS);
  if (shape->dims < 0 || shape->dims > AT_DIMS)
    return AT_INVALID("there are %d dimensions; should be 0 to %d", shape->dims, AT_DIMS);
  if (!at_shape_count(&out->count, shape) || out->count > INT64_MAX / WIDEST)
    return AT_INVALID("the shape has a negative size or more than 2^59 elements");
  for (int i = 0; i < count; i++) AT_TRY(spread(out->operands[i].strides, shape, views, i));
  for (int d = 0; d < shape->dims; d++) out->sizes[d] = shape->sizes[shape->dims - 1 - d];
  if (out->count == 0) { /* nothing to walk */
    out->dims = 1;
    memset(out->sizes, 0, sizeof out->sizes);
    return ATTUNE_OK;
  }
  drop_ones(out);
  order(out);
  turn(out);
  collapse(out);
  if (out->dims == 0) {
    out->dims = 1;
    out->sizes[0] = 1;
  }
  for (int d = out->dims; d < AT_DIMS; d++) {
    out->sizes[d] = 0;
    for (int i = 0; i < count; i++) out->operands[i].strides[d] = 0;
  }
  at_layout_classify(out);
  return ATTUNE_OK;
}
