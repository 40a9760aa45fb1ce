/* SPDX-License-Identifier: Apache-2.0
 * problem.c: makes problems of an expression and a layout, and gives both back. */
#include "ops/elementwise/problem/problem.h"

#include <string.h>

#include "ops/elementwise/language/compile.h"
#include "src/base/dtype.h"

_Static_assert(ATTUNE_ELEMENTWISE_INPUTS == AT_EXPRESSION_INPUTS &&
                   ATTUNE_ELEMENTWISE_OUTPUTS == AT_EXPRESSION_OUTPUTS &&
                   ATTUNE_ELEMENTWISE_SCALARS == AT_EXPRESSION_SCALARS && ATTUNE_DIMS == AT_DIMS,
               "the public header tells the limits");
_Static_assert(AT_MAX_BUFFERS >= AT_TENSORS && AT_MAX_SCALARS >= AT_EXPRESSION_SCALARS, "a set has all operands");

size_t at_elementwise_size(const void *problem) {
  return at_elementwise_of(problem)->bytes;
}

static int positions_of(const at_expression *e) {
  return e->max_position + 1 < AT_DIMS ? e->max_position + 1 : AT_DIMS;
}

static bool needs_number(const at_expression *e) {
  return e->element || e->uniform_count + e->normal_count > 0;
}

attune_status at_elementwise_layout(at_layout *out, const at_expression *e, const at_view *outputs,
                                    const at_view *inputs) {
  at_view views[AT_LAYOUT_OPERANDS];
  const at_shape *shape = &outputs[0].shape;
  int count = 0;
  for (int i = 1; i < e->output_count; i++)
    if (!at_shape_equal(&outputs[i].shape, shape))
      return AT_INVALID("output %d differs in shape from output 0; outputs do not broadcast", i);
  for (int i = 0; i < e->output_count; i++) views[count++] = outputs[i];
  for (int i = 0; i < e->input_count; i++) views[count++] = inputs[i];
  if (needs_number(e)) views[count++] = at_view_of_number(shape);
  for (int i = 0; i < positions_of(e); i++) views[count++] = at_view_of_position(shape, i);
  return at_layout_make(out, shape, views, count);
}

/* ---- what inputs an expression is for ---- */

static at_domain domain_of_function(at_function f) {
  switch (f) {
  case AT_FN_LOG:
  case AT_FN_LOG2:
  case AT_FN_LOG10:
  case AT_FN_SQRT:
  case AT_FN_RSQRT:
  case AT_FN_POWER:
  case AT_FN_LGAMMA:
  case AT_FN_TGAMMA: return AT_DOMAIN_POSITIVE;
  case AT_FN_LOGIT: return AT_DOMAIN_UNIT;
  case AT_FN_ACOSH: return AT_DOMAIN_ABOVE_ONE;
  default: return AT_DOMAIN_ALL;
  }
}

static at_domain domain_of(const at_expression *e) {
  at_domain domain = AT_DOMAIN_ALL;
  for (int i = 0; i < e->node_count; i++) {
    if (e->nodes[i].kind != AT_NODE_FUNCTION) continue;
    const at_domain own = domain_of_function((at_function)e->nodes[i].function);
    if (own > domain) domain = own;
  }
  return domain;
}

static at_range range_of(const at_elementwise *p, attune_dtype dtype) {
  if (at_dtype_kind_of(dtype) != AT_KIND_FLOAT && at_dtype_kind_of(dtype) != AT_KIND_COMPLEX) return (at_range){0, 0};
  switch (p->domain) {
  case AT_DOMAIN_POSITIVE: return (at_range){0.125, 3.0};
  case AT_DOMAIN_UNIT: return (at_range){0.125, 0.875};
  case AT_DOMAIN_ABOVE_ONE: return (at_range){1.0, 4.0};
  default: return (at_range){0, 0};
  }
}

/* ---- making ---- */

