/* SPDX-License-Identifier: Apache-2.0
 * pinned_registry.c: the list of what a program had pinned where it is. */
#include "src/memory/pinned/pinned_registry.h"

#include <stdlib.h>

#include "src/memory/malloc/allocator.h"

static at_pinned_registry *ranges; /* at_pinned_lock guards it; not held while the system is asked */

bool at_pinned_registry_find(attune_pointer_info *out, uintptr_t address) {
  for (const at_pinned_registry *r = ranges; r; r = r->next) {
    if (!r->pinned || address - r->begin >= r->bytes) continue;
    *out = (attune_pointer_info){
        .kind = ATTUNE_KIND_PINNED, .device = r->device, .base = (void *)r->begin, .bytes = r->bytes, .held = 1};
    return true;
  }
  return false;
}

attune_status at_pinned_registry_claim(at_pinned_registry *wanted) {
  attune_status status = ATTUNE_OK;
  at_pinned_lock();
  for (const at_pinned_registry *r = ranges; r; r = r->next)
    if (wanted->begin < r->begin + r->bytes && r->begin < wanted->begin + wanted->bytes)
      status = AT_INVALID("part of the %zu bytes at %p is already registered, from %p on; should be registered once",
                          wanted->bytes, (void *)wanted->begin, (void *)r->begin);
  if (status == ATTUNE_OK) {
    wanted->next = ranges;
    ranges = wanted;
  }
  at_pinned_unlock();
  return status;
}

void at_pinned_registry_drop(at_pinned_registry *gone) {
  at_pinned_registry **link = &ranges;
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  free(gone);
}

attune_status at_pinned_registry_release(at_pinned_registry **out, const void *pointer) {
  attune_pointer_info inside = {0};
  attune_status status = at_fail(
      ATTUNE_NOT_FOUND, "%p is not registered memory; should be a pointer passed to attune_pinned_register", pointer);
  at_pinned_lock();
  if (at_pinned_registry_find(&inside, (uintptr_t)pointer))
    status = AT_INVALID("%p lies in the memory registered at %p; should be its start", pointer, inside.base);
  for (at_pinned_registry *r = ranges; r; r = r->next) {
    if (!r->pinned || r->begin != (uintptr_t)pointer) continue;
    r->pinned = false;
    *out = r;
    status = ATTUNE_OK;
  }
  at_pinned_unlock();
  return status;
}
