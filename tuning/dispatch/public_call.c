/* SPDX-License-Identifier: Apache-2.0
 * public_call.c: a call by its key. */
#include "tuning/dispatch/public_call.h"

#include "tuning/dispatch/dispatch.h"

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
