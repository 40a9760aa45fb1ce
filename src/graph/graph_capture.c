/* SPDX-License-Identifier: Apache-2.0
 * graph_capture.c: a capture from begin to end: which streams are in it, where their memory comes from, and how all of
 * it is undone. */
#include "src/base/struct_size.h"
#include "src/graph/graph_user_data.h"
#include "src/stream/graph_calls.h"
#include "src/stream/stream.h"
#include "src/trace/instrument.h"

#include <attune/pinned.h>

#include <assert.h>
#include <stdlib.h>

attune_status at_graph_pool(attune_graph *graph, struct attune_pool **out) {
  attune_status status = graph->pool ? ATTUNE_OK : at_pool_create_private(&graph->pool, graph->device);
  *out = graph->pool;
  return status;
}

static attune_status check_begin(const attune_graph *graph, attune_stream *stream, const attune_capture_options *o,
                                 bool updating) {
  AT_REQUIRE_AS(graph, "be a graph from attune_graph_create");
  AT_REQUIRE_AS(stream, "be a stream from attune_stream_create");
  if (stream->device != graph->device)
    return AT_INVALID("stream is of device %s, graph of %s; should be of the same device", stream->device->name,
                      graph->device->name);
  if ((int)o->mode < ATTUNE_CAPTURE_THREAD_LOCAL || o->mode > ATTUNE_CAPTURE_RELAXED)
    return AT_INVALID("options.mode is %d; should be thread-local (0), global (1) or relaxed (2)", (int)o->mode);
  if (o->share && o->share->device != graph->device)
    return AT_INVALID("options.share is a graph of %s; should be of %s", o->share->device->name, graph->device->name);
  if (o->pool && o->share) return AT_INVALID("options has both share and pool; one of them should be NULL");
  if (o->pool && at_pool_device(o->pool) != graph->device)
    return AT_INVALID("options.pool is of %s; should be of %s", at_pool_device(o->pool)->name, graph->device->name);
  if (graph->capture) return at_fail(ATTUNE_BUSY, "graph is already being captured; end the capture first");
  if (stream == __atomic_load_n(&stream->device->default_stream, __ATOMIC_ACQUIRE))
    return at_fail(ATTUNE_UNSUPPORTED,
                   "the default stream of %s cannot be captured; should be a stream from attune_stream_create",
                   stream->device->name);
  if (at_stream_capturing(stream))
    return at_fail(ATTUNE_CAPTURING, "stream is already being captured; captures do not nest");
  if (updating && !graph->made) return AT_INVALID("graph is empty, so it cannot be updated; should be captured first");
  if (!updating && graph->made) return AT_INVALID("graph is already captured; update it, or reset it first");
  if (!updating && graph->pool && o->share && o->share->pool != graph->pool)
    return AT_INVALID("graph already has a pool; options.share should be NULL, or reset the graph first");
  if (!updating && graph->pool && o->pool && o->pool != graph->pool)
    return AT_INVALID("graph already has a pool; options.pool should be that pool, or NULL");
  return ATTUNE_OK;
}

static attune_status share_pool(attune_graph *graph, const attune_capture_options *o) {
  struct attune_pool *pool = o->pool;
  if (graph->pool) return ATTUNE_OK;
  if (!pool && (!o->share || o->share == graph)) return at_graph_pool(graph, &pool);
  AT_TRY(pool ? ATTUNE_OK : at_graph_pool(o->share, &pool));
  at_pool_retain(pool);
  graph->pool = pool;
  return ATTUNE_OK;
}

static at_capture *new_capture(attune_graph *graph, attune_stream *stream, attune_capture_mode mode) {
  at_capture *capture = calloc(1, sizeof *capture);
  if (!capture) return NULL;
  capture->graph = graph;
  capture->stream = stream;
  capture->pool = graph->pool;
  capture->generators = graph->generators;
  static uint64_t captures;
  capture->id = __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
  capture->mode = mode;
  capture->thread = pthread_self();
  atomic_init(&capture->references, 1);
  atomic_init(&capture->active, true);
  pthread_mutex_init(&capture->lock, NULL);
  return capture;
}

/* A stream of the capture: the allocator knows first, so that nothing allocated in between escapes. */
static attune_status enter(at_capture *capture, attune_stream *stream) {
  assert(!stream->capture && stream->device == capture->stream->device && atomic_load(&capture->active));
  attune_status status = at_memory_capture_begin(stream, capture->pool);
  if (status == ATTUNE_OK) stream->capture = capture;
  return status;
}

