/* SPDX-License-Identifier: Apache-2.0
 * dispatch.h: which plan runs for a problem. A hit is one look-up without a lock; dispatch.c decides the rest. */
#ifndef AT_DISPATCH_H
#define AT_DISPATCH_H

#include "tuning/tuner/winner.h"

/* The miss: stored winner, else tuning, else the best guess, by the tuner's mode; the plan is in the table afterwards,
 * and *out is launched once, copied into a plan of the caller's, or handed to at_plan_lru_release. `as`: how the caller
 * wrote the problem, see at_problem_type.show.
 * Errors: UNSUPPORTED (no implementation can do it), OUT_OF_MEMORY, DEVICE_ERROR. */
attune_status at_dispatch_miss(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                               const at_plan **out);

/* The plan for the key on the stream's device, borrowed for the tuner's life. The caller has a use of it, see
 * at_plan_table_put. */
static inline attune_status at_dispatch_as(attune_tuner *tuner, const at_op *op, const at_key *key, int as,
                                           attune_stream *stream, const at_plan **out) {
  *out = at_plan_table_find(&tuner->plans, key);
  return AT_LIKELY(*out != NULL) ? ATTUNE_OK : at_dispatch_miss(tuner, op, key, as, stream, out);
}

/* The same for a plan that the caller keeps: a winner's kernels that are not compiled yet are waited for. */
attune_status at_dispatch_kept(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                               const at_plan **out);

/* dispatch_log.c: tells a problem's first dispatch. Reads the databases, so call it only if somebody listens, and with
 * no lock held. */
void at_log_dispatch(attune_tuner *tuner, const at_op *op, const void *problem, int as, attune_device *device,
                     attune_mode mode, const attune_decision *decision);

/* "a stored winner does not hold here: driver 12080 there, 13000 here; cublaslt's cublaslt 130000 there, 130100 here",
 * or "", of the decision's problem and measure: the nearest one that does not. */
void at_why_no_winner(attune_tuner *tuner, const at_op *op, attune_device *device, const attune_decision *d, char *out,
                      size_t size);

#endif
