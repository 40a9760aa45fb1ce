/* SPDX-License-Identifier: Apache-2.0
 * bench.h: what the files of `attune bench` share. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "tools/cli/bench/compare.h"
#include "tools/compare/run/schedule.h"

/* Words of an option that may be repeated; room for as many as there are arguments. */
typedef struct bench_words {
  const char **at;
  size_t count;
} bench_words;

typedef struct bench_options {
  cli_options common;
  bench_words workloads, suites, programs, commands;
  const char *build, *against, *save, *label, *filter; /* NULL: not given */
  int rounds, samples;
  int looks;     /* how often unsure cases may be judged, each time after more rounds */
  double time_s; /* 0: no bound */
  double hang_s;
  bool cold, graph, list;
  gate_rule rule; /* of verdicts, and where they are written, with `against` */
  compare_reports reports;
} bench_options;

/* bench_worker.c: is this command a worker, by its last argument? Then `fd` is the runner's, and the argument is
 * gone. */
bool bench_is_worker(int *argc, char **argv, int *fd);
bool bench_has_suite(const char *name);
/* Serves the cases of workloads, suites and database; an exit code. */
int bench_serve(const bench_options *options, int fd);

/* bench_yardstick.c: cases for a roofline of what `bench` has. */
attune_status bench_add_yardsticks(attune_bench *bench, attune_tuner *tuner, attune_device *device);

/* bench_sides.c: what is timed on a side, and what its run is called. */
typedef struct bench_side {
  gate_source *sources[64];
  gate_run run;
  gate_rounds_side side;
  size_t commands_missing; /* since this build has no such program, and the other one has */
} bench_side;

/* Of workloads, suites or a database, which attune itself times. */
bool bench_has_own_cases(const bench_options *options);
/* NULL, or what is wrong with the command line. */
char *bench_side_make(bench_side *out, const bench_options *options, int which, const gate_limits *limits);
/* Once its processes have sent their versions: fills in what the run depends on. `command`: the command line. */
void bench_side_identify(bench_side *side, const bench_options *options, int which, const char *command);
/* Once the cases are listed: tells of programs that only the other side has; true: there are such. `side`: "base". */
bool bench_side_lacks(const bench_side *side, const char *which);
void bench_side_free(bench_side *side);

/* bench_report.c */
typedef struct bench_report {
  const bench_options *options;
  const gate_outcome *outcome;
  const bench_side *head, *base; /* base: NULL without one */
  double seconds;
} bench_report;

/* bench_table.c: the case on a side, NULL where it lacks it; the one that says what the case is; its verdict, NULL:
 * none. */
const gate_case *bench_head_of(const bench_report *report, size_t i);
const gate_case *bench_base_of(const bench_report *report, size_t i);
const gate_case *bench_shown(const bench_report *report, size_t i);
const gate_judgement *bench_judged(const bench_report *report, size_t i);
/* How much of what the device can do at best; 0: not known. Nor is it where a hot case fits into the last cache, and
 * memory would bind it if it did not: the copy did not time that cache. */
double bench_share(const bench_report *report, const gate_case *c, double ns);
/* How many times as long as the case that it is a peer of; 0: not known, or it is none's peer. */
double bench_beside(const bench_report *report, size_t i);
void bench_table_print(const bench_report *report);
/* Head and table of a run without a base; `report` is a bench_report. */
bool bench_markdown(FILE *out, const void *report);

/* Prints it; CLI_DONE, or CLI_FAILED when a case failed or became slower. */
int bench_report_print(const bench_report *report);
int bench_list_print(const bench_side *head, const bench_options *options);

#endif
