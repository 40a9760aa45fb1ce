/* SPDX-License-Identifier: Apache-2.0
 * plan.h: plans: the choice for one problem on one device, made once and kept by the program, for calls without a
 * look-up. Each operation has calls of its own that make a plan and run it, attune_OPERATION_plan_create and
 * attune_OPERATION_plan_run; a plan knows its operation, and the call of another refuses it. What is the same for all is
 * here. */
#ifndef ATTUNE_PLAN_H
#define ATTUNE_PLAN_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the plan's operation, as problems begin with it. Borrowed, for the life of the process; NULL for NULL. Any
 * thread; allowed in capture. */
ATTUNE_API const char *attune_plan_operation(const attune_plan *plan);

/* Which candidate the plan runs, and why, into *out: as it was when the plan was made, whatever was tuned since.
 * Errors: INVALID_ARGUMENT (null). Any thread; allowed in capture. */
ATTUNE_API attune_status attune_plan_explain(const attune_plan *plan, attune_decision *out);

/* Releases a plan; work it launched must be done, and its tuner still be there. NULL is left alone. Any thread. */
ATTUNE_API void attune_plan_destroy(attune_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
