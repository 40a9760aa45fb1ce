/* SPDX-License-Identifier: Apache-2.0
 * call_match.c: calls like one that was made ready: whether they are, what may be wrong with them all the same, and
 * the operands of their launch. */
#include <stdio.h>
#include <string.h>

#include "ops/elementwise/call/call_binding.h"
#include "src/random/generator.h"

bool at_call_binding_is_like(const at_call_binding *p, const attune_elementwise_operands *o) {
  bool same = o->output_count == p->output_count && o->input_count == p->input_count &&
              o->scalar_count == p->scalar_count && o->outputs && (o->inputs || !o->input_count) &&
              (o->scalars || !o->scalar_count);
  for (int i = 0; i < p->output_count && same; i++) same = at_kept_is_like(&p->kept_tensors[i], &o->outputs[i]);
  for (int i = 0; i < p->input_count && same; i++)
    same = at_kept_is_like(&p->kept_tensors[p->output_count + i], &o->inputs[i]);
  return same;
}

bool at_call_binding_has_kinds(const at_call_binding *p, const attune_elementwise_operands *o) {
  bool same = true;
  for (int i = 0; i < p->expression->scalar_count; i++)
    same = same && at_scalar_kind(&o->scalars[p->scalar_of[i]]) == (attune_dtype)p->expression->scalars[i].dtype;
  return same;
}

static const attune_tensor *tensor_of(const at_call_binding *p, const attune_elementwise_operands *o, int k) {
  const int outputs = p->expression->output_count;
  return k < outputs ? &o->outputs[k] : &o->inputs[p->input_of[k - outputs]];
}

void at_call_binding_bind(at_call_binding *p, const attune_elementwise_operands *o, at_elementwise_operands *out) {
  for (int k = 0; k < p->tensors; k++) out->tensors[k] = (char *)tensor_of(p, o, k)->data + p->first[k];
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_scalar *s = &o->scalars[p->scalar_of[i]];
    out->scalars[i] = (at_constant){.re = s->value, .im = s->imaginary, .integer = s->integer};
    if (s->kind == ATTUNE_BOOL) out->scalars[i].integer = s->integer != 0;
  }
  out->layout = &p->layout;
  out->generator = o->generator;
  out->draws = (at_random_draws){0};
  out->head = p->head;
  out->kept = &p->kept;
}

bool at_call_binding_apart(const at_call_binding *p, const attune_elementwise_operands *o) {
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

bool at_call_binding_elsewhere(const at_call_binding *p, const attune_elementwise_operands *o) {
  const int outputs = p->expression->output_count;
  for (int i = 0; i < outputs; i++)
    for (int k = outputs; k < p->tensors && !p->problem->in_place[i]; k++)
      if (tensor_of(p, o, i)->data == tensor_of(p, o, k)->data) return true;
  return false;
}

bool at_call_binding_aligned(const at_call_binding *p, const attune_elementwise_operands *o, int least) {
  uintptr_t bits = 0, own = 0;
  for (int k = 0; k < p->tensors; k++) {
    const attune_tensor *t = tensor_of(p, o, k);
    own |= (uintptr_t)t->data & (at_element_alignment(t->dtype) - 1);
    if (p->step[k]) bits |= (uintptr_t)t->data + (uintptr_t)p->low[k] + (uintptr_t)p->head * p->step[k];
  }
  return own == 0 && (bits & ((uintptr_t)least - 1)) == 0;
}

/* An input without a name is identified by its place among the operands, which need not be the one in the
 * expression. */
attune_status at_call_binding_check(const at_call_binding *p, const attune_elementwise_operands *o) {
  static const char *const numbers[] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                        "8", "9", "10", "11", "12", "13", "14", "15"};
  _Static_assert(AT_COUNT(numbers) == ATTUNE_ELEMENTWISE_INPUTS, "a number for each input");
  at_view views[AT_TENSORS];
  const int outputs = p->expression->output_count;
  for (int k = 0; k < p->tensors; k++) {
    at_call_binding_view(&views[k], tensor_of(p, o, k));
    if (k >= outputs && !views[k].name) views[k].name = numbers[p->input_of[k - outputs]];
  }
  return at_operands_check(&views[0].shape, views, outputs, views + outputs, p->expression->input_count);
}

attune_status at_call_binding_check_generator(const at_expression *e, attune_generator *generator) {
  if (e->uniform_count + e->normal_count == 0) return ATTUNE_OK;
  if (!generator)
    return AT_INVALID("the generator is NULL; %s() draws from one: give a generator from attune_generator_create",
                      e->uniform_count ? "rand" : "randn");
  at_generator_view view;
  at_generator_look(generator, &view);
  return view.mode == ATTUNE_RANDOM_PORTABLE ? ATTUNE_OK
                                             : AT_INVALID("the generator is in mode torch; should be in mode portable "
                                                          "for expressions, see attune_generator_set_mode");
}

attune_status at_scalar_fail(const attune_scalar *s, int i) {
  char name[64];
  const bool named = s->name && at_copy_text(name, sizeof name, s->name);
  if (!named) (void)snprintf(name, sizeof name, "%d", i);
  if (s->integer != 0)
    return AT_INVALID("scalar %s has integer %lld, but kind 0, which is f64; should be i64 or bool", name,
                      (long long)s->integer);
  return AT_INVALID("scalar %s has imaginary %g, but kind 0, which is f64; should be c128", name, s->imaginary);
}

attune_status at_call_binding_check_scalars(const at_call_binding *p, const attune_elementwise_operands *o) {
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_scalar *s = &o->scalars[p->scalar_of[i]];
    const attune_dtype was = (attune_dtype)p->expression->scalars[i].dtype, is = at_scalar_kind(s);
    if (is == 0) return at_scalar_fail(s, p->scalar_of[i]);
    if (is != was)
      return AT_INVALID("scalar %d has kind %s, but had %s when the plan was created; create one with these operands",
                        p->scalar_of[i], attune_dtype_name(is), attune_dtype_name(was));
  }
  return ATTUNE_OK;
}
