/* SPDX-License-Identifier: Apache-2.0
 * subject.c: launches of what is timed. */
#include "tuning/subject.h"

attune_status at_profile_launch(const at_profile *profile, const at_plan *plan, int copy) {
  return plan->launch(plan, at_operand_set_operands(profile->operands, copy % profile->operands->copies),
                      profile->profiler->stream);
}

attune_status at_profile_launch_calls(const at_profile *profile, const at_subject *subject, int from, int to) {
  attune_status status = ATTUNE_OK;
  for (int i = from; i < to && status == ATTUNE_OK; i++)
    status = at_profile_launch(profile, subject->plan, subject->first_copy + i);
  return status;
}
