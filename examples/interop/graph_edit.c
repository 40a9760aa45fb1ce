/* SPDX-License-Identifier: Apache-2.0
 * graph_edit.c: the inside of a graph that attune captured, edited by CUDA: order taken away and given, a node removed,
 * memory that nodes of the graph take and free, attributes of its kernels, and an executable with flags of the
 * program's choice. */
#include "examples/interop/kernels.h"

enum { COUNT = 1024, BYTES = COUNT * (int)sizeof(float), MOST = 16 };

static int find_all(cudaGraph_t graph, enum cudaGraphNodeType kind, cudaGraphNode_t out[MOST]) {
  cudaGraphNode_t nodes[MOST];
  size_t count = MOST;
  int found = 0;
  CUDA(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    CUDA(cudaGraphNodeGetType(nodes[i], &type));
    if (type == kind) out[found++] = nodes[i];
  }
  return found;
}

/* The two fills were captured one after the other; each second one of `edges` is taken. */
static void change_order(cudaGraph_t graph, cudaGraphNode_t first, cudaGraphNode_t second) {
#if CUDART_VERSION >= 13000
  CUDA(cudaGraphRemoveDependencies(graph, &first, &second, NULL, 1));
  CUDA(cudaGraphAddDependencies(graph, &second, &first, NULL, 1));
#else
  CUDA(cudaGraphRemoveDependencies(graph, &first, &second, 1));
  CUDA(cudaGraphAddDependencies(graph, &second, &first, 1));
#endif
}

static void order(attune_stream *stream) {
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  cudaGraphNode_t fills[MOST];
  unsigned char last = 0;
  void *memory = NULL;
  options.keep_graph = 1;
  OK(attune_alloc(&memory, stream, BYTES));
  OK(attune_graph_create(&graph, interop_device));
  OK(attune_graph_capture_begin(graph, stream, &options));
  OK(attune_fill(stream, memory, 1, BYTES));
  OK(attune_fill(stream, memory, 2, BYTES));
  OK(attune_graph_capture_end(graph, stream));
  cudaGraph_t native = (cudaGraph_t)attune_graph_native(graph);
  MUST(find_all(native, cudaGraphNodeTypeMemset, fills) == 2);
  attune_edge edges[4];
  size_t count = 0;
  OK(attune_graph_get_edges(graph, edges, 4, &count));
  MUST(count == 1);
  attune_node from = {0};
  OK(attune_graph_get_node(&from, graph, edges[0].from));
  const int first = fills[0] == (cudaGraphNode_t)from.native ? 0 : 1;
  change_order(native, fills[first], fills[1 - first]);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, stream));
  OK(attune_copy(stream, &last, memory, 1));
  OK(attune_stream_synchronize(stream));
  MUST(last == 1); /* the first fill comes last now */

  CUDA(cudaGraphDestroyNode(fills[first]));
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, stream));
  OK(attune_copy(stream, &last, memory, 1));
  OK(attune_stream_synchronize(stream));
  MUST(last == 2);
  attune_graph_destroy(graph);
  OK(attune_free(memory, stream));
}

/* The program's kernel, captured by attune; a second one gets its attributes. */
static void attributes(attune_stream *stream, float *memory) {
  const cudaKernel_t kernel = kernels_load(KERNELS_HEAD KERNEL_TWICE, "twice");
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  cudaGraphNode_t kernels[MOST];
  int count = COUNT;
  void *arguments[] = {&memory, &count};
  const dim3 grid = {COUNT / 256, 1, 1}, block = {256, 1, 1};
  options.keep_graph = 1;
  OK(attune_graph_create(&graph, interop_device));
  OK(attune_graph_capture_begin(graph, stream, &options));
  for (int i = 0; i < 2; i++)
    CUDA(cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0, interop_native(stream)));
  OK(attune_graph_capture_end(graph, stream));
  MUST(find_all((cudaGraph_t)attune_graph_native(graph), cudaGraphNodeTypeKernel, kernels) == 2);
  cudaLaunchAttributeValue value, read;
  int least = 0, greatest = 0;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  value.priority = greatest;
  CUDA(cudaGraphKernelNodeSetAttribute(kernels[0], cudaLaunchAttributePriority, &value));
  CUDA(cudaGraphKernelNodeCopyAttributes(kernels[1], kernels[0]));
  CUDA(cudaGraphKernelNodeGetAttribute(kernels[1], cudaLaunchAttributePriority, &read));
  MUST(read.priority == greatest);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, stream));
  interop_check(stream, memory, COUNT, 1.0f, 4.0f);

  /* An executable of the program's own, of the same graph, on attune's stream. */
  cudaGraphExec_t executable = NULL;
  CUDA(cudaGraphInstantiateWithFlags(&executable, (cudaGraph_t)attune_graph_native(graph),
                                     cudaGraphInstantiateFlagUseNodePriority));
  CUDA(cudaGraphLaunch(executable, interop_native(stream)));
  interop_check(stream, memory, COUNT, 1.0f, 16.0f);
  CUDA(cudaGraphExecDestroy(executable));
  attune_graph_destroy(graph);
}

/* Nodes that take memory and free it, around a fill and before a copy, in a graph that attune replays. */
static void memory_of_nodes(attune_stream *stream) {
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  cudaGraphNode_t nodes[MOST], taken = NULL, fill = NULL, copy = NULL, freed = NULL;
  struct cudaMemAllocNodeParams about = {.poolProps = {.allocType = cudaMemAllocationTypePinned,
                                                       .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
                                         .bytesize = BYTES},
                                again;
  void *memory = NULL, *gone = NULL;
  unsigned char first = 0;
  options.keep_graph = 1;
  OK(attune_alloc(&memory, stream, BYTES));
  OK(attune_graph_create(&graph, interop_device));
  OK(attune_graph_capture_begin(graph, stream, &options));
  OK(attune_fill(stream, memory, 1, BYTES));
  OK(attune_graph_capture_end(graph, stream));
  cudaGraph_t native = (cudaGraph_t)attune_graph_native(graph);
  MUST(find_all(native, cudaGraphNodeTypeMemset, nodes) == 1);
  CUDA(cudaGraphAddMemAllocNode(&taken, native, NULL, 0, &about));
  const struct cudaMemsetParams second = {.dst = about.dptr, .value = 9, .elementSize = 1, .width = BYTES, .height = 1};
  CUDA(cudaGraphAddMemsetNode(&fill, native, &taken, 1, &second));
  const cudaGraphNode_t before[] = {fill, nodes[0]};
  CUDA(cudaGraphAddMemcpyNode1D(&copy, native, before, 2, memory, about.dptr, BYTES, cudaMemcpyDefault));
  CUDA(cudaGraphAddMemFreeNode(&freed, native, &copy, 1, about.dptr));
  CUDA(cudaGraphMemAllocNodeGetParams(taken, &again));
  CUDA(cudaGraphMemFreeNodeGetParams(freed, &gone));
  MUST(again.dptr == about.dptr && gone == about.dptr);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_copy(stream, &first, memory, 1));
  OK(attune_stream_synchronize(stream));
  MUST(first == 9);
  attune_graph_destroy(graph);
  OK(attune_graph_trim(interop_device));
  OK(attune_free(memory, stream));
}

int main(void) {
  attune_stream *stream = interop_begin();
  float *memory = interop_numbers(stream, COUNT, 1.0f);
  order(stream);
  attributes(stream, memory);
  memory_of_nodes(stream);
  OK(attune_free(memory, stream));
  return interop_end(stream, "graphs that CUDA edits");
}
