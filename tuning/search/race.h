/* SPDX-License-Identifier: Apache-2.0
 * race.h: candidates and the rounds in which they are measured against the default and each other. */
#ifndef AT_RACE_H
#define AT_RACE_H

#include "tuning/measure/sampler.h"
#include "tuning/measure/statistics.h"

typedef enum at_candidate_state {
  AT_WAITING,  /* not looked at */
  AT_SCREENED, /* quick samples were good enough; plan and graph are ready */
  AT_SLOWER,   /* dropped */
  AT_FAILED,   /* could not be prepared or run */
  AT_WRONG     /* did not verify */
} at_candidate_state;

typedef struct at_candidate {
  const at_implementation *implementation;
  at_configuration configuration;
  at_plan *plan; /* with SCREENED; NULL otherwise */
  at_timing_target target;
  at_candidate_state state;
  bool bare;                           /* candidate 0 as the vendor's own call: compared with, never chosen */
  bool kept;                           /* the stored winner: only a race drops it, never screening */
  bool widened;                        /* its neighbours were added */
  struct at_candidate *leader;         /* whose neighbour it is; NULL: none */
  bool favourite;                      /* of another problem: that it cannot do this one is no failure */
  bool ran;                            /* it was measured and is a yardstick: others may have been dropped for it */
  bool hopeless;                       /* so slow that neighbours with the same differences, and more, are left out */
  bool made;                           /* prepare_many had it, since it was prepared last */
  int beside;                          /* its place, from 1, in race.build; 0: nothing to compile */
  double quick;                        /* screening: time relative to the default in the same round; 0: none */
  bool lost;                           /* host: alone it is no faster than the default */
  bool hidden;                         /* host: all that was seen of it before the race was disturbed by others */
  double samples[AT_MAX_SAMPLES];      /* race: one a round, the same rounds as the default's */
  unsigned char place[AT_MAX_SAMPLES]; /* the placement of the operands in that round */
  float taken[AT_MAX_SAMPLES];         /* host: the part of the sample's time that others took */
  bool rough[AT_MAX_SAMPLES];          /* host: that is too much */
  int count;
  double cpus;                  /* that it keeps busy, the mean of its samples; 0: not sampled */
  double speedup, error;        /* default's time / own time, paired by round, and its standard error over placements */
  double shift;                 /* how far the speedup moves between placements, a standard deviation */
  double least;                 /* the speedup at the placement where it is least */
  int least_place, least_times; /* that placement; the samples that were taken there */
  double merit; /* speedup less what more CPU time costs a program that does other things between its calls */
} at_candidate;

/* The field of a search: candidate 0 is the default and stays in every round. Where it is the vendor's own call, which
 * no call through attune can be, the incumbent is the default through attune. */
typedef struct at_race {
  at_sampler *sampler;
  at_candidate *incumbent; /* chosen unless another is better, never dropped; NULL: candidate 0 */
  at_candidate **candidates;
  struct at_candidate_build *build; /* candidates that it compiles come when it is done; NULL: there are none */
  int count;
  size_t room;
  bool steady;         /* times are steady enough that `shift` is of placements, not of noise: not on the host */
  bool longer;         /* noise left the choice open: more rounds */
  int rounds, batches; /* counted rounds of the race; batches screened: what placements follow */
  double best_quick;   /* of the screened */
  double best_once_ns; /* of a single launch */
  double sample_ns;    /* what a sample took of late, with all that disturbed it; 0: not known */
} at_race;

/* Adds a candidate unless it is there already; NULL when memory is short or it was there. */
at_candidate *at_race_add(at_race *race, const at_implementation *implementation,
                          const at_configuration *configuration);
void at_race_free(at_race *race);

/* Makes candidate 0 ready and sets how many calls make a sample; its time for one call into *once_ns. */
attune_status at_race_start(at_race *race, double *once_ns);

/* Prepares, tries and quickly measures the waiting candidates in their order until `until_ns`; keeps the best `keep`.
 */
attune_status at_race_screen(at_race *race, int64_t until_ns, int keep);

/* Rounds among the screened ones, each at another placement of the operands, until the order of the best is clear,
 * `until_ns`, or the rounds are used up; at least a few among the very best, so that there is a result. Called again it
 * goes on. */
attune_status at_race_run(at_race *race, int64_t until_ns);

/* Releases a candidate's plan and graph and gives it the state. */
void at_race_drop(at_race *race, at_candidate *candidate, at_candidate_state state);

/* Sets the candidate's speedup, error and merit from its samples and the default's. */
void at_race_judge(const at_candidate *base, at_candidate *candidate);

/* Does the candidate beat the default beyond the noise, and at nine of ten placements? */
bool at_race_beats_default(const at_race *race, const at_candidate *candidate);

/* Did others use the CPUs during so many samples that the race, or this candidate's place in it, says little? Rough
 * samples do not count where there are enough others. */
bool at_race_shaken(const at_race *race, const at_candidate *candidate);

/* The candidate's median time, of the samples that count; and its deviation relative to that. */
double at_race_time(const at_candidate *candidate, double *spread);

/* Is the choice open, because others used the CPUs, or because a candidate may be faster than the winner by more
 * than is worth losing, but noise hides whether it is? *could (may be NULL) is the one that could win most; NULL
 * with true: the race is shaken, the default's own times are that noisy, or there are too few rounds. */
bool at_race_open(at_race *race, at_candidate **could);

/* The candidate that is chosen unless another beats it. */
at_candidate *at_race_incumbent(const at_race *race);

/* Adds the default, candidate 0: bare where its implementation can be called so, and then as the incumbent too. */
void at_race_add_default(at_race *race, const at_implementation *base, const at_configuration *configuration);

/* The screened candidate that wins: the fastest, or of those that are as fast within the noise the first in order, so
 * that two searches agree; the incumbent when none beats it. */
at_candidate *at_race_winner(at_race *race);

/* paired_samples.c: which samples of a race count. */

#define AT_PAIRED_SAMPLES_LEAST 4 /* rounds before anything is decided */

/* Two candidates' samples of the same rounds. */
typedef struct at_paired_samples {
  double a[AT_MAX_SAMPLES], b[AT_MAX_SAMPLES];
  unsigned char place[AT_MAX_SAMPLES];
  int count;
} at_paired_samples;

/* The pairs of b's rounds that others left alone; where these are fewer than AT_PAIRED_SAMPLES_LEAST, those that they
 * took least from. */
void at_paired_samples_make(at_paired_samples *out, const at_candidate *a, const at_candidate *b);

#endif
