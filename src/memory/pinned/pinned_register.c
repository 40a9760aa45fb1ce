/* SPDX-License-Identifier: Apache-2.0
 * pinned_register.c: memory of the program, pinned where it is. */
#include <attune/pinned.h>
#include <attune/pointer.h>

#include <stdlib.h>

#include "src/memory/malloc/allocator.h"

typedef struct registered {
  struct registered *next;
  uintptr_t begin;
  size_t bytes;
  attune_device *device;
  bool pinned; /* false: just being pinned, or no more */
} registered;

static registered *ranges; /* at_pinned_lock guards it; not held while the system is asked */

bool at_pinned_registry_find(attune_pointer_info *out, uintptr_t address) {
  for (const registered *r = ranges; r; r = r->next) {
    if (!r->pinned || address - r->begin >= r->bytes) continue;
    *out = (attune_pointer_info){
        .kind = ATTUNE_KIND_PINNED, .device = r->device, .base = (void *)r->begin, .bytes = r->bytes, .held = 1};
    return true;
  }
  return false;
}

/* Takes a place in the list, before the system is asked: of two threads one is refused. */
static attune_status claim(registered *wanted) {
  attune_status status = ATTUNE_OK;
  at_pinned_lock();
  for (const registered *r = ranges; r; r = r->next)
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

/* at_pinned_lock is held. */
static void drop(registered *gone) {
  registered **link = &ranges;
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  free(gone);
}

/* The one that begins at the pointer, which is no longer pinned for others then. */
static attune_status release(registered **out, const void *pointer) {
  attune_pointer_info inside = {0};
  attune_status status = at_fail(
      ATTUNE_NOT_FOUND, "%p is not registered memory; should be a pointer passed to attune_pinned_register", pointer);
  at_pinned_lock();
  if (at_pinned_registry_find(&inside, (uintptr_t)pointer))
    status = AT_INVALID("%p lies in the memory registered at %p; should be its start", pointer, inside.base);
  for (registered *r = ranges; r; r = r->next) {
    if (!r->pinned || r->begin != (uintptr_t)pointer) continue;
    r->pinned = false;
    *out = r;
    status = ATTUNE_OK;
  }
  at_pinned_unlock();
  return status;
}

static attune_status check(const attune_device *device, const void *pointer, size_t bytes) {
  attune_pointer_info info = {0};
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(pointer, "be memory of the program");
  if (bytes == 0 || (uintptr_t)pointer > UINTPTR_MAX - bytes)
    return AT_INVALID("bytes is %zu; should be the size of the memory at pointer", bytes);
  const void *const ends[] = {pointer, (const char *)pointer + bytes - 1};
  for (int i = 0; i < 2; i++) {
    AT_TRY(attune_pointer_get_info(&info, ends[i]));
    if (info.kind == ATTUNE_KIND_UNKNOWN)
      return AT_INVALID("there is no memory at %p; should be memory of the program", ends[i]);
    if (info.kind == ATTUNE_KIND_PINNED && info.base)
      return AT_INVALID("%p is already pinned, with the %zu bytes from %p on; should be registered once", ends[i],
                        info.bytes, info.base);
    if (info.kind != ATTUNE_KIND_HOST || info.held)
      return AT_INVALID("%p is already pinned, or is memory of attune or of a device; should be memory of the program",
                        ends[i]);
  }
  return ATTUNE_OK;
}

attune_status attune_pinned_register(attune_device *device, void *pointer, size_t bytes) {
  AT_TRY(check(device, pointer, bytes));
  registered *r = malloc(sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record pinned memory");
  *r = (registered){.begin = (uintptr_t)pointer, .bytes = bytes, .device = device};
  attune_status status = claim(r);
  if (status != ATTUNE_OK) {
    free(r);
    return status;
  }
  status = device->backend.pinned->pin(device, pointer, bytes);
  at_pinned_lock();
  if (status == ATTUNE_OK)
    r->pinned = true;
  else
    drop(r);
  at_pinned_unlock();
  return status;
}

attune_status attune_pinned_unregister(void *pointer) {
  registered *r = NULL;
  AT_REQUIRE_AS(pointer, "be a pointer passed to attune_pinned_register");
  const at_message kept = at_message_keep(); /* what is looked for and found is no failure */
  attune_status status = release(&r, pointer);
  if (status == ATTUNE_OK) status = r->device->backend.pinned->unpin(r->device, pointer);
  if (r) {
    at_pinned_lock();
    if (status == ATTUNE_OK)
      drop(r);
    else
      r->pinned = true;
    at_pinned_unlock();
  }
  return at_message_settle(&kept, status);
}
