/* SPDX-License-Identifier: Apache-2.0
 * graph_callable.h: a function made into a graph that takes new inputs: each call copies them to where the graph reads,
 * replays it, and copies the outputs to where the caller wants them. As torch.cuda.make_graphed_callables, without
 * gradients. */
#ifndef ATTUNE_GRAPHED_H
#define ATTUNE_GRAPHED_H

#include <attune/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function captured with its inputs and outputs. It is used by one thread at a time, as the graph that it has. */
typedef struct attune_graph_callable attune_graph_callable;

/* Gives work to `stream` that reads inputs[i] and writes outputs[i]. It is called for each warm-up, and once in the
 * capture, to which all that graph.h says of captures applies. A status other than OK ends attune_graph_callable_create, which
 * returns it. */
typedef attune_status (*attune_graph_callable_fn)(void *user, attune_stream *stream, void *const *inputs,
                                           void *const *outputs);

/* As `warmups`: none. */
#define ATTUNE_NO_WARMUPS (-1)

/* Options; start from ATTUNE_GRAPHED_OPTIONS_INIT, or from zeros. */
typedef struct attune_graph_callable_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  size_t input_count, output_count;
  const size_t *input_bytes, *output_bytes; /* the size of each, 1 or more */
  const void *const *samples; /* inputs for warm-ups, one for each input, as of attune_graph_callable_call; NULL, or an element
                                 that is: zeros */
  int warmups; /* runs before the capture, in which kernels are compiled and loaded; 0: 3. ATTUNE_NO_WARMUPS: none */
  attune_pool *pool; /* as attune_capture_options.pool: functions that never run at the same time may have one */
} attune_graph_callable_options;

/* The defaults: no inputs, no outputs, 3 warm-ups. */
#define ATTUNE_GRAPHED_OPTIONS_INIT \
  { sizeof(attune_graph_callable_options), 0, 0, NULL, NULL, NULL, 0, NULL }

/* Captures fn(user, ...) for `device` into *out, on a stream of its own, and waits for the warm-ups. The caller
 * destroys it. options NULL: the defaults. Errors: INVALID_ARGUMENT, those of attune_alloc and
 * attune_graph_capture_callback, and fn's own. Not allowed in capture. */
ATTUNE_API attune_status attune_graph_callable_create(attune_graph_callable **out, attune_device *device,
                                               const attune_graph_callable_options *options, attune_graph_callable_fn fn, void *user);

/* Gives one run to `stream`, a stream of the device: copies inputs[i] to the graph's input, replays, and copies the
 * graph's output to outputs[i]; what attune_copy says of pointers holds. An element that is NULL, or the graph's own
 * pointer (attune_graph_callable_input, attune_graph_callable_output), is not copied; inputs or outputs NULL: none of them is. Calls
 * must run one after another, which the caller ensures; calls on one stream do. Errors: INVALID_ARGUMENT, CAPTURING
 * (the stream is in a capture), those of attune_copy and attune_graph_replay. */
ATTUNE_API attune_status attune_graph_callable_call(attune_graph_callable *graphed, attune_stream *stream, const void *const *inputs,
                                             void *const *outputs);

/* Where the graph reads its input `index`, in memory of the device: to be written there without a copy, in order with
 * the calls. Borrowed; NULL when there is no such one. */
ATTUNE_API void *attune_graph_callable_input(const attune_graph_callable *graphed, size_t index);

/* Where the graph writes its output `index`, in memory of the device: to be read there without a copy, in order with
 * the calls. Borrowed; NULL when there is no such one. */
ATTUNE_API void *attune_graph_callable_output(const attune_graph_callable *graphed, size_t index);

/* The graph, for attune_graph_upload, attune_graph_pool and the like. Borrowed; NULL for NULL. */
ATTUNE_API attune_graph *attune_graph_callable_graph(const attune_graph_callable *graphed);

/* Releases it with its memory. Its calls must be done. NULL does nothing. */
ATTUNE_API void attune_graph_callable_destroy(attune_graph_callable *graphed);

#ifdef __cplusplus
}
#endif
#endif
