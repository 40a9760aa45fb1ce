/* SPDX-License-Identifier: Apache-2.0
 * call_recent.h: both steps of a call that is like a recent one, for operations of the tests. */
#ifndef AT_TESTS_CALL_RECENT_H
#define AT_TESTS_CALL_RECENT_H

#include "tuning/dispatch/public_call.h"

static inline const at_plan *at_call_recent(const attune_tuner *tuner, const attune_stream *stream, const void *from,
                                            const at_call_signature *asked) {
  const at_plan *plan = at_call_by_hint(tuner, stream, from, asked);
  return AT_LIKELY(plan != NULL) ? plan : at_call_searched(tuner, stream, from, asked);
}

#endif
