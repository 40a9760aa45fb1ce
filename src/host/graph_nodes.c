/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.c: the nodes and edges of a graph of the host, and changes of them. */
#include <stdlib.h>
#include <string.h>

#include "src/host/graph.h"
#include "src/host/work.h"

attune_status at_host_graph_node(at_graph *graph, size_t index, attune_node *out) {
  static const attune_node_kind kinds[] = {
      [AT_HOST_OTHER] = ATTUNE_NODE_KERNEL, [AT_HOST_COPY] = ATTUNE_NODE_COPY,     [AT_HOST_FILL] = ATTUNE_NODE_FILL,
      [AT_HOST_CALL] = ATTUNE_NODE_CALL,    [AT_HOST_RECORD] = ATTUNE_NODE_RECORD, [AT_HOST_WAIT] = ATTUNE_NODE_WAIT};
  const at_host_steps *steps = at_host_graph_steps(graph);
  const at_node *node = &steps->recording.node[index];
  out->kind = kinds[at_host_work_kind(node->fn)];
  out->enabled = !steps->disabled || !steps->disabled[index];
  (void)at_copy_text(out->name, sizeof out->name, at_host_work_name(node->fn));
  return ATTUNE_OK;
}

attune_status at_host_graph_edges(at_graph *graph, attune_edge *out, size_t room, size_t *out_count) {
  const at_recording *r = &at_host_graph_steps(graph)->recording;
  size_t count = 0;
  for (uint32_t n = 0; n < r->nodes; n++)
    for (uint32_t e = 0; e < r->node[n].edges; e++, count++)
      if (count < room) out[count] = (attune_edge){.from = r->edge[r->node[n].first_edge + e], .to = n};
  *out_count = count;
  return ATTUNE_OK;
}

attune_status at_host_graph_get_parameters(at_graph *graph, size_t index, attune_node_parameters *out) {
  const at_recording *r = &at_host_graph_steps(graph)->recording;
  const at_node *node = &r->node[index];
  const unsigned char *args = r->args + node->args;
  at_host_function call;
  switch (out->kind) {
  case ATTUNE_NODE_COPY: memcpy(&out->copy, args, sizeof out->copy); break;
  case ATTUNE_NODE_FILL: memcpy(&out->fill, args, sizeof out->fill); break;
  case ATTUNE_NODE_CALL:
    memcpy(&call, args, sizeof call);
    out->fn = call.fn;
    out->user = call.user;
    break;
  default:
    out->arguments_bytes = node->bytes;
    if (node->bytes && node->bytes <= out->arguments_room) memcpy(out->arguments, args, node->bytes);
    break;
  }
  return ATTUNE_OK;
}

/* Pitches that do not count may be anything: here they step over nothing. */
attune_status at_host_graph_set_parameters(at_graph *graph, size_t index, const attune_node_parameters *p) {
  const at_host_function call = {p->fn, p->user};
  const void *args = p->kind == ATTUNE_NODE_COPY   ? (const void *)&p->copy
                     : p->kind == ATTUNE_NODE_FILL ? (const void *)&p->fill
                     : p->kind == ATTUNE_NODE_CALL ? (const void *)&call
                                                   : p->arguments;
  const size_t bytes = at_host_graph_steps(graph)->recording.node[index].bytes;
  if (p->kind == ATTUNE_NODE_KERNEL && p->arguments_bytes != bytes)
    return AT_INVALID("arguments_bytes is %zu; should be %zu", p->arguments_bytes, bytes);
  at_host_steps *steps = at_host_graph_own_steps(graph);
  if (!steps) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to change a graph");
  if (bytes) memcpy(steps->recording.args + steps->recording.node[index].args, args, bytes);
  return ATTUNE_OK;
}

attune_status at_host_graph_set_enabled(at_graph *graph, size_t index, bool enabled) {
  at_host_steps *steps = at_host_graph_own_steps(graph);
  if (steps && !steps->disabled && !enabled) steps->disabled = calloc(steps->recording.nodes, sizeof *steps->disabled);
  if (!steps || (!steps->disabled && !enabled)) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to change a graph");
  if (steps->disabled) steps->disabled[index] = !enabled;
  return ATTUNE_OK;
}
