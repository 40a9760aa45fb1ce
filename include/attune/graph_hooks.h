/* SPDX-License-Identifier: Apache-2.0
 * graph_hooks.h: functions that are called when a graph changes or runs, and objects that live as long as its work. A
 * graph is used by one thread at a time (graph.h), also by these calls. */
#ifndef ATTUNE_GRAPH_HOOKS_H
#define ATTUNE_GRAPH_HOOKS_H

#include <attune/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Moments at which hooks are called, as bits. */
enum {
  ATTUNE_GRAPH_CAPTURED = 1,     /* a capture or an update succeeded */
  ATTUNE_GRAPH_INSTANTIATED = 2, /* it has a new or an updated executable */
  ATTUNE_GRAPH_REPLAYED = 4,     /* a replay was given to a stream */
  ATTUNE_GRAPH_DROPPED = 8       /* its work is about to be released: it is being reset or destroyed */
};

/* Called with one of the bits, by the thread whose call caused the event. It may query the graph; it must not capture,
 * update, reset or destroy it, nor change its hooks. */
typedef void (*attune_graph_hook)(void *user, attune_graph *graph, unsigned moment);

/* Adds a hook: from now on hook(user, graph, moment) is called at the moments set in `moments`. Hooks are called in the
 * order in which they were added; a reset of the graph keeps them. Errors: INVALID_ARGUMENT (also: unknown bits),
 * OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_add_hook(attune_graph *graph, unsigned moments, attune_graph_hook hook,
                                               void *user);

/* Removes the hook added with this function and user pointer. Errors: INVALID_ARGUMENT, NOT_FOUND. */
ATTUNE_API attune_status attune_graph_remove_hook(attune_graph *graph, attune_graph_hook hook, void *user);

/* Gives the graph an object that its work needs: release(object) is called when the graph is reset or destroyed, or
 * when its capture ends but the executable cannot be made; latest object first. If the call fails, the caller keeps the
 * object. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_hold(attune_graph *graph, void *object, void (*release)(void *object));

#ifdef __cplusplus
}
#endif
#endif
