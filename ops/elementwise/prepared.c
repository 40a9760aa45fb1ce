/* SPDX-License-Identifier: Apache-2.0
 * prepared.c: from a caller's operands to a problem. */
#include "ops/elementwise/prepared.h"

#include <stdlib.h>
#include <string.h>

#include "src/random/generator.h"

#define FAIL(...) at_fail(ATTUNE_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- the caller's structs ---- */

static const char *name_of(const attune_tensor *t, bool output, int i, char out[96]) {
  size_t at = 0;
  if (t->name)
    (void)at_append(out, 96, &at, "%s %.60s", output ? "output" : "input", t->name);
  else
    (void)at_append(out, 96, &at, "%s %d", output ? "output" : "input", i);
  return out;
}

static attune_status check_counts(const attune_elementwise_operands *o) {
  if (o->output_count < 1 || o->output_count > AT_EXPRESSION_OUTPUTS)
    return FAIL("operands.output_count is %d; should be 1 to %d", o->output_count, AT_EXPRESSION_OUTPUTS);
  if (o->input_count < 0 || o->input_count > AT_EXPRESSION_INPUTS)
    return FAIL("operands.input_count is %d; should be 0 to %d", o->input_count, AT_EXPRESSION_INPUTS);
  if (o->scalar_count < 0 || o->scalar_count > AT_EXPRESSION_SCALARS)
    return FAIL("operands.scalar_count is %d; should be 0 to %d", o->scalar_count, AT_EXPRESSION_SCALARS);
  if (!o->outputs || (o->input_count && !o->inputs) || (o->scalar_count && !o->scalars))
    return FAIL("operands.%s is NULL; should have as many as its count says", !o->outputs ? "outputs"
                                                                              : o->input_count && !o->inputs
                                                                                  ? "inputs"
                                                                                  : "scalars");
  if (o->accuracy < ATTUNE_STRICT || o->accuracy > ATTUNE_REDUCED)
    return FAIL("operands.accuracy is %d; should be ATTUNE_STRICT, ATTUNE_EQUIVALENT or ATTUNE_REDUCED",
                (int)o->accuracy);
  return ATTUNE_OK;
}

static attune_status check_tensor(const attune_tensor *t, bool output, int i) {
  char name[96];
  if (!output && !t->name) return FAIL("input %d has no name; should be that of an operand of the expression", i);
  if (!attune_dtype_size(t->dtype))
    return FAIL("the dtype of %s is %d; should be one of attune_dtype", name_of(t, output, i, name), (int)t->dtype);
  if (t->dims < 0 || t->dims > AT_DIMS)
    return FAIL("%s has %d dimensions; should be 0 to %d", name_of(t, output, i, name), t->dims, AT_DIMS);
  return ATTUNE_OK;
}

static void view_of(at_view *out, const attune_tensor *t) {
  at_shape shape = {.dims = t->dims};
  memcpy(shape.sizes, t->sizes, (size_t)t->dims * sizeof *shape.sizes);
  *out = at_view_packed(t->data, t->dtype, &shape);
  if (t->strides) memcpy(out->strides, t->strides, (size_t)t->dims * sizeof *out->strides);
  out->name = t->name;
}

static attune_status read_views(at_view *views, const attune_elementwise_operands *o) {
  attune_status status = ATTUNE_OK;
  for (int k = 0; k < o->output_count + o->input_count && status == ATTUNE_OK; k++) {
    const bool output = k < o->output_count;
    const int i = output ? k : k - o->output_count;
    const attune_tensor *t = output ? &o->outputs[i] : &o->inputs[i];
    status = check_tensor(t, output, i);
    if (status == ATTUNE_OK) view_of(&views[k], t);
  }
  return status;
}

/* ---- the expression ---- */

static attune_status put_name(at_operand_name *to, const char *name, attune_dtype dtype, const char *what, int i) {
  if (!name) return FAIL("%s %d has no name; should be that of an operand of the expression", what, i);
  if (!at_copy_text(to->name, sizeof to->name, name))
    return FAIL("the name of %s %d, %.40s..., is too long; should have at most %d characters", what, i, name,
                AT_EXPRESSION_NAME - 1);
  to->dtype = (uint8_t)dtype;
  return ATTUNE_OK;
}

