/* SPDX-License-Identifier: Apache-2.0
 * timing_target.c: launches of what is timed. */
#include "tuning/measure/timing_target.h"

attune_status at_sampler_launch(const at_sampler *profile, const at_plan *plan, int copy) {
  return plan->launch(plan, at_operand_set_operands(profile->operands, copy % profile->operands->copies),
                      profile->profiler->stream);
}

attune_status at_sampler_launch_calls(const at_sampler *profile, const at_timing_target *subject, int from, int to) {
  attune_status status = ATTUNE_OK;
  for (int i = from; i < to && status == ATTUNE_OK; i++)
    status = at_sampler_launch(profile, subject->plan, subject->first_copy + i);
  return status;
}
