/* SPDX-License-Identifier: Apache-2.0
 * graph_callable.c: a function made into a graph with inputs and outputs of its own. */
#include <attune/graph_callable.h>

#include "src/base/struct_size.h"
#include "src/base/support.h"

#include <stdlib.h>

enum { USUAL_WARMUPS = 3 };

struct attune_graph_callable {
  attune_stream *stream; /* of the warm-ups and the capture; the buffers belong to it */
  attune_graph *graph;
  attune_graph_callable_fn fn;
  void *user;
  size_t inputs, outputs;
  size_t *bytes; /* of inputs, then of outputs */
  void **buffer; /* likewise */
};

static attune_status check_sizes(const char *name, size_t count, const size_t *bytes) {
  if (count && !bytes) return AT_INVALID("options.%s_bytes is NULL; should have %zu sizes", name, count);
  for (size_t i = 0; i < count; i++)
    if (bytes[i] == 0) return AT_INVALID("options.%s_bytes[%zu] is 0; should be 1 or more", name, i);
  return ATTUNE_OK;
}

static attune_status check_create(const attune_device *device, const attune_graph_callable_options *o,
                                  attune_graph_callable_fn fn) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(fn, "submit work to the stream");
  if (o->warmups < ATTUNE_NO_WARMUPS)
    return AT_INVALID("options.warmups is %d; should be 1 or more, 0 for %d, or ATTUNE_NO_WARMUPS (-1)", o->warmups,
                      USUAL_WARMUPS);
  if (o->input_count > SIZE_MAX / 64 || o->output_count > SIZE_MAX / 64)
    return AT_INVALID("options has too many inputs or outputs; should be fewer than %zu", SIZE_MAX / 64);
  attune_status status = check_sizes("input", o->input_count, o->input_bytes);
  return status == ATTUNE_OK ? check_sizes("output", o->output_count, o->output_bytes) : status;
}

static attune_status make_buffers(attune_graph_callable *g, const attune_graph_callable_options *o) {
  const size_t count = g->inputs + g->outputs;
  g->bytes = calloc(count + 1, sizeof *g->bytes);
  g->buffer = calloc(count + 1, sizeof *g->buffer);
  if (!g->bytes || !g->buffer) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graphed function");
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; i < count && status == ATTUNE_OK; i++) {
    g->bytes[i] = i < g->inputs ? o->input_bytes[i] : o->output_bytes[i - g->inputs];
    const void *sample = i < g->inputs && o->samples ? o->samples[i] : NULL;
    status = attune_alloc(&g->buffer[i], g->stream, g->bytes[i]);
    if (status != ATTUNE_OK) break;
    status = sample ? attune_copy(g->stream, g->buffer[i], sample, g->bytes[i])
                    : attune_fill(g->stream, g->buffer[i], 0, g->bytes[i]);
  }
  return status;
}

static attune_status give_work(void *user, attune_stream *stream) {
  const attune_graph_callable *g = user;
  return g->fn(g->user, stream, g->buffer, g->buffer + g->inputs);
}

static attune_status make(attune_graph_callable *g, attune_device *device, const attune_graph_callable_options *o) {
  attune_capture_options capture = ATTUNE_CAPTURE_OPTIONS_INIT;
  const int warmups = o->warmups ? o->warmups : USUAL_WARMUPS; /* below 0: none */
  capture.pool = o->pool;
  attune_status status = attune_stream_create(&g->stream, device);
  if (status == ATTUNE_OK) status = attune_graph_create(&g->graph, device);
  if (status == ATTUNE_OK) status = make_buffers(g, o);
  for (int i = 0; i < warmups && status == ATTUNE_OK; i++) status = give_work(g, g->stream);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(g->stream);
  if (status == ATTUNE_OK) status = attune_graph_capture_callback(g->graph, g->stream, &capture, give_work, g);
  return status;
}

attune_status attune_graph_callable_create(attune_graph_callable **out, attune_device *device,
                                           const attune_graph_callable_options *options, attune_graph_callable_fn fn,
                                           void *user) {
  attune_graph_callable_options full, *o = &full;
  AT_REQUIRE_AS(out, "point to an attune_graph_callable *");
  *out = NULL;
  AT_TRY(AT_TAKE(o, options));
  AT_TRY(check_create(device, o, fn));
  attune_graph_callable *g = calloc(1, sizeof *g);
  if (!g) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graphed function");
  *g = (attune_graph_callable){.fn = fn, .user = user, .inputs = o->input_count, .outputs = o->output_count};
  attune_status status = make(g, device, o);
  if (status == ATTUNE_OK) {
    *out = g;
    return ATTUNE_OK;
  }
  const at_message kept = at_message_keep(); /* fn's own failure, above all */
  attune_graph_callable_destroy(g);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

attune_status attune_graph_callable_call(attune_graph_callable *g, attune_stream *stream, const void *const *inputs,
                                         void *const *outputs) {
  if (!g) return AT_INVALID("graphed is NULL; should be a graphed function from attune_graph_callable_create");
  AT_REQUIRE_STREAM(stream);
  if (attune_stream_device(stream) != attune_graph_device(g->graph))
    return AT_INVALID("stream is of another device than the graphed function; should be of the same device");
  if (attune_stream_is_capturing(stream)) /* before a copy is written down */
    return at_fail(ATTUNE_CAPTURING, "stream is being captured; a graph cannot be replayed into another");
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; inputs && i < g->inputs && status == ATTUNE_OK; i++)
    if (inputs[i] && inputs[i] != g->buffer[i]) status = attune_copy(stream, g->buffer[i], inputs[i], g->bytes[i]);
  if (status == ATTUNE_OK) status = attune_graph_replay(g->graph, stream);
  for (size_t i = 0; outputs && i < g->outputs && status == ATTUNE_OK; i++) {
    const size_t at = g->inputs + i;
    if (outputs[i] && outputs[i] != g->buffer[at])
      status = attune_copy(stream, outputs[i], g->buffer[at], g->bytes[at]);
  }
  return status;
}

void *attune_graph_callable_input(const attune_graph_callable *graphed, size_t index) {
  return graphed && index < graphed->inputs ? graphed->buffer[index] : NULL;
}

void *attune_graph_callable_output(const attune_graph_callable *graphed, size_t index) {
  return graphed && index < graphed->outputs ? graphed->buffer[graphed->inputs + index] : NULL;
}

attune_graph *attune_graph_callable_graph(const attune_graph_callable *graphed) {
  return graphed ? graphed->graph : NULL;
}

void attune_graph_callable_destroy(attune_graph_callable *graphed) {
  if (!graphed) return;
  attune_graph_destroy(graphed->graph);
  for (size_t i = 0; graphed->buffer && i < graphed->inputs + graphed->outputs; i++)
    (void)attune_free(graphed->buffer[i], graphed->stream);
  attune_stream_destroy(graphed->stream);
  free(graphed->buffer);
  free(graphed->bytes);
  free(graphed);
}
