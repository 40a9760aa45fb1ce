/* SPDX-License-Identifier: Apache-2.0
 * source.h: where cases come from: a program that speaks tools/bench/protocol.h, or command lines. The rounds treat
 * both alike. */
#ifndef GATE_SOURCE_H
#define GATE_SOURCE_H

#include "tools/compare/results/results.h"
#include "tools/compare/run/process.h"

/* Cases of a source with `yardsticks` whose names begin so are not for the user: schedule_yardstick.c. */
#define GATE_YARDSTICK "yardstick/"

typedef struct gate_source gate_source;

/* Each gives NULL or a sentence. One case is open at a time; after an error none is. */
typedef struct gate_source_kind {
  /* A fresh process, where there is one, and its cases: *cases without visits, to be freed by gate_cases_free. */
  char *(*start)(gate_source *source, gate_case **cases, size_t *count);
  /* `seed`: what operands are drawn from. */
  char *(*open)(gate_source *source, size_t index, double sample_ns, uint64_t seed, int *calls);
  /* Appends `count` samples to visit->samples, which has the room. */
  char *(*sample)(gate_source *source, gate_visit *visit, int count);
  char *(*close)(gate_source *source);
  void (*stop)(gate_source *source);
  void (*destroy)(gate_source *source);
} gate_source_kind;

struct gate_source {
  const gate_source_kind *kind;
  const char *name; /* for errors: the command line; lives as long */
  bool alive;       /* started, and it may be asked */
  bool absent;      /* the last start failed since there is no such program */
  double opened_ns; /* what a sample of the case that was opened last will take, where opening it told; 0: not known */
  bool yardsticks;  /* it is attune's own; a program may call its cases what it likes */
  gate_limits limits;
  uint64_t random;
  char version[64]; /* of the attune in it; "" until it was started, and of commands */
};

/* `argv`, whose last argument will be AT_BENCH_ARGUMENT, and its strings are copied. */
gate_source *gate_worker_create(const char *const *argv, const gate_limits *limits, uint64_t seed);

/* "NAME=CMD" each, copied; `build` stands for {build} in CMD. */
gate_source *gate_commands_create(const char *const *commands, size_t count, const char *build,
                                  const gate_limits *limits, uint64_t seed);

/* NULL does nothing. */
void gate_source_destroy(gate_source *source);

void gate_cases_free(gate_case *cases, size_t count);

/* The argv of a command line, with `build` in place of each {build}, whatever blanks and quotes are in it: by the
 * shell, unless the line has nothing that a shell would act on. `more`: arguments will be added at its end, and are the
 * command's. Ends with NULL; freed by gate_argv_free. */
char **gate_argv_of(const char *line, const char *build, bool more);
void gate_argv_free(char **argv);

#endif
