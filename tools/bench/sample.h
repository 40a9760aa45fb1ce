/* SPDX-License-Identifier: Apache-2.0
 * sample.h: one case that is open: set up, its number of calls found, ready to be timed. */
#ifndef AT_BENCH_SAMPLE_H
#define AT_BENCH_SAMPLE_H

#include <attune/graph.h>

#include "tools/bench/suite.h"

typedef struct at_bench_sample {
  int64_t start_ns; /* at_now_ns */
  double ns;        /* a call */
  double cpu_ns;    /* of the process, a call */
} at_bench_sample;

typedef struct at_bench_timing {
  const at_bench_entry *entry; /* NULL: nothing is open */
  attune_stream *stream;       /* that the work is given to; NULL: the case has no device */
  attune_stream *made;         /* a stream of our own: `stream`, or only what a graph is captured on */
  attune_event *start, *stop;  /* NULL: the clock times it */
  attune_graph *graph;
  int unit;      /* calls that are given at once: those of the graph, or 1 */
  int64_t units; /* of a sample */
  int next;      /* number of the next call */
  bool team;     /* other threads worked for the latest piece too */
  bool flushed;  /* the caches are emptied before every unit */
  bool wakes;    /* one more call goes before each sample, untimed */
  void *flush;   /* memory that empties the caches */
  size_t flush_bytes;
} at_bench_timing;

/* Sets the case up and finds how many calls take about `sample_ns`. After a failure nothing is open; the message names
 * the function of the case that failed. */
attune_status at_bench_open(at_bench_timing *out, const at_bench_entry *entry, double sample_ns, uint64_t seed);

/* Calls of a sample. */
int64_t at_bench_calls(const at_bench_timing *timing);

/* One sample. After a failure the case is still open. */
attune_status at_bench_take(at_bench_timing *timing, at_bench_sample *out);

/* State of the device's clock while samples were taken. */
typedef struct at_bench_clock {
  int mhz; /* at the end; 0: not known */
  bool throttled;
} at_bench_clock;
void at_bench_clock_begin(at_bench_clock *clock, const at_bench_timing *timing);
void at_bench_clock_end(at_bench_clock *clock, const at_bench_timing *timing);

/* Tears it down. Does nothing where nothing is open. */
void at_bench_close(at_bench_timing *timing);

#endif