/* Inputs are told apart by how they lie, so that "x + bias" and "bias + x" are one problem. */
static void colour(at_operand_name *tensors, const attune_elementwise_operands *o, const at_view *views) {
  at_layout layout;
  at_message kept;
  at_message_keep(&kept);
  const bool good = at_layout_make(&layout, &views[0].shape, views, o->output_count + o->input_count) == ATTUNE_OK;
  for (int i = 0; i < o->input_count; i++)
    tensors[i].colour = good ? (uint8_t)layout.operands[o->output_count + i].layout_class : 0;
  (void)at_message_settle(&kept, ATTUNE_OK); /* what is wrong is told later */
}

static attune_status compile(at_expression **out, const char *text, const attune_elementwise_operands *o,
                             const at_view *views) {
  at_operand_name tensors[AT_EXPRESSION_INPUTS] = {0}, scalars[AT_EXPRESSION_SCALARS] = {0};
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < o->input_count && status == ATTUNE_OK; i++)
    status = put_name(&tensors[i], o->inputs[i].name, o->inputs[i].dtype, "input", i);
  for (int i = 0; i < o->scalar_count && status == ATTUNE_OK; i++) {
    const attune_dtype kind = o->scalars[i].kind ? o->scalars[i].kind : ATTUNE_F64;
    status = put_name(&scalars[i], o->scalars[i].name, kind, "scalar", i);
  }
  if (status != ATTUNE_OK) return status;
  colour(tensors, o, views);
  const at_signature signature = {tensors, scalars, o->input_count, o->scalar_count};
  status = at_expression_create(out, text, strnlen(text, AT_EXPRESSION_CHARS + 1), &signature);
  if (status != ATTUNE_OK || (*out)->output_count == o->output_count) return status;
  status = FAIL("the expression has %d outputs, operands %d; should be as many", (*out)->output_count, o->output_count);
  at_expression_destroy(*out);
  *out = NULL;
  return status;
}

/* Which of the caller's operands each of the expression's is. Every one is used, so each has its place. */
static void find_operands(at_prepared *p, const attune_elementwise_operands *o) {
  const at_expression *e = p->expression;
  for (int i = 0; i < e->input_count; i++)
    for (int k = 0; k < o->input_count; k++)
      if (strcmp(e->inputs[i].name, o->inputs[k].name) == 0) p->input_of[i] = (uint8_t)k;
  for (int i = 0; i < e->scalar_count; i++)
    for (int k = 0; k < o->scalar_count; k++)
      if (strcmp(e->scalars[i].name, o->scalars[k].name) == 0) p->scalar_of[i] = (uint8_t)k;
}

attune_status at_prepared_check_generator(const at_expression *e, attune_generator *generator) {
  if (e->uniform_count + e->normal_count == 0) return ATTUNE_OK;
  if (!generator)
    return FAIL("operands.generator is NULL; %s() draws from one: give one of attune_generator_create",
                e->uniform_count ? "rand" : "randn");
  at_generator_view view;
  at_generator_look(generator, &view);
  return view.mode == ATTUNE_RANDOM_PORTABLE
             ? ATTUNE_OK
             : FAIL("operands.generator is in mode torch; expressions draw in its portable mode: see "
                    "attune_generator_set_mode");
}

attune_status at_prepared_check_scalars(const at_prepared *p, const attune_elementwise_operands *o) {
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_dtype was = (attune_dtype)p->expression->scalars[i].dtype, is = o->scalars[p->scalar_of[i]].kind;
    if (is != was && (is || was != ATTUNE_F64))
      return FAIL("scalar %d has kind %s, but %s when the plan was made; make one with these operands", p->scalar_of[i],
                  attune_dtype_name(is ? is : ATTUNE_F64), attune_dtype_name(was));
  }
  return ATTUNE_OK;
}

/* ---- the layout ---- */

