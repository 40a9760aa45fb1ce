/* SPDX-License-Identifier: Apache-2.0
 * registered.c: memory of the program that it had pinned where it is. */
#include <attune/pinned.h>

#include <stdlib.h>

#include "src/memory/allocator.h"

typedef struct range {
  struct range *next;
  uintptr_t begin;
  size_t bytes;
  attune_device *device;
  bool pinned; /* false: just being pinned, or no more */
} range;

static range *ranges; /* at_pinned_lock guards it; not held while the system is asked */

bool at_registered_find(attune_pointer_info *out, uintptr_t address) {
  for (const range *r = ranges; r; r = r->next) {
    if (!r->pinned || address - r->begin >= r->bytes) continue;
    *out = (attune_pointer_info){ATTUNE_KIND_PINNED, r->device, (void *)r->begin, r->bytes, 1};
    return true;
  }
  return false;
}

static attune_status check(const attune_device *device, const void *pointer, size_t bytes) {
  attune_pointer_info info;
  if (!device) return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
  if (!pointer) return at_fail(ATTUNE_INVALID_ARGUMENT, "pointer is NULL; should be memory of the program");
  if (bytes == 0 || (uintptr_t)pointer > UINTPTR_MAX - bytes)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "bytes is %zu; should be the size of what pointer points to", bytes);
  const void *const ends[] = {pointer, (const char *)pointer + bytes - 1};
  for (int i = 0; i < 2; i++) {
    attune_status status = attune_pointer_get_info(&info, ends[i]);
    if (status != ATTUNE_OK) return status;
    if (info.kind == ATTUNE_KIND_UNKNOWN)
      return at_fail(ATTUNE_INVALID_ARGUMENT, "there is no memory at %p; should be memory of the program", ends[i]);
    if (info.kind != ATTUNE_KIND_HOST || info.held)
      return at_fail(ATTUNE_INVALID_ARGUMENT,
                     "%p is pinned, or memory of attune or of a device, already; should be memory of the program alone",
                     ends[i]);
  }
  return ATTUNE_OK;
}

/* Its place in the list is taken before the system is asked: of two threads one is refused. */
static attune_status claim(range *wanted) {
  attune_status status = ATTUNE_OK;
  at_pinned_lock();
  for (const range *r = ranges; r; r = r->next)
    if (wanted->begin < r->begin + r->bytes && r->begin < wanted->begin + wanted->bytes)
      status = at_fail(ATTUNE_INVALID_ARGUMENT,
                       "a part of the %zu bytes at %p is registered already, from %p on; should be registered once",
                       wanted->bytes, (void *)wanted->begin, (void *)r->begin);
  if (status == ATTUNE_OK) {
    wanted->next = ranges;
    ranges = wanted;
  }
  at_pinned_unlock();
  return status;
}

/* Lock held. */
static void drop(range *gone) {
  range **link = &ranges;
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  free(gone);
}

attune_status attune_pinned_register(attune_device *device, void *pointer, size_t bytes) {
  attune_status status = check(device, pointer, bytes);
  if (status != ATTUNE_OK) return status;
  range *r = malloc(sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to note what is pinned");
  *r = (range){.begin = (uintptr_t)pointer, .bytes = bytes, .device = device};
  status = claim(r);
  if (status != ATTUNE_OK) {
    free(r);
    return status;
  }
  if (device->backend->pinned_register) status = device->backend->pinned_register(device, pointer, bytes);
  at_pinned_lock();
  if (status == ATTUNE_OK)
    r->pinned = true;
  else
    drop(r);
  at_pinned_unlock();
  return status;
}

/* The range that begins at the pointer, which is no longer pinned for others then. */
static attune_status release(range **out, const void *pointer) {
  attune_pointer_info inside;
  attune_status status = at_fail(
      ATTUNE_NOT_FOUND, "%p is not registered memory; should be what attune_pinned_register was given", pointer);
  at_pinned_lock();
  if (at_registered_find(&inside, (uintptr_t)pointer))
    status = at_fail(ATTUNE_INVALID_ARGUMENT, "%p lies in the memory registered at %p; should be its start", pointer,
                     inside.base);
  for (range *r = ranges; r; r = r->next) {
    if (!r->pinned || r->begin != (uintptr_t)pointer) continue;
    r->pinned = false;
    *out = r;
    status = ATTUNE_OK;
  }
  at_pinned_unlock();
  return status;
}

attune_status attune_pinned_unregister(void *pointer) {
  range *r = NULL;
  at_message kept; /* what is looked for and found is no failure */
  if (!pointer)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "pointer is NULL; should be what attune_pinned_register was given");
  at_message_keep(&kept);
  attune_status status = release(&r, pointer);
  if (status == ATTUNE_OK && r->device->backend->pinned_unregister)
    status = r->device->backend->pinned_unregister(r->device, pointer);
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