static void fill_header(at_elementwise *p, const at_expression *e, const at_layout *layout,
                        const at_elementwise_use *use) {
  memset(p, 0, sizeof *p);
  p->nodes = (uint16_t)e->node_count;
  p->accuracy = use->accuracy;
  p->dims = (uint8_t)layout->dims;
  p->output_count = (uint8_t)e->output_count;
  p->input_count = (uint8_t)e->input_count;
  p->scalar_count = (uint8_t)e->scalar_count;
  p->number = needs_number(e);
  p->positions = (uint8_t)positions_of(e);
  p->alignment = use->alignment;
  p->uniforms = (uint8_t)e->uniform_count;
  p->normals = (uint8_t)e->normal_count;
  p->domain = (uint8_t)domain_of(e);
  p->raw = e->raw;
  for (int i = 0; i < e->output_count; i++) {
    p->dtypes[i] = use->outputs[i];
    p->in_place[i] = use->in_place[i];
  }
  for (int i = 0; i < e->input_count; i++) p->dtypes[e->output_count + i] = e->inputs[i].dtype;
  for (int i = 0; i < e->scalar_count; i++) p->kinds[i] = e->scalars[i].dtype;
}

attune_status at_elementwise_make(at_elementwise *out, const at_expression *e, const at_layout *layout,
                                  const at_elementwise_use *use) {
  const size_t chars = strlen(e->text) + 1;
  fill_header(out, e, layout, use);
  const int operands = at_elementwise_operand_count(out), indices = at_elementwise_indices(out);
  const size_t numbers = (size_t)layout->dims * (size_t)(1 + operands) + (size_t)indices,
               text_at = sizeof *out + numbers * sizeof *out->numbers, bytes = (text_at + chars + 7) / 8 * 8;
  if (bytes > AT_PROBLEM_BYTES)
    return AT_INVALID("the expression is too long: its canonical form has %zu characters, and with these operands %zu "
                      "are allowed; split it into two",
                      chars - 1, text_at < AT_PROBLEM_BYTES ? AT_PROBLEM_BYTES - text_at - 1 : 0);
  out->text_at = (uint16_t)text_at;
  out->bytes = (uint16_t)bytes;
  int64_t *to = out->numbers;
  for (int d = 0; d < layout->dims; d++) *to++ = layout->sizes[d];
  for (int k = 0; k < operands; k++)
    for (int d = 0; d < layout->dims; d++) *to++ = layout->operands[k].strides[d];
  for (int k = operands - indices; k < operands; k++) *to++ = layout->operands[k].offset;
  char *text = (char *)out + text_at;
  memcpy(text, e->text, chars);
  memset(text + chars, 0, bytes - text_at - chars);
  return ATTUNE_OK;
}

void at_elementwise_set_offsets(at_elementwise *p) {
  const int operands = at_elementwise_operand_count(p), tensors = at_elementwise_tensors(p);
  for (int k = tensors; k < operands; k++) {
    int64_t offset = 0;
    for (int d = 0; d < p->dims; d++) {
      const int64_t stride = at_elementwise_strides(p, k)[d];
      if (stride < 0) offset -= stride * (p->numbers[d] - 1);
    }
    p->numbers[p->dims * (1 + operands) + k - tensors] = offset;
  }
}

void at_elementwise_layout_of(at_layout *out, const at_elementwise *p) {
  const int tensors = at_elementwise_tensors(p);
  memset(out, 0, sizeof *out);
  out->dims = p->dims;
  out->count = at_elementwise_count(p);
  out->operand_count = at_elementwise_operand_count(p);
  memcpy(out->sizes, p->numbers, p->dims * sizeof *out->sizes);
  for (int k = 0; k < out->operand_count; k++) {
    memcpy(out->operands[k].strides, at_elementwise_strides(p, k), p->dims * sizeof *out->sizes);
    if (k >= tensors) out->operands[k].offset = at_elementwise_offset(p, k - tensors);
  }
  at_layout_classify(out);
}