static void find_extents(at_prepared *p, const at_view *views) {
  for (int k = 0; k < p->tensors; k++) {
    const int64_t size = (int64_t)attune_dtype_size(views[k].dtype);
    at_layout_operand *o = &p->layout.operands[k];
    int64_t low = o->offset, high = o->offset;
    p->first[k] = o->offset * size;
    p->size[k] = (uint8_t)size;
    p->step[k] = 0;
    for (int d = 0; d < p->layout.dims; d++) {
      const int64_t way = o->strides[d] * (p->layout.sizes[d] - 1);
      *(way < 0 ? &low : &high) += way;
      if (o->strides[d] != 0) p->step[k] = (uint8_t)size;
    }
    p->low[k] = low * size;
    p->high[k] = (high + 1) * size;
    o->offset = 0; /* a launch is given the first element walked */
  }
}

/* Bits of the lowest addresses of all tensors that move, `head` elements on. */
static uintptr_t bits_at(const at_prepared *p, const at_view *views, int head) {
  uintptr_t bits = 0;
  for (int k = 0; k < p->tensors; k++)
    if (p->step[k] && views[k].data)
      bits |= (uintptr_t)views[k].data + (uintptr_t)p->low[k] + (uintptr_t)head * p->step[k];
  return bits;
}

/* On a GPU one-dimensional work may begin with a few single elements, so that the rest is aligned. */
static uint8_t find_alignment(at_prepared *p, const attune_device *device, const at_view *views) {
  enum { MOST = 16 };
  p->head = 0;
  if (!device) return at_alignment_of(bits_at(p, views, 0));
  bool flat = device->properties.kind == ATTUNE_DEVICE_CUDA && p->layout.dims == 1 && p->layout.count >= 64;
  for (int k = 0; k < p->tensors && flat; k++)
    flat = p->layout.operands[k].strides[0] == 0 || p->layout.operands[k].strides[0] == 1;
  uint8_t best = at_alignment_on(device, bits_at(p, views, 0));
  for (int head = 1; head < MOST && flat && best < MOST; head++) {
    const uint8_t alignment = at_alignment_on(device, bits_at(p, views, head));
    if (alignment <= best) continue;
    best = alignment;
    p->head = head;
  }
  return best;
}

/* Which input each output is the memory of; at_operands_check has seen that it lies just so. */
static void find_in_place(at_elementwise_use *use, const at_expression *e, const at_view *outputs,
                          const at_view *inputs) {
  for (int i = 0; i < e->output_count; i++)
    for (int k = 0; k < e->input_count; k++)
      if (outputs[i].data && outputs[i].data == inputs[k].data) use->in_place[i] = (uint8_t)(k + 1);
}

static attune_status lay_out(at_prepared *p, const at_view *views, const attune_device *device,
                             const attune_elementwise_operands *o) {
  const at_expression *e = p->expression;
  const at_view *outputs = views, *inputs = views + e->output_count;
  at_elementwise_use use = {.accuracy = o->accuracy == ATTUNE_REDUCED ? ATTUNE_REDUCED : ATTUNE_STRICT};
  _Alignas(8) char room[AT_PROBLEM_BYTES];
  at_elementwise *problem = (at_elementwise *)(void *)room;
  p->tensors = e->output_count + e->input_count;
  find_extents(p, views);
  for (int i = 0; i < e->output_count; i++) use.outputs[i] = (uint8_t)outputs[i].dtype;
  find_in_place(&use, e, outputs, inputs);
  use.alignment = find_alignment(p, device, views);
  const attune_status status = at_elementwise_make(problem, e, &p->layout, &use);
  if (status != ATTUNE_OK) return status;
  p->problem = malloc(problem->bytes);
  if (!p->problem) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a problem of %d bytes", problem->bytes);
  memcpy(p->problem, problem, problem->bytes);
  return ATTUNE_OK;
}

/* The caller's views in the expression's order. */
static void order_views(at_view *out, const at_prepared *p, const at_view *views) {
  const int outputs = p->expression->output_count;
  memcpy(out, views, (size_t)outputs * sizeof *out);
  for (int i = 0; i < p->expression->input_count; i++) out[outputs + i] = views[outputs + p->input_of[i]];
}

