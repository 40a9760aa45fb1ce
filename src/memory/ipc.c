/* SPDX-License-Identifier: Apache-2.0
 * ipc.c: memory of this process for others, and of others for this one. A segment is exported as a whole, the memory
 * lies at an offset in it; a segment of another process is opened once and counted. */
#include "src/memory/allocator.h"

#include <stdlib.h>
#include <string.h>

typedef struct opened {
  struct opened *next;
  attune_device *device;
  unsigned char handle[64];
  char *base;
  uint64_t bytes; /* as far as anybody asked for */
  uint64_t count;
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and opening and closing */
static opened *list;

attune_status attune_memory_export(attune_memory_handle *out, const void *pointer) {
  void *start = NULL;
  size_t bytes = 0;
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_memory_handle");
  *out = (attune_memory_handle){{0}, 0, 0};
  attune_status status = attune_memory_range(pointer, &start, &bytes);
  if (status != ATTUNE_OK) return status;
  const at_block *block = (const at_block *)at_table_find_surely((uintptr_t)pointer);
  const at_segment *segment = block->segment; /* the caller holds the memory, so the segment stays */
  attune_device *device = segment->heap->pool->allocator->device;
  if (!device->backend->ipc_export)
    return at_fail(ATTUNE_UNSUPPORTED, "memory of %s cannot be given to other processes; should be of a CUDA device",
                   device->name);
  if (at_segment_expandable(segment) || segment->heap->pool->own_allocator || segment->heap->pool->allocator->has_own)
    return at_fail(ATTUNE_UNSUPPORTED, "%p lies in %s; should be in a plain segment of the device", pointer,
                   at_segment_expandable(segment) ? "an expandable segment" : "memory of the program's allocator");
  status = device->backend->ipc_export(device, segment->base, out->base);
  out->offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)segment->base);
  out->bytes = bytes;
  return status;
}

/* Lock held. */
static attune_status open_base(attune_device *device, const attune_memory_handle *handle, opened **out) {
  for (opened *o = list; o; o = o->next) {
    if (o->device != device || memcmp(o->handle, handle->base, sizeof o->handle) != 0) continue;
    *out = o;
    return ATTUNE_OK;
  }
  opened *made = calloc(1, sizeof *made);
  if (!made) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to note another process's memory");
  void *base = NULL;
  attune_status status = device->backend->ipc_open(device, handle->base, &base);
  if (status != ATTUNE_OK) {
    free(made);
    return status;
  }
  *made = (opened){.next = list, .device = device, .base = base};
  memcpy(made->handle, handle->base, sizeof made->handle);
  list = made;
  *out = made;
  return ATTUNE_OK;
}

attune_status attune_memory_import(void **out, attune_device *device, const attune_memory_handle *handle) {
  opened *segment = NULL;
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to a pointer");
  *out = NULL;
  if (!device) return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
  if (!handle) return at_fail(ATTUNE_INVALID_ARGUMENT, "handle is NULL; should be one of attune_memory_export");
  if (handle->offset > PTRDIFF_MAX || handle->bytes == 0 || handle->bytes > PTRDIFF_MAX)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "handle has offset %llu and %llu bytes; should be as attune_memory_export made it",
                   (unsigned long long)handle->offset, (unsigned long long)handle->bytes);
  if (!device->backend->ipc_open)
    return at_fail(ATTUNE_UNSUPPORTED, "memory of other processes cannot be opened on %s; should be a CUDA device",
                   device->name);
  pthread_mutex_lock(&lock);
  attune_status status = open_base(device, handle, &segment);
  if (status == ATTUNE_OK) {
    segment->count++;
    if (segment->bytes < handle->offset + handle->bytes) segment->bytes = handle->offset + handle->bytes;
    *out = segment->base + handle->offset;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

attune_status attune_memory_close(void *pointer, attune_device *device) {
  if (!pointer) return ATTUNE_OK;
  if (!device) return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
  attune_status status = at_fail(
      ATTUNE_INVALID_ARGUMENT, "%p is not open on %s; should be what attune_memory_import gave", pointer, device->name);
  pthread_mutex_lock(&lock);
  for (opened **link = &list; *link; link = &(*link)->next) {
    opened *segment = *link;
    if (segment->device != device || (uintptr_t)pointer - (uintptr_t)segment->base >= segment->bytes) continue;
    status = ATTUNE_OK;
    if (--segment->count > 0) break;
    *link = segment->next;
    status = device->backend->ipc_close(device, segment->base);
    free(segment);
    break;
  }
  pthread_mutex_unlock(&lock);
  return status;
}
