/* SPDX-License-Identifier: Apache-2.0
 * small_fast_path.c: see small_fast_path.h. */
#include "ops/elementwise/call/small_fast_path.h"

static const at_kept_tensor *kept_of(const at_call_binding *p, int k) {
  const int input = k - p->output_count;
  return &p->kept_tensors[input < 0 ? k : p->output_count + p->input_of[input]];
}

/* Element after element from the tensor's data on, in all of them: then an operand is its data and its bytes. */
static bool is_packed(const at_call_binding *p) {
  bool good = p->layout.dims == 1;
  for (int k = 0; k < p->tensors; k++)
    good = good && kept_of(p, k)->dims > 0 && p->first[k] == 0 && p->low[k] == 0 &&
           (p->layout.operands[k].strides[0] == 1 || p->layout.count == 1);
  for (int i = 0; i < p->output_count && p->output_count > 1; i++) good = good && !p->problem->in_place[i];
  return good;
}

void at_small_attach(at_call_binding *p, const at_plan *plan, int least) {
  at_small *s = &p->small;
  s->plan = NULL;
  s->straight = false;
  if (plan->guard || plan->counted || plan->implementation->launch != at_host_elements_launch) return;
  const at_host_plan *host = plan->state;
  if (p->layout.count > host->small_most || !is_packed(p)) return;
  s->mask = (uintptr_t)least - 1;
  for (int k = 0; k < p->tensors; k++) {
    const at_kept_tensor *t = kept_of(p, k);
    const attune_tensor like = {.dtype = t->dtype, .dims = t->dims};
    s->tensors[k] =
        (at_small_tensor){.kind = at_small_kind(&like), .size = t->sizes[0], .bytes = (uintptr_t)p->high[k]};
    if (k >= p->output_count) s->tensors[k].caller = p->input_of[k - p->output_count];
    s->mask |= at_element_alignment(t->dtype) - 1;
  }
  s->straight = host->straight && p->output_count == 1 && p->scalar_count == 0;
  for (int k = 0; k < p->tensors; k++) s->straight = s->straight && kept_of(p, k)->dims == 1;
  s->plan = host;
}

/* Where strides are given, or there are more dimensions than one. */
static __attribute__((noinline)) bool is_like(const at_call_binding *p, const attune_tensor *t, int k) {
  return at_kept_is_like(kept_of(p, k), t);
}

AT_INLINE bool tensor_fits(const at_call_binding *p, const attune_tensor *t, int k) {
  const at_small_tensor *s = &p->small.tensors[k];
  if (AT_UNLIKELY(at_small_kind(t) != s->kind || t->sizes[0] != s->size)) return false;
  return t->dims == 1 && !t->strides ? true : is_like(p, t, k);
}

/* Does `second` lie apart from `first`, or is it an input that is the output `first` where that was foreseen? */
AT_INLINE bool may_be_beside(const at_call_binding *p, void *const *tensors, int first, int second) {
  const at_small_tensor *a = &p->small.tensors[first], *b = &p->small.tensors[second];
  const uintptr_t distance = (uintptr_t)tensors[second] - (uintptr_t)tensors[first];
  if (AT_LIKELY((distance >= a->bytes) & (0 - distance >= b->bytes))) return true;
  return distance == 0 && second >= p->output_count && p->problem->in_place[first] && p->size[first] == p->size[second];
}

AT_INLINE bool bind_scalars(const at_call_binding *p, const attune_scalar *scalars, at_constant *out) {
  for (int i = 0; i < p->scalar_count; i++) {
    const attune_scalar *s = &scalars[p->scalar_of[i]];
    const attune_dtype kind = at_scalar_kind(s);
    if (kind != (attune_dtype)p->expression->scalars[i].dtype) return false;
    out[i] = (at_constant){.re = s->value, .im = s->imaginary, .integer = s->integer};
    if (kind == ATTUNE_BOOL) out[i].integer = s->integer != 0;
  }
  return true;
}

bool at_small_bind(const at_call_binding *p, const attune_stream *stream, const attune_elementwise_operands *o,
                   at_small_call *out) {
  const int outputs = p->output_count, tensors = p->tensors;
  if (!p->small.plan || !at_host_inline(stream) || o->output_count != outputs || o->input_count != p->input_count ||
      o->scalar_count != p->scalar_count)
    return false;
  if (!o->outputs || (!o->inputs && p->input_count) || (!o->scalars && p->scalar_count)) return false;
  uintptr_t bits = 0;
  bool good = true;
  for (int k = 0; k < tensors; k++) {
    const attune_tensor *t = k < outputs ? &o->outputs[k] : &o->inputs[p->small.tensors[k].caller];
    if (AT_UNLIKELY(!tensor_fits(p, t, k))) return false;
    out->tensors[k] = t->data;
    bits |= (uintptr_t)t->data;
    good &= t->data != NULL;
    for (int i = 0; i < outputs && i < k; i++) good &= may_be_beside(p, out->tensors, i, k);
  }
  return good && (bits & p->small.mask) == 0 && (p->scalar_count == 0 || bind_scalars(p, o->scalars, out->scalars));
}
