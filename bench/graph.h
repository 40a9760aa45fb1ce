/* SPDX-License-Identifier: Apache-2.0
 * graph.h: what the parts of bench_graph share. What cannot go on ends the program with a message. */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include <attune/attune.h>
#include <attune/graph.h>

enum { GRAPH_GEMMS = 100, GRAPH_SIDE = 64 };

void graph_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void graph_check(attune_status status, const char *what);
/* One line to the terminal and to the markdown file. */
void graph_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sorts; the upper of two middles. */
double graph_median(double *values, int count);
double graph_now_us(void);

/* 100 GEMMs, each reading what the one before it wrote. */
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

#ifdef BENCH_WITH_CUDA
/* graph_cuda.c: nothing when there is no CUDA device. Returns whether the goal was met. */
int graph_report_cuda(void);
#endif

#endif
