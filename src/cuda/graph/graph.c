/* SPDX-License-Identifier: Apache-2.0
 * graph.c: a stretch of a CUDA stream's work captured into an executable graph. A graph captured without an
 * attune_graph (tuning does) uses the workspace of the stream that it was captured from: it is destroyed before that
 * stream, and its launches do not overlap that stream's own work. */
#include "src/cuda/graph/graph.h"

#include "src/process/vendor.h"
#include "src/stream/capture.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What was asked of the nodes: not of what the program made of them since. */
static void forget_nodes(at_graph *graph) {
  free(graph->node);
  free(graph->disabled);
  graph->node = NULL;
  graph->disabled = NULL;
}

static void destroy_captured(at_graph *graph) {
  forget_nodes(graph);
  if (graph->captured && cudaGraphDestroy(graph->captured) != cudaSuccess) (void)cudaGetLastError();
  graph->captured = NULL;
}

static void destroy_executable(at_graph *graph) {
  if (graph->executable && cudaGraphExecDestroy(graph->executable) != cudaSuccess) (void)cudaGetLastError();
  graph->executable = NULL;
}

static enum cudaStreamCaptureMode mode_of(const attune_stream *stream) {
  switch (stream->capture ? stream->capture->mode : ATTUNE_CAPTURE_THREAD_LOCAL) {
  case ATTUNE_CAPTURE_GLOBAL: return cudaStreamCaptureModeGlobal;
  case ATTUNE_CAPTURE_RELAXED: return cudaStreamCaptureModeRelaxed;
  default: return cudaStreamCaptureModeThreadLocal;
  }
}

attune_status at_cuda_capture_begin(attune_stream *stream) {
  if (!stream->native || at_cuda_native(stream) == cudaStreamLegacy)
    return at_fail(ATTUNE_UNSUPPORTED, "the legacy default stream cannot be captured; create a stream");
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  cudaError_t error = cudaStreamBeginCapture(at_cuda_native(stream), mode_of(stream));
  attune_status status = at_cuda_check(stream->device, error, "cudaStreamBeginCapture");
  at_cuda_leave(&scope);
  return status;
}

/* Memory that the program allocated in the capture with cudaMallocAsync and did not free is freed by the next launch,
 * as graphs of other libraries do. */
static attune_status make_executable(at_graph *graph, cudaGraphExec_t *out) {
  const unsigned long long flags = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
  *out = NULL;
  return at_cuda_check(graph->device, cudaGraphInstantiateWithFlags(out, graph->captured, flags),
                       "cudaGraphInstantiateWithFlags");
}

/* For a capture without an attune_graph: ready to run at once. */
static attune_status instantiate_and_upload(at_graph *graph, attune_stream *stream) {
  attune_status status = make_executable(graph, &graph->executable);
  if (status == ATTUNE_OK)
    status =
        at_cuda_check(graph->device, cudaGraphUpload(graph->executable, at_cuda_native(stream)), "cudaGraphUpload");
  destroy_captured(graph);
  return status;
}

/* cudaStreamEndCapture ends the capture also when it reports that something broke it. */
static attune_status end_capture(attune_stream *stream, at_graph *graph) {
  cudaError_t error = cudaStreamEndCapture(at_cuda_native(stream), &graph->captured);
  attune_status status = at_cuda_check(stream->device, error, "cudaStreamEndCapture");
  if (status == ATTUNE_OK && !graph->captured)
    return at_fail(ATTUNE_CAPTURING, "the capture on %s was broken", stream->device->name);
  enum cudaStreamCaptureMode mode; /* this thread's capture is over; that of another must not break */
  at_cuda_relax(&mode);
  if (status == ATTUNE_OK)
    status =
        at_cuda_check(stream->device, cudaGraphGetNodes(graph->captured, NULL, &graph->nodes), "cudaGraphGetNodes");
  if (status == ATTUNE_OK && !stream->capture) status = instantiate_and_upload(graph, stream);
  if (status != ATTUNE_OK) {
    destroy_executable(graph);
    destroy_captured(graph);
  }
  at_cuda_restore(mode);
  return status;
}

