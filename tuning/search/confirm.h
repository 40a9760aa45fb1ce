/* SPDX-License-Identifier: Apache-2.0
 * confirm.h: how much faster the winner of a race on the host is than the default in a program of its own: the speedup
 * that is stored, which must be what a measurement from outside finds. Elsewhere a race is steady, and its figures are
 * these: measured alone they were no nearer to the outside on an H200, where large products then ran cooler than
 * there. */
#ifndef AT_CONFIRM_H
#define AT_CONFIRM_H

#include "tuning/search/race.h"

typedef struct at_confirmation {
  int rounds;          /* 0: there was no time for it; then the race's figures stand */
  double ratio, error; /* the default's time / the winner's, paired by round, and its standard error */
  double time_ns;      /* the winner's, in the median */
  /* What the ratio of the incumbent is, which is chosen when nothing is faster: 1 but where that is the vendor's call
   * made through attune, and slower so; and the error of both. */
  double least, least_error;
  bool failed; /* it cannot be run any more, and is dropped: there is no claim */
} at_confirmation;

/* The candidate and candidate 0 in turns, each alone (sampler_host.h), for `most_ns`; for twice that while there are
 * too few rounds, and once more as long for the incumbent where the candidate is slower than candidate 0 and that is
 * another. Nothing begins after `until_ns`; what is under way is finished. No rounds where the race is steady, where
 * there is no time, and where the settings want too few. The default and a candidate that stays in its race whatever
 * happens must run: else the status says why. */
attune_status at_confirm_measure(at_confirmation *out, at_race *race, at_candidate *candidate, double most_ns,
                                 int64_t until_ns);

/* It is slower than the incumbent. */
bool at_confirm_doubtful(const at_confirmation *claim);

/* It is so, and noise cannot hide a gain that is worth having: it is no winner. */
bool at_confirm_lost(const at_confirmation *claim);

/* It is not faster by what is worth having, and noise cannot hide that: one that could have won its race would be no
 * winner. */
bool at_confirm_no_gain(const at_confirmation *claim);

/* It is faster by what is worth having, beyond the noise: one that could have won its race would be the winner. */
bool at_confirm_gains(const at_confirmation *claim);

/* From now on the claim is what the winner is said to gain. */
void at_confirm_take(const at_confirmation *claim, at_candidate *winner);

#endif
