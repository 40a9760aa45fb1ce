/* SPDX-License-Identifier: Apache-2.0
 * search_parts.h: private to search.c, which finds the winner, and search_report.c, which tells of it. */
#ifndef AT_SEARCH_PARTS_H
#define AT_SEARCH_PARTS_H

#include "tuning/search/confirm.h"
#include "tuning/search/candidate_build.h"
#include "tuning/search/search.h"
#include "tuning/measure/numerical_check.h"

/* How the time is spent: what a problem gets when none was asked for, a fixed part and as many calls of the default;
 * and until which fraction of it each stage may go on. */
typedef struct at_schedule {
  double auto_ns, auto_calls;
  double screen_until, widen_until, race_until;
  double claim_ns, claim_calls; /* after all that, on the host: what the winner gains alone */
} at_schedule;

typedef struct at_search_state {
  at_race race;
  at_sampler profile;
  at_numerical_check *verifier; /* made when there is a winner to verify */
  const at_op *op;
  const void *problem;
  attune_device *device;
  at_candidate_build making;       /* kernels of candidates, while others are measured */
  at_configuration *room; /* MOST_CONFIGURATIONS of them */
  const at_schedule *times;
  double budget_ns, most_ns;
  double reserve_ns; /* of most_ns, for what has to be verified still */
  double once_ns;    /* a call of the default */
  int64_t start_ns, deadline_ns;
  int64_t opened_ns, late_ns;    /* all is later by so much: libraries were loaded, kernels were waited for */
  int64_t stage_ns;              /* when the present stage began */
  double *stage_ms;              /* the result's */
  const attune_decision *known;  /* the winner so far; NULL: none */
  const at_candidate *known_one; /* its place in the race; NULL: none */
  at_confirmation claim;                /* what the winner gains alone */
  double claim_most_ns;          /* and how long that may take: each time, but of a budget that was set all together */
  double claimed_ns;             /* how long it took so far */
  int broken;                    /* those that failed or were wrong when what they had dropped came back last */
  bool settled;                  /* one was measured alone, and is no faster than the default */
} at_search_state;

/* What is stored of the winner, which gains what the claim says from then on. */
void at_search_describe(at_search_state *s, at_candidate *winner, attune_decision *d);

/* The raced ones first, then the failed and wrong ones; contenders change their places. */
void at_search_list_trials(at_search_state *s, const at_candidate *winner, at_search_result *out);

#endif
