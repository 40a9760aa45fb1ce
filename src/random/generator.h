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

#endif
