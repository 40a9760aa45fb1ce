/* SPDX-License-Identifier: Apache-2.0
 * counters.c: what the slow paths count. */
#include "src/memory/malloc/allocator.h"

void at_figure_add_one(attune_memory_figure *figure, uint64_t amount) {
  figure->current += amount;
  figure->allocated += amount;
  if (figure->current > figure->peak) figure->peak = figure->current;
}

void at_figure_sub_one(attune_memory_figure *figure, uint64_t amount) {
  figure->current -= amount;
  figure->freed += amount;
}

void at_figure_add(attune_memory_figure figures[3], bool small, uint64_t amount) {
  at_figure_add_one(&figures[ATTUNE_MEMORY_ALL], amount);
  at_figure_add_one(&figures[small ? ATTUNE_MEMORY_SMALL : ATTUNE_MEMORY_LARGE], amount);
}

void at_figure_sub(attune_memory_figure figures[3], bool small, uint64_t amount) {
  at_figure_sub_one(&figures[ATTUNE_MEMORY_ALL], amount);
  at_figure_sub_one(&figures[small ? ATTUNE_MEMORY_SMALL : ATTUNE_MEMORY_LARGE], amount);
}

static _Thread_local bool refused;

bool at_reserve(at_allocator *allocator, size_t bytes) {
  refused = bytes > allocator->limit || allocator->reserved > allocator->limit - bytes;
  if (refused) return false;
  allocator->reserved += bytes;
  return true;
}

bool at_reserve_refused(void) {
  const bool was = refused;
  refused = false;
  return was;
}

void at_unreserve(at_allocator *allocator, size_t bytes) {
  allocator->reserved -= bytes;
}
