/* SPDX-License-Identifier: Apache-2.0
 * call_layout.c: where the operands of a call that is made ready lie, and the problem that this makes of it. */
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/call/call_binding.h"

static void find_extents(at_call_binding *p, const at_view *views) {
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
static uintptr_t bits_at(const at_call_binding *p, const at_view *views, int head) {
  uintptr_t bits = 0;
  for (int k = 0; k < p->tensors; k++)
    if (p->step[k] && views[k].data)
      bits |= (uintptr_t)views[k].data + (uintptr_t)p->low[k] + (uintptr_t)head * p->step[k];
  return bits;
}

/* On a GPU one-dimensional work may begin with a few single elements, so that the rest is aligned. */
static uint8_t find_alignment(at_call_binding *p, const attune_device *device, const at_view *views) {
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

attune_status at_call_binding_lay_out(at_call_binding *p, const at_view *views, const attune_device *device,
                                      const attune_elementwise_operands *o) {
  const at_expression *e = p->expression;
  const at_view *outputs = views, *inputs = views + e->output_count;
  at_elementwise_use use = {.accuracy = o->accuracy == ATTUNE_REDUCED && !e->raw ? ATTUNE_REDUCED : ATTUNE_STRICT};
  _Alignas(8) char room[AT_PROBLEM_BYTES];
  at_elementwise *problem = (at_elementwise *)(void *)room;
  p->tensors = e->output_count + e->input_count;
  find_extents(p, views);
  for (int i = 0; i < e->output_count; i++) use.outputs[i] = (uint8_t)outputs[i].dtype;
  find_in_place(&use, e, outputs, inputs);
  use.alignment = find_alignment(p, device, views);
  AT_TRY(at_elementwise_make(problem, e, &p->layout, &use));
  p->problem = malloc(problem->bytes);
  if (!p->problem) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a problem of %d bytes", problem->bytes);
  memcpy(p->problem, problem, problem->bytes);
  return ATTUNE_OK;
}
