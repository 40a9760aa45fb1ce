/* SPDX-License-Identifier: Apache-2.0
 * sole_plan.h: a tuner that knows one plan, so that the calls of a public function can be timed on it: what the slots
 * at_op.caller_* need. Every call looks up and hits, as a program's do. */
#ifndef AT_SOLE_PLAN_H
#define AT_SOLE_PLAN_H

#include "tuning/registry.h"

typedef struct at_sole_plan {
  attune_tuner *tuner;
  const at_op *ops[1]; /* the tuner's */
} at_sole_plan;

/* The plan stays its owner's, who keeps it until at_sole_plan_close; that may follow a failure too. */
attune_status at_sole_plan_open(at_sole_plan *out, const at_plan *plan);
void at_sole_plan_close(at_sole_plan *sole);

/* Did every call so far come to the plan? One that did not has made an entry of its own. */
bool at_sole_plan_hit(const at_sole_plan *sole);

#endif
