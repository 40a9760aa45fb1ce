/* SPDX-License-Identifier: Apache-2.0
 * watched.c: see watched.h. */
#include "tuning/watched.h"

#include <stdio.h>

#include "src/watch.h"

attune_status at_watched_launch(const at_plan *plan, const char *call, const void *operands, attune_stream *stream,
                                int as) {
  char problem[AT_PROBLEM_CHARS] = "";
  bool named = false;
  if (at_watched() & AT_WATCH_NAMES) {
    const attune_status shown = plan->op->show ? plan->op->show(plan->problem, as, problem, sizeof problem)
                                               : plan->op->format(plan->problem, problem, sizeof problem);
    if (shown != ATTUNE_OK) *problem = 0;
    named = at_watch_name("%s: %.500s, %s", call, problem, plan->implementation->name);
  }
  const attune_status status = plan->launch(plan, operands, stream);
  return at_watch_end(named, stream, status);
}
