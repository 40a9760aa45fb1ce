/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.c: the nodes and edges of a CUDA graph, and changes of them: of the graph first, then of its executable,
 * in place where CUDA can. */
#include "src/cuda/graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* CUDA 13 has the calls that tell of programmatic edges under the old names. */
#if CUDART_VERSION >= 13000
#define GET_EDGES cudaGraphGetEdges
#else
#define GET_EDGES cudaGraphGetEdges_v2
#endif

static attune_status check(const at_graph *graph, cudaError_t error, const char *what) {
  return at_cuda_check(graph->device, error, what);
}

/* The nodes in CUDA's order, asked once. The program may have edited the graph, so it is asked how many there are. */
static attune_status list_nodes(at_graph *graph) {
  if (graph->node) return ATTUNE_OK;
  size_t count = graph->nodes;
  cudaGraphNode_t *list = calloc(count + 1, sizeof *list);
  if (!list) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the nodes of a graph");
  attune_status status = check(graph, cudaGraphGetNodes(graph->captured, list, &count), "cudaGraphGetNodes");
  if (status == ATTUNE_OK && count < graph->nodes)
    status = AT_INVALID("the graph now has %zu nodes; should be instantiated again", count);
  if (status == ATTUNE_OK)
    graph->node = list;
  else
    free(list);
  return status;
}

static attune_status enter(at_cuda_scope *scope, at_graph *graph) {
  AT_TRY(at_cuda_enter_relaxed(scope, graph->device));
  attune_status status = list_nodes(graph);
  if (status != ATTUNE_OK) at_cuda_leave(scope);
  return status;
}

/* ---- nodes and edges ---- */

static attune_node_kind kind_of(enum cudaGraphNodeType type) {
  switch (type) {
  case cudaGraphNodeTypeKernel: return ATTUNE_NODE_KERNEL;
  case cudaGraphNodeTypeMemcpy: return ATTUNE_NODE_COPY;
  case cudaGraphNodeTypeMemset: return ATTUNE_NODE_FILL;
  case cudaGraphNodeTypeHost: return ATTUNE_NODE_CALL;
  case cudaGraphNodeTypeGraph: return ATTUNE_NODE_GRAPH;
  case cudaGraphNodeTypeEmpty: return ATTUNE_NODE_EMPTY;
  case cudaGraphNodeTypeEventRecord: return ATTUNE_NODE_RECORD;
  case cudaGraphNodeTypeWaitEvent: return ATTUNE_NODE_WAIT;
  case cudaGraphNodeTypeMemAlloc: return ATTUNE_NODE_ALLOC;
  case cudaGraphNodeTypeMemFree: return ATTUNE_NODE_FREE;
  default: return ATTUNE_NODE_OTHER;
  }
}

attune_status at_cuda_graph_node(at_graph *graph, size_t index, attune_node *out) {
  static const char *const names[] = {"work",  "work",   "copy", "fill",  "call", "graph",
                                      "empty", "record", "wait", "alloc", "free"};
  enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  at_cuda_scope scope;
  AT_TRY(enter(&scope, graph));
  attune_status status = check(graph, cudaGraphNodeGetType(graph->node[index], &type), "cudaGraphNodeGetType");
  out->kind = kind_of(type);
  out->native = (void *)graph->node[index];
  out->enabled = !graph->disabled || !graph->disabled[index];
  if (out->kind == ATTUNE_NODE_KERNEL)
    at_cuda_graph_kernel_name(out->name, sizeof out->name, graph->node[index]);
  else
    (void)at_copy_text(out->name, sizeof out->name, names[out->kind]);
  at_cuda_leave(&scope);
  return status;
}

typedef struct place {
  cudaGraphNode_t node;
  size_t index;
} place;

static int by_node(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)((const place *)a)->node, y = (uintptr_t)((const place *)b)->node;
  return (x > y) - (x < y);
}

static size_t index_of(const place *places, size_t count, cudaGraphNode_t node) {
  const place wanted = {node, 0}, *found = bsearch(&wanted, places, count, sizeof *places, by_node);
  return found ? found->index : count;
}

