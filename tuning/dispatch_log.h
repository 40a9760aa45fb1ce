/* SPDX-License-Identifier: Apache-2.0
 * dispatch_log.h: the line of the log that tells what runs for a problem, and why. */
#ifndef AT_DISPATCH_LOG_H
#define AT_DISPATCH_LOG_H

#include "tuning/winner.h"

/* Tells a problem's first dispatch. Reads the databases, so call it only if somebody listens, and with no lock held. */
void at_log_dispatch(attune_tuner *tuner, const at_op *op, const void *problem, int as, attune_device *device,
                     attune_mode mode, const attune_decision *decision);

#endif
