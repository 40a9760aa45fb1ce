/* SPDX-License-Identifier: Apache-2.0
 * plan_handle.c: makes plans for callers, and says what is wrong when one is run with what it is not for. */
#include "tuning/dispatch/plan_handle.h"

#include <stdio.h>
#include <stdlib.h>

#include "tuning/dispatch/dispatch.h"
#include "tuning/dispatch/public_call.h"
#include "tuning/plans/plan_lru.h"

/* `plan` is first: at_plan_destroy frees the whole. */
typedef struct caller_plan {
  at_plan plan;
  attune_decision decision; /* when it was made; a kept one (decision.h) */
} caller_plan;

static bool names(const attune_decision *decision, const at_plan *plan) {
  return strcmp(decision->implementation, plan->implementation->name) == 0 &&
         decision->implementation_version == plan->implementation->version &&
         strcmp(decision->configuration, plan->configuration.text) == 0;
}

/* Why this plan. Another thread may have put a newer winner in its place: then little is known. */
static attune_status find_decision(attune_tuner *tuner, const at_key *key, const at_plan *plan, attune_decision *out) {
  if (at_plan_table_decision(&tuner->plans, key, out) && names(out, plan)) return ATTUNE_OK;
  if (at_plan_table_decision(&tuner->captured, key, out) && names(out, plan)) return ATTUNE_OK;
  const attune_status status = at_decision_begin(tuner, plan->op, plan->problem, plan->device, out);
  out->source = ATTUNE_SOURCE_DEFAULT;
  at_copy_text(out->implementation, sizeof out->implementation, plan->implementation->name);
  out->implementation_version = plan->implementation->version;
  at_copy_text(out->configuration, sizeof out->configuration, plan->configuration.text);
  snprintf(out->note, sizeof out->note, "a newer decision replaced it while the plan was being created");
  return status;
}

attune_status at_plan_handle_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const at_op *op,
                                    at_key *key, int as, int flags) {
  static _Atomic uint64_t plans;
  const at_plan *plan = NULL;
  *out = NULL;
  at_key_set(key, op, stream->device);
  attune_status status = at_dispatch_kept(tuner, op, key, as, stream, &plan);
  if (status != ATTUNE_OK) return status;
  caller_plan *made = malloc(sizeof *made), *less = NULL;
  status =
      made ? find_decision(tuner, key, plan, &made->decision) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  if (status == ATTUNE_OK) less = realloc(made, offsetof(caller_plan, decision) + at_decision_bytes(&made->decision));
  if (less) made = less;
  if (status != ATTUNE_OK) {
    at_plan_lru_release(plan);
    free(made);
    return status;
  }
  const at_plan_entry *entry = at_call_entry_after_miss(tuner, key);
  made->plan = *plan;
  made->plan.borrowed = true;
  made->plan.origin =
      !plan->counted && stream->device->properties.kind == ATTUNE_DEVICE_HOST ? plan : &made->plan; /* or plan_lru.c */
  made->plan.id = entry ? at_call_cache_plan_id(atomic_fetch_add_explicit(&plans, 1, memory_order_relaxed) + 1) : 0;
  made->plan.caller_hint = at_call_cache_plan_hint(&made->plan);
  made->plan.tuner = tuner->id;
  made->plan.entry = entry;
  made->plan.caller_flags = flags;
  made->plan.plain = NULL;
  *out = &made->plan;
  return ATTUNE_OK;
}

attune_status at_plan_handle_fail(const attune_plan *plan, const at_op *op, const attune_stream *stream,
                                  const void *operands) {
  AT_REQUIRE(plan, stream, operands);
  if (plan->op != op)
    return AT_INVALID("plan is of %s, the operands of %s; use the run function of %s", plan->op->name, op->name,
                      plan->op->name);
  return AT_INVALID("stream is of %s, the plan of %s; should be of the same device", stream->device->name,
                    plan->device->name);
}

attune_status attune_plan_explain(const attune_plan *plan, attune_decision *out) {
  AT_REQUIRE(plan, out);
  at_decision_give(out, &((const caller_plan *)(const void *)plan)->decision);
  return ATTUNE_OK;
}

void attune_plan_destroy(attune_plan *plan) {
  at_plan_destroy(plan);
}