typedef struct edges {
  cudaGraphNode_t *from, *to;
  cudaGraphEdgeData *data;
  place *places;
  size_t count;
} edges;

static attune_status read_edges(at_graph *graph, edges *e) {
  attune_status status = check(graph, GET_EDGES(graph->captured, NULL, NULL, NULL, &e->count), "cudaGraphGetEdges");
  if (status != ATTUNE_OK) return status;
  e->from = calloc(e->count + 1, sizeof *e->from);
  e->to = calloc(e->count + 1, sizeof *e->to);
  e->data = calloc(e->count + 1, sizeof *e->data);
  e->places = calloc(graph->nodes + 1, sizeof *e->places);
  if (!e->from || !e->to || !e->data || !e->places)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the edges of a graph");
  if (e->count > 0)
    status = check(graph, GET_EDGES(graph->captured, e->from, e->to, e->data, &e->count), "cudaGraphGetEdges");
  for (size_t i = 0; i < graph->nodes; i++) e->places[i] = (place){graph->node[i], i};
  qsort(e->places, graph->nodes, sizeof *e->places, by_node);
  return status;
}

attune_status at_cuda_graph_edges(at_graph *graph, attune_edge *out, size_t room, size_t *out_count) {
  edges e = {0};
  at_cuda_scope scope;
  AT_TRY(enter(&scope, graph));
  attune_status status = read_edges(graph, &e);
  for (size_t i = 0; status == ATTUNE_OK && i < e.count && i < room; i++)
    out[i] = (attune_edge){index_of(e.places, graph->nodes, e.from[i]), index_of(e.places, graph->nodes, e.to[i]),
                           e.data[i].type == cudaGraphDependencyTypeProgrammatic};
  if (status == ATTUNE_OK) *out_count = e.count;
  free(e.from);
  free(e.to);
  free(e.data);
  free(e.places);
  at_cuda_leave(&scope);
  return status;
}

/* ---- parameters as CUDA has them ---- */

static attune_status read_copy(at_graph *graph, cudaGraphNode_t node, attune_box_copy *out) {
  struct cudaMemcpy3DParms p;
  AT_TRY(check(graph, cudaGraphMemcpyNodeGetParams(node, &p), "cudaGraphMemcpyNodeGetParams"));
  if (p.srcArray || p.dstArray) return at_fail(ATTUNE_UNSUPPORTED, "the node copies an array of CUDA");
  const size_t to = p.dstPtr.pitch ? p.dstPtr.pitch : p.extent.width,
               from = p.srcPtr.pitch ? p.srcPtr.pitch : p.extent.width;
  const size_t to_slice = to * (p.dstPtr.ysize > p.extent.height ? p.dstPtr.ysize : p.extent.height),
               from_slice = from * (p.srcPtr.ysize > p.extent.height ? p.srcPtr.ysize : p.extent.height);
  *out =
      (attune_box_copy){.destination = (char *)p.dstPtr.ptr + p.dstPos.x + p.dstPos.y * to + p.dstPos.z * to_slice,
                        .destination_pitch = to,
                        .destination_slice_pitch = to_slice,
                        .source = (const char *)p.srcPtr.ptr + p.srcPos.x + p.srcPos.y * from + p.srcPos.z * from_slice,
                        .source_pitch = from,
                        .source_slice_pitch = from_slice,
                        .bytes = p.extent.width,
                        .rows = p.extent.height,
                        .slices = p.extent.depth};
  return ATTUNE_OK;
}

static bool is_line(const attune_box_copy *c) {
  return c->rows == 1 && c->slices == 1;
}

static struct cudaMemcpy3DParms copy_of(const attune_box_copy *c) {
  return (struct cudaMemcpy3DParms){
      .srcPtr = {(void *)(uintptr_t)c->source, c->source_pitch, c->bytes,
                 c->slices > 1 ? c->source_slice_pitch / c->source_pitch : c->rows},
      .dstPtr = {c->destination, c->destination_pitch, c->bytes,
                 c->slices > 1 ? c->destination_slice_pitch / c->destination_pitch : c->rows},
      .extent = {c->bytes, c->rows, c->slices},
      .kind = cudaMemcpyDefault};
}

