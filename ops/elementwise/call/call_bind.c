/* SPDX-License-Identifier: Apache-2.0
 * call_bind.c: from a caller's text and operands to a call made ready; see call_binding.h. */
#include "ops/elementwise/call/call_binding.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/language/compile.h"
#include "ops/elementwise/language/user_function_expression.h"

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
    return AT_INVALID("operands.output_count is %d; should be 1 to %d", o->output_count, AT_EXPRESSION_OUTPUTS);
  if (o->input_count < 0 || o->input_count > AT_EXPRESSION_INPUTS)
    return AT_INVALID("operands.input_count is %d; should be 0 to %d", o->input_count, AT_EXPRESSION_INPUTS);
  if (o->scalar_count < 0 || o->scalar_count > AT_EXPRESSION_SCALARS)
    return AT_INVALID("operands.scalar_count is %d; should be 0 to %d", o->scalar_count, AT_EXPRESSION_SCALARS);
  if (!o->outputs || (o->input_count && !o->inputs) || (o->scalar_count && !o->scalars))
    return AT_INVALID("operands.%s is NULL; should have as many elements as its count", !o->outputs ? "outputs"
                                                                                        : o->input_count && !o->inputs
                                                                                            ? "inputs"
                                                                                            : "scalars");
  if (!at_call_binding_accuracy_is_one(o)) return at_call_binding_accuracy_fail(o);
  return ATTUNE_OK;
}

static attune_status check_tensor(const attune_tensor *t, bool output, int i) {
  char name[96];
  if (!output && !t->name)
    return AT_INVALID("input %d has no name; should be the name of an operand of the expression", i);
  if (!attune_dtype_size(t->dtype))
    return AT_INVALID("the dtype of %s is %d; should be an attune_dtype", name_of(t, output, i, name), (int)t->dtype);
  if (t->dims < 0 || t->dims > AT_DIMS)
    return AT_INVALID("%s has %d dimensions; should be 0 to %d", name_of(t, output, i, name), t->dims, AT_DIMS);
  if (t->dims == 0 && t->sizes[0] != 0 && t->sizes[0] != 1)
    return AT_INVALID("%s has dims 0, but sizes[0] is %lld; dims should be the number of sizes, or sizes[0] should be "
                      "1 for one element",
                      name_of(t, output, i, name), (long long)t->sizes[0]);
  return ATTUNE_OK;
}

static attune_status read_views(at_view *views, const attune_elementwise_operands *o) {
  attune_status status = ATTUNE_OK;
  for (int k = 0; k < o->output_count + o->input_count && status == ATTUNE_OK; k++) {
    const bool output = k < o->output_count;
    const int i = output ? k : k - o->output_count;
    const attune_tensor *t = output ? &o->outputs[i] : &o->inputs[i];
    status = check_tensor(t, output, i);
    if (status == ATTUNE_OK) at_call_binding_view(&views[k], t);
  }
  return status;
}

/* ---- the expression ---- */

static attune_status put_name(at_operand_name *to, const char *name, attune_dtype dtype, const char *what, int i) {
  if (!name) return AT_INVALID("%s %d has no name; should be the name of an operand of the expression", what, i);
  if (!at_copy_text(to->name, sizeof to->name, name))
    return AT_INVALID("the name of %s %d, %.40s..., is too long; should have at most %d characters", what, i, name,
                      AT_EXPRESSION_NAME - 1);
  to->dtype = (uint8_t)dtype;
  return ATTUNE_OK;
}

/* Inputs are distinguished by their layout, so that "x + bias" and "bias + x" are one problem. */
static void colour(at_operand_name *tensors, const attune_elementwise_operands *o, const at_view *views) {
  at_layout layout;
  const at_message kept = at_message_keep();
  const bool good = at_layout_make(&layout, &views[0].shape, views, o->output_count + o->input_count) == ATTUNE_OK;
  for (int i = 0; i < o->input_count; i++)
    tensors[i].colour = good ? (uint8_t)layout.operands[o->output_count + i].layout_class : 0;
  (void)at_message_settle(&kept, ATTUNE_OK); /* errors are reported later */
}

/* What is tuned has only the rewritten text, so the program's own is checked where it is known. */
static attune_status verify(at_expression *e, const at_formula *formula) {
  const attune_status status = at_plain_check(e);
  if (formula->checked) return status;
  at_expression_destroy(e->plain);
  e->plain = NULL;
  return status;
}

