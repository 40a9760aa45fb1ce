/* SPDX-License-Identifier: Apache-2.0
 * toy_call.c: the toy operation's public calls, as an operation's own file has them. */
#include "tests/support/toy/call_recent.h"
#include "tests/support/toy/toy_op.h"
#include "tuning/dispatch/plan_handle.h"

static attune_status fail_null(const void *tuner, const void *stream, const void *problem) {
  return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL",
                 !tuner     ? "tuner"
                 : !stream  ? "stream"
                 : !problem ? "problem"
                            : "operands");
}

static uintptr_t bits_of(const toy_operands *o) {
  return (uintptr_t)o->x | (uintptr_t)o->bias | (uintptr_t)o->codes | (uintptr_t)o->y | (uintptr_t)o->n;
}

/* Two problems may differ in every byte but the alignment, which is the operands'. */
_Static_assert(sizeof(toy) <= sizeof(at_signature_words), "a recent call holds a toy problem whole");

static at_call_signature signature_of(const toy *problem, int alignment) {
  at_call_signature asked = {.use = at_call_signature_use(toy_op.id, (uint64_t)alignment, false)};
  toy asks = *problem;
  asks.alignment = 0;
  memcpy(&asked.words, &asks, sizeof asks);
  return asked;
}

attune_status toy_call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  if (!tuner || !stream || !problem || !operands) return fail_null(tuner, stream, problem);
  const uint8_t alignment = at_alignment_on(stream->device, bits_of(operands));
  const at_call_signature asked = signature_of(problem, alignment);
  const at_plan *plan = at_call_recent(tuner, stream, problem, &asked);
  if (plan) return plan->launch(plan, operands, stream);
  at_key key;
  toy *g = at_key_problem(&key);
  *g = *toy_of(problem);
  g->alignment = alignment;
  const attune_status status = at_call_plan(tuner, stream, &toy_op, &key, 0, &asked, &plan);
  return status == ATTUNE_OK ? plan->launch(plan, operands, stream) : status;
}

attune_status toy_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                              const void *operands) {
  *out = NULL;
  if (!tuner || !stream || !problem || !operands) return fail_null(tuner, stream, problem);
  at_key key;
  toy *g = at_key_problem(&key);
  *g = *toy_of(problem);
  g->alignment = at_alignment_on(stream->device, bits_of(operands));
  return at_plan_handle_create(out, tuner, stream, &toy_op, &key, 0,
                               at_alignment_least(stream->device, g->alignment) - 1);
}

attune_status toy_plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  if (!at_plan_handle_fits(plan, &toy_op, stream, operands))
    return at_plan_handle_fail(plan, &toy_op, stream, operands);
  if (bits_of(operands) & (uintptr_t)plan->caller_flags)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "operands are less aligned than those that the plan was made with");
  at_plan_handle_count(plan, stream);
  return plan->launch(plan, operands, stream);
}
