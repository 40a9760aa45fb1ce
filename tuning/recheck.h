/* SPDX-License-Identifier: Apache-2.0
 * recheck.h: times a stored winner beside its default again. */
#ifndef AT_RECHECK_H
#define AT_RECHECK_H

#include "tuning/profile.h"

/* Runs the winner `stored` and the default side by side for `budget_ns` (0: as long as is sensible), each round at
 * another placement of the operands, and tries the winner on fresh data. Fills *out except out->stored. Errors:
 * NOT_FOUND (this build or machine does not have the winner), OUT_OF_MEMORY, DEVICE_ERROR. */
attune_status at_recheck(attune_recheck *out, at_profiler *profiler, const at_op *op, const void *problem,
                         attune_measure measure, const attune_decision *stored, double budget_ns);

#endif
