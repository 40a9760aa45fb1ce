/* SPDX-License-Identifier: Apache-2.0
 * multiple_testing.h: what many cases say together: how much surer each must be, and what they have in common. */
#ifndef GATE_MANY_H
#define GATE_MANY_H

#include <stdbool.h>
#include <stddef.h>

/* corrected[i]: p[i] by Holm's method among all count. */
void gate_holm(const double *p, size_t count, double *corrected);

/* How far the cases of two runs of different times moved, in logarithms: the machine's share of it. */
typedef struct gate_drift {
  bool known; /* false: too few cases to tell */
  double shift, deviation;
} gate_drift;

gate_drift gate_drift_of(const double *shifts, size_t count);

/* A change beyond `margin` (logarithms), up or down as `direction` is 1 or -1? */
bool gate_counts(double shift, int direction, double margin);

/* What a report says of cases that moved with most others. */
extern const char gate_why_together[];
/* Why a change of a case may be the machine's, where the sides are of different times; NULL: it stands out.
 * Constant. */
const char *gate_drift_excuse(const gate_drift *drift, double shift, int direction, double margin);

#endif
