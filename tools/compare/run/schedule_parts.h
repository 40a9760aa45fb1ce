/* SPDX-License-Identifier: Apache-2.0
 * schedule_parts.h: what the files of schedule.h share. */
#ifndef GATE_ROUNDS_PARTS_H
#define GATE_ROUNDS_PARTS_H

#include "tools/compare/message.h"
#include "tools/compare/run/schedule.h"
#include "tools/compare/stats/case_index.h"

#define GATE_NOWHERE ((size_t)-1)
enum { GATE_FAILURES_MOST = 2 };

/* A case of either side. */
typedef struct gate_entry {
  size_t at[GATE_SIDES];     /* in the side's run; GATE_NOWHERE: it has none */
  size_t source[GATE_SIDES]; /* that listed it first */
  size_t index[GATE_SIDES];  /* in that source's present process; GATE_NOWHERE: not there */
  int failures[GATE_SIDES];
  int opened[GATE_SIDES];
  size_t group;     /* the entry that this one is a peer of; itself: of none */
  bool active;      /* in the rounds to come */
  double round_s;   /* what its last round took on all sides; 0: not known */
  int samples;      /* in that round */
  double sample_ns; /* what each took there; 0: not known */
} gate_entry;

typedef struct gate_yardstick {
  gate_case is;
  size_t source, index; /* in its present process */
  double best_ns;       /* 0: not known */
} gate_yardstick;

struct gate_rounds {
  gate_schedule schedule;
  gate_rounds_side sides[GATE_SIDES];
  int side_count;
  gate_entry *entries;
  size_t count, room;
  gate_case_index index; /* of the entries */
  gate_yardstick *yardsticks;
  size_t yardstick_count;
  uint64_t random, round_draw; /* the latter new in every round */
  bool grouped;                /* some entries are peers */
  bool listed;                 /* the processes of the first round run already */
  int64_t start_ns;
  size_t done, total; /* visits, for gate_step */
};

gate_case *gate_entry_case(const gate_rounds *rounds, const gate_entry *entry, int side);
/* The name, on whatever side it is. */
const char *gate_entry_name(const gate_rounds *rounds, const gate_entry *entry);
/* Is it to be opened on this side? */
bool gate_entry_open(const gate_entry *entry, int side);

/* schedule_list.c: a fresh process for the source; its cases are found in the entries, or added. Why it could not
 * be. */
char *gate_rounds_start(gate_rounds *rounds, int side, size_t source);
/* As above; if that fails, the source's cases fail. An error is the file's. */
char *gate_rounds_start_or_fail(gate_rounds *rounds, int side, size_t source);
void gate_rounds_stop(gate_rounds *rounds);
/* Takes `why`. The case is failed on the side. An error is the file's. */
char *gate_entry_fail(gate_rounds *rounds, gate_entry *entry, int side, char *why);

/* schedule_visit.c: one case, once on each side that it is open on, into runs and file. An error is the file's. */
char *gate_rounds_visit(gate_rounds *rounds, gate_entry *entry, int round);

/* schedule_yardstick.c: true: the case is one, and what it holds was taken if it is new. */
bool gate_yardstick_note(gate_rounds *rounds, int side, size_t source, size_t index, gate_case *c);
void gate_yardsticks_take(gate_rounds *rounds);
/* Into the runs, and the file, whose error it returns. */
char *gate_yardsticks_keep(gate_rounds *rounds);
void gate_yardsticks_free(gate_rounds *rounds);

/* schedule_plan.c: how many samples the case gets, by what it took before and the calls in each; whether it takes part
 * in the round at all. */
int gate_entry_samples(const gate_rounds *rounds, const gate_entry *entry, int calls);
bool gate_entry_due(const gate_rounds *rounds, const gate_entry *entry, int round);

#endif