static void keep_tensor(at_kept_tensor *to, const attune_tensor *t) {
  int64_t stride = 1;
  *to = (at_kept_tensor){.dtype = t->dtype, .dims = t->dims, .packed = true};
  for (int d = t->dims - 1; d >= 0; d--) {
    to->sizes[d] = t->sizes[d];
    to->strides[d] = t->strides ? t->strides[d] : stride;
    to->packed = to->packed && to->strides[d] == stride;
    if (!at_mul_i64(&stride, stride, t->sizes[d])) stride = 0;
  }
}

static void keep_tensors(at_prepared *p, const attune_elementwise_operands *o) {
  p->output_count = o->output_count;
  p->input_count = o->input_count;
  p->scalar_count = o->scalar_count;
  for (int i = 0; i < o->output_count; i++) keep_tensor(&p->kept_tensors[i], &o->outputs[i]);
  for (int i = 0; i < o->input_count; i++) keep_tensor(&p->kept_tensors[o->output_count + i], &o->inputs[i]);
}

static attune_status prepare(at_prepared *p, bool *empty, const attune_device *device, const char *text,
                             const attune_elementwise_operands *o) {
  at_view given[AT_TENSORS], views[AT_TENSORS];
  attune_status status = read_views(given, o);
  if (status == ATTUNE_OK) status = compile(&p->expression, text, o, given);
  if (status != ATTUNE_OK) return status;
  find_operands(p, o);
  keep_tensors(p, o);
  order_views(views, p, given);
  const int outputs = p->expression->output_count;
  status = at_elementwise_layout(&p->layout, p->expression, views, views + outputs);
  if (status == ATTUNE_OK) status = at_prepared_check_generator(p->expression, o->generator);
  if (status == ATTUNE_OK)
    status = at_operands_check(&views[0].shape, views, outputs, views + outputs, p->expression->input_count);
  *empty = p->layout.count == 0;
  return status == ATTUNE_OK && !*empty ? lay_out(p, views, device, o) : status;
}

attune_status at_prepared_create(at_prepared **out, bool *empty, const attune_device *device, const char *text,
                                 const attune_elementwise_operands *o) {
  *out = NULL;
  *empty = false;
  attune_status status = check_counts(o);
  if (status != ATTUNE_OK) return status;
  at_prepared *p = calloc(1, sizeof *p);
  if (!p) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a call");
  status = prepare(p, empty, device, text, o);
  if (status == ATTUNE_OK && !*empty)
    *out = p;
  else
    at_prepared_destroy(p);
  return status;
}

void at_prepared_destroy(at_prepared *p) {
  if (!p) return;
  at_expression_destroy(p->expression);
  free(p->problem);
  free(p);
}

attune_status at_prepared_describe(at_prepared **out, const char *text, const attune_elementwise_operands *o) {
  at_view given[AT_TENSORS], views[AT_TENSORS];
  *out = NULL;
  attune_status status = check_counts(o);
  at_prepared *p = status == ATTUNE_OK ? calloc(1, sizeof *p) : NULL;
  if (status == ATTUNE_OK && !p) status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a problem");
  if (status == ATTUNE_OK) status = read_views(given, o);
  if (status == ATTUNE_OK) status = compile(&p->expression, text, o, given);
  if (status == ATTUNE_OK) {
    find_operands(p, o);
    order_views(views, p, given);
    status = at_elementwise_layout(&p->layout, p->expression, views, views + p->expression->output_count);
  }
  if (status == ATTUNE_OK && p->layout.count == 0)
    status = FAIL("the shape has no elements; a problem has at least one");
  if (status == ATTUNE_OK) status = lay_out(p, views, NULL, o);
  if (status == ATTUNE_OK)
    *out = p;
  else
    at_prepared_destroy(p);
  return status;
}

/* ---- calls like it ---- */

AT_INLINE bool is_like(const at_kept_tensor *k, const attune_tensor *t) {
  bool same = t->dtype == k->dtype && t->dims == k->dims && (t->strides || k->packed);
  for (int d = 0; d < k->dims && same; d++) same = t->sizes[d] == k->sizes[d];
  if (t->strides)
    for (int d = 0; d < k->dims && same; d++) same = t->strides[d] == k->strides[d];
  return same;
}

