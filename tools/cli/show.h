/* SPDX-License-Identifier: Apache-2.0
 * show.h: the rows of `attune show`, however they are printed. cmd_show.c finds them, show_report.c prints them. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "tools/cli/cli.h"

typedef enum show_format { SHOW_TABLE, SHOW_JSON, SHOW_CSV } show_format;

/* A problem and its winner. Texts are borrowed. */
typedef struct show_row {
  const attune_decision_info *decision; /* of a problem that has no winner: what would run */
  const char *name;                     /* in the workload; "": none */
  const char *written;                  /* the problem as the workload has it */
  const char *devices;                  /* that the winner holds on, with blanks between */
  const char *fingerprint;              /* "": not known */
  bool tuned;                           /* there is a winner */
  bool valid;                           /* it holds here */
  int64_t calls;                        /* 0: not known */
  double call_ns;                       /* about one call of the default; 0: not known */
} show_row;

typedef struct show_report {
  show_format format;
  bool wide, all;
  bool of_problems;     /* rows are those of a workload or of what was recorded, with a winner or without */
  const char *command;  /* that measures what is not tuned, or again */
  size_t other_threads; /* of the winners left out: those that differ in the number of CPU threads alone */
  cli_table table;
  json_t *array;
  size_t rows, tuned; /* that hold here: those count below */
  size_t known;       /* whose speedup is known */
  size_t counted;     /* of those, with calls */
  size_t unsure, incomplete, changed;
  double logs;                  /* of the speedups */
  double default_ns, winner_ns; /* of all calls */
  double all_ns, untuned_ns;    /* of all calls with the default, as known: of every row, of those without a winner */
} show_report;

void show_begin(show_report *report, show_format format, bool all, bool wide);
void show_add(show_report *report, const show_row *row);
/* The table and the lines below it; an exit code. `elsewhere`: winners left out because they do not hold here. */
int show_end(show_report *report, const char *nothing, size_t elsewhere);
void show_free(show_report *report);

#endif
