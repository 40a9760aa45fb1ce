/* SPDX-License-Identifier: Apache-2.0
 * graph.h: the inside of a CUDA graph, for its parts. */
#ifndef AT_CUDA_GRAPH_H
#define AT_CUDA_GRAPH_H

#include "src/cuda/context/state.h"

struct at_graph {
  attune_device *device;
  cudaGraph_t captured;       /* NULL: not kept */
  cudaGraphExec_t executable; /* NULL: not made yet */
  size_t nodes;
  bool borrowed; /* the executable was made of another graph, whose nodes are gone: these nodes do not name its own */
  cudaGraphNode_t *node; /* of `captured`, in CUDA's order; NULL: not asked yet */
  bool *disabled;        /* of each node; NULL: none is */
};

/* graph.c: a new executable in place of what there is, with the nodes disabled that were. The device is current. */
attune_status at_cuda_graph_remake(at_graph *graph);

/* graph_kernel.c: kernels in graphs. Their function's name; the launch and the argument block, out of a node and into
 * it, in the executable too if there is one and `executable` says so. The device is current. */
void at_cuda_graph_kernel_name(char *out, size_t size, cudaGraphNode_t node);
attune_status at_cuda_graph_kernel_get(attune_device *device, cudaGraphNode_t node, attune_node_parameters *out);
attune_status at_cuda_graph_kernel_set(at_graph *graph, cudaGraphNode_t node, bool executable,
                                       const attune_node_parameters *p);

#endif