/* The allocator then gives the stream what had to wait for the end: that must run, and not be recorded. */
static void leave(attune_stream *stream) {
  assert(stream->capture);
  stream->capture = NULL;
  at_memory_capture_end(stream);
  if (stream->doomed) at_stream_close(stream);
}

/* A graph that holds nothing holds no memory. */
static void release_pool(attune_graph *graph) {
  if (graph->made || !graph->pool) return;
  at_pool_release(graph->pool);
  graph->pool = NULL;
}

static attune_status make_room(attune_device *device) {
  attune_status status = attune_memory_empty_cache(device);
  if (status == ATTUNE_OK) status = attune_device_synchronize(device);
  if (status == ATTUNE_OK) status = attune_memory_empty_cache(device);
  return status == ATTUNE_OK && device->backend.pinned ? attune_pinned_empty_cache(device) : status;
}

attune_status at_graph_capture_start(attune_graph *graph, attune_stream *stream, const attune_capture_options *options,
                                     bool updating) {
  attune_capture_options full, *o = &full;
  attune_status status = AT_TAKE(o, options);
  if (status == ATTUNE_OK) status = check_begin(graph, stream, o, updating);
  if (status == ATTUNE_OK && o->make_room) status = make_room(graph->device);
  if (status != ATTUNE_OK) return status;
  status = at_needs(stream->device, graph);
  if (status == ATTUNE_OK) status = share_pool(graph, o);
  if (status != ATTUNE_OK) return status;
  at_capture *capture = new_capture(graph, stream, o->mode);
  const bool notes = updating ? graph->extra && graph->extra->inputs : o->check_inputs != 0;
  if (capture && notes) status = at_inputs_begin(capture);
  if (status == ATTUNE_OK)
    status = capture ? enter(capture, stream) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a capture");
  if (status == ATTUNE_OK) {
    status = stream->device->backend.graph->capture_begin(stream);
    if (status != ATTUNE_OK) leave(stream);
  }
  if (status != ATTUNE_OK) {
    if (capture) at_inputs_free(at_inputs_end(capture));
    if (capture) at_capture_drop(capture);
    release_pool(graph);
    return status;
  }
  graph->capture = capture;
  if (at_instrumented_races()) at_instrument_capture_begin(capture, stream);
  for (at_graph_generator *g = graph->generators; g; g = g->next) at_generator_capturing(g, 1);
  if (!updating) graph->keep = o->keep_graph != 0;
  (void)__atomic_add_fetch(&graph->device->captures, 1, __ATOMIC_ACQ_REL);
  return ATTUNE_OK;
}

