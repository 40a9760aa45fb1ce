/* SPDX-License-Identifier: Apache-2.0
 * graph_calls.h: what one replay of a graph calls, as counters and how often, so that replays count: a replay adds to
 * one number, and whoever reads the counters has them brought up to date first. */
#ifndef AT_GRAPH_CALLS_H
#define AT_GRAPH_CALLS_H

#include "src/stream/capture.h"

typedef struct at_graph_calls at_graph_calls;

/* A call was captured that counts at *calls, which its owner (a number, not 0) keeps until it calls
 * at_graph_calls_forget. Without memory replays of it are not counted. Any thread. */
void at_graph_calls_note(at_capture *capture, uint64_t owner, _Atomic uint64_t *calls);

/* One more replay. NULL: of nothing that counts. */
typedef struct at_graph_replays {
  _Atomic uint64_t count;
} at_graph_replays;
static inline void at_graph_calls_replayed(at_graph_calls *calls) {
  if (calls) atomic_fetch_add_explicit(&((at_graph_replays *)(void *)calls)->count, 1, memory_order_relaxed);
}

/* Adds to all counters what was replayed since. Any thread. */
void at_graph_calls_collect(void);

/* As above, and the counters of this owner are no longer used. */
void at_graph_calls_forget(uint64_t owner);

/* The same calls for another graph, none replayed yet; NULL: none, or no memory. */
at_graph_calls *at_graph_calls_clone(const at_graph_calls *calls);

/* The work is gone: its replays are added first. NULL does nothing. */
void at_graph_calls_free(at_graph_calls *calls);

#endif
