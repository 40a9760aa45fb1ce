/* SPDX-License-Identifier: Apache-2.0
 * graph.c: graphs of the host: a recording and its replays. */
#include "src/host/graph.h"

#include "src/fork.h"
#include "src/host/host.h"
#include "src/host/record.h"
#include "src/host/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct at_graph {
  atomic_int references; /* the handle, and each replay given to a queue */
  unsigned generation;   /* at_fork_generation() at the making */
  pthread_mutex_t lock;  /* held by a replay while it runs: the next one waits, as on CUDA */
  at_recording recording;
};

/* The graph takes the recording. */
static attune_status create(at_graph **out, at_recording *recording) {
  at_graph *graph = calloc(1, sizeof *graph);
  if (!graph) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph");
  atomic_init(&graph->references, 1);
  graph->generation = at_fork_generation();
  pthread_mutex_init(&graph->lock, NULL);
  graph->recording = *recording;
  *recording = (at_recording){0};
  *out = graph;
  return ATTUNE_OK;
}

attune_status at_host_graph_record(attune_stream *stream, at_graph **out) {
  at_recording recording;
  *out = NULL;
  attune_status status = at_record_end(stream, &recording);
  if (status == ATTUNE_OK) status = create(out, &recording);
  at_recording_free(&recording);
  return status;
}

attune_status at_host_graph_clone(const at_graph *graph, at_graph **out) {
  at_recording copy;
  *out = NULL;
  if (!at_recording_copy(&copy, &graph->recording)) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph");
  attune_status status = create(out, &copy);
  at_recording_free(&copy);
  return status;
}

static bool stale(const at_graph *graph) {
  return graph->generation != at_fork_generation();
}

static void drop(at_graph *graph) {
  if (atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) != 1) return;
  if (!stale(graph)) pthread_mutex_destroy(&graph->lock); /* else a thread of the parent may have held it at the fork */
  at_recording_free(&graph->recording);
  free(graph);
}

/* The replays of a parent's streams never run in a child: there the handle is the last holder. */
void at_host_graph_destroy(at_graph *graph) {
  if (!graph) return;
  if (stale(graph)) atomic_store(&graph->references, 1);
  drop(graph);
}

static void run_graph(const void *args) {
  at_graph *graph = *(at_graph *const *)args;
  const at_recording *r = &graph->recording;
  pthread_mutex_lock(&graph->lock);
  for (uint32_t i = 0; i < r->nodes; i++) r->node[i].fn(r->args + r->node[i].args);
  pthread_mutex_unlock(&graph->lock);
  drop(graph);
}

attune_status at_host_graph_launch(at_graph *graph, attune_stream *stream) {
  if (stale(graph))
    return at_fail(ATTUNE_DEVICE_ERROR, "graph was captured before fork; should be captured again in the child");
  atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
  attune_status status = at_host_submit(stream, run_graph, &graph, sizeof graph);
  if (status != ATTUNE_OK) drop(graph);
  return status;
}

/* A recording is ready to run as it is. */
attune_status at_host_graph_instantiate(at_graph *graph, bool keep) {
  (void)graph;
  (void)keep;
  return ATTUNE_OK;
}

/* In place where CUDA would change its executable in place too: the same pieces of work in the same order, whatever
 * their arguments. */
attune_status at_host_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place) {
  const at_recording *a = &graph->recording, *b = &older->recording;
  (void)keep;
  bool same = a->nodes == b->nodes && a->edges == b->edges &&
              (a->edges == 0 || memcmp(a->edge, b->edge, a->edges * sizeof *a->edge) == 0);
  for (uint32_t i = 0; same && i < a->nodes; i++)
    same = a->node[i].fn == b->node[i].fn && a->node[i].edges == b->node[i].edges;
  *in_place = same;
  return ATTUNE_OK;
}

size_t at_host_graph_nodes(const at_graph *graph) {
  return graph->recording.nodes;
}

attune_status at_host_graph_dump(const at_graph *graph, FILE *file) {
  const at_recording *r = &graph->recording;
  fprintf(file, "digraph attune {\n  node [shape=box];\n");
  for (uint32_t n = 0; n < r->nodes; n++) {
    const at_node *node = &r->node[n];
    fprintf(file, "  n%u [label=\"%u: %s\\n%zu bytes of arguments\"];\n", n, n, at_host_work_name(node->fn),
            node->bytes);
    for (uint32_t e = 0; e < node->edges; e++) fprintf(file, "  n%u -> n%u;\n", r->edge[node->first_edge + e], n);
  }
  fprintf(file, "}\n");
  return ATTUNE_OK;
}
