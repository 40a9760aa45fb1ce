/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.c: the nodes and edges of a kept graph, and changes of them. Arguments are checked here, the backend does
 * the rest. */
#include <attune/graph_nodes.h>

#include "src/base/struct_size.h"
#include "src/graph/graph.h"
#include "src/trace/instrument.h"

static attune_status check_node(const attune_graph *graph, size_t index) {
  AT_TRY(at_graph_check_kept(graph));
  const size_t count = graph->device->backend.graph->nodes(graph->made);
  if (index < count) return ATTUNE_OK;
  return AT_INVALID("index is %zu; should be less than the graph's %zu nodes", index, count);
}

attune_status attune_graph_get_node(attune_node *out, const attune_graph *graph, size_t index) {
  AT_REQUIRE_AS(out, "point to an attune_node");
  attune_node full = {0};
  AT_TRY(AT_CLEAR(out));
  AT_TRY(check_node(graph, index));
  AT_TRY(graph->device->backend.graph->node(graph->made, index, &full));
  return AT_GIVE(out, &full);
}

attune_status attune_graph_get_edges(const attune_graph *graph, attune_edge *out, size_t room, size_t *out_count) {
  AT_REQUIRE_AS(out_count, "point to a size_t");
  *out_count = 0;
  if (!out && room > 0) return AT_INVALID("out is NULL; should have room for %zu edges", room);
  AT_TRY(at_graph_check_kept(graph));
  return graph->device->backend.graph->edges(graph->made, out, room, out_count);
}

static bool has_parameters(attune_node_kind kind) {
  return kind == ATTUNE_NODE_KERNEL || kind == ATTUNE_NODE_COPY || kind == ATTUNE_NODE_FILL || kind == ATTUNE_NODE_CALL;
}

static attune_status check_parameters(attune_node *node, const attune_graph *graph, size_t index) {
  attune_status status = attune_graph_get_node(node, graph, index);
  if (status != ATTUNE_OK || has_parameters(node->kind)) return status;
  return at_fail(ATTUNE_UNSUPPORTED,
                 "node %zu is of kind %s, which has no parameters; should be a kernel, copy, fill or call", index,
                 node->name);
}

attune_status attune_graph_get_parameters(attune_node_parameters *out, const attune_graph *graph, size_t index) {
  attune_node node = {0};
  AT_REQUIRE_AS(out, "point to an attune_node_parameters");
  attune_node_parameters full;
  AT_TRY(AT_TAKE(&full, out));
  if (!full.arguments && full.arguments_room > 0)
    return AT_INVALID("arguments is NULL; should have room for %zu bytes", full.arguments_room);
  AT_TRY(check_parameters(&node, graph, index));
  full =
      (attune_node_parameters){.kind = node.kind, .arguments = full.arguments, .arguments_room = full.arguments_room};
  attune_status status = graph->device->backend.graph->get_parameters(graph->made, index, &full);
  if (status == ATTUNE_OK) status = AT_GIVE(out, &full);
  if (status == ATTUNE_OK && full.arguments && full.arguments_bytes > full.arguments_room)
    return AT_INVALID("arguments_room is %zu; should be at least %zu", full.arguments_room, full.arguments_bytes);
  return status;
}

static attune_status check_copy(const attune_box_copy *c) {
  if (!c->destination || !c->source) return AT_INVALID("copy.%s is NULL", c->source ? "destination" : "source");
  if (c->bytes == 0 || c->rows == 0 || c->slices == 0)
    return AT_INVALID("copy has %zu x %zu x %zu bytes; should be at least one", c->slices, c->rows, c->bytes);
  if (c->rows > 1 && (c->destination_pitch < c->bytes || c->source_pitch < c->bytes))
    return AT_INVALID("copy has rows of %zu bytes; pitches should be at least that", c->bytes);
  return ATTUNE_OK;
}

static attune_status check_fill(const attune_box_fill *f) {
  const size_t e = f->element_bytes;
  if (!f->destination) return AT_INVALID("fill.destination is NULL");
  if (e == 0 || e > ATTUNE_FILL_BYTES || (e & (e - 1)) != 0)
    return AT_INVALID("fill.element_bytes is %zu; should be 1, 2, 4, 8 or 16", e);
  if (f->count == 0 || f->rows == 0 || f->slices == 0)
    return AT_INVALID("fill has %zu x %zu x %zu elements; should be at least one", f->slices, f->rows, f->count);
  if (f->rows > 1 && f->pitch / e < f->count)
    return AT_INVALID("fill.pitch is %zu; should be at least that of a row", f->pitch);
  return ATTUNE_OK;
}

static attune_status check_new(const attune_node *node, size_t index, const attune_node_parameters *p) {
  if (p->kind != node->kind)
    return AT_INVALID("parameters are of kind %d, node %zu is of kind %d (%s); should be of the same kind",
                      (int)p->kind, index, (int)node->kind, node->name);
  switch (p->kind) {
  case ATTUNE_NODE_COPY: return check_copy(&p->copy);
  case ATTUNE_NODE_FILL: return check_fill(&p->fill);
  case ATTUNE_NODE_CALL:
    return p->fn ? ATTUNE_OK : AT_INVALID("fn is NULL; should be a function to run in stream order");
  default:
    return p->arguments || p->arguments_bytes == 0
               ? ATTUNE_OK
               : AT_INVALID("arguments is NULL; should point to the argument block");
  }
}

/* Forgets which memory a replay uses. */
static void forget_uses(attune_graph *graph) {
  if (graph->watched) at_instrument_graph_gone(&graph->watched);
}

attune_status attune_graph_set_parameters(attune_graph *graph, size_t index, const attune_node_parameters *parameters) {
  attune_node node = {0};
  AT_REQUIRE_AS(parameters, "point to an attune_node_parameters");
  attune_node_parameters full;
  attune_status status = AT_TAKE(&full, parameters);
  if (status == ATTUNE_OK) status = check_parameters(&node, graph, index);
  if (status == ATTUNE_OK) status = check_new(&node, index, &full);
  if (status == ATTUNE_OK) status = graph->device->backend.graph->set_parameters(graph->made, index, &full);
  if (status == ATTUNE_OK) forget_uses(graph);
  return status;
}

attune_status attune_graph_set_enabled(attune_graph *graph, size_t index, int enabled) {
  attune_node node = {0};
  attune_status status = attune_graph_get_node(&node, graph, index);
  if (status != ATTUNE_OK) return status;
  if (node.kind != ATTUNE_NODE_KERNEL && node.kind != ATTUNE_NODE_COPY && node.kind != ATTUNE_NODE_FILL)
    return at_fail(ATTUNE_UNSUPPORTED, "node %zu is of kind %s; only kernels, copies and fills can be disabled", index,
                   node.name);
  if (!graph->instantiated) status = attune_graph_instantiate(graph);
  if (status == ATTUNE_OK) status = graph->device->backend.graph->set_enabled(graph->made, index, enabled != 0);
  if (status == ATTUNE_OK) forget_uses(graph);
  return status;
}
