/* SPDX-License-Identifier: Apache-2.0
 * search.h: finds the fastest candidate for a problem that is right, within a time. */
#ifndef AT_SEARCH_H
#define AT_SEARCH_H

#include "tuning/measure/sampler.h"
#include "tuning/store/store.h"

#define AT_MAX_TRIALS 32

/* What the time of a search goes into: operands and the default, quick samples, widening, the race, verification, and
 * what the winner gains alone. */
typedef enum at_stage {
  AT_STAGE_OPEN,
  AT_STAGE_SCREEN,
  AT_STAGE_WIDEN,
  AT_STAGE_RACE,
  AT_STAGE_VERIFY,
  AT_STAGE_CLAIM,
  AT_STAGES
} at_stage;

typedef struct at_search_result {
  attune_decision decision;       /* all but problem, device, source and tuned_at */
  at_trial trials[AT_MAX_TRIALS]; /* the best measured */
  int trial_count;
  char warning[256]; /* for the log: a candidate that was wrong; "" when all is well */
  double stage_ms[AT_STAGES];
  double raced; /* the winner's speedup in its race, where it was measured alone then; else 0 */
  bool refuted; /* the winner known so far, raced again, gains clearly less than it claims */
  bool broken;  /* it fails, or its numbers are wrong now: it is no evidence any more */
} at_search_result;

/* Races every candidate of every implementation for `problem` for `budget_ns` (0: 190 ms, on the host 420 ms, and 400
 * calls of the default; what comes on top, attune_tuner_options.budget_ms tells), and for `most_ns` at most (0: no
 * limit). A step that is under way when the budget ends is finished; most_ns is a hard limit: a step that would end
 * after it is made shorter or not begun, and what proves to be longer than expected ends within 0.5 s or a launch. What
 * is open then is `unsure` in the decision. The vendor default is candidate 0 and always measured; another wins only
 * beyond the noise. `known`, the winner so far (NULL: none), is in the race from its start: what it loses, it loses
 * side by side. Errors: UNSUPPORTED (no implementation), OUT_OF_MEMORY, DEVICE_ERROR, BUDGET_EXHAUSTED (most_ns is too
 * short to measure and verify the default). */
attune_status at_search(at_search_result *out, at_timer *timer, const at_op *op, const void *problem,
                        attune_measure measure, double budget_ns, double most_ns, const attune_decision *known);

#endif
