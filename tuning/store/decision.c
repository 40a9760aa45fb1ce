/* SPDX-License-Identifier: Apache-2.0
 * decision.c: decisions as programs have them. */
#include "tuning/store/decision.h"

#include <stdlib.h>

#include "src/base/struct_size.h"

attune_status attune_decision_create(attune_decision **out, const attune_decision *from) {
  if (!out) return AT_INVALID("out is NULL; should point to an attune_decision *");
  *out = calloc(1, sizeof **out);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a decision");
  if (from) at_decision_keep(*out, from);
  return ATTUNE_OK;
}

void attune_decision_destroy(attune_decision *decision) {
  free(decision);
}

attune_status attune_decision_get_info(const attune_decision *d, attune_decision_info *out) {
  if (!d || !out) return AT_INVALID("%s is NULL; should be given", d ? "out" : "decision");
  const attune_decision_info info = {.device = d->device,
                                     .implementation = d->implementation,
                                     .implementation_version = d->implementation_version,
                                     .source = d->source,
                                     .configuration = d->configuration,
                                     .time_ns = d->time_ns,
                                     .spread = d->spread,
                                     .default_implementation = d->default_implementation,
                                     .default_time_ns = d->default_time_ns,
                                     .runner_up = d->runner_up,
                                     .runner_up_configuration = d->runner_up_configuration,
                                     .runner_up_time_ns = d->runner_up_time_ns,
                                     .measure = d->measure,
                                     .samples = d->samples,
                                     .candidates = d->candidates,
                                     .rejected = d->rejected,
                                     .disturbed = d->disturbed,
                                     .max_error = d->max_error,
                                     .tuning_ms = d->tuning_ms,
                                     .tuned_at = d->tuned_at,
                                     .complete = d->complete,
                                     .unsure = d->unsure,
                                     .note = d->note,
                                     .placement_spread = d->placement_spread,
                                     .changed = d->changed,
                                     .problem = d->problem};
  return AT_GIVE(out, &info);
}
