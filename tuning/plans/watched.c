/* SPDX-License-Identifier: Apache-2.0
 * watched.c: see watched.h. */
#include "tuning/plans/watched.h"

#include <stdio.h>

#include "src/trace/instrument.h"

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
