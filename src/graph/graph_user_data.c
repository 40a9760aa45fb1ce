/* SPDX-License-Identifier: Apache-2.0
 * graph_user_data.c: a graph's hooks, objects and inputs, made when the first of them is given. */
#include "src/graph/graph_user_data.h"

#include <stdlib.h>

at_graph_user_data *at_graph_user_data_of(attune_graph *graph) {
  if (!graph->extra) graph->extra = calloc(1, sizeof *graph->extra);
  if (!graph->extra) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for hooks and objects of a graph");
  return graph->extra;
}
