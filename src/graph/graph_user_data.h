/* SPDX-License-Identifier: Apache-2.0
 * graph_user_data.h: what few graphs have: hooks, objects, and inputs that a replay looks at. */
#ifndef AT_GRAPH_USER_DATA_H
#define AT_GRAPH_USER_DATA_H

#include "src/graph/graph.h"

typedef struct at_graph_hooked {
  struct at_graph_hooked *next; /* the one added after it */
  unsigned moments;
  attune_graph_hook hook;
  void *user;
} at_graph_hooked;

typedef struct at_graph_held {
  struct at_graph_held *next; /* the one held before it */
  void *object;
  void (*release)(void *object);
} at_graph_held;

typedef struct at_graph_user_data {
  at_graph_hooked *hooks;
  at_graph_held *held;
  struct at_inputs *inputs; /* NULL: none are looked at */
} at_graph_user_data;

/* Made at first use; NULL with a message. */
at_graph_user_data *at_graph_user_data_of(attune_graph *graph);

#endif
