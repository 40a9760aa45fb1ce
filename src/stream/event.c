/* SPDX-License-Identifier: Apache-2.0
 * event.c: events: arguments are checked here, the backend does the rest. */
#include <attune/stream.h>

#include "src/base/struct_size.h"
#include "src/stream/capture.h"
#include "src/stream/stream.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

#define REQUIRE_EVENT(event) AT_REQUIRE_AS(event, "be an event from attune_event_create")

static attune_status check_new(const void *out, const attune_device *device) {
  AT_REQUIRE_AS(out, "point to a handle");
  AT_REQUIRE_DEVICE(device);
  return ATTUNE_OK;
}

attune_status at_event_check_pair(const attune_stream *stream, const attune_event *event) {
  AT_REQUIRE_STREAM(stream);
  REQUIRE_EVENT(event);
  if (stream->device->backend.kind == event->device->backend.kind) return ATTUNE_OK;
  return AT_INVALID("event is of device %s, stream of %s; should be of the same kind of device", event->device->name,
                    stream->device->name);
}

static attune_status open_event(attune_event **out, attune_device *device, void *native, bool owned,
                                const attune_event_options *options) {
  AT_TRY(at_needs(device, event));
  attune_event *event = calloc(1, sizeof *event);
  if (!event) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an event");
  *event = (attune_event){.device = device, .native = native, .owned = owned, .options = *options};
  attune_status status = device->backend.event->open(event);
  if (status != ATTUNE_OK) {
    free(event);
    return status;
  }
  *out = event;
  return ATTUNE_OK;
}

static const attune_event_options event_defaults = ATTUNE_EVENT_OPTIONS_INIT;

attune_status attune_event_create(attune_event **out, attune_device *device, const attune_event_options *options) {
  if (out) *out = NULL;
  AT_TRY(check_new(out, device));
  attune_event_options full;
  attune_status status = AT_TAKE(&full, options);
  if (status == ATTUNE_OK && full.interprocess) status = at_needs(device, ipc);
  if (status != ATTUNE_OK) return status;
  if (full.interprocess && !full.no_timing)
    return AT_INVALID(
        "options.interprocess is set without options.no_timing; should be set together, as such events have no timing");
  return open_event(out, device, NULL, true, &full);
}

attune_status attune_event_ipc_export(attune_event *event, attune_event_ipc *out) {
  REQUIRE_EVENT(event);
  AT_REQUIRE_AS(out, "point to an attune_event_ipc");
  AT_TRY(at_needs(event->device, ipc));
  if (event->owned && !event->options.interprocess)
    return AT_INVALID("event was created for this process only; should be created with options.interprocess");
  return event->device->backend.ipc->event_export(event, out);
}

attune_status attune_event_ipc_open(attune_event **out, attune_device *device, const attune_event_ipc *handle) {
  if (out) *out = NULL;
  AT_TRY(check_new(out, device));
  AT_REQUIRE_AS(handle, "be a handle from attune_event_ipc_export");
  AT_TRY(at_needs(device, ipc));
  attune_event *event = calloc(1, sizeof *event);
  if (!event) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an event");
  *event = (attune_event){.device = device, .owned = true, .options = {.no_timing = 1}};
  attune_status status = device->backend.ipc->event_import(event, handle);
  if (status == ATTUNE_OK)
    *out = event;
  else
    free(event);
  return status;
}

attune_status attune_event_wrap(attune_event **out, attune_device *device, void *native) {
  if (out) *out = NULL;
  AT_TRY(check_new(out, device));
  if (device->backend.kind == ATTUNE_DEVICE_HOST)
    return at_unsupported(device, "native events; use attune_event_create");
  AT_REQUIRE_AS(native, "be an event of the program");
  return open_event(out, device, native, false, &event_defaults);
}

void attune_event_destroy(attune_event *event) {
  if (!event) return;
  at_capture_forget_event(event);
  if (event->watched) at_instrument_event_gone(event);
  event->device->backend.event->close(event);
  free(event);
}

void *attune_event_native(const attune_event *event) {
  return event ? event->native : NULL;
}

attune_status attune_event_record(attune_event *event, attune_stream *stream) {
  AT_TRY(at_event_check_pair(stream, event));
  if (stream->device != event->device)
    return AT_INVALID("event is of device %s, stream of %s; should be of the same device", event->device->name,
                      stream->device->name);
  attune_status status = at_capture_record(event, stream);
  if (at_instrumented_races() && status == ATTUNE_OK && !at_capture_is_external(event, stream))
    at_instrument_record(event, stream);
  return status;
}

/* The calling thread now knows that the event is reached, if the status is OK. */
static attune_status see_reached(const attune_event *event, attune_status status) {
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_reached(event);
  return status;
}

attune_status attune_event_query(attune_event *event) {
  REQUIRE_EVENT(event);
  attune_status status = at_capture_check_event(event);
  return status != ATTUNE_OK ? status : see_reached(event, event->device->backend.event->query(event));
}

attune_status attune_event_synchronize(attune_event *event) {
  REQUIRE_EVENT(event);
  attune_status status = at_capture_check_event(event);
  return status != ATTUNE_OK ? status : see_reached(event, event->device->backend.event->synchronize(event));
}

attune_status attune_event_elapsed_ns(double *out_ns, attune_event *start, attune_event *stop) {
  AT_REQUIRE_AS(out_ns, "point to a double");
  if (!start || !stop) return AT_INVALID("%s is NULL; should be an event", start ? "stop" : "start");
  if (start->device != stop->device)
    return AT_INVALID("start is of device %s, stop of %s; should be of the same device", start->device->name,
                      stop->device->name);
  if (start->options.no_timing || stop->options.no_timing)
    return AT_INVALID("%s was created without timing; should be created without options.no_timing",
                      start->options.no_timing ? "start" : "stop");
  AT_TRY(at_capture_check_event(start));
  AT_TRY(at_capture_check_event(stop));
  attune_status status = start->device->backend.event->elapsed(out_ns, start, stop);
  return see_reached(start, see_reached(stop, status));
}
