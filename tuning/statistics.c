/* SPDX-License-Identifier: Apache-2.0
 * statistics.c: medians, deviations, paired ratios. */
#include "tuning/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double at_median(const double *values, int count) {
  double sorted[AT_MAX_SAMPLES];
  if (count < 1) return 0.0;
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  memcpy(sorted, values, (size_t)count * sizeof *values);
  qsort(sorted, (size_t)count, sizeof *sorted, by_value);
  return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

double at_deviation(const double *values, int count, double center) {
  double distances[AT_MAX_SAMPLES];
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int i = 0; i < count; i++) distances[i] = fabs(values[i] - center);
  return 1.4826 * at_median(distances, count);
}

double at_median_error(double deviation, int count) {
  return count > 0 ? 1.2533 * deviation / sqrt((double)count) : 0.0;
}

double at_paired_ratio(const double *a, const double *b, int count, double *error) {
  double ratios[AT_MAX_SAMPLES];
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int i = 0; i < count; i++) ratios[i] = b[i] > 0.0 ? a[i] / b[i] : 1.0;
  const double median = at_median(ratios, count);
  *error = at_median_error(at_deviation(ratios, count, median), count);
  return median;
}
