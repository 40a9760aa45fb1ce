/* SPDX-License-Identifier: Apache-2.0
 * graph.h: graphs of the host. A replay is one item of a queue that runs all of a recording in the order it was given.
 * That order keeps to every wait, so a replay needs none. */
#ifndef AT_HOST_GRAPH_H
#define AT_HOST_GRAPH_H

#include "src/base/backend.h"
#include "src/host/record.h"

/* Ends the stream's capture with a graph of what was recorded. */
attune_status at_host_graph_record(attune_stream *stream, at_graph **out);
attune_status at_host_graph_launch(at_graph *graph, attune_stream *stream);
void at_host_graph_destroy(at_graph *graph);
attune_status at_host_graph_instantiate(at_graph *graph, bool keep);
attune_status at_host_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place);
size_t at_host_graph_nodes(const at_graph *graph);
attune_status at_host_graph_clone(const at_graph *graph, at_graph **out);
attune_status at_host_graph_dump(const at_graph *graph, FILE *file, bool brief);

/* What replays run, counted: the graph holds it, and each replay given to a queue. Constant while more than one
 * does. */
typedef struct at_host_steps {
  atomic_int references;
  at_recording recording;
  bool *disabled;  /* of each node; NULL: none is */
  size_t external; /* nodes that record an external event or wait for one */
} at_host_steps;

/* graph.c: the graph's steps; and steps that only the graph has, to be changed. NULL: no memory. */
const at_host_steps *at_host_graph_steps(const at_graph *graph);
at_host_steps *at_host_graph_own_steps(at_graph *graph);

/* graph_nodes.c */
attune_status at_host_graph_node(at_graph *graph, size_t index, attune_node *out);
attune_status at_host_graph_edges(at_graph *graph, attune_edge *out, size_t room, size_t *out_count);
attune_status at_host_graph_get_parameters(at_graph *graph, size_t index, attune_node_parameters *out);
attune_status at_host_graph_set_parameters(at_graph *graph, size_t index, const attune_node_parameters *parameters);
attune_status at_host_graph_set_enabled(at_graph *graph, size_t index, bool enabled);

#endif