/* While allocating is still the capture's. */
static void release_workspaces(attune_stream *stream) {
  const at_capture *capture = stream->capture;
  if (!capture) return;
  at_cuda_blas_leave_capture(stream);
  for (int i = 0; i < capture->member_count; i++) at_cuda_blas_leave_capture(capture->members[i]);
}

attune_status at_cuda_capture_end(attune_stream *stream, at_graph **out) {
  *out = NULL;
  release_workspaces(stream);
  at_graph none = {.device = stream->device}, *graph = calloc(1, sizeof *graph);
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status == ATTUNE_OK) {
    if (graph) graph->device = stream->device;
    status = end_capture(stream, graph ? graph : &none);
    if (!graph) {
      destroy_executable(&none);
      destroy_captured(&none);
      if (status == ATTUNE_OK)
        status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph of %s", stream->device->name);
    }
    at_cuda_leave(&scope);
  }
  if (status == ATTUNE_OK)
    *out = graph;
  else
    free(graph);
  return status;
}

attune_status at_cuda_graph_instantiate(at_graph *graph, bool keep) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, graph->device));
  cudaGraphExec_t made = NULL;
  attune_status status = make_executable(graph, &made);
  if (status == ATTUNE_OK) {
    destroy_executable(graph);
    graph->executable = made;
    graph->borrowed = false;
    forget_nodes(graph);
    if (cudaGraphGetNodes(graph->captured, NULL, &graph->nodes) != cudaSuccess)
      (void)cudaGetLastError(); /* the program may have edited it */
    if (!keep) destroy_captured(graph);
  }
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_graph_remake(at_graph *graph) {
  cudaGraphExec_t made = NULL;
  attune_status status = make_executable(graph, &made);
  for (size_t i = 0; status == ATTUNE_OK && graph->disabled && i < graph->nodes; i++)
    if (graph->disabled[i])
      status =
          at_cuda_check(graph->device, cudaGraphNodeSetEnabled(made, graph->node[i], 0), "cudaGraphNodeSetEnabled");
  if (status != ATTUNE_OK) {
    if (made && cudaGraphExecDestroy(made) != cudaSuccess) (void)cudaGetLastError();
    return status;
  }
  destroy_executable(graph);
  graph->executable = made;
  graph->borrowed = false;
  return ATTUNE_OK;
}

static bool has_disabled(const at_graph *graph) {
  for (size_t i = 0; graph->disabled && i < graph->nodes; i++)
    if (graph->disabled[i]) return true;
  return false;
}

/* A refused update leaves the executable as it was. One that leaves nodes out is not changed in place: the new graph's
 * nodes are all enabled. */
attune_status at_cuda_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place) {
  *in_place = false;
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, graph->device);
  if (status != ATTUNE_OK) return status;
  cudaGraphExecUpdateResultInfo result;
  cudaError_t error = cudaErrorGraphExecUpdateFailure;
  if (!has_disabled(older)) error = cudaGraphExecUpdate(older->executable, graph->captured, &result);
  if (error == cudaSuccess) {
    graph->executable = older->executable;
    older->executable = NULL;
    graph->borrowed = true;
    *in_place = true;
  } else if (error == cudaErrorGraphExecUpdateFailure) {
    (void)cudaGetLastError();
    status = make_executable(graph, &graph->executable);
  } else {
    status = at_cuda_check(graph->device, error, "cudaGraphExecUpdate");
  }
  if (status == ATTUNE_OK && !keep) destroy_captured(graph);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_graph_clone(const at_graph *graph, at_graph **out) {
  at_cuda_scope scope;
  *out = NULL;
  at_graph *clone = calloc(1, sizeof *clone);
  if (!clone) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph of %s", graph->device->name);
  *clone = (at_graph){.device = graph->device, .nodes = graph->nodes};
  attune_status status = at_cuda_enter_relaxed(&scope, graph->device);
  if (status == ATTUNE_OK) {
    status = at_cuda_check(graph->device, cudaGraphClone(&clone->captured, graph->captured), "cudaGraphClone");
    at_cuda_leave(&scope);
  }
  if (status == ATTUNE_OK)
    *out = clone;
  else
    free(clone);
  return status;
}

