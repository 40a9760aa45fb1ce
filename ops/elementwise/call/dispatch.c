/* SPDX-License-Identifier: Apache-2.0
 * dispatch.c: see dispatch.h. */
#include "ops/elementwise/call/dispatch.h"

#include <string.h>

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/call/call_cache.h"
#include "ops/elementwise/call/small_fast_path.h"
#include "src/process/limit.h"
#include "src/trace/instrument.h"
#include "tuning/dispatch/plan_handle.h"
#include "tuning/dispatch/public_call.h"

/* The plan for the problem of a call, by its key. */
static attune_status find_plan(attune_tuner *tuner, attune_stream *stream, const at_elementwise *problem,
                               const at_plan **out) {
  at_key key;
  memcpy(at_key_problem(&key), problem, problem->bytes);
  return at_call_plan(tuner, stream, &at_elementwise_op, &key, 0, NULL, out);
}

/* Makes a call of the program's ready; where its problem may be measured, its text is verified, too. */
static attune_status make_ready(at_call_binding **out, bool *empty, const attune_tuner *tuner,
                                const attune_stream *stream, const at_formula *formula,
                                const attune_elementwise_operands *operands) {
  const attune_mode mode = attune_tuner_get_mode(tuner);
  at_formula own = *formula;
  own.verified = mode == ATTUNE_MODE_TUNE || mode == ATTUNE_MODE_RECORD;
  return at_call_binding_create(out, empty, stream->device, &own, operands);
}

static const at_plan_entry *entry_of(attune_tuner *tuner, attune_stream *stream, const at_elementwise *problem) {
  at_key key;
  at_key_make(&key, &at_elementwise_op, problem, stream->device);
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, &key);
  return entry && at_plan_entry_plan(entry) ? entry : NULL;
}

attune_status at_run_launch(const at_plan *plan, at_call_binding *prepared, const attune_elementwise_operands *operands,
                            attune_stream *stream) {
  at_elementwise_operands bound;
  at_call_binding_bind(prepared, operands, &bound);
  return plan->launch(plan, &bound, stream);
}

/* `prepared` goes to a slot, or is released. The slot is looked for at the end: a choice may take long and be logged,
 * and the log's function may make calls of its own, which take slots too. */
static attune_status run_prepared(attune_tuner *tuner, attune_stream *stream, const at_formula *formula,
                                  const attune_elementwise_operands *operands, at_call_binding *prepared) {
  const at_plan *plan = NULL;
  at_call_slot *slot = NULL;
  at_small_call small;
  bool bound;
  attune_status status = find_plan(tuner, stream, prepared->problem, &plan);
  if (status == ATTUNE_OK) status = at_run_launch(plan, prepared, operands, stream);
  if (status == ATTUNE_OK &&
      !at_elementwise_call_cache_find(&slot, &small, &bound, tuner->id, stream, formula, operands) && slot)
    at_elementwise_call_cache_put(slot, prepared, entry_of(tuner, stream, prepared->problem), tuner->id, stream->device,
                                  formula, operands);
  else
    at_call_binding_destroy(prepared);
  return status;
}

/* A call like an earlier one: its addresses may still overlap, and its generator be missing. */
static attune_status run_again(attune_tuner *tuner, attune_stream *stream, const at_formula *formula,
                               const attune_elementwise_operands *operands, at_call_slot *slot,
                               const at_small_call *small) {
  at_call_binding *prepared = slot->prepared;
  attune_status status = ATTUNE_OK;
  const at_plan *plan = slot->entry ? at_plan_entry_plan(slot->entry) : NULL;
  if (AT_LIKELY(plan != NULL)) at_elementwise_call_cache_note_plan(slot, plan);
  if (plan && small && prepared->small.plan) {
    at_plan_entry_count(slot->entry, 1);
    at_call_cache_captured(stream, tuner->id, slot->entry);
    at_small_run(prepared, small);
    return ATTUNE_OK;
  }
  if (!at_call_binding_apart(prepared, operands)) status = at_call_binding_check(prepared, operands);
  if (status == ATTUNE_OK) status = at_call_binding_check_generator(prepared->expression, operands->generator);
  if (status != ATTUNE_OK) return status;
  if (AT_UNLIKELY(plan == NULL)) {
    slot->prepared = NULL;
    return run_prepared(tuner, stream, formula, operands, prepared);
  }
  at_plan_entry_count(slot->entry, 1);
  at_call_cache_captured(stream, tuner->id, slot->entry);
  return at_run_launch(plan, prepared, operands, stream);
}

