/* SPDX-License-Identifier: Apache-2.0
 * verify.h: does a plan compute what was asked, and touch nothing else? */
#ifndef AT_VERIFY_H
#define AT_VERIFY_H

#include "tuning/profile.h"

typedef struct at_verifier at_verifier;

/* Makes guarded operands and the trusted result; used for every plan of one problem. `random` is fresh for each
 * verifier. */
attune_status at_verifier_create(at_verifier **out, const at_op *op, const void *problem, attune_stream *stream,
                                 at_random *random);
void at_verifier_destroy(at_verifier *verifier);

/* Runs the plan on poisoned outputs between guard zones: with the usual scalars, with others, and with special values
 * in operands and scalars. OK: every output within
 * the contract's tolerance, guards and inputs unchanged, the same bits where the contract is deterministic, and
 * no special value lost that the default keeps; *max_error is the largest error as a fraction of what is allowed.
 * BAD_DATA: the plan is wrong, the message says how. Another status: it could not be run. */
attune_status at_verifier_check(at_verifier *verifier, const at_plan *plan, double *max_error);

/* The rules on special values that the default itself was found to break, one bit each: the plans that were checked
 * were not held to them. */
uint32_t at_verifier_default_lost(const at_verifier *verifier);

/* The rules that a plan breaks, whatever the default does; status as at_verifier_check without the special values. */
attune_status at_verifier_lost(at_verifier *verifier, const at_plan *plan, uint32_t *lost);

/* Rules in words, "loses NaN of A, flushes denormals", into out[size], as many as fit; "" for none. */
void at_verifier_rules(const at_verifier *verifier, uint32_t rules, char *out, size_t size);

#endif
