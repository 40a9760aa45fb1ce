/* SPDX-License-Identifier: Apache-2.0
 * winner.h: stored winners, as far as this build and machine can use them. */
#ifndef AT_WINNER_H
#define AT_WINNER_H

#include "tuning/tuner/tuner.h"

/* The stored winner of the layers that holds here by the rules of fingerprint.h, and whose plan can be made. *plan (may
 * be NULL) gets that plan. NOT_FOUND: none; UNSUPPORTED: there is one that this build or machine cannot use, the
 * message says why; BUSY: another process kept a database, try again. */
attune_status at_find_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                             attune_decision *out, at_plan **plan);

/* The same for a call that should not wait: a winner whose kernels must be compiled first, where the default can run at
 * once, is NOT_FOUND, and *uncompiled is set. */
attune_status at_find_ready_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                   attune_decision *out, at_plan **plan, bool *uncompiled);

/* Must kernels of what a decision names be compiled first, while the default can run at once? */
bool at_compiles_first(const at_op *op, const void *problem, attune_device *device, const attune_decision *decision);

/* The same without a plan, and out->changed says what the winner was compared with that is another here. Opens whatever
 * an implementation of the op depends on. */
attune_status at_weigh_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              attune_decision *out);

/* The whole fingerprint of the row that at_find_winner finds, and the store that has it; where none holds, of the
 * latest row of a store that is of as many CPU threads as are here. NOT_FOUND: there is none. */
attune_status at_find_winner_row(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                 char *out, size_t size, at_store **store);

/* Is this the winner that the store gives for its problem on the device? */
bool at_winner_is_first(at_store *store, const at_op *op, const void *problem, attune_device *device,
                        const char *fingerprint, const attune_decision *winner);

/* Problem text, device, measure and default's name into a decision. */
attune_status at_decision_begin(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                attune_decision *out);

/* May as many CPU threads be used as the decision's configuration has? */
bool at_decision_has_threads(const attune_device *device, const attune_decision *decision);

/* A plan of what a decision names; NOT_FOUND when this build or machine does not have it any more. */
attune_status at_plan_of_decision(const at_op *op, const void *problem, attune_device *device,
                                  const attune_decision *decision, at_plan **plan);

/* How much a decision's evidence counts: what was open when the budget ended, what noise left open or what has
 * changed since, what is settled. */
typedef enum at_evidence_rank { AT_EVIDENCE_PART, AT_EVIDENCE_OPEN, AT_EVIDENCE_FULL } at_evidence_rank;
at_evidence_rank at_evidence(const attune_decision *decision);

/* A winner whose speedup is less than what was claimed by this part does not hold. */
#define AT_CLAIM_LESS 0.03

/* Is the new evidence weaker than the old: of a lower rank, or of the same with a clearly larger error? `refuted`: the
 * old winner was raced again for the new one, and does not gain what it claims. Then, at the same rank, the old one's
 * small error counts for nothing, unless it was disturbed less. */
bool at_evidence_weaker(const attune_decision *fresh, const attune_decision *old, bool refuted);

/* Notes in the user database that a stored winner is doubted, and why, so that the next run measures its problem again.
 * A winner that has replaced it stays as it is; one of the system database does too. False: it is not
 * noted. */
bool at_doubt_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                     const attune_decision *winner, const char *why);

#endif
