/* SPDX-License-Identifier: Apache-2.0
 * parts.h: bench_parts, the cases that attune's parts and their peers are for `attune bench`, a file a part. What
 * cannot go on before a case is opened ends the program with a message. */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include <attune/tools.h>

#include "bench/common/tool.h"

#include <stdbool.h>

void parts_alloc(attune_bench *bench, attune_device *device);
void parts_blocked(attune_bench *bench);
void parts_graph(attune_bench *bench);
void parts_hot(attune_bench *bench);
void parts_interpret(attune_bench *bench);
void parts_random(attune_bench *bench, attune_device *device);

/* A case. */
typedef struct part_case {
  const char *name, *peer_of; /* a peer's whole name is peer_of's and its own */
  attune_device *device;      /* these as in attune_bench_case */
  attune_status (*set_up)(void *arg), (*run)(void *arg, attune_stream *stream);
  void (*tear_down)(void *arg);
  double bytes, flops;
  attune_dtype dtype;
  unsigned repeats;
  /* In place of `run`: called in `threads` threads at the same time, each on a CPU of its own where there are enough,
   * or where that is 0 once by the caller; false: it failed. */
  bool (*work)(void *arg, int thread);
  int threads;
} part_case;

/* Adds the case, with a copy of the `size` bytes at `arg`. */
void parts_add(attune_bench *bench, const part_case *c, const void *arg, size_t size);

/* team.c: threads that are started once, and sleep between runs. */
enum { TEAM_MOST = 64 };

typedef struct team team;
team *team_open(int threads, bool (*work)(void *arg, int thread), void *arg);
/* Returns once all are done: true if all did well. */
bool team_run(team *t);
void team_close(team *t); /* NULL does nothing */
int team_cpus(void);      /* that this process may use */

#endif
