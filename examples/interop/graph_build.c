/* SPDX-License-Identifier: Apache-2.0
 * graph_build.c: a graph built by hand from every kind of node, around a graph that attune captured, on attune's
 * memory, with attune's events, launched on attune's stream. */
#include "examples/interop/kernels.h"

#include <string.h>

enum { COUNT = 1024, BYTES = COUNT * (int)sizeof(float) };

static attune_stream *stream;

static void CUDART_CB let_go(void *user) {
  ++*(int *)user;
}

static attune_event *new_event(void) {
  attune_event *event = NULL;
  OK(attune_event_create(&event, interop_device, NULL));
  return event;
}

static cudaEvent_t native_event(const attune_event *event) {
  return (cudaEvent_t)attune_event_native(event);
}

/* A graph with one copy in it, kept so that CUDA can put it into another one. */
static attune_graph *capture_copy(void *to, const void *from) {
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  options.keep_graph = 1;
  OK(attune_graph_create(&graph, interop_device));
  OK(attune_graph_capture_begin(graph, stream, &options));
  OK(attune_copy(stream, to, from, BYTES));
  OK(attune_graph_capture_end(graph, stream));
  return graph;
}

static cudaGraphNode_t add_twice(cudaGraph_t graph, cudaGraphNode_t after, float *memory) {
  cudaGraphNode_t node = NULL;
  int count = COUNT;
  void *arguments[] = {&memory, &count};
  const struct cudaKernelNodeParams kernel = {.func = (void *)kernels_load(KERNELS_HEAD KERNEL_TWICE, "twice"),
                                              .gridDim = {COUNT / 256, 1, 1},
                                              .blockDim = {256, 1, 1},
                                              .kernelParams = arguments};
  CUDA(cudaGraphAddKernelNode(&node, graph, &after, 1, &kernel));
  return node;
}

static cudaGraphNode_t add_copy(cudaGraph_t graph, cudaGraphNode_t after, float *to, float *from) {
  cudaGraphNode_t node = NULL;
  const struct cudaMemcpy3DParms copy = {.srcPtr = {.ptr = from, .pitch = BYTES, .xsize = BYTES, .ysize = 1},
                                         .dstPtr = {.ptr = to, .pitch = BYTES, .xsize = BYTES, .ysize = 1},
                                         .extent = {BYTES, 1, 1},
                                         .kind = cudaMemcpyDeviceToDevice};
  CUDA(cudaGraphAddMemcpyNode(&node, graph, &after, 1, &copy));
  return node;
}

/* A node that waits for `first`, and one that records it; each gets `second` instead. */
static void change_events(cudaGraphNode_t wait, cudaGraphNode_t record, attune_event *first, attune_event *second) {
  cudaEvent_t found = NULL;
  CUDA(cudaGraphEventWaitNodeGetEvent(wait, &found));
  MUST(found == native_event(first));
  CUDA(cudaGraphEventRecordNodeGetEvent(record, &found));
  MUST(found == native_event(first));
  CUDA(cudaGraphEventWaitNodeSetEvent(wait, native_event(second)));
  CUDA(cudaGraphEventRecordNodeSetEvent(record, native_event(second)));
  CUDA(cudaGraphEventRecordNodeGetEvent(record, &found));
  MUST(found == native_event(second));
}

/* The graph keeps one reference, then gives it back; the program's two go last. */
static void count_references(cudaGraph_t graph, int *let) {
  cudaUserObject_t object = NULL;
  CUDA(cudaUserObjectCreate(&object, let, let_go, 1, cudaUserObjectNoDestructorSync));
  CUDA(cudaUserObjectRetain(object, 1));
  CUDA(cudaGraphRetainUserObject(graph, object, 1, 0));
  CUDA(cudaGraphReleaseUserObject(graph, object, 1));
  CUDA(cudaUserObjectRelease(object, 2));
}

int main(void) {
  cudaGraph_t graph = NULL, inside = NULL;
  cudaGraphExec_t executable = NULL;
  cudaGraphNode_t start = NULL, wait = NULL, child = NULL, copy = NULL, record = NULL;
  int let = 0;
  size_t nodes = 0;
  stream = interop_begin();
  float *source = interop_numbers(stream, COUNT, 3.0f), *middle = interop_numbers(stream, COUNT, 0.0f);
  float *next = interop_numbers(stream, COUNT, 0.0f), *last = interop_numbers(stream, COUNT, 0.0f);
  attune_event *first = new_event(), *second = new_event();
  attune_graph *captured = capture_copy(middle, source);

  /* source -> middle (attune's capture) -> next -> doubled -> last */
  CUDA(cudaGraphCreate(&graph, 0));
  CUDA(cudaGraphAddEmptyNode(&start, graph, NULL, 0));
  CUDA(cudaGraphAddEventWaitNode(&wait, graph, &start, 1, native_event(first)));
  CUDA(cudaGraphAddChildGraphNode(&child, graph, &wait, 1, (cudaGraph_t)attune_graph_native(captured)));
  CUDA(cudaGraphChildGraphNodeGetGraph(child, &inside));
  CUDA(cudaGraphGetNodes(inside, NULL, &nodes));
  MUST(nodes == attune_graph_node_count(captured));
  CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &child, 1, next, middle, BYTES, cudaMemcpyDeviceToDevice));
  copy = add_copy(graph, add_twice(graph, copy, next), last, next);
  CUDA(cudaGraphAddEventRecordNode(&record, graph, &copy, 1, native_event(first)));
  change_events(wait, record, first, second);
  count_references(graph, &let);

  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  OK(attune_event_record(second, stream));
  CUDA(cudaGraphLaunch(executable, interop_native(stream)));
  interop_check(stream, last, COUNT, 3.0f, 2.0f);
  OK(attune_event_query(second));

  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  attune_graph_destroy(captured);
  attune_event_destroy(first);
  attune_event_destroy(second);
  OK(attune_free(source, stream));
  OK(attune_free(middle, stream));
  OK(attune_free(next, stream));
  OK(attune_free(last, stream));
  return interop_end(stream, "graphs built by hand");
}
