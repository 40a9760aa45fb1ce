/* SPDX-License-Identifier: Apache-2.0
 * clock.h: vector clocks: for each line of work (a stream, or the host) the last of its pieces that is known to be done
 * before. */
#ifndef AT_CHECK_CLOCK_H
#define AT_CHECK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
