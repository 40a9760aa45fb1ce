/* SPDX-License-Identifier: Apache-2.0
 * dispatch_log.h: the line of the log that tells what runs for a problem, and why. */
#ifndef AT_DISPATCH_LOG_H
#define AT_DISPATCH_LOG_H

#include "tuning/tuner/winner.h"

/* Logs a problem's first dispatch. Reads the databases, so call it only if the log wants it, and with no lock held. */
void at_log_dispatch(attune_tuner *tuner, const at_op *op, const void *problem, int as, attune_device *device,
                     attune_mode mode, const attune_decision *decision);

/* "a stored winner does not hold here: driver 12080 there, 13000 here; cublaslt's cublaslt 130000 there, 130100 here",
 * or "", of the decision's problem and measure: the nearest one that does not. */
void at_why_no_winner(attune_tuner *tuner, const at_op *op, attune_device *device, const attune_decision *d, char *out,
                      size_t size);

#endif
