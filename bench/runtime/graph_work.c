/* SPDX-License-Identifier: Apache-2.0
 * graph_work.c: the 100 GEMMs of bench_graph and the buffers that they go through. */
#include "bench/runtime/graph_work.h"

#include "bench/common/tool.h"

#include <string.h>

void graph_work_open(graph_work *work, attune_device *device, attune_dtype dtype) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  void **const buffers[] = {&work->a, &work->x, &work->y};
  const size_t bytes = (size_t)GRAPH_SIDE * GRAPH_SIDE * attune_dtype_size(dtype);
  memset(work, 0, sizeof *work);
  work->device = device;
  options.database = "";
  options.mode = ATTUNE_MODE_CACHED;
  bench_check(attune_tuner_create(&work->tuner, &options), "attune_tuner_create");
  bench_check(attune_stream_create(&work->stream, device), "attune_stream_create");
  for (int i = 0; i < 3; i++) {
    bench_check(attune_alloc(buffers[i], work->stream, bytes), "attune_alloc");
    bench_check(attune_fill(work->stream, *buffers[i], 0x3c, bytes), "attune_fill"); /* a small number, not zero */
  }
  work->problem = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  work->problem.dtype = dtype;
  work->problem.m = work->problem.n = work->problem.k = GRAPH_SIDE;
  bench_check(graph_work_give(work, work->stream), "attune_gemm");
  bench_check(attune_stream_synchronize(work->stream), "attune_stream_synchronize");
}

void graph_work_close(graph_work *work) {
  bench_check(attune_free(work->a, work->stream), "attune_free");
  bench_check(attune_free(work->x, work->stream), "attune_free");
  bench_check(attune_free(work->y, work->stream), "attune_free");
  attune_stream_destroy(work->stream);
  attune_tuner_destroy(work->tuner);
}

attune_status graph_work_give(void *user, attune_stream *stream) {
  graph_work *work = user;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < GRAPH_GEMMS && status == ATTUNE_OK; i++) {
    attune_gemm_operands operands = {
        .alpha = 1e-3, .a = work->a, .b = i % 2 ? work->y : work->x, .d = i % 2 ? work->x : work->y};
    status = attune_gemm(work->tuner, stream, &work->problem, &operands);
  }
  return status;
}
