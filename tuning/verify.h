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

/* Runs the plan on NaN-poisoned output between guard zones, then with special values in operands and scalars. OK: within
 * the contract's tolerance, guards and inputs unchanged, the same bits twice where the contract is deterministic, and
 * no special value lost that the default keeps; *max_error is the largest error as a fraction of what is allowed.
 * BAD_DATA: the plan is wrong, the message says how. Another status: it could not be run. */
attune_status at_verifier_check(at_verifier *verifier, const at_plan *plan, double *max_error);

/* The rules on special values that the default itself was found to break, as words ("flushes denormals"), into
 * out[size]; "" for none. The plans that were checked were not held to them. */
void at_verifier_default_faults(const at_verifier *verifier, char *out, size_t size);

#endif
