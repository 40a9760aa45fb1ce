/* SPDX-License-Identifier: Apache-2.0
 * schedule.h: the schedule of a benchmark. Processes differ by more than the samples within one, so every round has
 * fresh ones. In a round each case, in a new random order, is opened on both sides and sampled in turns (A B B A, who
 * begins is drawn), then closed. After the planned rounds the sides are judged, and only the unsure cases go on: for as
 * many rounds again before each further look, while there is time. When a look comes is planned, not chosen by what was
 * measured.
 *
 * A case that crashes, hangs or reports an error has failed; its process is replaced and the rest goes on. After two
 * failures on a side it is not opened there again. */
#ifndef GATE_ROUNDS_H
#define GATE_ROUNDS_H

#include "tools/compare/run/source.h"
#include "tools/compare/stats/verdict.h"

typedef struct gate_rounds gate_rounds;

enum { GATE_HEAD, GATE_BASE, GATE_SIDES };

/* The caller's; it outlives the rounds. */
typedef struct gate_rounds_side {
  gate_source **sources;
  size_t source_count;
  gate_run *run; /* gets cases and visits; `id` is used where there is a file */
} gate_rounds_side;

typedef struct gate_step {
  const char *name; /* of the case that is next */
  int round, rounds;
  size_t done, total; /* visits of all rounds that are planned now */
  int look;           /* above 0: only unsure cases go on */
} gate_step;

typedef struct gate_judging {
  /* gate_judge; NULL: nothing is judged, and no rounds are added */
  void (*judge)(gate_judgement *, const gate_case *const *, const gate_case *const *, size_t, bool, const gate_rule *,
                int);
  gate_rule rule;
  int looks;     /* at most, 1 or more; when they come: gate_next_look */
  double case_s; /* times the number of cases: after so long no added round begins, nor a planned one; 0: no bound */
  int enough;    /* ... from this round on, or when a verdict is possible at all, if that is later */
} gate_judging;

typedef struct gate_schedule {
  int rounds, samples; /* of a case in a round */
  int samples_least;   /* where one takes longer than sample_ns; 0: as many */
  double sample_ns;    /* about the length of one */
  double time_s;       /* no round begins after it, and of the first one all is done; 0: no bound */
  double case_s;       /* a case that would take longer in all gets fewer samples, then fewer rounds */
  const char *filter;  /* only cases whose name holds it; NULL: all */
  uint64_t seed;
  gate_limits limits;
  gate_file *file; /* NULL: nothing is saved */
  gate_judging judging;
  void (*tell)(void *user, const gate_step *step); /* before each visit; NULL: none */
  void *user;
} gate_schedule;

/* What came of it: arrays by case, in the order of their first listing; what a side lacks is NULL. */
typedef struct gate_outcome {
  const gate_case **sides[GATE_SIDES];
  size_t count;
  gate_judgement *judged; /* each as of the look that decided it; NULL: nothing was judged */
  bool interrupted, out_of_time;
  int rounds; /* that were done, whole or in part */
} gate_outcome;

/* side_count: 1, or 2 for a pair. */
gate_rounds *gate_rounds_create(const gate_schedule *schedule, const gate_rounds_side *sides, int side_count);

/* Starts the first processes and lists their cases into the sides' runs. A program that only one side has is no error:
 * its cases are missing on the other, whose source has `absent`. */
char *gate_rounds_list(gate_rounds *rounds);

/* After gate_rounds_list, and gate_file_begin of each side's run: does it all. The outcome, freed also after an error,
 * lasts as long as the runs. */
char *gate_rounds_run(gate_rounds *rounds, gate_outcome *outcome);

void gate_outcome_free(gate_outcome *outcome);

/* Ends the processes too. */
void gate_rounds_destroy(gate_rounds *rounds);

#endif
