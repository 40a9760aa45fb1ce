/* SPDX-License-Identifier: Apache-2.0
 * capture.c: a capture under way, as streams, events and backends meet it. */
#include "src/stream/capture.h"

#include "src/stream/graph_calls.h"

#include <assert.h>
#include <stdlib.h>

void at_capture_drop(at_capture *capture) {
  const int before = atomic_fetch_sub_explicit(&capture->references, 1, memory_order_acq_rel);
  assert(before > 0);
  if (before != 1) return;
  pthread_mutex_destroy(&capture->lock);
  free(capture->members);
  free(capture->externals);
  at_graph_calls_free(capture->calls);
  free(capture);
}

attune_status at_capture_break(at_capture *capture, attune_status status, const char *reason) {
  assert(status != ATTUNE_OK);
  pthread_mutex_lock(&capture->lock);
  if (capture->broken == ATTUNE_OK) {
    capture->broken = status;
    (void)at_copy_text(capture->reason, sizeof capture->reason, reason);
  }
  pthread_mutex_unlock(&capture->lock);
  return at_fail(status, "%s", reason);
}

attune_status at_capture_check_event(const attune_event *event) {
  if (AT_LIKELY(!event->capture)) return ATTUNE_OK;
  return at_fail(ATTUNE_CAPTURING, "the event was last recorded in a capture; should be recorded outside of one first");
}

void at_capture_forget_event(attune_event *event) {
  free(event->point);
  event->point = NULL;
  if (event->capture) at_capture_drop(event->capture);
  event->capture = NULL;
}

bool at_capture_is_external(const attune_event *event, attune_stream *stream) {
  return event->options.external && at_stream_capturing(stream);
}

/* Room first, so that nothing can fail once the backend has the node. */
static at_externals *with_room(at_capture *capture) {
  at_externals *e = capture->externals;
  const size_t count = e ? e->count : 0;
  e = realloc(e, sizeof *e + (count + 1) * sizeof *e->each);
  if (!e) return NULL;
  e->count = count;
  return capture->externals = e;
}

attune_status at_capture_external(attune_event *event, attune_stream *stream, bool records) {
  const at_backend *backend = &stream->device->backend;
  at_capture *capture = stream->capture; /* NULL: the program's own */
  at_externals *e = NULL;
  if (capture) {
    pthread_mutex_lock(&capture->lock);
    e = with_room(capture);
    pthread_mutex_unlock(&capture->lock);
    if (!e) return at_capture_break(capture, ATTUNE_OUT_OF_MEMORY, "no memory to record an external event");
  }
  attune_status status = records ? backend->event->record(event, stream) : backend->stream->wait(stream, event);
  if (status != ATTUNE_OK || !capture) return status;
  pthread_mutex_lock(&capture->lock);
  capture->externals->each[capture->externals->count++] = (struct at_external){event, records};
  pthread_mutex_unlock(&capture->lock);
  return ATTUNE_OK;
}

attune_status at_capture_record(attune_event *event, attune_stream *stream) {
  at_capture *capture = stream->capture;
  if (at_capture_is_external(event, stream)) return at_capture_external(event, stream, true);
  if (capture) atomic_fetch_add_explicit(&capture->references, 1, memory_order_relaxed);
  if (event->capture != capture) at_capture_forget_event(event);
  attune_status status = stream->device->backend.event->record(event, stream);
  if (status != ATTUNE_OK || event->capture == capture) {
    if (capture) at_capture_drop(capture);
    return status;
  }
  event->capture = capture;
  return ATTUNE_OK;
}

bool at_stream_capturing(attune_stream *stream) {
  return stream->capture || stream->device->backend.stream->capturing(stream);
}
