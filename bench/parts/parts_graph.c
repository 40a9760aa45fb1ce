/* SPDX-License-Identifier: Apache-2.0
 * parts_graph.c: 100 small GEMMs on the host as a graph, beside the same given one by one. bench_graph has CUDA's. */
#include <attune/graph.h>

#include "bench/parts/parts.h"
#include "bench/runtime/graph_work.h"

typedef struct replaying {
  graph_work work;
  attune_graph *graph;
} replaying;

static attune_status make(void *arg) {
  replaying *r = arg;
  attune_device *host = NULL;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  graph_work_open(&r->work, host, ATTUNE_F32);
  const attune_status status = attune_graph_create(&r->graph, host);
  return status == ATTUNE_OK ? attune_graph_capture_callback(r->graph, r->work.stream, NULL, graph_work_give, &r->work)
                             : status;
}

static void drop(void *arg) {
  replaying *r = arg;
  attune_graph_destroy(r->graph);
  graph_work_close(&r->work);
}

static attune_stream *stream_of(const replaying *r, attune_stream *stream) {
  return stream ? stream : attune_stream_default(r->work.device);
}

static attune_status one_by_one(void *arg, attune_stream *stream) {
  replaying *r = arg;
  return graph_work_give(&r->work, stream_of(r, stream));
}

static attune_status replay(void *arg, attune_stream *stream) {
  const replaying *r = arg;
  return attune_graph_replay(r->graph, stream_of(r, stream));
}

void parts_graph(attune_bench *bench) {
  attune_device *host = NULL;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  for (int created = 0; created < 2;
       created++) { /* the default stream runs its work in the caller: the clock times it */
    const char *name = created ? "graph/100 GEMMs of 64, created stream" : "graph/100 GEMMs of 64, default stream";
    const replaying r = {.graph = NULL};
    part_case c = {.name = name, .device = created ? host : NULL, .set_up = make, .run = replay, .tear_down = drop};
    parts_add(bench, &c, &r, sizeof r);
    c.peer_of = name;
    c.name = "one by one";
    c.run = one_by_one;
    parts_add(bench, &c, &r, sizeof r);
  }
}