static attune_status compile(at_expression **out, const at_formula *formula, const attune_elementwise_operands *o,
                             const at_view *views) {
  at_operand_name tensors[AT_EXPRESSION_INPUTS] = {0}, scalars[AT_EXPRESSION_SCALARS] = {0};
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < o->input_count && status == ATTUNE_OK; i++)
    status = put_name(&tensors[i], o->inputs[i].name, o->inputs[i].dtype, "input", i);
  for (int i = 0; i < o->scalar_count && status == ATTUNE_OK; i++) {
    const attune_dtype kind = at_scalar_kind(&o->scalars[i]);
    status = kind ? put_name(&scalars[i], o->scalars[i].name, kind, "scalar", i) : at_scalar_fail(&o->scalars[i], i);
  }
  if (status != ATTUNE_OK) return status;
  const at_signature signature = {tensors, scalars, o->input_count, o->scalar_count};
  if (formula->function) return at_user_function_expression_create(out, formula->function, &signature, o->output_count);
  colour(tensors, o, views);
  status = (formula->checked || formula->verified ? at_expression_create_checked : at_expression_create)(
      out, formula->text, strnlen(formula->text, AT_EXPRESSION_CHARS + 1), &signature);
  if (status == ATTUNE_OK && formula->verified) status = verify(*out, formula);
  if (status == ATTUNE_OK && (*out)->output_count == o->output_count) return status;
  if (status == ATTUNE_OK)
    status = AT_INVALID("the expression has %d outputs, but operands has %d; should be as many", (*out)->output_count,
                        o->output_count);
  at_expression_destroy(*out);
  *out = NULL;
  return status;
}

/* Which of the caller's operands each of the expression's is. Every one is used, so each has its place. */
static void find_operands(at_call_binding *p, const attune_elementwise_operands *o) {
  const at_expression *e = p->expression;
  for (int i = 0; i < e->input_count; i++)
    for (int k = 0; k < o->input_count; k++)
      if (strcmp(e->inputs[i].name, o->inputs[k].name) == 0) p->input_of[i] = (uint8_t)k;
  for (int i = 0; i < e->scalar_count; i++)
    for (int k = 0; k < o->scalar_count; k++)
      if (strcmp(e->scalars[i].name, o->scalars[k].name) == 0) p->scalar_of[i] = (uint8_t)k;
}

/* The caller's views in the expression's order. */
static void order_views(at_view *out, const at_call_binding *p, const at_view *views) {
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

static void keep_tensors(at_call_binding *p, const attune_elementwise_operands *o) {
  p->output_count = o->output_count;
  p->input_count = o->input_count;
  p->scalar_count = o->scalar_count;
  for (int i = 0; i < o->output_count; i++) keep_tensor(&p->kept_tensors[i], &o->outputs[i]);
  for (int i = 0; i < o->input_count; i++) keep_tensor(&p->kept_tensors[o->output_count + i], &o->inputs[i]);
}

/* All but the problem, of operands whose counts are right. `views` are in the expression's order. */
static attune_status begin(at_call_binding *p, at_view *views, const at_formula *formula,
                           const attune_elementwise_operands *o) {
  at_view given[AT_TENSORS];
  AT_TRY(read_views(given, o));
  AT_TRY(compile(&p->expression, formula, o, given));
  find_operands(p, o);
  keep_tensors(p, o);
  order_views(views, p, given);
  return at_elementwise_layout(&p->layout, p->expression, views, views + p->expression->output_count);
}

static attune_status check_all(const at_call_binding *p, const at_view *views, const attune_elementwise_operands *o) {
  const int outputs = p->expression->output_count;
  const attune_status status = at_call_binding_check_generator(p->expression, o->generator);
  return status == ATTUNE_OK
             ? at_operands_check(&views[0].shape, views, outputs, views + outputs, p->expression->input_count)
             : status;
}

static attune_status finish(at_call_binding **out, at_call_binding *p, bool useful, attune_status status) {
  *out = status == ATTUNE_OK && useful ? p : NULL;
  if (!*out) at_call_binding_destroy(p);
  return status;
}

attune_status at_call_binding_create(at_call_binding **out, bool *empty, const attune_device *device,
                                     const at_formula *formula, const attune_elementwise_operands *o) {
  at_view views[AT_TENSORS];
  *out = NULL;
  *empty = false;
  AT_TRY(check_counts(o));
  at_call_binding *p = calloc(1, sizeof *p);
  if (!p) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a call");
  attune_status status = begin(p, views, formula, o);
  if (status == ATTUNE_OK) status = check_all(p, views, o);
  *empty = status == ATTUNE_OK && p->layout.count == 0;
  if (status == ATTUNE_OK && !*empty) status = at_call_binding_lay_out(p, views, device, o);
  return finish(out, p, !*empty, status);
}

attune_status at_call_binding_describe(at_call_binding **out, const at_formula *formula,
                                       const attune_elementwise_operands *o) {
  at_view views[AT_TENSORS];
  *out = NULL;
  AT_TRY(check_counts(o));
  at_call_binding *p = calloc(1, sizeof *p);
  if (!p) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a problem");
  attune_status status = begin(p, views, formula, o);
  if (status == ATTUNE_OK && p->layout.count == 0)
    status = AT_INVALID("the shape has no elements; a problem has at least one");
  if (status == ATTUNE_OK) status = at_call_binding_lay_out(p, views, NULL, o);
  return finish(out, p, true, status);
}

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
