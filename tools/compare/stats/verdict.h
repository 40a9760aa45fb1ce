/* SPDX-License-Identifier: Apache-2.0
 * verdict.h: did a case become slower? From the samples of two runs; no file, no clock.
 *
 * Processes differ by more than the samples within one do (where memory lies, which core), so a process, not a sample,
 * is what is counted: each visit gives one value. Where the runs alternated, the pairs of a round are compared; else
 * the two groups of visits. See verdict.c for the test, its error rate and its sources. */
#ifndef GATE_VERDICT_H
#define GATE_VERDICT_H

#include "tools/compare/results/results.h"

typedef enum gate_verdict {
  GATE_SAME,   /* the change is surely smaller than what counts */
  GATE_FASTER, /* surely, and by enough to count */
  GATE_SLOWER,
  GATE_UNSURE,   /* more samples may tell */
  GATE_FAILED,   /* one side has no times */
  GATE_REPAIRED, /* it failed in the base, and the head has times */
  GATE_MISSING   /* one side does not have the case */
} gate_verdict;

/* For the cases whose name holds the first `length` bytes of `text`, a floor of their own. */
typedef struct gate_floor {
  const char *text; /* not owned */
  size_t length;
  double floor;
} gate_floor;

enum { GATE_FLOORS_MOST = 32 };

typedef struct gate_rule {
  double floor; /* a change that counts, as a fraction: 0.01 */
  double
      alpha; /* chance of any wrong "slower" or "faster" among all cases of a comparison where nothing changed: 0.002 */
  gate_floor floors[GATE_FLOORS_MOST]; /* in place of `floor`; of those that hold for a case the last one */
  int floor_count;
} gate_rule;
extern const gate_rule gate_rule_default;

typedef struct gate_judgement {
  gate_verdict verdict;
  double ratio;     /* head's time / base's: above 1 is slower; NAN: a side has no times */
  double low, high; /* its confidence interval of 95 %, for this case alone; NAN: too few visits for one */
  double p;         /* of no change; before it was corrected */
  double
      /* by Holm's method among the cases of the comparison, and for the share of alpha of this look: certain if at most
       * alpha */
      p_corrected;
  double base_ns, head_ns, base_spread,
      head_spread;               /* medians of the visits; spread: relative deviation between them */
  double base_clock, head_clock; /* MHz; 0: not known */
  int base_visits, head_visits;
  bool paired;
  double floor;    /* that held for this case */
  const char *why; /* of an unsure, failed or missing one: a short sentence, constant */
} gate_judgement;

/* Judges count cases; base[i] or head[i] is NULL where that side lacks the case. All of a comparison at once, for the
 * correction. `looks`: how often this comparison is judged at most while samples are added. One look has all of alpha;
 * of more each has the share of gate_look_share, by the rounds that a case has. So it does not matter who judges, while
 * samples are added or later from a file. `alternated`: the runs are a pair. */
void gate_judge(gate_judgement *out, const gate_case *const *base, const gate_case *const *head, size_t count,
                bool alternated, const gate_rule *rule, int looks);

/* What a look at a case with so many rounds takes of alpha: a half up to 32 rounds, a quarter up to 64, then an
 * eighth. */
double gate_look_share(int rounds);

/* After a look at so many rounds: when the next one may be, which is at twice as many; 0: alpha is spent, or there are
 * as many as are looked at. *spent: the shares of the looks before, 0 at first; it grows. However early measuring stops
 * after that, one more look at what there is keeps the sum of all shares at 1 at most. */
int gate_next_look(int rounds, double *spent);

/* The rounds of a pair below which no change can be certain: all ranks of n rounds on one side have a chance of 2 /
 * 2^n. */
int gate_judge_least_rounds(const gate_rule *rule, size_t count, int looks);

double gate_floor_of(const gate_rule *rule, const char *name);

const char *gate_verdict_name(gate_verdict verdict); /* "same" ... */

#endif
