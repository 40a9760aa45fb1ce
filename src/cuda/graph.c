/* SPDX-License-Identifier: Apache-2.0
 * graph.c: a stretch of a CUDA stream's work captured into an executable graph. A graph uses the workspace of the
 * stream that it was captured from: it is destroyed before that stream, and its launches do not run beside that
 * stream's own work. */
#include "src/cuda/state.h"

#include <stdlib.h>

struct at_graph {
  attune_device *device;
  cudaGraphExec_t executable;
};

attune_status at_cuda_capture_begin(attune_stream *stream) {
  if (!stream->native)
    return at_fail(ATTUNE_UNSUPPORTED, "the legacy default stream cannot be captured; create a stream");
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  cudaError_t error = cudaStreamBeginCapture(at_cuda_native(stream), cudaStreamCaptureModeThreadLocal);
  status = at_cuda_check(stream->device, error, "cudaStreamBeginCapture");
  at_cuda_leave(&scope);
  return status;
}

static attune_status instantiate(attune_stream *stream, cudaGraph_t captured, cudaGraphExec_t *out) {
  attune_device *device = stream->device;
  attune_status status =
      at_cuda_check(device, cudaGraphInstantiateWithFlags(out, captured, 0), "cudaGraphInstantiateWithFlags");
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(device, cudaGraphUpload(*out, at_cuda_native(stream)), "cudaGraphUpload");
  if (status == ATTUNE_OK) return status;
  if (cudaGraphExecDestroy(*out) != cudaSuccess) (void)cudaGetLastError();
  return status;
}

/* cudaStreamEndCapture ends the capture also when it reports that something broke it. */
attune_status at_cuda_capture_end(attune_stream *stream, at_graph **out) {
  *out = NULL;
  attune_device *device = stream->device;
  at_graph *graph = calloc(1, sizeof *graph);
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, device);
  if (status != ATTUNE_OK) {
    free(graph);
    return status;
  }
  cudaGraph_t captured = NULL;
  status = at_cuda_check(device, cudaStreamEndCapture(at_cuda_native(stream), &captured), "cudaStreamEndCapture");
  if (status == ATTUNE_OK && !graph)
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph of %s", device->name);
  if (status == ATTUNE_OK) status = instantiate(stream, captured, &graph->executable);
  if (captured && cudaGraphDestroy(captured) != cudaSuccess) (void)cudaGetLastError();
  at_cuda_leave(&scope);
  if (status != ATTUNE_OK) {
    free(graph);
    return status;
  }
  graph->device = device;
  *out = graph;
  return ATTUNE_OK;
}

attune_status at_cuda_graph_launch(at_graph *graph, attune_stream *stream) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(stream->device, cudaGraphLaunch(graph->executable, at_cuda_native(stream)), "cudaGraphLaunch");
  at_cuda_leave(&scope);
  return status;
}

void at_cuda_graph_destroy(at_graph *graph) {
  if (!graph) return;
  at_cuda_scope scope;
  if (at_cuda_enter(&scope, graph->device) == ATTUNE_OK) {
    (void)at_cuda_check(graph->device, cudaGraphExecDestroy(graph->executable), "cudaGraphExecDestroy");
    at_cuda_leave(&scope);
  }
  free(graph);
}
