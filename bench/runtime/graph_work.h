/* SPDX-License-Identifier: Apache-2.0
 * graph_work.h: what bench_graph puts into graphs: 100 GEMMs, each reading what the one before it wrote. What cannot go
 * on ends the program with a message. */
#ifndef BENCH_GRAPH_WORK_H
#define BENCH_GRAPH_WORK_H

#include <attune/attune.h>

enum { GRAPH_GEMMS = 100, GRAPH_SIDE = 64 };

typedef struct graph_work {
  attune_device *device;
  attune_tuner *tuner;
  attune_stream *stream;
  attune_gemm_problem problem;
  void *a, *x, *y;
} graph_work;

void graph_work_open(graph_work *work, attune_device *device, attune_dtype dtype);
void graph_work_close(graph_work *work);
/* An attune_capture_fn: gives the GEMMs to the stream. */
attune_status graph_work_give(void *work, attune_stream *stream);

#endif
