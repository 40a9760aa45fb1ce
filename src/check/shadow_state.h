/* SPDX-License-Identifier: Apache-2.0
 * shadow_state.h: what was accessed, as far as a later access could still race with it. What runs has one world; each
 * capture has one of its own, for its work runs only later, in replays. All of this under the check's lock. */
#ifndef AT_CHECK_SHADOW_STATE_H
#define AT_CHECK_SHADOW_STATE_H

#include "src/check/interval.h"
#include "src/check/span.h"
#include "src/check/timelines.h"

#define AT_CALL_NAME 56
#define AT_OPERAND_NAME 24

typedef struct at_access {
  at_interval range;
  at_span span;
  uint32_t line;
  uint64_t position;
  bool reads, writes, allocates;
  bool frees; /* only of what is told, never kept */
  char call[AT_CALL_NAME], operand[AT_OPERAND_NAME], stream[AT_TIMELINE_NAME];
} at_access;

typedef struct at_allocation {
  at_interval range;
  char stream[AT_TIMELINE_NAME];
} at_allocation;

typedef struct at_shadow_state {
  uint64_t number;       /* 0: what runs */
  at_interval *accesses; /* at_access */
  at_interval *allocations;
  at_interval *past; /* in a capture: accesses of memory that it freed, by `next` */
  size_t count, sweep_at;
} at_shadow_state;

/* Tells of two accesses that nothing orders; `allocation` may be NULL. */
typedef void (*at_race_found)(const at_access *first, const at_access *second, const at_allocation *allocation);

/* A piece of work of `line` at `position` accesses memory; `access` is copied. Whether earlier ones come before it is
 * asked of `clock`. False: no memory. */
bool at_shadow_state_access(at_shadow_state *world, const at_access *access, const at_clock *clock,
                            at_race_found found);

/* Memory begins its life on `line` (NULL: no stream's): what was there is over. */
bool at_shadow_state_alloc(at_shadow_state *world, const at_access *access, const at_timeline *line);

/* And ends it: all that accessed it should come before `clock`. `graphs`: it is kept for replays. */
void at_shadow_state_free(at_shadow_state *world, const at_access *access, const at_clock *clock, at_race_found found);

/* Drops all. */
void at_shadow_state_clear(at_shadow_state *world);

#endif
