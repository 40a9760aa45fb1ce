/* SPDX-License-Identifier: Apache-2.0
 * layout.h: where the elements of operands lie, and the one order in which all of them are walked.
 *
 * A view is an operand as the caller gives it: up to 8 dimensions, any strides, counted in elements, also 0 and
 * negative. A layout is what is left of the views of one problem after everything that does not matter is gone:
 * dimensions of size 1, dimensions that all operands walk as one, and the order of the dimensions, which becomes that
 * of the first output's memory. Equal layouts need equal work. It has no pointers. */
#ifndef AT_LAYOUT_H
#define AT_LAYOUT_H

#include <attune/types.h>

#include "src/base/support.h"

enum {
  AT_DIMS = 8,
  AT_LAYOUT_OPERANDS = 8 + 16 + 1 + 8 /* outputs, inputs, the element's number, its coordinates */
};

/* Sizes, the outermost dimension first. 0 dimensions: one element. A size may be 0: then there are no elements. */
typedef struct at_shape {
  int dims;
  int64_t sizes[AT_DIMS];
} at_shape;

typedef struct at_view {
  const void *data; /* the element whose indices are all 0; an output's is written to */
  attune_dtype dtype;
  at_shape shape;
  int64_t strides[AT_DIMS]; /* in elements, next to the sizes */
  const char *name;         /* for messages; NULL: its number */
} at_view;

/* A view of packed row-major memory. */
at_view at_view_packed(const void *data, attune_dtype dtype, const at_shape *shape);

/* Views without memory, whose offset is a number of the element: its number in row-major order, or its coordinate along
 * a dimension, counted from the innermost one, which is 0. A dimension that the shape lacks has the coordinate 0. */
at_view at_view_of_number(const at_shape *shape);
at_view at_view_of_position(const at_shape *shape, int dimension);

/* The elements of a shape into *out; false when they are more than an int64 holds, or a size is negative. */
bool at_shape_count(int64_t *out, const at_shape *shape);
bool at_shape_equal(const at_shape *a, const at_shape *b);

/* How an operand is walked in a layout. Tuning tells problems apart by these. */
typedef enum at_layout_class {
  AT_LAYOUT_CONTIGUOUS,      /* element after element */
  AT_LAYOUT_ONE,             /* the same element everywhere */
  AT_LAYOUT_BROADCAST_INNER, /* the same element along the innermost dimension */
  AT_LAYOUT_BROADCAST_OUTER, /* packed, and the same again along an outer dimension: a bias */
  AT_LAYOUT_ROWS,            /* contiguous along the innermost dimension only: a part of a larger tensor */
  AT_LAYOUT_TRANSPOSED,      /* contiguous along another dimension */
  AT_LAYOUT_STRIDED          /* along none */
} at_layout_class;

typedef struct at_layout_operand {
  int64_t strides[AT_DIMS]; /* in elements, innermost first */
  int64_t offset;           /* of the first element walked from the view's data, in elements */
  at_layout_class layout_class;
} at_layout_operand;

typedef struct at_layout {
  int dims;               /* 1 to AT_DIMS */
  int64_t sizes[AT_DIMS]; /* innermost first; unlike in a view */
  int64_t count;          /* of elements; may be 0 */
  int operand_count;
  at_layout_operand operands[AT_LAYOUT_OPERANDS];
} at_layout;

/* Lays out `count` views over `shape`, to which each must broadcast. The first one, an output, gives the order: its
 * smallest stride is innermost, and its strides become positive. Errors: INVALID_ARGUMENT (more than 8 dimensions, a
 * negative size, a view that does not broadcast, more elements or bytes than 2^63 - 1). */
attune_status at_layout_make(at_layout *out, const at_shape *shape, const at_view *views, int count);

/* Sets the class of each operand from its strides. */
void at_layout_classify(at_layout *layout);

/* Alignment of an element, as in C. */
static inline size_t at_element_alignment(attune_dtype dtype) {
  return dtype == ATTUNE_C64 ? 4 : dtype == ATTUNE_C128 ? 8 : attune_dtype_size(dtype);
}

/* Refuses operands that cannot be computed element by element in any order: outputs whose shape is not `shape`; data
 * that is NULL or not aligned to its element; an output with a stride of 0, or whose elements may fall together; an
 * output that may share memory with another output, or with an input in another way than element for element (in place:
 * the same data, strides and size of an element). "May": what counts is what can be shown in a few steps. Two operands
 * are apart when their address ranges are, or when for some stride S all elements of one lie in one window of every S
 * bytes and those of the other in another (columns of one matrix, even and odd elements). An output's elements are
 * distinct when its dimensions, sorted by stride, each step over the whole extent of those before. Others are refused,
 * although their elements may be distinct: copy such an operand first. Errors: INVALID_ARGUMENT; the message names
 * both. */
attune_status at_operands_check(const at_shape *shape, const at_view *outputs, int output_count, const at_view *inputs,
                                int input_count);

#endif
