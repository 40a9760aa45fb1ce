/* SPDX-License-Identifier: Apache-2.0
 * per_process_values.h: the values of the two sides of a case, one for each visit, as the tests take them. */
#ifndef GATE_VISITS_H
#define GATE_VISITS_H

#include "tools/compare/ranks/rank_test.h"
#include "tools/compare/results/results.h"

/* Logarithms, so that a difference is a ratio. Paired: base[i] and head[i] are of one round. */
typedef struct gate_values {
  double base[GATE_MOST_VALUES], head[GATE_MOST_VALUES];
  int base_count, head_count;
  bool paired;
} gate_values;

typedef struct gate_side {
  double ns[GATE_MOST_VALUES]; /* of a call; one a visit, throttled ones not */
  double clock[GATE_MOST_VALUES];
  int round[GATE_MOST_VALUES];
  int count;
  int throttled; /* visits left out */
} gate_side;

/* What a visit took for a call; 0: it has no times. */
double gate_visit_value(const gate_visit *visit);

void gate_side_make(gate_side *out, const gate_case *c);

/* `cycles`: true where every value's clock is known, then in cycles of it. False: out is empty. */
bool gate_values_make(gate_values *out, const gate_side *base, const gate_side *head, bool paired, bool cycles);

/* By rank_test.h; head against base. */
double gate_values_p(const gate_values *values);
double gate_values_least_p(const gate_values *values);
gate_estimate gate_values_shift(const gate_values *values, double level);

#endif
