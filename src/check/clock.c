/* SPDX-License-Identifier: Apache-2.0
 * clock.c: see clock.h. */
#include "src/check/clock.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(at_clock *clock, uint32_t count) {
  if (count > clock->room) {
    const uint32_t room = (count + 15) / 16 * 16;
    uint64_t *at = realloc(clock->at, room * sizeof *at);
    if (!at) return false;
    clock->at = at;
    clock->room = room;
  }
  for (; clock->count < count; clock->count++) clock->at[clock->count] = 0;
  return true;
}

bool at_clock_set(at_clock *clock, uint32_t line, uint64_t position) {
  if (!make_room(clock, line + 1)) return false;
  clock->at[line] = position;
  return true;
}

bool at_clock_join(at_clock *into, const at_clock *from) {
  if (into->count < from->count && !make_room(into, from->count)) return false;
  for (uint32_t i = 0; i < from->count; i++)
    if (into->at[i] < from->at[i]) into->at[i] = from->at[i];
  return true;
}

bool at_clock_copy(at_clock *out, const at_clock *from) {
  if (!make_room(out, from->count)) return false;
  if (from->count) memcpy(out->at, from->at, from->count * sizeof *from->at);
  out->count = from->count;
  return true;
}

void at_clock_release(at_clock *clock) {
  free(clock->at);
  *clock = (at_clock){0};
}
