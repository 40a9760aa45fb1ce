/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.c: nodes of a graph that attune captured, changed by CUDA: attune replays the changed graph. */
#include "examples/interop/interop.h"

#include <string.h>

enum { BYTES = 4096 };

static int calls;

static void CUDART_CB count_call(void *user) {
  (void)user;
  calls++;
}

static void CUDART_CB let_go(void *user) {
  ++*(int *)user;
}

static int value_of(attune_stream *stream, const void *memory) {
  unsigned char bytes[BYTES];
  OK(attune_copy(stream, bytes, memory, BYTES));
  OK(attune_stream_synchronize(stream));
  for (int i = 1; i < BYTES; i++) MUST(bytes[i] == bytes[0]);
  return bytes[0];
}

/* The only node of a kind. */
static cudaGraphNode_t find(cudaGraph_t graph, enum cudaGraphNodeType kind) {
  cudaGraphNode_t nodes[8];
  size_t count = 8;
  CUDA(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    CUDA(cudaGraphNodeGetType(nodes[i], &type));
    if (type == kind) return nodes[i];
  }
  return NULL;
}

/* A node of the program's own in a capture of attune's: returns how many it added. */
static int add_in_capture(attune_stream *stream) {
#if CUDART_VERSION >= 13000
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = NULL;
  const cudaGraphNode_t *before = NULL;
  const cudaGraphEdgeData *edges = NULL;
  size_t count = 0;
  cudaGraphNode_t node = NULL;
  attune_capture_info info = {0};
  const struct cudaHostNodeParams call = {.fn = count_call, .userData = NULL};
  CUDA(cudaStreamGetCaptureInfo(interop_native(stream), &status, &id, &graph, &before, &edges, &count));
  OK(attune_stream_capture_info(stream, &info));
  MUST(status == cudaStreamCaptureStatusActive && info.id == id);
  CUDA(cudaGraphAddHostNode(&node, graph, before, count, &call));
  CUDA(cudaStreamUpdateCaptureDependencies(interop_native(stream), &node, NULL, 1, cudaStreamSetCaptureDependencies));
  return 1;
#else
  (void)stream; /* the same calls have other arguments there */
  return 0;
#endif
}

int main(void) {
  attune_stream *stream = interop_begin();
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  void *memory = NULL, *other = NULL;
  int let = 0;
  options.keep_graph = 1;
  OK(attune_alloc(&memory, stream, BYTES));
  OK(attune_alloc(&other, stream, BYTES));
  OK(attune_graph_create(&graph, interop_device));
  OK(attune_graph_capture_begin(graph, stream, &options));
  OK(attune_fill(stream, memory, 1, BYTES));
  const int added = add_in_capture(stream);
  OK(attune_graph_capture_end(graph, stream));

  /* One node more, behind attune's, and an object that the graph keeps; then the executable is made again. */
  cudaGraph_t native = (cudaGraph_t)attune_graph_native(graph);
  cudaGraphNode_t fill = find(native, cudaGraphNodeTypeMemset), host = NULL;
  MUST(fill);
  struct cudaHostNodeParams call = {.fn = count_call, .userData = NULL};
  CUDA(cudaGraphAddHostNode(&host, native, &fill, 1, &call));
  cudaUserObject_t object = NULL;
  CUDA(cudaUserObjectCreate(&object, &let, let_go, 1, cudaUserObjectNoDestructorSync));
  CUDA(cudaGraphRetainUserObject(native, object, 1, cudaGraphUserObjectMove));
  attune_event *event = NULL;
  cudaGraphNode_t record = NULL;
  cudaGraphNode_t more = NULL;
  struct cudaMemsetParams second = {.dst = other, .value = 7, .elementSize = 1, .width = BYTES, .height = 1};
  CUDA(cudaGraphAddMemsetNode(&more, native, NULL, 0, &second));
  OK(attune_event_create(&event, interop_device, NULL));
  CUDA(cudaGraphAddEventRecordNode(&record, native, &host, 1, (cudaEvent_t)attune_event_native(event)));
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, stream));
  MUST(value_of(stream, memory) == 1 && calls == 1 + added);
  MUST(attune_graph_node_count(graph) == 4 + (size_t)added);
  MUST(value_of(stream, other) == 7);
  OK(attune_event_synchronize(event));

  /* New parameters for a node of the executable, and a node switched off. */
  cudaGraphExec_t executable = (cudaGraphExec_t)attune_graph_native_executable(graph);
  struct cudaMemsetParams change;
  CUDA(cudaGraphMemsetNodeGetParams(fill, &change));
  change.value = change.elementSize == 4 ? 0x02020202 : 2;
  CUDA(cudaGraphExecMemsetNodeSetParams(executable, fill, &change));
  OK(attune_graph_replay(graph, stream));
  MUST(value_of(stream, memory) == 2 && calls == 2 * (1 + added));
  OK(attune_fill(stream, memory, 9, BYTES));
  CUDA(cudaGraphNodeSetEnabled(executable, fill, 0));
  OK(attune_graph_replay(graph, stream));
  MUST(value_of(stream, memory) == 9 && calls == 3 * (1 + added));
  unsigned enabled = 1;
  CUDA(cudaGraphNodeGetEnabled(executable, fill, &enabled));
  MUST(enabled == 0);

  attune_graph_destroy(graph);
  attune_event_destroy(event);
  OK(attune_device_synchronize(interop_device));
  OK(attune_free(other, stream));
  OK(attune_free(memory, stream));
  return interop_end(stream, "nodes of graphs");
}