/* While calls are watched, each takes the full path. */
static attune_status run_watched(attune_tuner *tuner, attune_stream *stream, const at_formula *formula,
                                 const attune_elementwise_operands *operands) {
  at_call_binding *prepared = NULL;
  bool empty;
  const at_plan *plan = NULL;
  attune_status status = make_ready(&prepared, &empty, tuner, stream, formula, operands);
  if (status != ATTUNE_OK || empty) return status;
  status = find_plan(tuner, stream, prepared->problem, &plan);
  if (status == ATTUNE_OK) status = at_elementwise_run_watched(plan, prepared, operands, stream);
  at_call_binding_destroy(prepared);
  return status;
}

attune_status at_run(attune_tuner *tuner, attune_stream *stream, const at_formula *formula,
                     const attune_elementwise_operands *operands) {
  at_call_slot *slot = NULL;
  at_small_call small;
  bool bound;
  if (AT_UNLIKELY(at_instrumented())) return run_watched(tuner, stream, formula, operands);
  const bool found = at_elementwise_call_cache_find(&slot, &small, &bound, tuner->id, stream, formula, operands);
  if (AT_LIKELY(found && bound)) return run_again(tuner, stream, formula, operands, slot, &small);
  const attune_status room = at_stack_check(AT_STACK_EXPRESSION, "an expression");
  if (AT_UNLIKELY(room != ATTUNE_OK)) return room; /* the interpreter's registers lie there */
  if (found) return run_again(tuner, stream, formula, operands, slot, NULL);
  at_call_binding *prepared = NULL;
  bool empty;
  const attune_status status = make_ready(&prepared, &empty, tuner, stream, formula, operands);
  return status != ATTUNE_OK || empty ? status : run_prepared(tuner, stream, formula, operands, prepared);
}

/* ---- plans of callers ---- */

static void destroy_prepared(void *prepared) {
  at_call_binding_destroy(prepared);
}

attune_status at_run_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                 const at_formula *formula, const attune_elementwise_operands *operands) {
  at_key key;
  bool empty = false;
  at_call_binding *prepared = NULL;
  attune_status status = make_ready(&prepared, &empty, tuner, stream, formula, operands);
  if (status == ATTUNE_OK && empty)
    status = AT_INVALID("a plan needs at least one element; for none, call attune_elementwise");
  if (status == ATTUNE_OK) {
    memcpy(at_key_problem(&key), prepared->problem, prepared->problem->bytes);
    status = at_plan_handle_create(out, tuner, stream, &at_elementwise_op, &key, 0, 0);
  }
  if (status != ATTUNE_OK) {
    at_call_binding_destroy(prepared);
    return status;
  }
  at_plan_handle_own(*out, prepared, destroy_prepared);
  at_small_attach(prepared, *out, at_alignment_least(stream->device, prepared->problem->alignment));
  return ATTUNE_OK;
}

attune_status at_run_format(char *out, size_t size, const at_formula *formula,
                            const attune_elementwise_operands *operands) {
  at_call_binding *prepared = NULL;
  at_formula own = *formula;
  own.verified = true; /* the problem may be tuned, without this text */
  AT_TRY(at_call_binding_describe(&prepared, &own, operands));
  uint64_t again[AT_PROBLEM_BYTES / 8];
  attune_status written = at_elementwise_format(prepared->problem, out, size);
  at_call_binding_destroy(prepared);
  if (written == ATTUNE_OK) written = at_elementwise_parse(out, again); /* outputs that fall together, and the like */
  if (written != ATTUNE_OK && size > 0) out[0] = '\0';
  return written;
}
