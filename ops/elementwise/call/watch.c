/* SPDX-License-Identifier: Apache-2.0
 * watch.c: expressions while the calls are watched; see dispatch.h. */
#include "ops/elementwise/call/dispatch.h"

#include "src/trace/instrument.h"
#include "tuning/dispatch/public_call.h"

_Static_assert(AT_INSTRUMENT_DIMS >= ATTUNE_DIMS &&
                   AT_INSTRUMENT_USES >= ATTUNE_ELEMENTWISE_INPUTS + ATTUNE_ELEMENTWISE_OUTPUTS,
               "every operand of a call can be told");

static at_operand_access touch_of(const attune_tensor *t, const char *unnamed, bool writes) {
  const int64_t size = (int64_t)attune_dtype_size(t->dtype);
  at_operand_access touch = {.operand = t->name ? t->name : unnamed,
                             .data = t->data,
                             .element = (size_t)size,
                             .dims = t->dims,
                             .reads = !writes,
                             .writes = writes};
  int64_t packed = size;
  for (int d = t->dims - 1; d >= 0; d--) {
    touch.counts[d] = t->sizes[d];
    touch.steps[d] = t->strides ? t->strides[d] * size : packed;
    packed *= t->sizes[d];
  }
  return touch;
}

static void note(attune_stream *stream, const attune_elementwise_operands *o) {
  at_operand_access uses[AT_INSTRUMENT_USES];
  int count = 0;
  for (int i = 0; i < o->output_count; i++) uses[count++] = touch_of(&o->outputs[i], "the output", true);
  for (int i = 0; i < o->input_count; i++) uses[count++] = touch_of(&o->inputs[i], "", false);
  at_instrument_use(stream, "attune_elementwise", uses, count);
}

attune_status at_elementwise_run_watched(const at_plan *plan, at_call_binding *prepared,
                                         const attune_elementwise_operands *operands, attune_stream *stream) {
  at_elementwise_operands bound;
  at_call_binding_bind(prepared, operands, &bound);
  const attune_status status = at_instrumented_launch(plan, "attune_elementwise", &bound, stream, 0);
  if (status == ATTUNE_OK && at_instrumented_races()) note(stream, operands);
  return status;
}
