/* SPDX-License-Identifier: Apache-2.0
 * watch.h: expressions while calls are watched (src/trace/instrument.h). */
#ifndef AT_ELEMENTWISE_WATCH_H
#define AT_ELEMENTWISE_WATCH_H

#include "ops/elementwise/call/call_binding.h"
#include "tuning/op/registry.h"

/* Runs the plan for a checked call, and says what was run and what it used. */
attune_status at_elementwise_run_watched(const at_plan *plan, at_call_binding *prepared,
                                         const attune_elementwise_operands *operands, attune_stream *stream);

#endif
