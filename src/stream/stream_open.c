/* SPDX-License-Identifier: Apache-2.0
 * stream_open.c: the making and the end of streams, the program's and the default ones. */
#include <attune/stream.h>

#include "src/stream/stream_open.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

attune_status at_stream_open(attune_stream **out, attune_device *device, void *native, bool owned, int priority) {
  AT_TRY(at_needs(device, stream));
  attune_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stream");
  *stream = (attune_stream){.device = device, .native = native, .owned = owned, .priority = priority};
  attune_status status = device->backend.stream->open(stream);
  if (status != ATTUNE_OK) {
    free(stream);
    return status;
  }
  *out = stream;
  return ATTUNE_OK;
}

void at_stream_close(attune_stream *stream) {
  struct at_stream_cache *memory = stream->memory;
  at_memory_stream_closing(stream);
  stream->device->backend.stream->close(stream);
  at_memory_stream_closed(memory);
  if (stream->watched) at_instrument_stream_gone(stream);
  free(stream);
}

/* Made at the first call. Of threads that make it at the same time one wins, so no lock is needed. */
attune_stream *attune_stream_default(attune_device *device) {
  if (!device) {
    (void)AT_INVALID("device is NULL; should be a device from attune_device_get");
    return NULL;
  }
  attune_stream *present = __atomic_load_n(&device->default_stream, __ATOMIC_ACQUIRE);
  if (present) return present;
  attune_stream *made = NULL;
  if (at_stream_open(&made, device, NULL, false, 0) != ATTUNE_OK) return NULL;
  if (__atomic_compare_exchange_n(&device->default_stream, &present, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  at_stream_close(made);
  return present;
}
