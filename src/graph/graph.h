/* SPDX-License-Identifier: Apache-2.0
 * graph.h: the inside of a graph handle, and the captures that fill it. */
#ifndef AT_GRAPH_H
#define AT_GRAPH_H

#include <attune/graph_hooks.h>

#include "src/stream/capture.h"

struct attune_graph {
  attune_device *device;
  struct attune_pool *pool;         /* counted; NULL until the first capture */
  at_graph_generator *generators;   /* owned */
  at_capture *capture;              /* under way; NULL: none */
  at_graph *made;                   /* the backend's: what was captured; NULL: nothing */
  bool keep;                        /* of the latest capture: keep the captured graph as well as the executable */
  bool instantiated;                /* `made` has an executable */
  void *watched;                    /* src/check/'s: what a replay uses */
  struct at_externals *externals;   /* owned; NULL: none */
  struct at_graph_calls *calls;     /* owned: what a replay counts as; NULL: nothing */
  struct at_graph_user_data *extra; /* graph_hooks.c's: hooks, held objects, noted inputs; NULL: none of them */
};

/* graph_hooks.c: calls the hooks of a moment. And when the work goes: tells the hooks, lets go of objects and inputs;
 * and when the graph does. */
void at_graph_tell(attune_graph *graph, unsigned moment);
void at_graph_hooks_drop(attune_graph *graph);
void at_graph_hooks_free(attune_graph *graph);

/* graph_inputs.c: OK while no memory that a replay uses was freed. What a capture noted becomes the graph's, in place
 * of what it had; NULL: nothing. */
attune_status at_graph_check_inputs(const attune_graph *graph);
attune_status at_graph_adopt_inputs(attune_graph *graph, struct at_inputs *inputs);
void at_inputs_free(struct at_inputs *inputs);

/* graph.c: OK when work is captured in the graph, no capture is under way, and the captured graph was kept as well as
 * the executable; OK when the graph can be replayed on the stream. */
attune_status at_graph_check_kept(const attune_graph *graph);
attune_status at_graph_check_replay(const attune_graph *graph, attune_stream *stream);

/* graph_capture.c: a capture of the graph's, started and brought to what the backend made of it (not instantiated).
 * `updating`: the graph may have been captured already. finish ends the capture whatever happens, except for
 * INVALID_ARGUMENT with graph->capture still set: then it goes on. */
attune_status at_graph_capture_start(attune_graph *graph, attune_stream *stream, const attune_capture_options *options,
                                     bool updating);
attune_status at_graph_capture_finish(attune_graph *graph, attune_stream *stream, at_graph **out);

/* Ends the capture under way and drops what it wrote down. */
void at_graph_capture_drop(attune_graph *graph);

/* Runs fn on the stream in a capture already begun and ends the capture: the captured graph or fn's failure. */
attune_status at_graph_capture_run(attune_graph *graph, attune_stream *stream, attune_capture_fn fn, void *user,
                                   at_graph **out);

/* The pool that the graph's captures take memory from, made at first use. Borrowed. */
attune_status at_graph_pool(attune_graph *graph, struct attune_pool **out);

#endif
