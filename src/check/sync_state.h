/* SPDX-License-Identifier: Apache-2.0
 * sync_state.h: what the race check keeps with events, captures and graphs. */
#ifndef AT_CHECK_SYNC_STATE_H
#define AT_CHECK_SYNC_STATE_H

#include "src/check/shadow_state.h"
#include "src/stream/capture.h"

#include <stdlib.h>

/* With an event: what came before its latest record. */
typedef struct at_mark {
  uint64_t epoch; /* 0: not known */
  uint64_t world; /* of the capture that it was recorded in; 0: in none */
  at_clock clock;
} at_mark;

/* With a capture, then with its graph. */
typedef struct at_sync_state {
  uint64_t epoch;
  unsigned clones; /* graphs that have it besides the first */
  at_shadow_state world;
} at_sync_state;

static inline at_sync_state *at_sync_state_make(uint64_t epoch, uint64_t number) {
  at_sync_state *kept = calloc(1, sizeof *kept);
  if (kept) *kept = (at_sync_state){.epoch = epoch, .world = {.number = number}};
  return kept;
}

static inline at_shadow_state *at_sync_state_world(at_sync_state *kept, uint64_t epoch) {
  return kept && kept->epoch == epoch ? &kept->world : NULL;
}

static inline void at_sync_state_release(at_sync_state *kept) {
  if (!kept || kept->clones-- > 0) return;
  at_shadow_state_clear(&kept->world);
  free(kept);
}

#endif
