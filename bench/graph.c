/* SPDX-License-Identifier: Apache-2.0
 * graph.c: bench_graph: 100 small GEMMs as a graph against the same given one by one, on the host; on CUDA also against
 * graphs made by hand with the CUDA API. torch_graph.py measures PyTorch's in the same way. */
#include <attune/graph.h>

#include "bench/graph_cuda.h"
#include "bench/graph_work.h"
#include "bench/tool.h"

#include <getopt.h>
#include <stdio.h>

enum { ROUNDS = 61, REPLAYS = 20 };

/* Microseconds until `turns` times the work are done, each. */
static double eager_us(graph_work *work, attune_stream *stream, int turns) {
  const double start = bench_now_ns();
  for (int i = 0; i < turns; i++) bench_check(graph_work_give(work, stream), "attune_gemm");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  return (bench_now_ns() - start) * 1e-3 / turns;
}

static double replay_us(attune_graph *graph, attune_stream *stream, int turns) {
  const double start = bench_now_ns();
  for (int i = 0; i < turns; i++) bench_check(attune_graph_replay(graph, stream), "attune_graph_replay");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  return (bench_now_ns() - start) * 1e-3 / turns;
}

static void report_host(void) {
  graph_work work;
  attune_graph *graph = NULL;
  attune_device *host = NULL;
  double times[4][ROUNDS];
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  graph_work_open(&work, host, ATTUNE_F32);
  bench_check(attune_graph_create(&graph, host), "attune_graph_create");
  bench_check(attune_graph_capture_callback(graph, work.stream, NULL, graph_work_give, &work),
              "attune_graph_capture_callback");
  attune_stream *inline_stream = attune_stream_default(host);
  for (int round = 0; round < ROUNDS; round++) {
    times[0][round] = eager_us(&work, work.stream, REPLAYS);
    times[1][round] = replay_us(graph, work.stream, REPLAYS);
    times[2][round] = eager_us(&work, inline_stream, REPLAYS);
    times[3][round] = replay_us(graph, inline_stream, REPLAYS);
  }
  bench_line("| %d GEMMs f32 %d^3 on the host | us, median of %d | of eager |", GRAPH_GEMMS, GRAPH_SIDE, ROUNDS);
  bench_line("|---|---:|---:|");
  const char *const names[] = {"created stream, one by one", "created stream, attune_graph_replay",
                               "default stream, one by one", "default stream, attune_graph_replay"};
  double eager = 0.0;
  for (int i = 0; i < 4; i++) {
    const double us = bench_median(times[i], ROUNDS);
    if (i % 2 == 0) eager = us;
    bench_line("| %s | %.1f | %.2f |", names[i], us, us / eager);
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
  bool met = true;
  for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    if (c == 'h') {
      usage(stdout);
      return 0;
    }
    if (c != 'm') {
      usage(stderr);
      return 2;
    }
    bench_markdown_open(optarg);
  }
  report_host();
#ifdef BENCH_WITH_CUDA
  met = graph_report_cuda();
#endif
  bench_markdown_close();
  return met ? 0 : 1;
}
