/* SPDX-License-Identifier: Apache-2.0
 * search_parts.h: private to search.c, which finds the winner, search_collect.c, which says among what, and
 * search_report.c, which tells of it. */
#ifndef AT_SEARCH_PARTS_H
#define AT_SEARCH_PARTS_H

#include "tuning/measure/numerical_check.h"
#include "tuning/search/candidate_build.h"
#include "tuning/search/confirm.h"
#include "tuning/search/race.h"
#include "tuning/search/search.h"

/* How the time is spent: what a problem gets when none was asked for, a fixed part and as many calls of the default;
 * and until which fraction of it each stage may go on. */
typedef struct at_schedule {
  double auto_ns, auto_calls;
  double screen_until, widen_until, race_until;
  double claim_ns, claim_calls; /* after all that, on the host: what the winner gains alone */
} at_schedule;

typedef struct at_search_state {
  at_race race;
  at_sampler sampler;
  at_numerical_check *check; /* made when there is a winner to verify */
  const at_op *op;
  const void *problem;
  attune_device *device;
  at_candidate_build build; /* kernels of candidates, while others are measured */
  at_configuration *room;   /* AT_SEARCH_CONFIGURATIONS of them */
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
  at_confirmation claim;         /* what the winner gains alone */
  double claim_most_ns;          /* and how long that may take: each time, but of a budget that was set all together */
  double claimed_ns;             /* how long it took so far */
  int broken;                    /* those that failed or were wrong when what they had dropped came back last */
  bool settled;                  /* one was measured alone, and is no faster than the default */
} at_search_state;

enum {
  AT_SEARCH_CONFIGURATIONS = 256, /* asked of one implementation at a time */
  AT_SEARCH_FIELD = 16,           /* kept after screening */
  AT_SEARCH_WAVES = 16            /* of neighbours, each around the best of the one before; and of races */
};

/* When that part of the time is over, by at_now_ns. */
int64_t at_search_until(const at_search_state *s, double fraction);

/* search_collect.c. Adds every implementation's configurations, in turns: all best guesses come first, then all second
 * ones, so that a short budget sees the best of each. */
attune_status at_search_collect(at_search_state *s);

/* Adds neighbours of the fastest, and screens them, wave after wave. */
attune_status at_search_widen(at_search_state *s);

/* Writes the winner's decision; its gain is the claimed one from then on. */
void at_search_describe(at_search_state *s, at_candidate *winner, attune_decision *d);

/* The raced ones first, then the failed and wrong ones; candidates change their places. */
void at_search_list_trials(at_search_state *s, const at_candidate *winner, at_search_result *out);

/* good_configs.c: configurations that were the best for other problems of the same device, of implementations that
 * cannot list all they have. Problems are alike: what was good for one is tried early for the next, and its code is
 * loaded. */

/* Notes the race's winner, and those as good within a percent, of implementations with neighbours. */
void at_good_configs_note(at_timer *timer, const at_race *race, const at_candidate *winner);

/* Adds those of implementations that can do the problem to the race. What one of them cannot do there is no failure. */
void at_good_configs_add(const at_timer *timer, at_race *race, const void *problem);

#endif