attune_status at_elementwise_expression(at_expression **out, const at_elementwise *p) {
  return at_expression_parse_canonical(out, at_elementwise_text(p));
}

attune_status at_elementwise_expression_checked(at_expression **out, const at_elementwise *p) {
  return at_expression_parse_canonical_checked(out, at_elementwise_text(p));
}

/* ---- buffers ---- */

/* Elements from the lowest to the highest address, and how far above the lowest the first element walked lies. */
static int64_t reach_of(const at_elementwise *p, int operand, int64_t *start) {
  const int64_t *strides = at_elementwise_strides(p, operand);
  int64_t up = 0, down = 0;
  for (int d = 0; d < p->dims; d++) {
    const int64_t way = strides[d] * (p->numbers[d] - 1);
    if (way > 0)
      up += way;
    else
      down -= way;
  }
  *start = down;
  return up + down + 1;
}

/* An input that is an output's memory has no buffer of its own. */
static int owner_of(const at_elementwise *p, int input) {
  for (int o = 0; o < p->output_count; o++)
    if (p->in_place[o] == input + 1) return o;
  return -1;
}

attune_status at_elementwise_buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count) {
  const at_elementwise *p = at_elementwise_of(problem);
  *count = 0;
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    const bool output = k < p->output_count;
    if (!output && owner_of(p, k - p->output_count) >= 0) continue;
    const attune_dtype dtype = (attune_dtype)p->dtypes[k];
    const size_t size = attune_dtype_size(dtype);
    int64_t start, bytes;
    if (!at_mul_i64(&bytes, reach_of(p, k, &start), (int64_t)size))
      return AT_INVALID("the operands have more than 2^63 bytes");
    const bool input = !output || p->in_place[k];
    const size_t alignment = p->alignment > size ? p->alignment : size;
    out[(*count)++] = (at_buffer){.bytes = (size_t)bytes,
                                  .alignment = alignment,
                                  .dtype = dtype,
                                  .input = input,
                                  .output = output,
                                  .range = input ? range_of(p, dtype) : (at_range){0, 0}};
  }
  return ATTUNE_OK;
}

int at_elementwise_scalars(const void *problem, at_scalar out[AT_MAX_SCALARS]) {
  static const char *const names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  const at_elementwise *p = at_elementwise_of(problem);
  for (int i = 0; i < p->scalar_count; i++) {
    const bool whole = p->kinds[i] == ATTUNE_I64, truth = p->kinds[i] == ATTUNE_BOOL;
    out[i] = (at_scalar){names[i], whole ? 3.0 : truth ? 1.0 : 0.625, {0.25, whole ? 8.0 : truth ? 1.75 : 2.25}};
  }
  return p->scalar_count;
}

/* A number of op.h's as a scalar of its kind. */
static at_constant scalar_of(attune_dtype kind, double value) {
  if (kind == ATTUNE_BOOL) return (at_constant){.integer = value >= 0.75};
  if (kind == ATTUNE_I64) return (at_constant){.integer = (int64_t)value};
  return (at_constant){.re = value, .im = kind == ATTUNE_C128 ? 0.5 * value : 0.0};
}

void at_elementwise_bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars,
                         void *operands) {
  const at_elementwise *p = at_elementwise_of(problem);
  at_elementwise_operands *o = operands;
  int buffer = 0;
  memset(o, 0, sizeof *o);
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    const int owner = k < p->output_count ? -1 : owner_of(p, k - p->output_count);
    int64_t start;
    (void)reach_of(p, k, &start);
    o->tensors[k] = owner >= 0
                        ? o->tensors[owner]
                        : (char *)pointers[buffer++] + start * (int64_t)attune_dtype_size((attune_dtype)p->dtypes[k]);
  }
  for (int i = 0; i < p->scalar_count; i++) o->scalars[i] = scalar_of((attune_dtype)p->kinds[i], scalars[i]);
  o->draws = (at_random_draws){.seed = AT_ELEMENTWISE_SEED};
}