bool at_prepared_is_like(const at_prepared *p, const attune_elementwise_operands *o) {
  bool same = o->output_count == p->output_count && o->input_count == p->input_count &&
              o->scalar_count == p->scalar_count && o->outputs && (o->inputs || !o->input_count) &&
              (o->scalars || !o->scalar_count);
  for (int i = 0; i < p->output_count && same; i++) same = is_like(&p->kept_tensors[i], &o->outputs[i]);
  for (int i = 0; i < p->input_count && same; i++) same = is_like(&p->kept_tensors[p->output_count + i], &o->inputs[i]);
  return same;
}

bool at_prepared_has_kinds(const at_prepared *p, const attune_elementwise_operands *o) {
  bool same = true;
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_dtype kind = o->scalars[p->scalar_of[i]].kind;
    same = same && (kind ? kind : ATTUNE_F64) == (attune_dtype)p->expression->scalars[i].dtype;
  }
  return same;
}

static const attune_tensor *tensor_of(const at_prepared *p, const attune_elementwise_operands *o, int k) {
  const int outputs = p->expression->output_count;
  return k < outputs ? &o->outputs[k] : &o->inputs[p->input_of[k - outputs]];
}

void at_prepared_bind(at_prepared *p, const attune_elementwise_operands *o, at_elementwise_operands *out) {
  for (int k = 0; k < p->tensors; k++) out->tensors[k] = (char *)tensor_of(p, o, k)->data + p->first[k];
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_scalar *s = &o->scalars[p->scalar_of[i]];
    out->scalars[i] = (at_constant){.re = s->value, .im = s->imaginary, .integer = s->integer};
    if (s->kind == ATTUNE_BOOL) out->scalars[i].integer = s->integer != 0;
  }
  out->layout = &p->layout;
  out->generator = o->generator;
  out->draws = (at_draws){0};
  out->head = p->head;
  out->kept = &p->kept;
}

bool at_prepared_apart(const at_prepared *p, const attune_elementwise_operands *o) {
  const int outputs = p->expression->output_count;
  uintptr_t low[AT_TENSORS], high[AT_TENSORS];
  for (int k = 0; k < p->tensors; k++) {
    const uintptr_t data = (uintptr_t)tensor_of(p, o, k)->data;
    if (!data) return false;
    low[k] = data + (uintptr_t)p->low[k];
    high[k] = data + (uintptr_t)p->high[k];
  }
  for (int i = 0; i < outputs; i++)
    for (int k = i + 1; k < p->tensors; k++) {
      if (low[i] >= high[k] || low[k] >= high[i]) continue;
      const bool same = tensor_of(p, o, i)->data == tensor_of(p, o, k)->data && p->size[i] == p->size[k] &&
                        memcmp(p->layout.operands[i].strides, p->layout.operands[k].strides,
                               sizeof p->layout.operands[i].strides) == 0;
      if (k < outputs || !p->problem->in_place[i] || !same) return false;
    }
  return true;
}

bool at_prepared_elsewhere(const at_prepared *p, const attune_elementwise_operands *o) {
  const int outputs = p->expression->output_count;
  for (int i = 0; i < outputs; i++)
    for (int k = outputs; k < p->tensors && !p->problem->in_place[i]; k++)
      if (tensor_of(p, o, i)->data == tensor_of(p, o, k)->data) return true;
  return false;
}

bool at_prepared_aligned(const at_prepared *p, const attune_elementwise_operands *o, int least) {
  uintptr_t bits = 0, own = 0;
  for (int k = 0; k < p->tensors; k++) {
    const attune_tensor *t = tensor_of(p, o, k);
    own |= (uintptr_t)t->data & (at_element_alignment(t->dtype) - 1);
    if (p->step[k]) bits |= (uintptr_t)t->data + (uintptr_t)p->low[k] + (uintptr_t)p->head * p->step[k];
  }
  return own == 0 && (bits & ((uintptr_t)least - 1)) == 0;
}

attune_status at_prepared_check(const at_prepared *p, const attune_elementwise_operands *o) {
  at_view views[AT_TENSORS];
  const int outputs = p->expression->output_count;
  for (int k = 0; k < p->tensors; k++) view_of(&views[k], tensor_of(p, o, k));
  return at_operands_check(&views[0].shape, views, outputs, views + outputs, p->expression->input_count);
}
