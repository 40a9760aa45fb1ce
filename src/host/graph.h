/* SPDX-License-Identifier: Apache-2.0
 * graph.h: graphs of the host. A replay is one item of a queue that runs all of a recording in the order it was given.
 * That order keeps to every wait, so a replay needs none. */
#ifndef AT_HOST_GRAPH_H
#define AT_HOST_GRAPH_H

#include "src/backend.h"

/* Ends the stream's capture with a graph of what was recorded. */
attune_status at_host_graph_record(attune_stream *stream, at_graph **out);
attune_status at_host_graph_launch(at_graph *graph, attune_stream *stream);
void at_host_graph_destroy(at_graph *graph);
attune_status at_host_graph_instantiate(at_graph *graph, bool keep);
attune_status at_host_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place);
size_t at_host_graph_nodes(const at_graph *graph);
attune_status at_host_graph_clone(const at_graph *graph, at_graph **out);
attune_status at_host_graph_dump(const at_graph *graph, FILE *file);

#endif
