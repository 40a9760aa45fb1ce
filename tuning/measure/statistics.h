/* SPDX-License-Identifier: Apache-2.0
 * statistics.h: robust statistics of timing samples. */
#ifndef AT_STATISTICS_H
#define AT_STATISTICS_H

#include <stdbool.h>

#define AT_MAX_SAMPLES 64

/* The median of values[count], count >= 1 (the mean of the middle two when even); values stay as they are. count <=
 * AT_MAX_SAMPLES. */
double at_median(const double *values, int count);

/* Median absolute deviation from `center`, times 1.4826: the standard deviation of normal samples. */
double at_deviation(const double *values, int count, double center);

/* Standard error of the median of `count` samples with that deviation: 1.2533 deviation / sqrt(count). */
double at_median_error(double deviation, int count);

/* How many times faster b is than a, from samples taken side by side (a[i] and b[i] in the same round): the median of
 * a[i] / b[i] and its standard error, from their mean deviation and widened where they are few: three errors hold the
 * truth in 99 of 100 cases from five rounds on, also if it is checked after each. The pairing cancels what both share:
 * clocks, temperature, a neighbour's load. */
double at_paired_ratio(const double *a, const double *b, int count, double *error);

/* The same where the samples were taken at several placements, place[i] (0 to AT_MAX_SAMPLES - 1) each: every placement
 * has one vote, the median of its ratios, and the error is that of the median of these, so that it holds for placements
 * that were not measured; it is widened where they are few. *spread is how far the ratio moves between placements (a
 * standard deviation), less what placements measured more than once show to be noise. */
double at_placed_ratio(const double *a, const double *b, const unsigned char *place, int count, double *error,
                       double *spread);

/* The least of the placements' medians of a / b, corrected for what noise alone makes of a least one where each was
 * measured twice in the mean. A spread does not show a placement that is rare and slow; this does. *where, unless NULL,
 * is that placement; -1: there is none. */
double at_placed_least(const double *a, const double *b, const unsigned char *place, int count, int *where);

/* The deviation of the placements' medians, relative to the median of all. */
double at_placed_spread(const double *values, const unsigned char *place, int count);

#endif
