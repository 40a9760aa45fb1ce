/* SPDX-License-Identifier: Apache-2.0
 * numerical_check.h: does a plan compute what was asked, and touch nothing else? */
#ifndef AT_NUMERICAL_CHECK_H
#define AT_NUMERICAL_CHECK_H

#include "tuning/measure/sampler.h"

typedef struct at_numerical_check at_numerical_check;

/* Makes guarded operands and the trusted result; used for every plan of one problem. `random` is fresh for each
 * check. */
attune_status at_numerical_check_create(at_numerical_check **out, const at_op *op, const void *problem,
                                        attune_stream *stream, at_random *random);
void at_numerical_check_destroy(at_numerical_check *check);

/* Runs the plan on poisoned outputs between guard zones: with the usual scalars, with others, and with special values
 * in operands and scalars. OK: every output within
 * the contract's tolerance, guards and inputs unchanged, the same bits where the contract is deterministic, and
 * no special value lost that the default keeps; *max_error is the largest error as a fraction of what is allowed.
 * BAD_DATA: the plan is wrong, the message says how. Another status: it could not be run. */
attune_status at_numerical_check_run(at_numerical_check *check, const at_plan *plan, double *max_error);

/* The rules on special values that the default itself was found to break, one bit each: the plans that were checked
 * were not held to them. */
uint32_t at_numerical_check_default_lost(const at_numerical_check *check);

/* For tests: the rules that a plan breaks, whatever the default does; status as at_numerical_check_run without the
 * special values. */
attune_status at_numerical_check_lost(at_numerical_check *check, const at_plan *plan, uint32_t *lost);

/* Rules in words, "loses NaN of A, flushes denormals", into out[size], as many as fit; "" for none. */
void at_numerical_check_rules(const at_numerical_check *check, uint32_t rules, char *out, size_t size);

#endif
