/* SPDX-License-Identifier: Apache-2.0
 * generator.h: the state of a generator, and how a call takes its stretch of it. */
#ifndef AT_RANDOM_GENERATOR_H
#define AT_RANDOM_GENERATOR_H

#include <attune/random.h>

#include "src/random/call.h"

/* Seed and offset, and where the grid of torch's mode comes from, as a call sees them. */
typedef struct at_generator_view {
  attune_random_mode mode;
  int processors, threads; /* 0: the device's own */
} at_generator_view;

void at_generator_look(attune_generator *generator, at_generator_view *out);

/* Takes `words` (a multiple of 4) for a call on `stream`: fills seed, offset and state of *call and moves the generator
 * on, or in a capture the generator's increment in the graph. */
attune_status at_generator_take(attune_generator *generator, attune_stream *stream, uint64_t words,
                                at_random_call *call);

/* graph_state.c: room on the device for {seed, base offset}, and back: no replay may be under way that reads it. Any
 * thread; neither waits for the device, and both may be called in a capture. */
attune_status at_graph_state_take(uint64_t **out, attune_device *device);
void at_graph_state_give(uint64_t *state);

#endif
