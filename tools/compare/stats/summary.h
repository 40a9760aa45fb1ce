/* SPDX-License-Identifier: Apache-2.0
 * summary.h: a case in one or two numbers. */
#ifndef GATE_SUMMARY_H
#define GATE_SUMMARY_H

#include "tools/compare/results/results.h"

/* The time of a call, the median over visits of the median over samples, into *ns, and the visits' relative deviation
 * (1.4826 times the median one) into *spread; both 0 without a visit. Either may be NULL. */
void gate_case_summary(const gate_case *c, double *ns, double *spread);

/* How many times as long as the other case this one takes: the median over the rounds that both have of the ratio
 * within the round; 0 where there is none. */
double gate_case_ratio(const gate_case *c, const gate_case *other);

#endif
