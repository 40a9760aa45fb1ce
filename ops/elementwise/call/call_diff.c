/* SPDX-License-Identifier: Apache-2.0
 * call_diff.c: what of a call is not as in the one that was made ready, in words: the first operand that differs. */
#include "ops/elementwise/call/call_binding.h"
#include "src/base/dtype.h"

#define ELSE "; create a plan with these operands" /* what helps, whatever differs */

enum { NAME_CHARS = 96, NUMBERS_CHARS = 200 };

/* "output 0", "input 1 (b)": the caller's operand k, outputs first. */
static const char *name_of(char out[NAME_CHARS], const at_call_binding *p, const attune_elementwise_operands *o,
                           int k) {
  const bool output = k < p->output_count;
  const int number = output ? k : k - p->output_count;
  const char *name = (output ? o->outputs : o->inputs)[number].name;
  size_t at = 0;
  (void)at_append(out, NAME_CHARS, &at, "%s %d", output ? "output" : "input", number);
  if (name) (void)at_append(out, NAME_CHARS, &at, " (%.63s)", name);
  return out;
}

static const char *numbers_of(char out[NUMBERS_CHARS], const int64_t *numbers, int count, const char *between) {
  size_t at = 0;
  out[0] = '\0';
  for (int d = 0; d < count; d++)
    (void)at_append(out, NUMBERS_CHARS, &at, "%s%lld", d ? between : "", (long long)numbers[d]);
  return out;
}

static attune_status fail_tensor(const char *name, const at_kept_tensor *k, const attune_tensor *t) {
  char is[NUMBERS_CHARS], was[NUMBERS_CHARS];
  if (t->dtype != k->dtype && !attune_dtype_size(t->dtype))
    return AT_INVALID("%s: dtype is %d; should be an attune_dtype, and the plan has %s", name, (int)t->dtype,
                      attune_dtype_name(k->dtype));
  if (t->dtype != k->dtype)
    return AT_INVALID("%s: dtype is %s; the plan has %s" ELSE, name, attune_dtype_name(t->dtype),
                      attune_dtype_name(k->dtype));
  if (t->dims != k->dims) return AT_INVALID("%s: dims is %d; the plan has %d" ELSE, name, t->dims, k->dims);
  for (int d = 0; d < k->dims; d++)
    if (t->sizes[d] != k->sizes[d])
      return AT_INVALID("%s: shape is %s; the plan has %s" ELSE, name, numbers_of(is, t->sizes, t->dims, " x "),
                        numbers_of(was, k->sizes, k->dims, " x "));
  return AT_INVALID("%s: strides are %s; the plan has %s" ELSE, name,
                    t->strides ? numbers_of(is, t->strides, t->dims, ", ") : "NULL (packed)",
                    numbers_of(was, k->strides, k->dims, ", "));
}

static attune_status fail_list(const char *list, int count, int wanted) {
  if (count != wanted) return AT_INVALID("operands.%s_count is %d; the plan has %d" ELSE, list, count, wanted);
  return AT_INVALID("operands.%ss is NULL; should list %d", list, wanted);
}

attune_status at_call_binding_fail_unlike(const at_call_binding *p, const attune_elementwise_operands *o) {
  char name[NAME_CHARS];
  if (o->output_count != p->output_count || !o->outputs) return fail_list("output", o->output_count, p->output_count);
  if (o->input_count != p->input_count || (!o->inputs && o->input_count))
    return fail_list("input", o->input_count, p->input_count);
  if (o->scalar_count != p->scalar_count || (!o->scalars && o->scalar_count))
    return fail_list("scalar", o->scalar_count, p->scalar_count);
  for (int k = 0; k < p->output_count + p->input_count; k++) {
    const attune_tensor *t = k < p->output_count ? &o->outputs[k] : &o->inputs[k - p->output_count];
    if (!at_kept_is_like(&p->kept_tensors[k], t)) return fail_tensor(name_of(name, p, o, k), &p->kept_tensors[k], t);
  }
  return ATTUNE_OK;
}

attune_status at_call_binding_fail_aligned(const at_call_binding *p, const attune_elementwise_operands *o, int least) {
  char name[NAME_CHARS];
  const int outputs = p->expression->output_count;
  for (int k = 0; k < p->tensors; k++) {
    const int caller = k < outputs ? k : outputs + p->input_of[k - outputs];
    const attune_tensor *t = k < outputs ? &o->outputs[k] : &o->inputs[p->input_of[k - outputs]];
    const uintptr_t data = (uintptr_t)t->data, own = at_element_alignment(t->dtype);
    const uintptr_t first = data + (uintptr_t)p->low[k] + (uintptr_t)p->head * p->step[k];
    if (data & (own - 1))
      return AT_INVALID("%s is aligned to %d byte%s; should be aligned to %d, for its dtype, %s",
                        name_of(name, p, o, caller), (int)(data & -data), data & 1 ? "" : "s", (int)own,
                        attune_dtype_name(t->dtype));
    if (p->step[k] && (first & ((uintptr_t)least - 1)))
      return AT_INVALID("%s is aligned to %d byte%s; should be aligned to %d, like the operands that the plan was "
                        "created with, or create one with these",
                        name_of(name, p, o, caller), (int)(first & -first), first & 1 ? "" : "s", least);
  }
  return ATTUNE_OK;
}