static attune_status check_end(const attune_graph *graph, const attune_stream *stream) {
  AT_REQUIRE_AS(graph, "be a graph from attune_graph_create");
  AT_REQUIRE_AS(stream, "be the stream that the capture began on");
  const at_capture *capture = graph->capture;
  if (!capture) return AT_INVALID("graph is not being captured; call attune_graph_capture_begin first");
  if (capture->stream != stream)
    return AT_INVALID("stream is not the one that the capture began on; the capture continues");
  if (capture->mode != ATTUNE_CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    return AT_INVALID(
        "another thread began the capture; end it there, or capture in mode relaxed; the capture continues");
  return ATTUNE_OK;
}

/* Whatever the backend returns, the capture is over: no thread is in it any more. */
static void unwind(attune_graph *graph, bool good) {
  at_capture *capture = graph->capture;
  assert(capture->graph == graph && atomic_load(&capture->active));
  struct at_inputs *inputs = at_inputs_end(capture);
  if (good)
    (void)at_graph_adopt_inputs(graph, inputs); /* without memory for them none are looked at */
  else
    at_inputs_free(inputs);
  if (capture->watched || graph->watched) at_instrument_capture_end(capture, &graph->watched, good);
  if (good) {
    free(graph->externals);
    graph->externals = capture->externals;
    capture->externals = NULL;
    at_graph_calls_free(graph->calls);
    graph->calls = capture->calls;
    capture->calls = NULL;
  }
  atomic_store_explicit(&capture->active, false, memory_order_release);
  for (int i = 0; i < capture->member_count; i++) leave(capture->members[i]);
  leave(capture->stream);
  graph->capture = NULL;
  for (at_graph_generator *g = graph->generators; g; g = g->next) at_generator_capturing(g, -1);
  const int left = __atomic_sub_fetch(&graph->device->captures, 1, __ATOMIC_ACQ_REL);
  assert(left >= 0);
  (void)left;
  at_capture_drop(capture);
}

/* The status that a capture ends with: what broke it says more than what the backend saw of it. */
static attune_status end_in_backend(at_capture *capture, at_graph **out) {
  const at_backend_graph *backend = capture->stream->device->backend.graph;
  attune_status status = backend->capture_end(capture->stream, out);
  pthread_mutex_lock(&capture->lock);
  const attune_status broken = capture->broken;
  pthread_mutex_unlock(&capture->lock);
  if (broken == ATTUNE_OK) return status;
  if (*out) backend->destroy(*out);
  *out = NULL;
  return at_fail(broken, "the capture was invalidated: %s", capture->reason);
}

attune_status at_graph_capture_finish(attune_graph *graph, attune_stream *stream, at_graph **out) {
  *out = NULL;
  AT_TRY(check_end(graph, stream));
  attune_status status = end_in_backend(graph->capture, out);
  unwind(graph, status == ATTUNE_OK);
  if (status != ATTUNE_OK && !graph->made) {
    for (at_graph_generator *g = graph->generators; g; g = g->next) g->increment = 0;
    release_pool(graph);
  }
  return status;
}

void at_graph_capture_drop(attune_graph *graph) {
  at_graph *captured = NULL;
  (void)end_in_backend(graph->capture, &captured);
  if (captured) graph->device->backend.graph->destroy(captured);
  unwind(graph, false);
  if (graph->made) return;
  for (at_graph_generator *g = graph->generators; g; g = g->next) g->increment = 0;
  release_pool(graph);
}

attune_status at_graph_capture_run(attune_graph *graph, attune_stream *stream, attune_capture_fn fn, void *user,
                                   at_graph **out) {
  *out = NULL;
  graph->capture->called = true;
  attune_status status = fn(user, stream);
  if (!graph->capture) return AT_INVALID("fn destroyed the stream; should only submit work to it");
  if (status == ATTUNE_OK) return at_graph_capture_finish(graph, stream, out);
  char why[400];
  (void)at_copy_text(why, sizeof why, attune_last_message());
  at_graph_capture_drop(graph);
  return at_fail(status, "%s", why);
}

/* ---- streams ---- */

/* Room for one more member is made first, so that nothing can fail afterwards. */
static attune_status join(at_capture *capture, attune_stream *stream) {
  if (stream->device != capture->stream->device)
    return AT_INVALID("stream is of device %s, the capture of %s; should be of the same device", stream->device->name,
                      capture->stream->device->name);
  if (stream == __atomic_load_n(&stream->device->default_stream, __ATOMIC_ACQUIRE))
    return at_fail(ATTUNE_UNSUPPORTED, "the default stream of %s cannot join a capture", stream->device->name);
  pthread_mutex_lock(&capture->lock);
  attune_stream **members = realloc(capture->members, ((size_t)capture->member_count + 1) * sizeof *members);
  if (members) capture->members = members;
  pthread_mutex_unlock(&capture->lock);
  if (!members) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for another stream of the capture");
  AT_TRY(enter(capture, stream));
  pthread_mutex_lock(&capture->lock);
  capture->members[capture->member_count++] = stream;
  pthread_mutex_unlock(&capture->lock);
  return ATTUNE_OK;
}

static void unjoin(at_capture *capture, attune_stream *stream) {
  pthread_mutex_lock(&capture->lock);
  for (int i = 0; i < capture->member_count; i++)
    if (capture->members[i] == stream) capture->members[i--] = capture->members[--capture->member_count];
  pthread_mutex_unlock(&capture->lock);
  leave(stream);
}

attune_status at_capture_wait(attune_stream *stream, attune_event *event) {
  const at_backend_stream *backend = stream->device->backend.stream;
  at_capture *capture = event->capture;
  if (at_capture_is_external(event, stream)) return at_capture_external(event, stream, false);
  if (capture && !atomic_load_explicit(&capture->active, memory_order_acquire))
    return AT_INVALID("the event was last recorded in a capture that has ended; should be recorded again");
  if (!capture || stream->capture) return backend->wait(stream, event);
  AT_TRY(join(capture, stream));
  attune_status status = backend->wait(stream, event);
  if (status != ATTUNE_OK) unjoin(capture, stream);
  return status;
}

/* The stream that the capture began on takes the capture with it; one that joined is closed at the end. */
bool at_capture_leave(attune_stream *stream) {
  if (!stream->capture) return false;
  stream->doomed = true;
  if (stream->capture->stream == stream) at_graph_capture_drop(stream->capture->graph);
  return true;
}
