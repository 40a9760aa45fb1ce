/* SPDX-License-Identifier: Apache-2.0
 * graph.c: bench_graph: 100 small GEMMs as a graph against the same given one by one, on the host; on CUDA also against
 * graphs made by hand with the CUDA API. torch_graph.py measures PyTorch's in the same way. */
#include "bench/graph.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 61, REPLAYS = 20 };

static FILE *markdown;

void graph_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("bench_graph: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void graph_check(attune_status status, const char *what) {
  if (status != ATTUNE_OK) graph_die("%s: %s: %s", what, attune_status_string(status), attune_last_message());
}

void graph_line(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  puts(text);
  fflush(stdout);
  if (markdown) fprintf(markdown, "%s\n", text);
}

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double graph_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

double graph_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

void graph_work_open(graph_work *work, attune_device *device, attune_dtype dtype) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  void **const buffers[] = {&work->a, &work->x, &work->y};
  const size_t bytes = (size_t)GRAPH_SIDE * GRAPH_SIDE * attune_dtype_size(dtype);
  memset(work, 0, sizeof *work);
  work->device = device;
  options.database = "";
  options.mode = ATTUNE_MODE_CACHED;
  graph_check(attune_tuner_create(&work->tuner, &options), "attune_tuner_create");
  graph_check(attune_stream_create(&work->stream, device), "attune_stream_create");
  for (int i = 0; i < 3; i++) {
    graph_check(attune_alloc(buffers[i], work->stream, bytes), "attune_alloc");
    graph_check(attune_fill(work->stream, *buffers[i], 0x3c, bytes), "attune_fill"); /* a small number, not zero */
  }
  work->problem = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  work->problem.dtype = dtype;
  work->problem.m = work->problem.n = work->problem.k = GRAPH_SIDE;
  graph_check(graph_work_give(work, work->stream), "attune_gemm");
  graph_check(attune_stream_synchronize(work->stream), "attune_stream_synchronize");
}

void graph_work_close(graph_work *work) {
  graph_check(attune_free(work->a, work->stream), "attune_free");
  graph_check(attune_free(work->x, work->stream), "attune_free");
  graph_check(attune_free(work->y, work->stream), "attune_free");
  attune_stream_destroy(work->stream);
  attune_tuner_destroy(work->tuner);
}

attune_status graph_work_give(void *user, attune_stream *stream) {
  graph_work *work = user;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < GRAPH_GEMMS && status == ATTUNE_OK; i++) {
    attune_gemm_operands operands = {1e-3, work->a, i % 2 ? work->y : work->x, 0.0, NULL, i % 2 ? work->x : work->y};
    status = attune_gemm(work->tuner, stream, &work->problem, &operands);
  }
  return status;
}

/* Microseconds until `turns` times the work are done, each. */
static double eager_us(graph_work *work, attune_stream *stream, int turns) {
  const double start = graph_now_us();
  for (int i = 0; i < turns; i++) graph_check(graph_work_give(work, stream), "attune_gemm");
  graph_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  return (graph_now_us() - start) / turns;
}

static double replay_us(attune_graph *graph, attune_stream *stream, int turns) {
  const double start = graph_now_us();
  for (int i = 0; i < turns; i++) graph_check(attune_graph_replay(graph, stream), "attune_graph_replay");
  graph_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  return (graph_now_us() - start) / turns;
}

static void report_host(void) {
  graph_work work;
  attune_graph *graph = NULL;
  attune_device *host = NULL;
  double times[4][ROUNDS];
  graph_check(attune_device_get(&host, "host"), "attune_device_get");
  graph_work_open(&work, host, ATTUNE_F32);
  graph_check(attune_graph_create(&graph, host), "attune_graph_create");
  graph_check(attune_graph_capture_callback(graph, work.stream, NULL, graph_work_give, &work),
              "attune_graph_capture_callback");
  attune_stream *inline_stream = attune_stream_default(host);
  for (int round = 0; round < ROUNDS; round++) {
    times[0][round] = eager_us(&work, work.stream, REPLAYS);
    times[1][round] = replay_us(graph, work.stream, REPLAYS);
    times[2][round] = eager_us(&work, inline_stream, REPLAYS);
    times[3][round] = replay_us(graph, inline_stream, REPLAYS);
  }
  graph_line("| %d GEMMs f32 %d^3 on the host | us, median of %d | of eager |", GRAPH_GEMMS, GRAPH_SIDE, ROUNDS);
  graph_line("|---|---:|---:|");
  const char *const names[] = {"created stream, one by one", "created stream, attune_graph_replay",
                               "default stream, one by one", "default stream, attune_graph_replay"};
  double eager = 0.0;
  for (int i = 0; i < 4; i++) {
    const double us = graph_median(times[i], ROUNDS);
    if (i % 2 == 0) eager = us;
    graph_line("| %s | %.1f | %.2f |", names[i], us, us / eager);
  }
  attune_graph_destroy(graph);
  graph_work_close(&work);
}

static void usage(FILE *out) {
  fputs("bench_graph [--markdown FILE]: 100 small GEMMs as a graph, and given one by one; with a GPU also graphs made "
        "by hand.\n"
        "Exits with 1 when a replay on the GPU takes more than 1.05 times the graph made by hand.\n",
        out);
}

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"markdown", required_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  int met = 1;
  for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    if (c == 'h') {
      usage(stdout);
      return 0;
    }
    if (c != 'm') {
      usage(stderr);
      return 2;
    }
    markdown = fopen(optarg, "w");
    if (!markdown) graph_die("%s cannot be written", optarg);
  }
  report_host();
#ifdef BENCH_WITH_CUDA
  met = graph_report_cuda();
#endif
  if (markdown && fclose(markdown) != 0) graph_die("the table was not written whole");
  return met ? 0 : 1;
}
