/* SPDX-License-Identifier: Apache-2.0
 * multiple_testing.c: corrections and comparisons among the cases of two runs. */
#include "tools/compare/stats/multiple_testing.h"

#include <math.h>
#include <stdlib.h>

#include "tools/compare/message.h"
#include "tools/compare/ranks/rank_test.h"

enum { CASES_FOR_DRIFT = 5 };             /* fewer do not tell what the machine did */
static const double DRIFT_UNKNOWN = 0.03; /* what the machine may have done by itself where they are fewer */
static const double STANDS_OUT = 5.0;     /* deviations of the other cases' moves */

const char gate_why_together[] = "most cases changed together";
static const char why_drift[] = "the machine may have changed as much";

typedef struct ranked {
  double p;
  size_t at;
} ranked;

static int by_p(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  return (a->p > b->p) - (a->p < b->p);
}

/* The smallest p counts as often as there are cases, the next once less, and none less than the one before. */
void gate_holm(const double *p, size_t count, double *corrected) {
  ranked *order = gate_alloc(count + 1, sizeof *order);
  double largest = 0.0;
  for (size_t i = 0; i < count; i++) order[i] = (ranked){p[i], i};
  qsort(order, count, sizeof *order, by_p);
  for (size_t i = 0; i < count; i++) {
    largest = fmax(largest, order[i].p * (double)(count - i));
    corrected[order[i].at] = fmin(largest, 1.0);
  }
  free(order);
}

gate_drift gate_drift_of(const double *shifts, size_t count) {
  gate_drift out = {0};
  if (count < CASES_FOR_DRIFT) return out;
  double *values = gate_alloc(count, sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = shifts[i];
  out.known = true;
  out.shift = gate_median(values, (int)count);
  for (size_t i = 0; i < count; i++) values[i] = fabs(shifts[i] - out.shift);
  out.deviation = 1.4826 * gate_median(values, (int)count);
  free(values);
  return out;
}

bool gate_counts(double shift, int direction, double margin) {
  return direction > 0 ? shift > margin : shift < -margin;
}

const char *gate_drift_excuse(const gate_drift *drift, double shift, int direction, double margin) {
  if (!drift->known) return gate_counts(shift, direction, margin + log1p(DRIFT_UNKNOWN)) ? NULL : why_drift;
  const double out = fmax(margin, STANDS_OUT * drift->deviation);
  return gate_counts(shift - drift->shift, direction, out) ? NULL : gate_why_together;
}
