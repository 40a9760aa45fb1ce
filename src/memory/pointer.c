/* SPDX-License-Identifier: Apache-2.0
 * pointer.c: what lies at an address: attune's own books are asked first, then the drivers, then the process. */
#include <attune/pointer.h>

#include <stdio.h>

#include "src/base/struct_size.h"
#include "src/memory/malloc/allocator.h"

/* Memory of an allocator. */
static bool find_block(attune_pointer_info *out, attune_device *device, uintptr_t address) {
  at_allocator *allocator = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
  if (!allocator) return false;
  pthread_mutex_lock(&allocator->lock);
  at_segment *segment = at_segment_around(allocator, address);
  if (segment) {
    at_block *block = segment->first;
    while (address - at_block_address(block) >= block->size) block = block->next;
    const bool plain = device->properties.kind == ATTUNE_DEVICE_HOST;
    const at_block_state state = at_block_get_state(block);
    out->kind = segment->heap->pool->managed ? ATTUNE_KIND_MANAGED : plain ? ATTUNE_KIND_HOST : ATTUNE_KIND_DEVICE;
    if (state == AT_BLOCK_UNMAPPED) out->kind = ATTUNE_KIND_UNKNOWN;
    out->device = device;
    out->held = state == AT_BLOCK_LIVE;
    if (out->held) {
      out->base = at_block_pointer(block);
      out->bytes = block->rounded;
    }
  }
  pthread_mutex_unlock(&allocator->lock);
  return segment != NULL;
}

/* Of a pool whose memory the program gives, only a driver knows of what kind it is. */
static void ask_driver(attune_device *device, attune_pointer_info *out, const void *pointer) {
  attune_pointer_info known = {.kind = ATTUNE_KIND_UNKNOWN};
  const at_message kept = at_message_keep();
  if (device->backend.memory->pointer_info(device, &known, pointer) != ATTUNE_OK) known.kind = ATTUNE_KIND_UNKNOWN;
  (void)at_message_settle(&kept, ATTUNE_OK);
  if (known.kind == ATTUNE_KIND_UNKNOWN) return;
  if (out->device) {
    out->kind = known.kind;
    return;
  }
  *out = known;
}

/* Whether the process may read there: address space alone is no memory. */
static bool is_readable(uintptr_t address) {
  char line[512], rights[8];
  unsigned long long begin = 0, end = 0;
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps) return false;
  while (!found && fgets(line, sizeof line, maps))
    found = sscanf(line, "%llx-%llx %7s", &begin, &end, rights) == 3 && address >= begin && address < end &&
            rights[0] == 'r';
  fclose(maps);
  return found;
}

static void find(attune_pointer_info *out, const void *pointer) {
  const uintptr_t address = (uintptr_t)pointer;
  at_pinned_lock();
  bool found = at_pinned_find(out, address) || at_pinned_registry_find(out, address);
  at_pinned_unlock();
  if (found) return;
  attune_device *device = NULL;
  const int count = attune_device_count();
  for (int i = 0; i < count && !found; i++)
    found = attune_device_at(&device, i) == ATTUNE_OK && find_block(out, device, address);
  if (found) {
    if (out->kind != ATTUNE_KIND_UNKNOWN) ask_driver(out->device, out, pointer);
    return;
  }
  for (int i = 0; i < count && out->kind == ATTUNE_KIND_UNKNOWN; i++)
    if (attune_device_at(&device, i) == ATTUNE_OK) ask_driver(device, out, pointer);
  if (out->kind == ATTUNE_KIND_UNKNOWN && is_readable(address)) out->kind = ATTUNE_KIND_HOST;
}

attune_status attune_pointer_get_info(attune_pointer_info *out, const void *pointer) {
  if (!out) return AT_INVALID("out is NULL; should point to an attune_pointer_info");
  attune_pointer_info full = {.kind = ATTUNE_KIND_UNKNOWN};
  if (pointer) find(&full, pointer);
  return AT_GIVE(out, &full);
}
