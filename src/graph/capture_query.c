/* SPDX-License-Identifier: Apache-2.0
 * capture_query.c: queries of captures and graphs: whether a stream is in a capture, a
 * graph's pool, a clone, the upload, memory of graphs. */
#include "src/base/struct_size.h"
#include "src/graph/graph.h"
#include "src/stream/graph_calls.h"
#include "src/trace/instrument.h"

#include <stdlib.h>
#include <string.h>

attune_status attune_stream_capture_info(attune_stream *stream, attune_capture_info *out) {
  AT_REQUIRE_AS(out, "point to an attune_capture_info");
  attune_capture_info full = {.state = ATTUNE_CAPTURE_NONE};
  AT_TRY(AT_CLEAR(out));
  AT_REQUIRE_STREAM(stream);
  at_capture *capture = stream->capture;
  uint64_t id = capture ? capture->id : 0;
  bool broken = false;
  if (stream->device->backend.graph) AT_TRY(stream->device->backend.graph->capture_info(stream, &id, &broken));
  if (capture) {
    pthread_mutex_lock(&capture->lock);
    broken = broken || capture->broken != ATTUNE_OK;
    pthread_mutex_unlock(&capture->lock);
    full.graph = capture->graph;
  }
  full.id = id;
  if (capture || id) full.state = broken ? ATTUNE_CAPTURE_BROKEN : ATTUNE_CAPTURE_ACTIVE;
  return AT_GIVE(out, &full);
}

int attune_stream_is_capturing(attune_stream *stream) {
  return stream && at_stream_capturing(stream);
}

attune_status attune_graph_pool(attune_graph *graph, attune_pool **out) {
  AT_REQUIRE_AS(out, "point to an attune_pool *");
  *out = NULL;
  AT_REQUIRE_AS(graph, "be a graph from attune_graph_create");
  struct attune_pool *pool = NULL;
  AT_TRY(at_graph_pool(graph, &pool));
  at_pool_retain(pool);
  *out = pool;
  return ATTUNE_OK;
}

attune_status attune_graph_upload(attune_graph *graph, attune_stream *stream) {
  attune_status status = at_graph_check_replay(graph, stream);
  if (status == ATTUNE_OK && !graph->instantiated) status = attune_graph_instantiate(graph);
  return status == ATTUNE_OK ? graph->device->backend.graph->upload(graph->made, stream) : status;
}

static attune_status check_clone(attune_graph **out, const attune_graph *graph) {
  AT_REQUIRE_AS(out, "point to an attune_graph *");
  *out = NULL;
  AT_TRY(at_graph_check_kept(graph));
  for (const at_graph_generator *g = graph->generators; g; g = g->next)
    if (g->increment)
      return at_fail(ATTUNE_UNSUPPORTED,
                     "the graph uses a generator, which a clone cannot; capture the work again into another graph");
  return ATTUNE_OK;
}

static struct at_externals *copy_externals(const struct at_externals *from) {
  const size_t bytes = sizeof *from + from->count * sizeof *from->each;
  struct at_externals *copy = malloc(bytes);
  if (copy) memcpy(copy, from, bytes);
  return copy;
}

attune_status attune_graph_clone(attune_graph **out, const attune_graph *graph) {
  AT_TRY(check_clone(out, graph));
  attune_graph *clone = NULL;
  attune_status status = attune_graph_create(&clone, graph->device);
  if (status == ATTUNE_OK) status = graph->device->backend.graph->clone(graph->made, &clone->made);
  if (status != ATTUNE_OK) {
    attune_graph_destroy(clone);
    return status;
  }
  if (graph->externals && !(clone->externals = copy_externals(graph->externals))) {
    attune_graph_destroy(clone);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph of %s", graph->device->name);
  }
  clone->keep = true;
  at_pool_retain(graph->pool);
  clone->pool = graph->pool;
  clone->calls = at_graph_calls_clone(graph->calls);
  if (graph->watched) clone->watched = at_instrument_graph_clone(graph->watched);
  *out = clone;
  return ATTUNE_OK;
}

attune_status attune_graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved) {
  uint64_t used = 0, reserved = 0;
  attune_status status = ATTUNE_OK;
  if (device && device->backend.graph) status = device->backend.graph->memory(device, &used, &reserved);
  if (out_used) *out_used = used;
  if (out_reserved) *out_reserved = reserved;
  AT_REQUIRE_DEVICE(device);
  return status;
}

attune_status attune_graph_trim(attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  return device->backend.graph ? device->backend.graph->trim(device) : ATTUNE_OK;
}
