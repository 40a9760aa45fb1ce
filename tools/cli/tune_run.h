/* SPDX-License-Identifier: Apache-2.0
 * tune_run.h: a run of `attune tune`, as the file that makes it and the file that tells of it see it. */
#ifndef CLI_TUNE_RUN_H
#define CLI_TUNE_RUN_H

#include "tools/cli/cli.h"

typedef struct tune_options {
  cli_options common;
  const char *workload;
  double budget_s;          /* for all problems; 0: no limit */
  double problem_budget_ms; /* for one; 0: the tuner's own */
  bool force;
} tune_options;

typedef enum tune_outcome {
  OUTCOME_LEFT,
  OUTCOME_TUNED,
  OUTCOME_STORED,
  OUTCOME_SAME,
  OUTCOME_FAILED,
  OUTCOME_BUSY, /* another process measures it: looked at again after the others */
  OUTCOME_KINDS
} tune_outcome;

typedef struct tune_item {
  const attune_workload_entry *entry;
  char *shown; /* its name, cut on a terminal so that it differs from the others; the item's */
  tune_outcome outcome;
  bool begun;          /* it was this run's to measure */
  bool told;           /* its line is printed */
  double estimate_ns;  /* a call of the default, about; with a budget only */
  bool too_large;      /* no budget is enough: the message says why; with a budget only */
  double too_short_ms; /* the longest share that did not do */
  attune_decision *held;
  attune_decision_info decision; /* what it says: of TUNED and STORED */
  char message[256];             /* of FAILED and BUSY */
} tune_item;

typedef struct tune_run {
  const tune_options *options;
  attune_tuner *tuner;
  attune_device *device;
  tune_item *items;
  size_t count;
  size_t to_measure; /* neither stored before nor the same as an earlier one */
  size_t measured;   /* of those, begun */
  size_t busy;       /* of those, with others now */
  size_t told;       /* so many, from the first, are told, or were begun and tell themselves */
  int name_width;
  double start_s;
  int64_t start_time;   /* seconds since 1970 */
  attune_warmed warmed; /* the winners' kernels, at the end */
  cli_progress *progress;
} tune_run;

typedef struct tune_tally {
  size_t by_outcome[OUTCOME_KINDS];
  size_t incomplete, unsure;
  double geomean;  /* 0: no winner's speedup is known */
  double weighted; /* all calls' time with the default / with the winner; 0: as above */
  double seconds;
} tune_tally;

/* One item, above the progress bar; of a failed one its message too. Those left are counted in the summary alone. */
void tune_report_item(const tune_run *run, tune_item *it);

/* tune_budget.c: what is left of --budget, and the first look: the items in their order, and what one may take; -1: it
 * is left. NULL: any. */
double tune_budget_left_ms(const tune_run *run);
/* The least that a look at one of those left takes, about; 0: none is left. */
double tune_budget_needed_ms(const tune_run *run);
void tune_budget_order(tune_run *run, tune_item **items, size_t count);
double tune_budget_look_ms(const tune_run *run, const tune_item *it);

/* Measured, but for less time than it needs, or noise left it open. */
bool tune_is_open(const tune_item *it);

/* After the look: calls `measure` for what is unfinished or unsure, with what each may take, while there is time. */
typedef void (*tune_budget_fn)(tune_run *run, tune_item *it, double most_ms);
void tune_budget_rounds(tune_run *run, tune_budget_fn measure);

/* All items by outcome, and what was won. */
tune_tally tune_count_up(const tune_run *run);

/* The lines below the items; or all as JSON. */
void tune_print_summary(const tune_run *run, const tune_tally *tally);
int tune_print_json(const tune_run *run, const tune_tally *tally);

#endif
