/* SPDX-License-Identifier: Apache-2.0
 * shadow_state.c: see shadow_state.h. An access is dropped when a later one stands for it: whatever could race with the
 * earlier one races with the later one too, because that comes after it, touches all its bytes, and writes or both only
 * read. One that the host saw done can race with nothing. */
#include "src/check/shadow_state.h"

#include <stdlib.h>

#define SWEEP_LEAST 4096

static void drop(at_shadow_state *world, at_access *access) {
  at_interval_remove(&world->accesses, &access->range);
  world->count--;
  free(access);
}

static bool stands_for(const at_access *later, const at_access *earlier) {
  return (later->writes || !earlier->writes) && at_span_cover(&later->span, &earlier->span);
}

static bool conflict(const at_access *a, const at_access *b) {
  return (a->writes || b->writes) && at_span_meet(&a->span, &b->span);
}

static bool seen_by_host(const at_shadow_state *world, const at_access *access) {
  return world->number == 0 && access->position <= at_clock_get(&at_timelines_host()->now, access->line);
}

static const at_allocation *allocation_at(at_shadow_state *world, uintptr_t start, uintptr_t end) {
  return (const at_allocation *)at_interval_find(world->allocations, start, end);
}

/* All that the host saw done goes; the next time when there is twice what was left. */
static void sweep(at_shadow_state *world) {
  at_interval *all = at_interval_find(world->accesses, 0, UINTPTR_MAX), *next = NULL;
  for (; all; all = next) {
    next = all->next;
    if (seen_by_host(world, (at_access *)all)) drop(world, (at_access *)all);
  }
  world->sweep_at = 2 * world->count > SWEEP_LEAST ? 2 * world->count : SWEEP_LEAST;
}

static bool keep(at_shadow_state *world, const at_access *access) {
  at_access *kept = malloc(sizeof *kept);
  if (!kept) return false;
  *kept = *access;
  kept->range.start = access->span.start;
  kept->range.end = access->span.end;
  at_interval_insert(&world->accesses, &kept->range);
  if (++world->count > world->sweep_at && world->number == 0) sweep(world);
  return true;
}

bool at_shadow_state_access(at_shadow_state *world, const at_access *access, const at_clock *clock,
                            at_race_found found) {
  at_interval *each = at_interval_find(world->accesses, access->span.start, access->span.end), *next = NULL;
  for (; each; each = next) {
    at_access *earlier = (at_access *)each;
    next = each->next;
    if (earlier->position > at_clock_get(clock, earlier->line)) {
      if (conflict(earlier, access)) found(earlier, access, allocation_at(world, access->span.start, access->span.end));
    } else if (seen_by_host(world, earlier) || stands_for(access, earlier)) {
      drop(world, earlier);
    }
  }
  return seen_by_host(world, access) || keep(world, access);
}

static void forget_allocations(at_shadow_state *world, const at_span *span) {
  at_interval *each = at_interval_find(world->allocations, span->start, span->end), *next = NULL;
  for (; each; each = next) {
    next = each->next;
    at_interval_remove(&world->allocations, each);
    free(each);
  }
}

/* Ends all accesses to these addresses. In a capture, its replays still repeat them. */
static void end_accesses(at_shadow_state *world, const at_span *span) {
  at_interval *each = at_interval_find(world->accesses, span->start, span->end), *next = NULL;
  for (; each; each = next) {
    next = each->next;
    if (world->number == 0) {
      drop(world, (at_access *)each);
      continue;
    }
    at_interval_remove(&world->accesses, each);
    world->count--;
    each->next = world->past;
    world->past = each;
  }
}

bool at_shadow_state_alloc(at_shadow_state *world, const at_access *access, const at_timeline *line) {
  forget_allocations(world, &access->span);
  end_accesses(world, &access->span);
  at_allocation *allocation = malloc(sizeof *allocation);
  if (!allocation) return false;
  allocation->range.start = access->span.start;
  allocation->range.end = access->span.end;
  (void)at_copy_text(allocation->stream, sizeof allocation->stream, line ? line->name : "");
  at_interval_insert(&world->allocations, &allocation->range);
  return !line || seen_by_host(world, access) || keep(world, access);
}

void at_shadow_state_free(at_shadow_state *world, const at_access *access, const at_clock *clock, at_race_found found) {
  at_interval *each = at_interval_find(world->accesses, access->span.start, access->span.end);
  for (; each; each = each->next) {
    const at_access *earlier = (const at_access *)each;
    if (earlier->position > at_clock_get(clock, earlier->line) && !seen_by_host(world, earlier))
      found(earlier, access, allocation_at(world, access->span.start, access->span.end));
  }
  end_accesses(world, &access->span);
  forget_allocations(world, &access->span);
}

void at_shadow_state_clear(at_shadow_state *world) {
  at_interval *each = at_interval_find(world->accesses, 0, UINTPTR_MAX), *next = NULL;
  for (; each; each = next) {
    next = each->next;
    free(each);
  }
  for (each = world->past; each; each = next) {
    next = each->next;
    free(each);
  }
  each = at_interval_find(world->allocations, 0, UINTPTR_MAX);
  for (; each; each = next) {
    next = each->next;
    free(each);
  }
  *world = (at_shadow_state){.number = world->number};
}
