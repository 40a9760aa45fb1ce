/* SPDX-License-Identifier: Apache-2.0
 * revalidate.h: times a stored winner and its default again, in turns. */
#ifndef AT_REVALIDATE_H
#define AT_REVALIDATE_H

#include "tuning/measure/sampler.h"
#include "tuning/store/decision.h"

/* Runs the winner `stored` and the default side by side for `budget_ns` (0: as long as is sensible), each round at
 * another placement of the operands, and tries the winner on fresh data. Fills *out. Errors:
 * NOT_FOUND (this build or machine does not have the winner), OUT_OF_MEMORY, DEVICE_ERROR. */
attune_status at_revalidate(attune_recheck *out, at_timer *profiler, const at_op *op, const void *problem,
                         attune_measure measure, const attune_decision *stored, double budget_ns);

#endif
