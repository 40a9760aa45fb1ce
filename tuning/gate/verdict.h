/* SPDX-License-Identifier: Apache-2.0
 * verdict.h: did a case become slower? From the samples of two runs; no file, no clock.
 *
 * Processes differ by more than the samples within one do (where memory lies, which core), so a process, not a sample, is
 * what is counted: each visit gives one value. Where the runs alternated, the pairs of a round are compared; else the two
 * groups of visits. See verdict.c for the test, its error rate and its sources. */
#ifndef GATE_VERDICT_H
#define GATE_VERDICT_H

#include "tuning/gate/results.h"

typedef enum gate_verdict {
  GATE_SAME,   /* the change is surely smaller than what counts */
  GATE_FASTER, /* surely, and by enough to count */
  GATE_SLOWER,
  GATE_UNSURE, /* more samples may tell */
  GATE_FAILED, /* one side has no times */
  GATE_MISSING /* one side does not have the case */
} gate_verdict;

typedef struct gate_rule {
  double floor; /* a change that counts, as a fraction: 0.01 */
  double
      alpha; /* chance of any wrong "slower" or "faster" among all cases of a comparison where nothing changed: 0.002 */
} gate_rule;
extern const gate_rule gate_rule_default;

typedef struct gate_judgement {
  gate_verdict verdict;
  double ratio;       /* head's time / base's: above 1 is slower; NAN: a side has no times */
  double low, high;   /* its confidence interval of 95 %, for this case alone; NAN: too few visits for one */
  double p;           /* of no change; before it was corrected */
  double p_corrected; /* by Holm's method among the cases of the comparison */
  double base_ns, head_ns, base_spread,
      head_spread;               /* medians of the visits; spread: relative deviation between them */
  double base_clock, head_clock; /* MHz; 0: not known */
  int base_visits, head_visits;
  bool paired;
  const char *why; /* of an unsure, failed or missing one: a short sentence, constant */
} gate_judgement;

/* Judges count cases; base[i] or head[i] is NULL where that side lacks the case. All of a comparison at once, for the
 * correction. `looks`: how often this comparison is judged in all while samples are added, 1 or more, and `look` which one
 * this is, from 0: they share alpha. `alternated`: the runs are a pair. */
void gate_judge(gate_judgement *out, const gate_case *const *base, const gate_case *const *head, size_t count,
                bool alternated, const gate_rule *rule, int look, int looks);

const char *gate_verdict_name(gate_verdict verdict); /* "same" ... */

#endif
