/* SPDX-License-Identifier: Apache-2.0
 * rank_test.h: tests and estimates by ranks: right whatever the noise is like, and not moved by a few wild values. */
#ifndef GATE_RANK_TEST_H
#define GATE_RANK_TEST_H

/* More values than these are not looked at; far more than a comparison has. */
#define GATE_MOST_VALUES 200

typedef struct gate_estimate {
  double shift;     /* how much larger the second is; 0 without values */
  double low, high; /* its confidence interval; NAN: too few values for that level */
} gate_estimate;

/* The chance, where there is no difference, of differences that lie as much to one side as these or more, to either
 * side. 1 without values. Exact for any noise that is as likely positive as negative, ties and zeros too. */
double gate_signed_rank(const double *differences, int count);

/* Two groups that were not paired: the chance that the ranks of their values differ so much, to either side. */
double gate_rank_sum(const double *first, int first_count, const double *second, int second_count);

/* The least that these two can be: what so many values can show at best. */
double gate_signed_rank_least(int count);
double gate_rank_sum_least(int first_count, int second_count);

/* The differences' middle; how much larger the second group is. */
gate_estimate gate_paired_shift(const double *differences, int count, double level);
gate_estimate gate_group_shift(const double *first, int first_count, const double *second, int second_count,
                               double level);

/* Their median, and the interval of two of the values (which it sorts) that the sign test gives: whatever the values'
 * distribution is, it holds the median of that with at least this chance; and it holds the median of the values. */
gate_estimate gate_median_estimate(double *values, int count, double level);

/* Sorts values[count]; the median of sorted or unsorted values (which it sorts), 0 without values. */
void gate_sort(double *values, int count);
double gate_median(double *values, int count);

#endif
