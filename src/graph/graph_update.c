/* SPDX-License-Identifier: Apache-2.0
 * graph_update.c: a graph captured again in the place of what it has. Until the new work has its executable, the old
 * one stays whole. */
#include "src/graph/graph.h"

#include <stdlib.h>

static size_t count_generators(const attune_graph *graph) {
  size_t count = 0;
  for (const at_graph_generator *g = graph->generators; g; g = g->next) count++;
  return count;
}

/* What one replay draws from each generator, put aside: the new capture sums up its own. */
static attune_status put_aside(const attune_graph *graph, uint64_t **out) {
  *out = malloc((count_generators(graph) + 1) * sizeof **out);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to update the graph");
  size_t i = 0;
  for (at_graph_generator *g = graph->generators; g; g = g->next) {
    (*out)[i++] = g->increment;
    g->increment = 0;
  }
  return ATTUNE_OK;
}

/* Those registered in the failed capture stand before those put aside. */
static void put_back(const attune_graph *graph, const uint64_t *increments, size_t count) {
  size_t later = count_generators(graph) - count, i = 0;
  for (at_graph_generator *g = graph->generators; g; g = g->next, i++)
    g->increment = i < later ? 0 : increments[i - later];
}

/* The captured work takes over the executable, or gets one of its own; with keep_graph and none made yet there is
 * nothing to do. */
static attune_status take_over(attune_graph *graph, at_graph *captured, bool *in_place) {
  const at_backend_graph *backend = graph->device->backend.graph;
  const at_message kept = at_message_keep(); /* an executable that cannot be changed in place is made again */
  attune_status status =
      graph->instantiated ? backend->update(captured, graph->made, graph->keep, in_place) : ATTUNE_OK;
  (void)at_message_settle(&kept, status);
  at_graph *dropped = status == ATTUNE_OK ? graph->made : captured;
  if (status == ATTUNE_OK) graph->made = captured;
  backend->destroy(dropped);
  return status;
}

attune_status attune_graph_update(attune_graph *graph, attune_stream *stream, attune_capture_fn fn, void *user,
                                  int *out_in_place) {
  if (out_in_place) *out_in_place = 0;
  AT_REQUIRE_AS(graph, "be a graph from attune_graph_create");
  AT_REQUIRE_AS(fn, "submit work to the stream");
  const size_t generators = count_generators(graph);
  AT_TRY(at_graph_capture_start(graph, stream, NULL, true));
  uint64_t *increments = NULL;
  at_graph *captured = NULL;
  attune_status status = put_aside(graph, &increments);
  if (status != ATTUNE_OK) {
    at_graph_capture_drop(graph);
    return status;
  }
  bool in_place = false;
  status = at_graph_capture_run(graph, stream, fn, user, &captured);
  if (status == ATTUNE_OK) status = take_over(graph, captured, &in_place);
  if (status == ATTUNE_OK) at_graph_tell(graph, ATTUNE_GRAPH_CAPTURED);
  if (status == ATTUNE_OK && graph->instantiated) at_graph_tell(graph, ATTUNE_GRAPH_INSTANTIATED);
  if (status != ATTUNE_OK) put_back(graph, increments, generators);
  free(increments);
  if (out_in_place) *out_in_place = status == ATTUNE_OK && in_place;
  return status;
}
