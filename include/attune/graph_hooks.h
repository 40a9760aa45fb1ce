/* SPDX-License-Identifier: Apache-2.0
 * graph_hooks.h: functions that hear what becomes of a graph, and objects that live as long as its work. */
#ifndef ATTUNE_GRAPH_HOOKS_H
#define ATTUNE_GRAPH_HOOKS_H

#include <attune/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a graph, as bits. */
enum {
  ATTUNE_GRAPH_CAPTURED = 1,     /* a capture or an update ended well */
  ATTUNE_GRAPH_INSTANTIATED = 2, /* it has a new executable, or an update of the one it had */
  ATTUNE_GRAPH_REPLAYED = 4,     /* a replay was given to a stream */
  ATTUNE_GRAPH_DROPPED = 8       /* its work is about to go: it is reset or destroyed */
};

/* Called in the thread that makes the call, with one of the bits. It may ask the graph; it must not capture, update, reset or
 * destroy it, nor change its hooks. */
typedef void (*attune_graph_hook)(void *user, attune_graph *graph, unsigned moment);

/* Calls hook(user, graph, moment) at each moment of `moments`, hooks in the order of their coming. They stay over a reset. Errors:
 * INVALID_ARGUMENT (also: bits that there are not), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_add_hook(attune_graph *graph, unsigned moments, attune_graph_hook hook,
                                               void *user);

/* Removes what was added with the same function and user pointer. Errors: INVALID_ARGUMENT, NOT_FOUND. */
ATTUNE_API attune_status attune_graph_remove_hook(attune_graph *graph, attune_graph_hook hook, void *user);

/* The graph holds `object`, which its work needs: release(object) is called when the work goes, by a reset or when the graph
 * is destroyed, the latest object first. In a failed call nothing is held. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_hold(attune_graph *graph, void *object, void (*release)(void *object));

#ifdef __cplusplus
}
#endif
#endif
