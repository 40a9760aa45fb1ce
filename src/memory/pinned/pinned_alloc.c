/* SPDX-License-Identifier: Apache-2.0
 * pinned_alloc.c: page-locked memory from the system: made by the driver, or memory of the process that is touched by
 * several threads and pinned where it is, which is sooner where there is much of it. */
#include "src/memory/pinned/pinned_cache.h"

#include "src/host/threads.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)

at_pinned_form at_pinned_form_of(attune_device *device) {
  at_pinned_form form = {.threads = 1, .most_kept = SIZE_MAX, .most_round = SIZE_MAX};
  at_allocator *allocator = at_allocator_of(device);
  if (!allocator) return form;
  pthread_mutex_lock(&allocator->lock);
  const at_memory_options *o = &allocator->options;
  form = (at_pinned_form){.use_register = o->pin_register,
                          .threads = o->pin_threads,
                          .segment = o->pin_segment,
                          .most_kept = o->pin_most_kept,
                          .most_round = o->pin_most_round};
  pthread_mutex_unlock(&allocator->lock);
  return form;
}

typedef struct touching {
  char *memory;
  size_t bytes;
} touching;

static void touch(void *arg, const at_team *team) {
  const touching *t = arg;
  const size_t pages = (t->bytes + PAGE - 1) / PAGE, members = (size_t)team->size, me = (size_t)team->rank;
  for (size_t i = pages * me / members; i < pages * (me + 1) / members; i++)
    *(volatile char *)(t->memory + i * PAGE) = 0;
}

attune_status at_pinned_take(attune_device *device, const at_pinned_form *form, void **out, size_t bytes) {
  if (!form->use_register) return device->backend.pinned->alloc(device, out, bytes);
  *out = NULL;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of pinned memory of %s", bytes, device->name);
  touching t = {memory, bytes};
  at_parallel(form->threads, touch, &t);
  attune_status status = device->backend.pinned->pin(device, memory, bytes);
  if (status == ATTUNE_OK)
    *out = memory;
  else
    (void)munmap(memory, bytes);
  return status;
}

attune_status at_pinned_give(attune_device *device, void *memory, size_t bytes, bool registered) {
  if (!registered) return device->backend.pinned->free(device, memory);
  attune_status status = device->backend.device->wait_streams(device);
  if (status == ATTUNE_OK) status = device->backend.pinned->unpin(device, memory);
  if (status == ATTUNE_OK) (void)munmap(memory, bytes); /* else the device may still use it: it is lost */
  return status;
}
