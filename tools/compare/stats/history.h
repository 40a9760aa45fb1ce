/* SPDX-License-Identifier: Apache-2.0
 * history.h: one case over many runs, and where its time changed. */
#ifndef GATE_HISTORY_H
#define GATE_HISTORY_H

#include "tools/compare/results/results.h"

typedef struct gate_point {
  int64_t run, started;
  char revision[48];
  char label[64];
  double ns;     /* median of the visits */
  double spread; /* relative deviation between them */
} gate_point;

typedef struct gate_change {
  size_t at;            /* the first point that is different */
  double before, after; /* ns: medians of the segments */
  double p;
} gate_change;

typedef struct gate_history {
  char *name, *device, *mode;
  gate_point *points; /* by time */
  size_t point_count;
  size_t bases;         /* runs that only the head of their pair stands for */
  gate_change *changes; /* by place */
  size_t change_count;
} gate_history;

/* The case `name` (whole, or a part that only one case has) in all runs of a file with equal fingerprint to the
 * latest. */
char *gate_history_load(gate_history *out, gate_file *file, const char *name, double alpha);
void gate_history_free(gate_history *history);

/* Change points of values[count] in time: E-divisive (Matteson and James 2014) with a permutation test at level alpha,
 * the permutations drawn from `seed`. Returns their number, places ascending in at[]; at holds count. */
size_t gate_change_points(const double *values, size_t count, double alpha, uint64_t seed, size_t *at, double *p);

#endif
