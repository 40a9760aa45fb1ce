/* SPDX-License-Identifier: Apache-2.0
 * part.h: a case of bench_parts. */
#ifndef BENCH_PART_H
#define BENCH_PART_H

#include <attune/tools.h>

#include <stdbool.h>

typedef struct part_case {
  const char *name, *peer_of; /* a peer's whole name is peer_of's and its own */
  attune_device *device;      /* these as in attune_bench_case */
  attune_status (*set_up)(void *arg), (*run)(void *arg, attune_stream *stream);
  void (*tear_down)(void *arg);
  double bytes, flops;
  attune_dtype dtype;
  unsigned repeats;
  /* In place of `run`: called in `threads` threads at the same time, each on a CPU of its own where there are enough, or where
   * that is 0 once by the caller; false: it failed. */
  bool (*work)(void *arg, int thread);
  int threads;
} part_case;

/* Adds the case, with a copy of the `size` bytes at `arg`. */
void parts_add(attune_bench *bench, const part_case *c, const void *arg, size_t size);

#endif