attune_status at_cuda_graph_upload(at_graph *graph, attune_stream *stream) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  attune_status status =
      at_cuda_check(stream->device, cudaGraphUpload(graph->executable, at_cuda_native(stream)), "cudaGraphUpload");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_graph_trim(attune_device *device) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cuda_check(device, cudaDeviceGraphMemTrim(device->ordinal), "cudaDeviceGraphMemTrim");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  const char *call = "cudaDeviceGetGraphMemAttribute";
  attune_status status = at_cuda_check(
      device, cudaDeviceGetGraphMemAttribute(device->ordinal, cudaGraphMemAttrUsedMemCurrent, out_used), call);
  if (status == ATTUNE_OK)
    status = at_cuda_check(
        device, cudaDeviceGetGraphMemAttribute(device->ordinal, cudaGraphMemAttrReservedMemCurrent, out_reserved),
        call);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_capture_info(attune_stream *stream, uint64_t *id, bool *broken) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return at_vendor_refuse();
#if CUDART_VERSION >= 13000
  cudaError_t error = cudaStreamGetCaptureInfo(at_cuda_native(stream), &state, &number, NULL, NULL, NULL, NULL);
#else
  cudaError_t error = cudaStreamGetCaptureInfo(at_cuda_native(stream), &state, &number, NULL, NULL, NULL);
#endif
  attune_status status = ATTUNE_OK;
  if (error == cudaErrorStreamCaptureImplicit) {
    (void)cudaGetLastError();
    status =
        at_fail(ATTUNE_CAPTURING, "the legacy default stream cannot be queried while another stream is being captured");
  } else {
    status = at_cuda_check(stream->device, error, "cudaStreamGetCaptureInfo");
  }
  at_vendor_leave();
  if (status != ATTUNE_OK) return status;
  *id = state == cudaStreamCaptureStatusNone ? 0 : number;
  *broken = state == cudaStreamCaptureStatusInvalidated;
  return ATTUNE_OK;
}

attune_status at_cuda_graph_launch(at_graph *graph, attune_stream *stream) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  attune_status status =
      at_cuda_check(stream->device, cudaGraphLaunch(graph->executable, at_cuda_native(stream)), "cudaGraphLaunch");
  at_cuda_leave(&scope);
  return status;
}

void at_cuda_graph_destroy(at_graph *graph) {
  if (!graph) return;
  at_cuda_scope scope;
  if (at_cuda_enter_relaxed(&scope, graph->device) == ATTUNE_OK) {
    destroy_executable(graph);
    destroy_captured(graph);
    at_cuda_leave(&scope);
  }
  free(graph);
}

size_t at_cuda_graph_nodes(const at_graph *graph) {
  return graph->nodes;
}

/* CUDA takes a name and does not say that a disk is full: it writes into memory, which is copied. */
static attune_status dump_into(const at_graph *graph, int memory, bool brief) {
  char path[64];
  size_t at = 0;
  (void)at_append(path, sizeof path, &at, "/proc/self/fd/%d", memory);
  const unsigned flags = brief ? 0 : cudaGraphDebugDotFlagsVerbose;
  return at_cuda_check(graph->device, cudaGraphDebugDotPrint(graph->captured, path, flags), "cudaGraphDebugDotPrint");
}

static attune_status copy_out(int memory, FILE *file) {
  char piece[4096];
  ssize_t count = 0;
  for (off_t offset = 0; (count = pread(memory, piece, sizeof piece, offset)) > 0; offset += count)
    if (fwrite(piece, 1, (size_t)count, file) != (size_t)count) return ATTUNE_OK; /* the caller looks at the file */
  return count == 0 ? ATTUNE_OK : at_fail(ATTUNE_IO_ERROR, "the text of the graph cannot be read back");
}

attune_status at_cuda_graph_dump(const at_graph *graph, FILE *file, bool brief) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, graph->device));
  const int memory = memfd_create("attune graph", MFD_CLOEXEC);
  attune_status status =
      memory >= 0 ? dump_into(graph, memory, brief) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the graph's text");
  if (status == ATTUNE_OK) status = copy_out(memory, file);
  if (memory >= 0) close(memory);
  at_cuda_leave(&scope);
  return status;
}

void *at_cuda_graph_native(const at_graph *graph, bool executable) {
  return executable ? (void *)graph->executable : (void *)graph->captured;
}