static attune_status check_copy(const attune_box_copy *c) {
  if (c->slices == 1) return ATTUNE_OK;
  if (c->destination_pitch && c->source_pitch && c->destination_slice_pitch % c->destination_pitch == 0 &&
      c->source_slice_pitch % c->source_pitch == 0)
    return ATTUNE_OK;
  return AT_INVALID("copy has slices whose distance is not a multiple of the pitch; on CUDA it should be");
}

static cudaError_t write_copy(at_graph *graph, cudaGraphNode_t node, bool executable, const attune_box_copy *c) {
  const struct cudaMemcpy3DParms p = copy_of(c);
  if (is_line(c))
    return executable ? cudaGraphExecMemcpyNodeSetParams1D(graph->executable, node, c->destination, c->source, c->bytes,
                                                           cudaMemcpyDefault)
                      : cudaGraphMemcpyNodeSetParams1D(node, c->destination, c->source, c->bytes, cudaMemcpyDefault);
  return executable ? cudaGraphExecMemcpyNodeSetParams(graph->executable, node, &p)
                    : cudaGraphMemcpyNodeSetParams(node, &p);
}

static attune_status read_fill(at_graph *graph, cudaGraphNode_t node, attune_box_fill *out) {
  struct cudaMemsetParams p;
  AT_TRY(check(graph, cudaGraphMemsetNodeGetParams(node, &p), "cudaGraphMemsetNodeGetParams"));
  const size_t bytes = p.width * p.elementSize, pitch = p.pitch ? p.pitch : bytes;
  *out = (attune_box_fill){.destination = p.dst,
                           .pitch = pitch,
                           .slice_pitch = p.height * pitch,
                           .element_bytes = p.elementSize,
                           .count = p.width,
                           .rows = p.height,
                           .slices = 1};
  memcpy(out->element, &p.value, p.elementSize <= sizeof p.value ? p.elementSize : sizeof p.value);
  return ATTUNE_OK;
}

static attune_status check_fill(const attune_box_fill *f) {
  if (f->element_bytes <= 4 && f->slices == 1) return ATTUNE_OK;
  return AT_INVALID(
      "fill has %zu slices and elements of %zu bytes; on CUDA it should have 1 slice and elements of at most 4 bytes",
      f->slices, f->element_bytes);
}

static cudaError_t write_fill(at_graph *graph, cudaGraphNode_t node, bool executable, const attune_box_fill *f) {
  struct cudaMemsetParams p = {.dst = f->destination,
                               .elementSize = (unsigned)f->element_bytes,
                               .width = f->count,
                               .height = f->rows,
                               .pitch = f->rows > 1 ? f->pitch : f->count * f->element_bytes};
  memcpy(&p.value, f->element, f->element_bytes);
  return executable ? cudaGraphExecMemsetNodeSetParams(graph->executable, node, &p)
                    : cudaGraphMemsetNodeSetParams(node, &p);
}

static cudaError_t write_call(at_graph *graph, cudaGraphNode_t node, bool executable, const attune_node_parameters *p) {
  const struct cudaHostNodeParams call = {.fn = p->fn, .userData = p->user};
  return executable ? cudaGraphExecHostNodeSetParams(graph->executable, node, &call)
                    : cudaGraphHostNodeSetParams(node, &call);
}

static attune_status read_node(at_graph *graph, cudaGraphNode_t node, attune_node_parameters *out) {
  struct cudaHostNodeParams call = {0};
  attune_status status = ATTUNE_OK;
  switch (out->kind) {
  case ATTUNE_NODE_COPY: return read_copy(graph, node, &out->copy);
  case ATTUNE_NODE_FILL: return read_fill(graph, node, &out->fill);
  case ATTUNE_NODE_KERNEL: return at_cuda_graph_kernel_get(graph->device, node, out);
  default:
    status = check(graph, cudaGraphHostNodeGetParams(node, &call), "cudaGraphHostNodeGetParams");
    out->fn = call.fn;
    out->user = call.userData;
    return status;
  }
}

