/* SPDX-License-Identifier: Apache-2.0
 * statistics.c: medians, deviations, paired ratios. */
#include "tuning/measure/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LEAST_OF_SOME =
    1.6;          /* standard deviations that the least of 12 normal values lies below their mean */
enum { FEW = 8 }; /* of fewer the median of the distances is often far too small by chance */

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

/* Mean absolute deviation from `center`, times 1.2533: for normal samples as at_deviation. Of few samples it is far off
 * less often, and one wild sample makes it large. */
static double mean_deviation(const double *values, int count, double center) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += fabs(values[i] - center);
  return count > 0 ? 1.2533 * sum / count : 0.0;
}

/* Student's t at three standard errors against the normal's, closely: a deviation of four values is often too small by
 * chance. */
static double widened(double error, int groups) {
  return groups > 2 ? error * (1.0 + 3.0 / (double)(groups - 2)) : 4.0 * error;
}

double at_paired_ratio(const double *a, const double *b, int count, double *error) {
  double ratios[AT_MAX_SAMPLES];
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int i = 0; i < count; i++) ratios[i] = b[i] > 0.0 ? a[i] / b[i] : 1.0;
  const double median = at_median(ratios, count);
  *error = widened(at_median_error(mean_deviation(ratios, count, median), count), count);
  return median;
}

/* One median for each placement into medians[], the placements into places[] (unless NULL), the noise within placements
 * into *within (a standard deviation; 0: none was measured twice) and the mean number of samples of each into *each;
 * the number of placements. */
static int medians_by_place(const double *values, const unsigned char *place, int count, double *medians, int *places,
                            double *within, double *each) {
  double one[AT_MAX_SAMPLES], distances[AT_MAX_SAMPLES];
  int groups = 0, repeats = 0;
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int p = 0; p < AT_MAX_SAMPLES; p++) {
    int n = 0;
    for (int i = 0; i < count; i++)
      if (place[i] == p) one[n++] = values[i];
    if (!n) continue;
    medians[groups] = at_median(one, n);
    if (places) places[groups] = p;
    /* from a pair's middle each is half its difference away: the factor makes up for that and for larger groups */
    for (int i = 0; i < n && n > 1; i++)
      distances[repeats++] = fabs(one[i] - medians[groups]) * sqrt((double)n / (double)(n - 1));
    groups++;
  }
  *within = repeats ? 1.4826 * at_median(distances, repeats) : 0.0;
  *each = groups ? (double)count / groups : 0.0;
  return groups;
}

double at_placed_ratio(const double *a, const double *b, const unsigned char *place, int count, double *error,
                       double *spread) {
  double ratios[AT_MAX_SAMPLES], medians[AT_MAX_SAMPLES], within = 0.0, each = 0.0;
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int i = 0; i < count; i++) ratios[i] = b[i] > 0.0 ? a[i] / b[i] : 1.0;
  const int groups = medians_by_place(ratios, place, count, medians, NULL, &within, &each);
  const double median = at_median(medians, groups), deviation = at_deviation(medians, groups, median);
  const double noise = each > 0.0 ? within * within / each : 0.0, square = deviation * deviation - noise;
  *spread = square > 0.0 ? sqrt(square) : 0.0;
  const double mean = groups < FEW ? mean_deviation(medians, groups, median) : 0.0;
  *error = widened(at_median_error(mean > deviation ? mean : deviation, groups), groups);
  return median;
}

double at_placed_least(const double *a, const double *b, const unsigned char *place, int count, int *where) {
  double ratios[AT_MAX_SAMPLES], medians[AT_MAX_SAMPLES], within = 0.0, each = 0.0;
  int places[AT_MAX_SAMPLES];
  if (count > AT_MAX_SAMPLES) count = AT_MAX_SAMPLES;
  for (int i = 0; i < count; i++) ratios[i] = b[i] > 0.0 ? a[i] / b[i] : 1.0;
  const int groups = medians_by_place(ratios, place, count, medians, places, &within, &each);
  int group = 0;
  for (int i = 1; i < groups; i++)
    if (medians[i] < medians[group]) group = i;
  const double least = groups ? medians[group] : 1.0;
  if (where) *where = groups ? places[group] : -1;
  /* where few were measured twice, how one of them differed from itself says nothing of the others */
  return groups > 1 && each >= 2.0 ? least + LEAST_OF_SOME * at_median_error(within, 1) / sqrt(each) : least;
}

double at_placed_spread(const double *values, const unsigned char *place, int count) {
  double medians[AT_MAX_SAMPLES], within = 0.0, each = 0.0;
  const int groups = medians_by_place(values, place, count, medians, NULL, &within, &each);
  const double median = at_median(medians, groups);
  return median > 0.0 ? at_deviation(medians, groups, median) / median : 0.0;
}
