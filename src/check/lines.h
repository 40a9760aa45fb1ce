/* SPDX-License-Identifier: Apache-2.0
 * lines.h: lines of work, and what of the others each has waited for. Line 0 is the host: its calls, and the host
 * device's default stream, which runs its work inside them. What the host saw done is done before whatever is given to
 * any stream later; the calls of several threads count in the order in which they came. All of this under the check's
 * lock. */
#ifndef AT_CHECK_LINES_H
#define AT_CHECK_LINES_H

#include "src/backend.h"
#include "src/check/clock.h"

#define AT_LINE_NAME 64

struct at_world;

typedef struct at_line {
  uint32_t index;
  int users; /* handles; 0: free for another stream, which goes on counting */
  const attune_device *device;
  void *native;       /* the program's stream; NULL: the handle's own */
  uint64_t thread;    /* of a stream that each thread has its own of */
  bool legacy, joins; /* CUDA's legacy default stream, and a stream that it waits for and that waits for it */
  uint64_t position;  /* pieces of work so far */
  uint64_t host_seen; /* the host's version when `now` last took it in */
  at_clock now;
  struct at_world *world; /* of the capture that the stream is in; NULL: none */
  at_clock captured;      /* in that */
  char name[AT_LINE_NAME];
} at_line;

/* Forgets all lines. False: no memory. */
bool at_lines_begin(void);

at_line *at_lines_host(void);

/* The stream's line; NULL: no memory. */
at_line *at_lines_of(attune_stream *stream);

at_line *at_lines_at(uint32_t index); /* NULL behind the last one */

/* The clock of the line's next piece of work, brought up to what came before. NULL: no memory. */
at_clock *at_line_clock(at_line *line);

/* Counts a piece of work; 0: no memory. */
uint64_t at_line_step(at_line *line);

/* The host has seen what the clock has. */
bool at_lines_host_joins(const at_clock *clock);

void at_lines_stream_gone(attune_stream *stream);

#endif
