/* SPDX-License-Identifier: Apache-2.0
 * graph_hooks.c: the program's functions that hear of a graph, and its objects that live as long as the graph's
 * work. */
#include "src/graph/graph_user_data.h"

#include <stdlib.h>

at_graph_user_data *at_graph_user_data_of(attune_graph *graph) {
  if (!graph->extra) graph->extra = calloc(1, sizeof *graph->extra);
  if (!graph->extra) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for hooks and objects of a graph");
  return graph->extra;
}

#define EVERY (ATTUNE_GRAPH_CAPTURED | ATTUNE_GRAPH_INSTANTIATED | ATTUNE_GRAPH_REPLAYED | ATTUNE_GRAPH_DROPPED)

void at_graph_tell(attune_graph *graph, unsigned moment) {
  for (const at_graph_hooked *h = graph->extra ? graph->extra->hooks : NULL; h; h = h->next)
    if (h->moments & moment) h->hook(h->user, graph, moment);
}

void at_graph_hooks_drop(attune_graph *graph) {
  at_graph_user_data *extra = graph->extra;
  if (!extra) return;
  if (graph->made) at_graph_tell(graph, ATTUNE_GRAPH_DROPPED);
  while (extra->held) {
    at_graph_held *held = extra->held;
    extra->held = held->next;
    held->release(held->object);
    free(held);
  }
  at_inputs_free(extra->inputs);
  extra->inputs = NULL;
}

void at_graph_hooks_free(attune_graph *graph) {
  at_graph_user_data *extra = graph->extra;
  if (!extra) return;
  while (extra->hooks) {
    at_graph_hooked *next = extra->hooks->next;
    free(extra->hooks);
    extra->hooks = next;
  }
  free(extra);
  graph->extra = NULL;
}

attune_status attune_graph_add_hook(attune_graph *graph, unsigned moments, attune_graph_hook hook, void *user) {
  AT_REQUIRE_GRAPH(graph);
  AT_REQUIRE_AS(hook, "be a function");
  if (moments == 0 || (moments & ~(unsigned)EVERY) != 0)
    return AT_INVALID("moments is %u; should be a combination of ATTUNE_GRAPH_... bits, 1 to %u", moments,
                      (unsigned)EVERY);
  at_graph_user_data *extra = at_graph_user_data_of(graph);
  at_graph_hooked *added = extra ? malloc(sizeof *added) : NULL;
  if (!added) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a hook of a graph");
  *added = (at_graph_hooked){.moments = moments, .hook = hook, .user = user};
  at_graph_hooked **link = &extra->hooks;
  while (*link) link = &(*link)->next;
  *link = added;
  return ATTUNE_OK;
}

attune_status attune_graph_remove_hook(attune_graph *graph, attune_graph_hook hook, void *user) {
  AT_REQUIRE_GRAPH(graph);
  for (at_graph_hooked **link = graph->extra ? &graph->extra->hooks : NULL; link && *link; link = &(*link)->next) {
    at_graph_hooked *h = *link;
    if (h->hook != hook || h->user != user) continue;
    *link = h->next;
    free(h);
    return ATTUNE_OK;
  }
  return at_fail(ATTUNE_NOT_FOUND, "the graph has no such hook; hook and user should be those it was added with");
}

attune_status attune_graph_hold(attune_graph *graph, void *object, void (*release)(void *object)) {
  AT_REQUIRE_GRAPH(graph);
  AT_REQUIRE_AS(release, "be a function");
  at_graph_user_data *extra = at_graph_user_data_of(graph);
  at_graph_held *held = extra ? malloc(sizeof *held) : NULL;
  if (!held) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an object of a graph");
  *held = (at_graph_held){.next = extra->held, .object = object, .release = release};
  extra->held = held;
  return ATTUNE_OK;
}
