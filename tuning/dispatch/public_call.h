/* SPDX-License-Identifier: Apache-2.0
 * public_call.h: the way of a call, for the public function of any operation. A
 * call just like a recent one of its thread finds its plan at once: at_call_by_hint, else at_call_searched; one that is
 * captured in a graph is noted there too. Others are checked and normalised by their operation into a key, and go on
 * with at_call_plan. Either way the plan is launched once. */
#ifndef AT_PUBLIC_CALL_H
#define AT_PUBLIC_CALL_H

#include "tuning/op/registry.h"
#include "tuning/plans/call_cache.h"
#include "tuning/tuner/tuner.h"

/* The plan of a recent call, NULL: of none, and the call is counted. The entry's plan is read at each call, so that a
 * newer winner is used at once. */
AT_INLINE const at_plan *at_call_again(at_cached_call *cached) {
  const at_plan *plan = AT_LIKELY(cached != NULL) ? at_plan_entry_plan(cached->entry) : NULL;
  if (AT_LIKELY(plan != NULL)) at_call_cache_count(cached);
  return plan;
}

/* What was found last for a problem at the address `from`, NULL: the thread has nothing yet; and its plan if the
 * call is just like it, which is then counted, NULL: it is not. The two steps of at_call_by_hint. */
AT_INLINE at_cached_call *at_call_hinted(const void *from) {
  at_call_cache *mine = at_call_cache_at_once();
  return AT_LIKELY(mine != NULL) ? at_call_cache_hinted_at(mine, at_call_cache_hint(mine, from)) : NULL;
}

AT_INLINE const at_plan *at_call_of_hint(at_cached_call *cached, const attune_tuner *tuner, const attune_stream *stream,
                                         const at_call_signature *asked) {
  return AT_LIKELY(!stream->capture) &&
                 AT_LIKELY(at_call_cache_like(cached, cached->hash, tuner->id, stream->device, asked))
             ? at_call_again(cached)
             : NULL;
}

/* The plan of a call just like a recent one of this thread, and the call is counted; NULL: none. `from` is where the
 * caller's problem lies. The first looks only at what was asked from there last, and needs few registers; where it
 * finds nothing the second looks at the rest. */
AT_INLINE const at_plan *at_call_by_hint(const attune_tuner *tuner, const attune_stream *stream, const void *from,
                                         const at_call_signature *asked) {
  at_cached_call *cached = at_call_hinted(from);
  return AT_LIKELY(cached != NULL) ? at_call_of_hint(cached, tuner, stream, asked) : NULL;
}

AT_INLINE const at_plan *at_call_searched(const attune_tuner *tuner, const attune_stream *stream, const void *from,
                                          const at_call_signature *asked) {
  at_call_cache *mine = at_call_cache_mine();
  if (AT_UNLIKELY(!mine)) return NULL;
  at_cached_call *cached = NULL;
  if (mine != at_call_cache_at_once() || stream->capture)
    cached = at_call_cache_hinted(mine, tuner->id, stream->device, from, asked);
  if (!cached) cached = at_call_cache_search(mine, tuner->id, stream->device, from, asked);
  const at_plan *plan = at_call_again(cached);
  if (plan) at_call_cache_captured(stream, tuner->id, cached->entry);
  return plan;
}

/* The plan of a call that is like no recent one: from the tuner's table, and the call is remembered (`asked` NULL: it
 * is not), or decided now by the tuner's mode. The key's problem is in place; this completes the key. The call is
 * counted. `as` is how the caller wrote the problem: see at_problem_type.show. Errors: those of at_dispatch_miss. */
attune_status at_call_plan(attune_tuner *tuner, attune_stream *stream, const at_op *op, at_key *key, int as,
                           const at_call_signature *asked, const at_plan **out);

/* The entry that a key which missed has now: of its plan, or of what serves while nothing better is known. NULL: none,
 * for the table is full. */
const at_plan_entry *at_call_entry_after_miss(attune_tuner *tuner, const at_key *key);

/* While the calls are watched (src/trace/instrument.h). Launches the plan as the public function `call`; for profilers
 * the launch has a range that names the call, its problem and the implementation. `as`: see at_problem_type.show. */
attune_status at_instrumented_launch(const at_plan *plan, const char *call, const void *operands, attune_stream *stream,
                                     int as);

#endif
