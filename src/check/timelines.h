/* SPDX-License-Identifier: Apache-2.0
 * timelines.h: lines of work, and what of the others each has waited for. Line 0 is the host: its calls, and the host
 * device's default stream, which runs its work inside them. What the host saw done is done before whatever is given to
 * any stream later; the calls of several threads count in the order in which they came. All of this under the check's
 * lock. */
#ifndef AT_CHECK_TIMELINES_H
#define AT_CHECK_TIMELINES_H

#include "src/base/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AT_TIMELINE_NAME 64

/* A vector clock: for each line of work the last of its pieces that is known to be done before. */
typedef struct at_clock {
  uint64_t *at; /* by line; those from `count` on are 0 */
  uint32_t count, room;
} at_clock;

static inline uint64_t at_clock_get(const at_clock *clock, uint32_t line) {
  return line < clock->count ? clock->at[line] : 0;
}

/* These return false when memory is short; the clock is then as before. */
bool at_clock_set(at_clock *clock, uint32_t line, uint64_t position);
bool at_clock_join(at_clock *into, const at_clock *from);
bool at_clock_copy(at_clock *out, const at_clock *from);

void at_clock_release(at_clock *clock);

struct at_shadow_state;

typedef struct at_timeline {
  uint32_t index;
  int users; /* handles; 0: free for another stream, which goes on counting */
  const attune_device *device;
  void *native;       /* the program's stream; NULL: the handle's own */
  uint64_t thread;    /* of a stream that each thread has its own of */
  bool legacy, joins; /* CUDA's legacy default stream, and a stream that it waits for and that waits for it */
  uint64_t position;  /* pieces of work so far */
  uint64_t host_seen; /* the host's version when `now` last took it in */
  at_clock now;
  struct at_shadow_state *world; /* of the capture that the stream is in; NULL: none */
  at_clock captured;             /* in that */
  char name[AT_TIMELINE_NAME];
} at_timeline;

/* Forgets all lines. False: no memory. */
bool at_timelines_begin(void);

at_timeline *at_timelines_host(void);

/* The stream's line; NULL: no memory. */
at_timeline *at_timelines_of(attune_stream *stream);

at_timeline *at_timelines_at(uint32_t index); /* NULL behind the last one */

/* The clock of the line's next piece of work, brought up to what came before. NULL: no memory. */
at_clock *at_timeline_clock(at_timeline *line);

/* Counts a piece of work; 0: no memory. */
uint64_t at_timeline_step(at_timeline *line);

/* The host has seen what the clock has. */
bool at_timelines_host_joins(const at_clock *clock);

void at_timelines_stream_gone(attune_stream *stream);

#endif
