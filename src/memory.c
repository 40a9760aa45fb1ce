/* SPDX-License-Identifier: Apache-2.0
 * memory.c: memory, copies and fills: arguments are checked here, the backend does the rest. */
#include <attune/memory.h>

#include "src/backend.h"
#include "src/host/queue.h"

static attune_status check_stream(const attune_stream *stream) {
  if (stream) return ATTUNE_OK;
  return at_fail(ATTUNE_INVALID_ARGUMENT,
                 "stream is NULL; should be one of attune_stream_create or attune_stream_default");
}

static attune_status check_capture(attune_stream *stream, const char *what) {
  if (!at_stream_capturing(stream)) return ATTUNE_OK;
  return at_fail(ATTUNE_CAPTURING, "memory cannot be %s while the stream is being captured", what);
}

attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to a pointer");
  *out = NULL;
  attune_status status = check_stream(stream);
  if (status == ATTUNE_OK) status = check_capture(stream, "allocated");
  if (status != ATTUNE_OK) return status;
  if (!stream->device->backend->alloc)
    return at_fail(ATTUNE_UNSUPPORTED, "device %s has no memory", stream->device->name);
  if (bytes == 0) return ATTUNE_OK;
  return stream->device->backend->alloc(stream->device, out, bytes);
}

attune_status attune_free(void *pointer, attune_stream *stream) {
  if (!pointer) return ATTUNE_OK;
  attune_status status = check_stream(stream);
  if (status == ATTUNE_OK) status = check_capture(stream, "freed");
  if (status != ATTUNE_OK) return status;
  const at_backend *backend = stream->device->backend;
  if (backend->kind == ATTUNE_DEVICE_HOST) return at_host_free_in_order(stream, pointer);
  if (!backend->free) return at_fail(ATTUNE_UNSUPPORTED, "device %s has no memory", stream->device->name);
  status = backend->stream_synchronize ? backend->stream_synchronize(stream) : ATTUNE_OK;
  return status == ATTUNE_OK ? backend->free(stream->device, pointer) : status;
}

static attune_status check_range(const char *name, const void *pointer, size_t bytes) {
  if (!pointer) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should point to %zu bytes", name, bytes);
  if ((uintptr_t)pointer <= UINTPTR_MAX - bytes) return ATTUNE_OK;
  return at_fail(ATTUNE_INVALID_ARGUMENT, "bytes is %zu; should be what %s points to", bytes, name);
}

attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  attune_status status = check_stream(stream);
  if (status != ATTUNE_OK) return status;
  if (!stream->device->backend->copy)
    return at_fail(ATTUNE_UNSUPPORTED, "device %s has no copies", stream->device->name);
  if (bytes == 0) return ATTUNE_OK;
  status = check_range("destination", destination, bytes);
  if (status == ATTUNE_OK) status = check_range("source", source, bytes);
  if (status != ATTUNE_OK) return status;
  uintptr_t to = (uintptr_t)destination, from = (uintptr_t)source;
  if (to < from + bytes && from < to + bytes)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "destination and source overlap; should be %zu bytes apart", bytes);
  return stream->device->backend->copy(stream, destination, source, bytes);
}

attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  attune_status status = check_stream(stream);
  if (status != ATTUNE_OK) return status;
  if (!stream->device->backend->fill)
    return at_fail(ATTUNE_UNSUPPORTED, "device %s has no fills", stream->device->name);
  if (value < 0 || value > 255) return at_fail(ATTUNE_INVALID_ARGUMENT, "value is %d; should be from 0 to 255", value);
  if (bytes == 0) return ATTUNE_OK;
  status = check_range("destination", destination, bytes);
  return status == ATTUNE_OK ? stream->device->backend->fill(stream, destination, value, bytes) : status;
}
