/* SPDX-License-Identifier: Apache-2.0
 * graph_callable.h: a function captured as a graph that takes new inputs: each call copies them to the graph's input
 * buffers, replays it, and copies the outputs to the caller's. Like torch.cuda.make_graphed_callables, without
 * gradients. */
#ifndef ATTUNE_GRAPHED_H
#define ATTUNE_GRAPHED_H

#include <attune/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function captured with its inputs and outputs. Used by one thread at a time, like the graph in it. */
typedef struct attune_graph_callable attune_graph_callable;

/* Gives work to `stream` that reads inputs[i] and writes outputs[i]. Called for each warm-up, and once in the capture,
 * where the rules of graph.h for captures apply. A status other than OK ends attune_graph_callable_create, which
 * returns it. */
typedef attune_status (*attune_graph_callable_fn)(void *user, attune_stream *stream, void *const *inputs,
                                                  void *const *outputs);

/* Value of `warmups` for none. */
#define ATTUNE_NO_WARMUPS (-1)

/* Options; start from ATTUNE_GRAPHED_OPTIONS_INIT, or from zeros. */
typedef struct attune_graph_callable_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  size_t input_count, output_count;
  const size_t *input_bytes, *output_bytes; /* size of each, at least 1 */
  const void *const *samples; /* inputs for warm-ups, one for each input, as for attune_graph_callable_call; NULL, or a
                                 NULL element: zeros */
  int warmups; /* runs before the capture, in which kernels are compiled and loaded; 0: 3. ATTUNE_NO_WARMUPS: none */
  attune_pool *pool; /* as attune_capture_options.pool: functions that never run at the same time may share one */
} attune_graph_callable_options;

/* The defaults: no inputs, no outputs, 3 warm-ups. */
#define ATTUNE_GRAPHED_OPTIONS_INIT \
  { sizeof(attune_graph_callable_options), 0, 0, NULL, NULL, NULL, 0, NULL }

/* Captures fn(user, ...) for `device`, on a stream of its own, and stores the result in *out; waits for the warm-ups.
 * The caller destroys it. options NULL: the defaults. Errors: INVALID_ARGUMENT, those of attune_alloc and
 * attune_graph_capture_callback, and fn's own. Not allowed in capture. */
ATTUNE_API attune_status attune_graph_callable_create(attune_graph_callable **out, attune_device *device,
                                                      const attune_graph_callable_options *options,
                                                      attune_graph_callable_fn fn, void *user);

/* Gives one run to `stream`, a stream of the device: copies inputs[i] to the graph's input, replays, and copies the
 * graph's output to outputs[i]; pointers are as for attune_copy. An element that is NULL, or the graph's own pointer
 * (attune_graph_callable_input, attune_graph_callable_output), is not copied; inputs or outputs NULL: none is copied.
 * Calls must not overlap; the caller ensures this. Calls on one stream never overlap. Errors: INVALID_ARGUMENT,
 * CAPTURING (the stream is in a capture), those of attune_copy and attune_graph_replay. */
ATTUNE_API attune_status attune_graph_callable_call(attune_graph_callable *graphed, attune_stream *stream,
                                                    const void *const *inputs, void *const *outputs);

/* Returns the graph's input buffer `index`, in device memory, which may be written directly instead of copied to, in
 * order with the calls. Borrowed; NULL if there is no such input. */
ATTUNE_API void *attune_graph_callable_input(const attune_graph_callable *graphed, size_t index);

/* Returns the graph's output buffer `index`, in device memory, which may be read directly instead of copied from, in
 * order with the calls. Borrowed; NULL if there is no such output. */
ATTUNE_API void *attune_graph_callable_output(const attune_graph_callable *graphed, size_t index);

/* Returns the graph, for attune_graph_upload, attune_graph_pool and the like. Borrowed; NULL for NULL. */
ATTUNE_API attune_graph *attune_graph_callable_graph(const attune_graph_callable *graphed);

/* Releases the callable and its memory. Its calls must be done. NULL does nothing. */
ATTUNE_API void attune_graph_callable_destroy(attune_graph_callable *graphed);

#ifdef __cplusplus
}
#endif
#endif
