/* SPDX-License-Identifier: Apache-2.0
 * plan_handle.h: plans that callers hold, for the public plan calls of any operation. Such a plan borrows the state of
 * the tuner's, counts its runs, and knows its operation, so that it never runs with the operands of another. */
#ifndef AT_PLAN_HANDLE_H
#define AT_PLAN_HANDLE_H

#include <attune/plan.h>

#include "tuning/plans/call_cache.h"
#include "tuning/tuner/tuner.h"

/* A plan of the caller's for the key, whose problem is in place, into *out. `flags` are the operation's: they come back
 * in (*out)->caller_flags, for its own checks at a run. `as`: see at_problem_type.show. Errors: those of
 * at_dispatch_miss. */
attune_status at_plan_handle_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const at_op *op,
                                    at_key *key, int as, int flags);

/* Gives the plan something of the operation's, which goes with it. */
static inline void at_plan_handle_own(attune_plan *plan, void *own, void (*release)(void *own)) {
  plan->own = own;
  plan->own_release = release;
}

/* Is it a plan of this operation, of the stream's device, with operands? The operation checks these itself. */
static inline bool at_plan_handle_fits(const attune_plan *plan, const at_op *op, const attune_stream *stream,
                                       const void *operands) {
  return plan && stream && operands && plan->op == op && plan->device == stream->device;
}

/* INVALID_ARGUMENT: what of it is not so. */
attune_status at_plan_handle_fail(const attune_plan *plan, const at_op *op, const attune_stream *stream,
                                  const void *operands);

/* Counts a run, if that takes a few instructions; false: it is not counted yet. */
AT_INLINE bool at_plan_handle_count_at_once(const attune_plan *plan, const attune_stream *stream) {
  return AT_LIKELY(!stream->capture) && at_call_cache_count_plan_at_once(plan);
}

/* Counts a run. */
static inline void at_plan_handle_count(const attune_plan *plan, const attune_stream *stream) {
  if (AT_UNLIKELY(plan->id == 0)) return;
  at_call_cache_count_plan(plan);
  at_call_cache_captured(stream, plan->tuner, plan->entry);
}

#endif
