/* SPDX-License-Identifier: Apache-2.0
 * candidates.h: what the parts of a race share about its candidates. candidates.c has them, screen.c drops those
 * that quick samples rule out, race.c runs the rounds, ranking.c decides which wins and whether that is open. */
#ifndef AT_CANDIDATES_H
#define AT_CANDIDATES_H

#include "tuning/search/race.h"

#define AT_RACE_SAME 0.003 /* candidates this close are equals */

/* The default, in both its forms, stays whatever it measures. */
bool at_race_stays(const at_race *race, const at_candidate *candidate);

/* `ns` of a call with the price of the CPUs that it keeps busy. */
double at_race_team_cost(const at_candidate *candidate, double ns);

/* Running mean of the CPUs that a sample kept busy. */
void at_race_note_cpus(at_candidate *candidate);

/* A round of those of the field that are in the race still, in another order by `turn`, into ns[], in the field's
 * order. Whose launch fails is dropped, unless it stays or the device no longer answers, and the others run the round
 * again. */
attune_status at_race_sample(at_race *race, at_candidate *const *field, int count, int turn, double *ns, bool *good);

/* Those of the field that are in the race still, in their order; how many there are. */
int at_race_left(at_candidate **field, int count);

/* ranking.c: a placement at which one that is ahead of the default everywhere else was behind it, and was not
 * measured often enough for that to count: more samples there tell a slow placement from a sample that was disturbed.
 * -1: there is none. */
int at_race_doubtful_place(const at_race *race);

/* screen.c: what a sample takes, about: as many calls of the default, or what samples took of late. */
double at_race_sample_ns(const at_race *race);

/* screen.c: drops what is clearly behind, and all but the best `keep`. The default is never dropped. */
void at_race_prune(at_race *race, int keep);

#endif
