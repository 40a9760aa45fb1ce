/* SPDX-License-Identifier: Apache-2.0
 * single_plan_tuner.h: a tuner that knows one plan, so that the calls of a public function can be timed on it. Every
 * call looks up and hits, as a program's do. */
#ifndef AT_SINGLE_PLAN_TUNER_H
#define AT_SINGLE_PLAN_TUNER_H

#include "tuning/measure/sampler_host.h"

typedef struct at_single_plan_tuner {
  attune_tuner *tuner;
  const at_op *ops[1]; /* the tuner's */
} at_single_plan_tuner;

/* The plan stays its owner's, which keeps it until at_single_plan_tuner_close; that may follow a failure too. */
attune_status at_single_plan_tuner_open(at_single_plan_tuner *out, const at_plan *plan);
void at_single_plan_tuner_close(at_single_plan_tuner *sole);

/* Did every call so far come to the plan? One that did not has made an entry of its own. */
bool at_single_plan_tuner_hit(const at_single_plan_tuner *sole);

/* An operation's prepared calls on such a tuner: at_op.timed_call. */
extern const at_timed_call at_timed_call_by_look_up;

#endif
