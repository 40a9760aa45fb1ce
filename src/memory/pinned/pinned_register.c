/* SPDX-License-Identifier: Apache-2.0
 * pinned_register.c: memory of the program, pinned where it is. */
#include <attune/pinned.h>
#include <attune/pointer.h>

#include <stdlib.h>

#include "src/memory/malloc/allocator.h"
#include "src/memory/pinned/pinned_registry.h"

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
  at_pinned_registry *r = malloc(sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record pinned memory");
  *r = (at_pinned_registry){.begin = (uintptr_t)pointer, .bytes = bytes, .device = device};
  attune_status status = at_pinned_registry_claim(r);
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
  AT_REQUIRE_AS(pointer, "be a pointer passed to attune_pinned_register");
  const at_message kept = at_message_keep(); /* what is looked for and found is no failure */
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
