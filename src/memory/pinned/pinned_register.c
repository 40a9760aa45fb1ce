/* SPDX-License-Identifier: Apache-2.0
 * pinned_register.c: memory of the program, pinned where it is. */
#include <attune/pinned.h>
#include <attune/pointer.h>

#include <stdlib.h>

#include "src/memory/malloc/allocator.h"
#include "src/memory/pinned/pinned_registry.h"

static attune_status check(const attune_device *device, const void *pointer, size_t bytes) {
  attune_pointer_info info = {0};
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
    if (info.kind == ATTUNE_KIND_PINNED && info.base)
      return at_fail(ATTUNE_INVALID_ARGUMENT,
                     "%p is pinned already, with the %zu bytes from %p on; should be registered once", ends[i],
                     info.bytes, info.base);
    if (info.kind != ATTUNE_KIND_HOST || info.held)
      return at_fail(ATTUNE_INVALID_ARGUMENT,
                     "%p is pinned, or memory of attune or of a device, already; should be memory of the program alone",
                     ends[i]);
  }
  return ATTUNE_OK;
}

attune_status attune_pinned_register(attune_device *device, void *pointer, size_t bytes) {
  attune_status status = check(device, pointer, bytes);
  if (status != ATTUNE_OK) return status;
  at_pinned_registry *r = malloc(sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to note what is pinned");
  *r = (at_pinned_registry){.begin = (uintptr_t)pointer, .bytes = bytes, .device = device};
  status = at_pinned_registry_claim(r);
  if (status != ATTUNE_OK) {
    free(r);
    return status;
  }
  status = device->backend.pinned->pin(device, pointer, bytes);
  at_pinned_lock();
  if (status == ATTUNE_OK)
    r->pinned = true;
  else
    at_pinned_registry_drop(r);
  at_pinned_unlock();
  return status;
}

attune_status attune_pinned_unregister(void *pointer) {
  at_pinned_registry *r = NULL;
  at_message kept; /* what is looked for and found is no failure */
  if (!pointer)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "pointer is NULL; should be what attune_pinned_register was given");
  at_message_keep(&kept);
  attune_status status = at_pinned_registry_release(&r, pointer);
  if (status == ATTUNE_OK) status = r->device->backend.pinned->unpin(r->device, pointer);
  if (r) {
    at_pinned_lock();
    if (status == ATTUNE_OK)
      at_pinned_registry_drop(r);
    else
      r->pinned = true;
    at_pinned_unlock();
  }
  return at_message_settle(&kept, status);
}
