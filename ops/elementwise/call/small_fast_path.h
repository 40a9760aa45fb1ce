/* SPDX-License-Identifier: Apache-2.0
 * small_fast_path.h: calls of few elements on the host, whose tensors are all packed: looked at in one pass, and run at
 * once. The look is quick, not complete: where it says no, the usual way finds out what is wrong, if anything is. */
#ifndef AT_ELEMENTWISE_SMALL_FAST_PATH_H
#define AT_ELEMENTWISE_SMALL_FAST_PATH_H

#include <stddef.h>
#include <string.h>

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/host/host_call.h"
#include "src/host/host.h"

/* Operands of such a run, in the expression's order. */
typedef struct at_small_call {
  void *tensors[AT_TENSORS];
  at_constant scalars[AT_EXPRESSION_SCALARS];
} at_small_call;

/* From now on calls like the prepared one run so by this plan, if both are fit for it. The plan lives as long as it is
 * attached. `least`: the alignment of their tensors. */
void at_small_attach(at_call_binding *prepared, const at_plan *plan, int least);

/* May such a call on this stream run so? Then *out is set. All is looked at but the names. */
bool at_small_bind(const at_call_binding *prepared, const attune_stream *stream,
                   const attune_elementwise_operands *operands, at_small_call *out);

/* ---- the plainest of them, in as few steps as there can be ---- */

AT_INLINE uint64_t at_small_kind(const attune_tensor *t) {
  uint64_t kind;
  memcpy(&kind, &t->dtype, sizeof kind);
  return kind;
}
_Static_assert(offsetof(attune_tensor, dims) == offsetof(attune_tensor, dtype) + 4 &&
                   sizeof((attune_tensor){0}.dtype) == 4 && sizeof((attune_tensor){0}.dims) == 4,
               "dtype and dims are one word");

/* Bits that differ from the one that is foreseen; strides are not. */
AT_INLINE uint64_t at_small_differs(const attune_tensor *t, const at_small_tensor *s) {
  return (at_small_kind(t) ^ s->kind) | (uint64_t)(t->sizes[0] ^ s->size) | (uint64_t)(uintptr_t)t->strides;
}

/* Arguments of such a call's loop. */
typedef struct at_small_quick_call {
  void *out;
  const void *x, *y;
} at_small_quick_call;

/* No bit differs, and the tensors are there, aligned and apart? `second` is y's. */
AT_INLINE bool at_small_suits(const at_call_binding *p, const at_small_quick_call *c, uint64_t differs,
                              const at_small_tensor *second) {
  const at_small_tensor *out = &p->small.tensors[0], *first = &p->small.tensors[1];
  const uintptr_t to = (uintptr_t)c->out, from = (uintptr_t)c->x, other = (uintptr_t)c->y;
  const bool apart = (from - to >= out->bytes) & (to - from >= first->bytes) & (other - to >= out->bytes) &
                     (to - other >= second->bytes);
  return (differs | ((to | from | other) & p->small.mask)) == 0 && apart && to && from && other;
}

/* Can the call be run at once, being one output and one input or two, in one dimension, without strides, apart from
 * each other, by one loop? Then *c is set. False: it may be right all the same. */
AT_INLINE bool at_small_quick(const at_call_binding *p, const attune_stream *stream,
                              const attune_elementwise_operands *o, at_small_quick_call *c) {
  const at_small *s = &p->small;
  if (AT_UNLIKELY(!s->straight || !at_host_inline(stream))) return false;
  if (AT_UNLIKELY(o->output_count != 1 || o->input_count != p->input_count || o->scalar_count != 0 || !o->outputs ||
                  !o->inputs))
    return false;
  const at_small_tensor *first = &s->tensors[1], *second = &s->tensors[p->input_count];
  const attune_tensor *out = o->outputs, *x = &o->inputs[first->caller], *y = &o->inputs[second->caller];
  *c = (at_small_quick_call){out->data, x->data, y->data};
  return at_small_suits(
      p, c, at_small_differs(out, &s->tensors[0]) | at_small_differs(x, first) | at_small_differs(y, second), second);
}

AT_INLINE void at_small_quick_run(const at_call_binding *p, const at_small_quick_call *c) {
  p->small.plan->straight(c->out, c->x, c->y, c->x, (size_t)p->layout.count);
}

static inline void at_small_run(const at_call_binding *prepared, const at_small_call *call) {
  const at_host_plan *plan = prepared->small.plan;
  plan->run_small(plan, call->tensors, call->scalars, prepared->layout.count);
}

#endif
