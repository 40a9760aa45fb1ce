/* SPDX-License-Identifier: Apache-2.0
 * watched.c: see watched.h. */
#include "tuning/watched.h"

#include <stdio.h>

#include "src/watch.h"

attune_status at_watched_launch(const at_plan *plan, const char *call, const void *operands, attune_stream *stream,
                                int as) {
  (void)call;
  (void)as;
  return plan->launch(plan, operands, stream);
}
