/* SPDX-License-Identifier: Apache-2.0
 * stream.c: streams: arguments are checked here, the backend does the rest. */
#include <attune/stream.h>

#include "src/stream/capture.h"
#include "src/stream/stream.h"
#include "src/stream/sync_debug.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

static bool runs_here(const attune_stream *stream) {
  return stream->device->backend.stream->runs_here(stream);
}

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

static attune_status check_new(const void *out, const attune_device *device) {
  AT_REQUIRE_AS(out, "point to a handle");
  AT_REQUIRE_DEVICE(device);
  return ATTUNE_OK;
}

attune_status attune_stream_create(attune_stream **out, attune_device *device) {
  if (out) *out = NULL;
  AT_TRY(check_new(out, device));
  return at_stream_open(out, device, NULL, true, 0);
}

attune_status attune_stream_wrap(attune_stream **out, attune_device *device, void *native) {
  if (out) *out = NULL;
  AT_TRY(check_new(out, device));
  if (device->backend.kind == ATTUNE_DEVICE_HOST)
    return at_unsupported(device, "native streams; use attune_stream_create");
  return at_stream_open(out, device, native, false, 0);
}

void attune_stream_destroy(attune_stream *stream) {
  if (!stream || stream->pooled || stream == __atomic_load_n(&stream->device->default_stream, __ATOMIC_ACQUIRE)) return;
  if (runs_here(stream)) {
    at_log(ATTUNE_LOG_ERROR, "attune_stream_destroy does nothing when called by a function that the stream runs");
    return;
  }
  at_stream_forget_current(stream);
  if (at_capture_leave(stream)) return;
  const at_message kept = at_message_keep();
  if (at_sync_debug_on() && attune_stream_query(stream) == ATTUNE_NOT_READY)
    at_sync_waits(stream->device, "attune_stream_destroy waits for the stream's work");
  at_stream_close(stream);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

void *attune_stream_native(const attune_stream *stream) {
  return stream ? stream->native : NULL;
}

attune_status attune_stream_blas(attune_stream *stream, void **out) {
  AT_REQUIRE_AS(out, "point to a handle");
  *out = NULL;
  AT_REQUIRE_STREAM(stream);
  attune_status status = at_needs(stream->device, runtime);
  return status == ATTUNE_OK ? stream->device->backend.runtime->blas(stream, out) : status;
}

int attune_stream_priority(const attune_stream *stream) {
  return stream ? stream->priority : 0;
}

attune_device *attune_stream_device(const attune_stream *stream) {
  return stream ? stream->device : NULL;
}

static attune_status check_idle(const attune_stream *stream) {
  AT_REQUIRE_STREAM(stream);
  if (stream->capture) return at_fail(ATTUNE_CAPTURING, "the stream is being captured; end the capture first");
  return ATTUNE_OK;
}

attune_status attune_stream_query(attune_stream *stream) {
  AT_TRY(check_idle(stream));
  attune_status status = stream->device->backend.stream->query(stream);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_idle(stream);
  return status;
}

attune_status attune_stream_synchronize(attune_stream *stream) {
  AT_TRY(check_idle(stream));
  attune_status status = stream->device->backend.stream->synchronize(stream);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_idle(stream);
  return status;
}

attune_status attune_stream_call(attune_stream *stream, attune_call_fn fn, void *user) {
  AT_REQUIRE_STREAM(stream);
  AT_REQUIRE_AS(fn, "be a function to run in stream order");
  if (at_instrumented_races()) at_instrument_call(stream, &fn, &user);
  return stream->device->backend.stream->call(stream, fn, user);
}

attune_status attune_stream_wait_event(attune_stream *stream, attune_event *event) {
  AT_TRY(at_event_check_pair(stream, event));
  attune_status status = at_capture_wait(stream, event);
  if (at_instrumented_races() && status == ATTUNE_OK && !at_capture_is_external(event, stream))
    at_instrument_wait(stream, event);
  return status;
}

attune_status attune_stream_wait_stream(attune_stream *stream, attune_stream *other) {
  const attune_event_options options = {.no_timing = 1};
  if (!stream || !other) return AT_INVALID("%s is NULL; should be a stream", stream ? "other" : "stream");
  if (stream == other) return ATTUNE_OK;
  attune_event *event = NULL;
  attune_status status = attune_event_create(&event, other->device, &options);
  if (status == ATTUNE_OK) status = attune_event_record(event, other);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(stream, event);
  attune_event_destroy(event);
  return status;
}
