/* SPDX-License-Identifier: Apache-2.0
 * summary.c: the median of the visits' values, as verdicts take them: a visit that other work disturbed moves it
 * little. */
#include "tools/compare/stats/summary.h"

#include "tools/compare/message.h"
#include "tools/compare/stats/per_process_values.h"

#include <math.h>
#include <stdlib.h>

#define TO_DEVIATION 1.4826 /* of a normal distribution, by the median absolute deviation */

void gate_case_summary(const gate_case *c, double *ns, double *spread) {
  double *values = gate_alloc((size_t)c->visit_count, sizeof *values), middle = 0, deviation = 0;
  int count = 0;
  for (int i = 0; i < c->visit_count; i++)
    if (c->visits[i].sample_count > 0) values[count++] = gate_visit_value(&c->visits[i]);
  if (count) middle = gate_median(values, count);
  for (int i = 0; i < count; i++) values[i] = fabs(values[i] - middle);
  if (count) deviation = TO_DEVIATION * gate_median(values, count) / middle;
  free(values);
  if (ns) *ns = middle;
  if (spread) *spread = deviation;
}

/* Visits come in the order of their rounds. */
double gate_case_ratio(const gate_case *c, const gate_case *other) {
  double *ratios = gate_alloc((size_t)c->visit_count + 1, sizeof *ratios);
  int count = 0;
  for (int i = 0, j = 0; i < c->visit_count && j < other->visit_count;) {
    const gate_visit *mine = &c->visits[i], *theirs = &other->visits[j];
    const double one = gate_visit_value(mine), base = gate_visit_value(theirs);
    if (mine->round == theirs->round && one > 0 && base > 0) ratios[count++] = one / base;
    i += mine->round <= theirs->round;
    j += theirs->round <= mine->round;
  }
  const double ratio = count ? gate_median(ratios, count) : 0;
  free(ratios);
  return ratio;
}
