/* SPDX-License-Identifier: Apache-2.0
 * plan.h: plans. A plan is the choice for one problem on one device, made once and kept by the program, for calls
 * without a look-up. Each operation has its own functions that create and run one, attune_OPERATION_plan_create and
 * attune_OPERATION_plan_run, and rejects the plans of others. This header has the functions common to all
 * operations. */
#ifndef ATTUNE_PLAN_H
#define ATTUNE_PLAN_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills `out` with the plan's candidate and the reason, as of the plan's creation: later tuning does not change it.
 * Errors: INVALID_ARGUMENT (null). Any thread; allowed in capture. */
ATTUNE_API attune_status attune_plan_explain(const attune_plan *plan, attune_decision *out);

/* Releases a plan, whose tuner must still exist. Work that it launched, and graphs that captured it, may run later, as
 * long as the tuner lives. NULL does nothing. Any thread. */
ATTUNE_API void attune_plan_destroy(attune_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
