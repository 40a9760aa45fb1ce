/* SPDX-License-Identifier: Apache-2.0
 * public_call.c: a call by its key. */
#include "tuning/dispatch/public_call.h"

#include "src/trace/instrument.h"
#include "tuning/dispatch/dispatch.h"

#include <stdio.h>

const at_plan_entry *at_call_entry_after_miss(attune_tuner *tuner, const at_key *key) {
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, key);
  return entry && at_plan_entry_plan(entry) ? entry : at_plan_table_entry(&tuner->captured, key);
}

attune_status at_call_plan(attune_tuner *tuner, attune_stream *stream, const at_op *op, at_key *key, int as,
                           const at_call_signature *asked, const at_plan **out) {
  at_key_set(key, op, stream->device);
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, key);
  *out = entry ? at_plan_entry_plan(entry) : NULL;
  if (AT_LIKELY(*out != NULL)) {
    if (asked)
      at_call_cache_put(tuner->id, stream->device, entry, asked);
    else
      at_plan_entry_count(entry, 1);
    at_call_cache_captured(stream, tuner->id, entry);
    return ATTUNE_OK;
  }
  const attune_status status = at_dispatch_miss(tuner, op, key, as, stream, out);
  if (status == ATTUNE_OK && (entry = at_call_entry_after_miss(tuner, key)) != NULL) {
    at_plan_entry_count(entry, 1);
    at_call_cache_captured(stream, tuner->id, entry);
  }
  return status;
}

attune_status at_instrumented_launch(const at_plan *plan, const char *call, const void *operands, attune_stream *stream,
                                     int as) {
  char problem[AT_PROBLEM_CHARS] = "";
  bool named = false;
  if (at_instrumented() & AT_INSTRUMENT_NAMES) {
    const attune_status shown = plan->op->problem->show
                                    ? plan->op->problem->show(plan->problem, as, problem, sizeof problem)
                                    : plan->op->problem->format(plan->problem, problem, sizeof problem);
    if (shown != ATTUNE_OK) *problem = 0;
    named = at_instrument_name("%s: %.500s, %s", call, problem, plan->implementation->name);
  }
  const attune_status status = plan->launch(plan, operands, stream);
  return at_instrument_end(named, stream, status);
}
