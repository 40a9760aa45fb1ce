/* SPDX-License-Identifier: Apache-2.0
 * graph.c: graphs as a program sees them: captured, made executable, replayed. Arguments are checked here and in
 * graph_capture.c, the backend does the rest. */
#include "src/graph/graph.h"
#include "src/stream/graph_calls.h"
#include "src/trace/instrument.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

attune_status attune_graph_create(attune_graph **out, attune_device *device) {
  AT_REQUIRE_AS(out, "point to an attune_graph *");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  AT_TRY(at_needs(device, graph));
  attune_graph *graph = calloc(1, sizeof *graph);
  if (!graph) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph");
  graph->device = device;
  *out = graph;
  return ATTUNE_OK;
}

static void drop_made(attune_graph *graph) {
  at_graph_hooks_drop(graph);
  if (graph->watched) at_instrument_graph_gone(&graph->watched);
  if (graph->made) graph->device->backend.graph->destroy(graph->made);
  graph->made = NULL;
  graph->instantiated = false;
  free(graph->externals);
  graph->externals = NULL;
  at_graph_calls_free(graph->calls);
  graph->calls = NULL;
  if (graph->pool) at_pool_release(graph->pool);
  graph->pool = NULL;
  for (at_graph_generator *g = graph->generators; g; g = g->next) g->increment = 0;
}

void attune_graph_destroy(attune_graph *graph) {
  if (!graph) return;
  if (graph->capture && graph->capture->called) {
    at_log(ATTUNE_LOG_ERROR, "attune_graph_destroy: a callback of the graph is running; the graph is not destroyed");
    return;
  }
  if (graph->capture) at_graph_capture_drop(graph);
  drop_made(graph);
  while (graph->generators) {
    at_graph_generator *next = graph->generators->next;
    at_generator_leave(graph->generators);
    free(graph->generators);
    graph->generators = next;
  }
  at_graph_hooks_free(graph);
  free(graph);
}

attune_status attune_graph_reset(attune_graph *graph) {
  AT_REQUIRE_GRAPH(graph);
  if (graph->capture) return at_fail(ATTUNE_BUSY, "graph is being captured; end the capture first");
  drop_made(graph);
  return ATTUNE_OK;
}

attune_status attune_graph_capture_begin(attune_graph *graph, attune_stream *stream,
                                         const attune_capture_options *options) {
  return at_graph_capture_start(graph, stream, options, false);
}

/* Gives the backend's capture to the graph; its executable is made now, or with keep_graph at the first replay. */
static attune_status adopt(attune_graph *graph, at_graph *captured) {
  const at_backend_graph *backend = graph->device->backend.graph;
  attune_status status = graph->keep ? ATTUNE_OK : backend->instantiate(captured, false);
  if (status == ATTUNE_OK) {
    graph->made = captured;
    graph->instantiated = !graph->keep;
    if (backend->nodes(captured) == 0)
      at_log(ATTUNE_LOG_WARNING, "an empty graph was captured on %s", graph->device->name);
    at_graph_tell(graph, ATTUNE_GRAPH_CAPTURED);
    if (graph->instantiated) at_graph_tell(graph, ATTUNE_GRAPH_INSTANTIATED);
    return ATTUNE_OK;
  }
  backend->destroy(captured);
  drop_made(graph);
  return status;
}

attune_status attune_graph_capture_end(attune_graph *graph, attune_stream *stream) {
  at_graph *captured = NULL;
  if (graph && graph->capture && graph->capture->called)
    return AT_INVALID("the capture belongs to a callback; it ends when the callback returns");
  attune_status status = at_graph_capture_finish(graph, stream, &captured);
  return status == ATTUNE_OK ? adopt(graph, captured) : status;
}

