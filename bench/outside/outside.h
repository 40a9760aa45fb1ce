/* SPDX-License-Identifier: Apache-2.0
 * outside.h: what the parts of bench_outside share: a place for operands, and a side (cuda, host) that times attune and
 * the vendor's own call there. */
#ifndef BENCH_OUTSIDE_H
#define BENCH_OUTSIDE_H

#include <attune/attune.h>

#include <stdbool.h>
#include <stddef.h>

#include "bench/common/problem.h"
#include "bench/common/tool.h"

#define OUTSIDE_MAX_PLACES 8 /* alignments, and spacings */

enum { OUTSIDE_ATTUNE, OUTSIDE_VENDOR, OUTSIDE_WAYS };

typedef struct outside_side {
  const char *vendor, *method;
  double floor_ratio, claim_tolerance;
  char libraries[256];
  /* Readies the place; false: this side has no call for the problem. */
  bool (*open)(struct outside_side *side, const bench_problem *problem, bench_place place);
  double (*sample)(struct outside_side *side, int way); /* nanoseconds a call */
  /* The text of the problem as attune sees it at this place, and what it chose. */
  void (*explain)(struct outside_side *side, bench_choice *out);
  void (*close)(struct outside_side *side);
  void (*end)(struct outside_side *side);
  void *state;
} outside_side;

typedef struct outside_options {
  const char *workload, *database, *device, *markdown, *csv, *only, *blas, *program;
  size_t alignments[OUTSIDE_MAX_PLACES], spacings[OUTSIDE_MAX_PLACES];
  int alignment_count, spacing_count, rounds;
  bool tune, twice, host;
  double time_limit_s, slice_ms, pause_ms;
} outside_options;

/* Result of a row when it is repeated. */
typedef struct outside_seen {
  size_t entry, alignment;
  double ratio, claim; /* claim 0: not tuned */
} outside_seen;

/* Result of one problem at one alignment. */
typedef struct outside_row {
  double ratio[OUTSIDE_MAX_PLACES]; /* vendor / attune by spacing; 0: not measured */
  double attune_ns, vendor_ns;      /* at the first spacing */
  double claim;                     /* of tuning; 0: not tuned */
  bool again;                       /* some were taken again */
  bench_choice decision;
} outside_row;

/* outside_row.c: the side of these options, opened. */
void outside_open(outside_side *side, const outside_options *options);

/* False: the side has no call for the problem. */
bool outside_measure(outside_side *side, const outside_options *options, const bench_problem *problem, size_t alignment,
                     outside_row *row);

/* The middle ratio over `count` spacings; the same, measured: 0 where the side has no call. */
double outside_middle(const outside_row *row, int count);
double outside_ratio(outside_side *side, const outside_options *options, const bench_problem *problem,
                     size_t alignment);

/* outside_twice.c: measures the rows once more, with processes, memory and handles of its own, and tells how far the
 * outside is from itself beside how far the claims are from it. Ends the side. */
void outside_twice(outside_side *side, outside_options *options, const attune_workload *workload,
                   const outside_seen *rows, int count);

/* outside_host.c, outside_cuda.c */
void outside_host_open(outside_side *side, const outside_options *options);
#ifdef BENCH_WITH_CUDA
void outside_cuda_open(outside_side *side, const outside_options *options);
#endif

/* outside_host.c: the life of a process that times one way when told to; `blas` NULL: attune. */
int outside_worker(const char *blas, const char *database, bool tune);

#endif
