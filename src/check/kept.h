/* SPDX-License-Identifier: Apache-2.0
 * kept.h: what the race check keeps with events, captures and graphs. */
#ifndef AT_CHECK_KEPT_H
#define AT_CHECK_KEPT_H

#include "src/capture.h"
#include "src/check/world.h"

#include <stdlib.h>

/* With an event: what came before its latest record. */
typedef struct at_mark {
  uint64_t epoch; /* 0: not known */
  uint64_t world; /* of the capture that it was recorded in; 0: in none */
  at_clock clock;
} at_mark;

/* With a capture, then with its graph. */
typedef struct at_kept {
  uint64_t epoch;
  unsigned clones; /* graphs that have it besides the first */
  at_world world;
} at_kept;

static inline at_kept *at_kept_make(uint64_t epoch, uint64_t number) {
  at_kept *kept = calloc(1, sizeof *kept);
  if (kept) *kept = (at_kept){.epoch = epoch, .world = {.number = number}};
  return kept;
}

static inline at_world *at_kept_world(at_kept *kept, uint64_t epoch) {
  return kept && kept->epoch == epoch ? &kept->world : NULL;
}

static inline void at_kept_release(at_kept *kept) {
  if (!kept || kept->clones-- > 0) return;
  at_world_clear(&kept->world);
  free(kept);
}

#endif