attune_status attune_graph_capture_callback(attune_graph *graph, attune_stream *stream,
                                            const attune_capture_options *options, attune_capture_fn fn, void *user) {
  AT_REQUIRE_AS(fn, "submit work to the stream");
  attune_stream *side = NULL;
  attune_status status = graph && !stream ? attune_stream_create(&side, graph->device) : ATTUNE_OK;
  if (side) stream = side;
  if (status == ATTUNE_OK) status = at_graph_capture_start(graph, stream, options, false);
  if (status == ATTUNE_OK) {
    at_graph *captured = NULL;
    status = at_graph_capture_run(graph, stream, fn, user, &captured);
    if (status == ATTUNE_OK) status = adopt(graph, captured);
  }
  const at_message kept = at_message_keep();
  attune_stream_destroy(side);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

/* OK when work is captured in the graph and no capture is under way. */
static attune_status check_made(const attune_graph *graph) {
  AT_REQUIRE_GRAPH(graph);
  if (graph->capture) return at_fail(ATTUNE_CAPTURING, "graph is being captured; end the capture first");
  if (!graph->made) return AT_INVALID("the graph is empty; call attune_graph_capture_begin first");
  return ATTUNE_OK;
}

attune_status at_graph_check_kept(const attune_graph *graph) {
  attune_status status = check_made(graph);
  if (status == ATTUNE_OK && !graph->keep)
    return AT_INVALID("the captured graph was not kept; should be captured with options.keep_graph");
  return status;
}

attune_status attune_graph_instantiate(attune_graph *graph) {
  attune_status status = at_graph_check_kept(graph);
  if (status == ATTUNE_OK) status = graph->device->backend.graph->instantiate(graph->made, true);
  if (status == ATTUNE_OK) graph->instantiated = true;
  if (status == ATTUNE_OK) at_graph_tell(graph, ATTUNE_GRAPH_INSTANTIATED);
  return status;
}

attune_status at_graph_check_replay(const attune_graph *graph, attune_stream *stream) {
  attune_status status = check_made(graph);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  AT_REQUIRE_STREAM(stream);
  if (stream->device != graph->device)
    return AT_INVALID("stream is of device %s, graph of %s; should be of the same device", stream->device->name,
                      graph->device->name);
  if (stream->capture)
    return at_fail(ATTUNE_CAPTURING, "stream is being captured; a graph cannot be replayed into another");
  if (AT_UNLIKELY(at_stream_capturing(stream))) /* the launch would break the program's capture */
    return at_fail(ATTUNE_CAPTURING, "the program is capturing stream; a graph cannot be replayed into another");
  return ATTUNE_OK;
}

/* A replay is one piece of work to the check: it comes after all that it waits for, and its records come after all of
 * it. */
static void watch_externals(const attune_graph *graph, attune_stream *stream, bool records) {
  for (size_t i = 0; graph->externals && i < graph->externals->count; i++) {
    const struct at_external *e = &graph->externals->each[i];
    if (e->records != records) continue;
    if (records)
      at_instrument_record(e->event, stream);
    else
      at_instrument_wait(stream, e->event);
  }
}

static attune_status replay_work(attune_graph *graph, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  if (AT_UNLIKELY((status = at_pool_replay(graph->pool, stream)) != ATTUNE_OK)) return status;
  for (at_graph_generator *g = graph->generators; g; g = g->next)
    if ((status = at_generator_replay(g, stream)) != ATTUNE_OK) return status;
  if (AT_LIKELY(!at_instrumented())) return graph->device->backend.graph->launch(graph->made, stream);
  const bool named = at_instrument_name("attune_graph_replay %zu nodes", attune_graph_node_count(graph));
  status = graph->device->backend.graph->launch(graph->made, stream);
  status = at_instrument_end(named, stream, status);
  if (!at_instrumented_races() || status != ATTUNE_OK) return status;
  watch_externals(graph, stream, false);
  at_instrument_replay(&graph->watched, stream);
  watch_externals(graph, stream, true);
  return status;
}

static attune_status replay(attune_graph *graph, attune_stream *stream) {
  const attune_status status = replay_work(graph, stream);
  if (AT_LIKELY(status == ATTUNE_OK)) at_graph_calls_replayed(graph->calls);
  return status;
}

/* With inputs to look at, or hooks. */
static attune_status replay_told(attune_graph *graph, attune_stream *stream) {
  attune_status status = at_graph_check_inputs(graph);
  if (status == ATTUNE_OK) status = replay(graph, stream);
  if (status == ATTUNE_OK) at_graph_tell(graph, ATTUNE_GRAPH_REPLAYED);
  return status;
}

attune_status attune_graph_replay(attune_graph *graph, attune_stream *stream) {
  attune_status status = at_graph_check_replay(graph, stream);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(!graph->instantiated) && (status = attune_graph_instantiate(graph)) != ATTUNE_OK) return status;
  if (AT_UNLIKELY(graph->extra != NULL)) return replay_told(graph, stream);
  return replay(graph, stream);
}

attune_status attune_graph_register_generator(attune_graph *graph, attune_generator *generator) {
  AT_REQUIRE_GRAPH(graph);
  AT_REQUIRE_AS(generator, "be a generator from attune_generator_create");
  for (const at_graph_generator *g = graph->generators; g; g = g->next)
    if (g->generator == generator) return ATTUNE_OK;
  at_graph_generator *joined = calloc(1, sizeof *joined);
  if (!joined) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a generator of the graph");
  attune_status status = at_generator_join(generator, graph->device, joined);
  if (status != ATTUNE_OK) {
    free(joined);
    return status;
  }
  joined->next = graph->generators;
  graph->generators = joined;
  if (graph->capture) {
    graph->capture->generators = joined;
    at_generator_capturing(joined, 1);
  }
  return ATTUNE_OK;
}

size_t attune_graph_node_count(const attune_graph *graph) {
  return graph && graph->made ? graph->device->backend.graph->nodes(graph->made) : 0;
}

/* Which of the ways a file can be refused it was. */
static attune_status fail_file(const char *path, const char *what, int error) {
  const attune_status status = error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION
                               : error == ENOENT || error == ENOTDIR               ? ATTUNE_NOT_FOUND
                                                                                   : ATTUNE_IO_ERROR;
  return at_fail(status, "%.300s %s: %s", path, what, strerror(error));
}

attune_status attune_graph_debug_dump(const attune_graph *graph, const char *path, int brief) {
  AT_TRY(at_graph_check_kept(graph));
  if (!path || !*path) return AT_INVALID("path is %s; should name a file", path ? "empty" : "NULL");
  FILE *file = fopen(path, "we");
  if (!file) return fail_file(path, "cannot be written", errno);
  attune_status status = graph->device->backend.graph->dump(graph->made, file, brief != 0);
  errno = 0;
  const bool whole = fflush(file) == 0 && !ferror(file);
  int error = whole ? 0 : errno ? errno : EIO;
  if (fclose(file) != 0 && error == 0) error = errno;
  return status == ATTUNE_OK && error != 0 ? fail_file(path, "could not be written completely", error) : status;
}

static void *native(const attune_graph *graph, bool executable) {
  if (!graph || !graph->made) return NULL;
  return graph->device->backend.graph->native(graph->made, executable);
}

void *attune_graph_native(const attune_graph *graph) {
  return native(graph, false);
}

void *attune_graph_native_executable(const attune_graph *graph) {
  return native(graph, true);
}

attune_device *attune_graph_device(const attune_graph *graph) {
  return graph ? graph->device : NULL;
}