/* Into the graph, or into its executable. */
static attune_status write_node(at_graph *graph, cudaGraphNode_t node, bool executable,
                                const attune_node_parameters *p) {
  switch (p->kind) {
  case ATTUNE_NODE_COPY:
    return check(graph, write_copy(graph, node, executable, &p->copy), "cudaGraphMemcpyNodeSetParams");
  case ATTUNE_NODE_FILL:
    return check(graph, write_fill(graph, node, executable, &p->fill), "cudaGraphMemsetNodeSetParams");
  case ATTUNE_NODE_KERNEL: return at_cuda_graph_kernel_set(graph, node, executable, p);
  default: return check(graph, write_call(graph, node, executable, p), "cudaGraphHostNodeSetParams");
  }
}

attune_status at_cuda_graph_get_parameters(at_graph *graph, size_t index, attune_node_parameters *out) {
  at_cuda_scope scope;
  AT_TRY(enter(&scope, graph));
  attune_status status = read_node(graph, graph->node[index], out);
  at_cuda_leave(&scope);
  return status;
}

/* ---- changes ---- */

/* What the executable refuses, such as a copy in two dimensions, a new executable takes over from the graph. */
static attune_status change_executable(at_graph *graph, cudaGraphNode_t node, const attune_node_parameters *p) {
  if (!graph->executable) return ATTUNE_OK;
  const at_message kept = at_message_keep();
  attune_status status = graph->borrowed ? ATTUNE_UNSUPPORTED : write_node(graph, node, true, p);
  if (status != ATTUNE_OK && status != ATTUNE_DEVICE_ERROR) status = at_cuda_graph_remake(graph);
  return at_message_settle(&kept, status);
}

/* The old parameters, with room for the old arguments. */
static attune_status read_old(at_graph *graph, cudaGraphNode_t node, attune_node_parameters *old) {
  attune_status status = read_node(graph, node, old);
  if (status != ATTUNE_OK || old->arguments_bytes == 0) return status;
  old->arguments_room = old->arguments_bytes;
  old->arguments = malloc(old->arguments_room);
  if (!old->arguments) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the arguments of a kernel");
  return read_node(graph, node, old);
}

attune_status at_cuda_graph_set_parameters(at_graph *graph, size_t index, const attune_node_parameters *p) {
  attune_node_parameters old = {.kind = p->kind};
  at_cuda_scope scope;
  attune_status status = ATTUNE_OK;
  if (p->kind == ATTUNE_NODE_COPY) status = check_copy(&p->copy);
  if (p->kind == ATTUNE_NODE_FILL) status = check_fill(&p->fill);
  if (status == ATTUNE_OK) status = enter(&scope, graph);
  if (status != ATTUNE_OK) return status;
  const cudaGraphNode_t node = graph->node[index];
  status = read_old(graph, node, &old);
  if (status == ATTUNE_OK) status = write_node(graph, node, false, p);
  if (status == ATTUNE_OK) {
    status = change_executable(graph, node, p);
    const at_message kept = at_message_keep(); /* of the failure */
    if (status != ATTUNE_OK) (void)write_node(graph, node, false, &old);
    if (status != ATTUNE_OK) (void)at_message_settle(&kept, ATTUNE_OK);
  }
  free(old.arguments);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_graph_set_enabled(at_graph *graph, size_t index, bool enabled) {
  at_cuda_scope scope;
  attune_status status = enter(&scope, graph);
  if (status != ATTUNE_OK) return status;
  if (!graph->disabled) graph->disabled = calloc(graph->nodes + 1, sizeof *graph->disabled);
  if (!graph->disabled) status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to change a graph");
  if (status == ATTUNE_OK && graph->borrowed) status = at_cuda_graph_remake(graph);
  if (status == ATTUNE_OK)
    status = check(graph, cudaGraphNodeSetEnabled(graph->executable, graph->node[index], enabled),
                   "cudaGraphNodeSetEnabled");
  if (status == ATTUNE_OK) graph->disabled[index] = !enabled;
  at_cuda_leave(&scope);
  return status;
}
