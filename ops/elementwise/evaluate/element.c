/* SPDX-License-Identifier: Apache-2.0
 * element.c: see element.h. */
#include "ops/elementwise/evaluate/element.h"

#include <math.h>
#include <stdlib.h>

int64_t at_element_offset(const at_layout *layout, int operand, int64_t walked) {
  const at_layout_operand *o = &layout->operands[operand];
  int64_t offset = 0;
  for (int d = 0; d < layout->dims; d++) {
    offset += walked % layout->sizes[d] * o->strides[d];
    walked /= layout->sizes[d];
  }
  return offset;
}

/* What an operand holds that cannot change a result (plain.h): bits of anything. */
static const unsigned char any[64] = {0x3d, 0x91, 0x42, 0xc0, 0x17, 0x5b, 0xe3, 0x3f, 0x80, 0x0c, 0x66,
                                      0x41, 0xa9, 0x72, 0x04, 0xbe, 0xf5, 0x2c, 0x8b, 0x40, 0x6d, 0x13,
                                      0xd8, 0xc2, 0x01, 0xe7, 0x55, 0x43, 0x9a, 0x3b, 0xff, 0x3e};

/* All that the expression reads of element `walked`. */
static void find(at_element *out, const at_elements *all, int64_t walked) {
  const at_expression *e = all->expression;
  const at_layout *l = all->layout;
  const int tensors = e->output_count + e->input_count;
  *out = (at_element){.scalars = all->scalars, .draws = &all->draws, .count = l->count};
  for (int i = 0; i < e->input_count; i++) {
    const int k = e->output_count + i;
    const int64_t size = (int64_t)attune_dtype_size((attune_dtype)e->inputs[i].dtype);
    out->inputs[i] = (const char *)all->tensors[k] + at_element_offset(l, k, walked) * size;
  }
  for (int i = e->input_count; i < AT_EXPRESSION_INPUTS; i++) out->inputs[i] = any + 16 * (walked % 4);
  for (int k = tensors; k < l->operand_count; k++) {
    const int64_t at = l->operands[k].offset + at_element_offset(l, k, walked);
    const int position = k - tensors - all->number;
    if (position < 0)
      out->number = at;
    else
      out->position[position] = at;
  }
}

void at_element_values(at_wide_value *values, const at_elements *all, int64_t walked, at_rounding rounding) {
  at_element element;
  find(&element, all, walked);
  at_evaluate(values, all->expression, &element, rounding);
}

void at_elements_compute(const at_elements *all, const uint8_t *dtypes, at_wide_value *values) {
  const at_expression *e = all->expression;
  for (int64_t w = 0; w < all->layout->count; w++) {
    at_element_values(values, all, w, AT_ROUND_NODES);
    for (int i = 0; i < e->output_count; i++) {
      const attune_dtype dtype = (attune_dtype)dtypes[i];
      const int64_t at = at_element_offset(all->layout, i, w) * (int64_t)attune_dtype_size(dtype);
      const int node = e->outputs[i];
      at_wide_value_store(dtype, (char *)all->tensors[i] + at,
                          at_wide_value_cast(dtype, (attune_dtype)e->nodes[node].dtype, values[node]));
    }
  }
}

at_wide_value *at_plain_values(const at_expression *plain) {
  return calloc((size_t)plain->node_count, sizeof(at_wide_value));
}

static bool same_real(long double x, long double y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

bool at_plain_same(const at_expression *e, const at_wide_value *values, const at_wide_value *plain) {
  for (int i = 0; i < e->output_count; i++) {
    const at_wide_value x = values[e->outputs[i]], y = plain[e->plain->outputs[i]];
    if (e->nodes[e->outputs[i]].dtype != e->plain->nodes[e->plain->outputs[i]].dtype) return false;
    if (x.integer != y.integer || !same_real(x.re, y.re) || !same_real(x.im, y.im)) return false;
  }
  return true;
}

bool at_plain_agrees(at_wide_value *room, const at_elements *all, int64_t walked, const at_wide_value *values) {
  at_elements other = *all;
  other.expression = all->expression->plain;
  at_element_values(room, &other, walked, AT_ROUND_NODES);
  return at_plain_same(all->expression, values, room);
}
