/* SPDX-License-Identifier: Apache-2.0
 * dispatch.h: which plan runs for a problem. A hit is one look-up without a lock; dispatch.c decides the rest. */
#ifndef AT_DISPATCH_H
#define AT_DISPATCH_H

#include "tuning/tuner.h"

/* The miss: stored winner, else tuning, else the best guess, by the tuner's mode; the plan is in the table afterwards. Errors: UNSUPPORTED (no implementation can do
 * it), OUT_OF_MEMORY, DEVICE_ERROR. */
attune_status at_dispatch_miss(attune_tuner *tuner, const at_op *op, const at_key *key, attune_stream *stream, const at_plan **out);

/* The plan for the key on the stream's device, borrowed for the tuner's life. */
static inline attune_status at_dispatch(attune_tuner *tuner, const at_op *op, const at_key *key, attune_stream *stream, const at_plan **out) {
  *out = at_plan_table_find(&tuner->plans, key);
  return AT_LIKELY(*out != NULL) ? ATTUNE_OK : at_dispatch_miss(tuner, op, key, stream, out);
}

/* tune.c: searches for the problem now and commits the winner, unless a complete one is known and not `force`. budget_ns 0: the tuner's. */
attune_status at_tune_problem(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device, double budget_ns, bool force,
                              attune_decision *out);

/* The stored winner of the layers, usable here: its implementation is known, its version is the same and its plan can be made.
 * *plan (may be NULL) gets that plan. NOT_FOUND: none; UNSUPPORTED: there is one that this build or machine cannot use, the
 * message says why; BUSY: another process kept a database, try again. */
attune_status at_find_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device, attune_decision *out,
                             at_plan **plan);

/* Problem text, device, measure and default's name into a decision. */
attune_status at_decision_begin(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device, attune_decision *out);

#endif
