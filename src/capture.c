/* SPDX-License-Identifier: Apache-2.0
 * capture.c: a capture under way, as streams, events and backends meet it. */
#include "src/capture.h"

#include <stdlib.h>

void at_capture_drop(at_capture *capture) {
  if (atomic_fetch_sub_explicit(&capture->references, 1, memory_order_acq_rel) != 1) return;
  pthread_mutex_destroy(&capture->lock);
  free(capture->members);
  free(capture);
}

attune_status at_capture_break(at_capture *capture, attune_status status, const char *reason) {
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

attune_status at_capture_record(attune_event *event, attune_stream *stream) {
  at_capture *capture = stream->capture;
  if (capture) atomic_fetch_add_explicit(&capture->references, 1, memory_order_relaxed);
  if (event->capture != capture) at_capture_forget_event(event);
  attune_status status = stream->device->backend->event_record(event, stream);
  if (status != ATTUNE_OK || event->capture == capture) {
    if (capture) at_capture_drop(capture);
    return status;
  }
  event->capture = capture;
  return ATTUNE_OK;
}

bool at_stream_capturing(attune_stream *stream) {
  const at_backend *backend = stream->device->backend;
  return stream->capture || (backend->stream_capturing && backend->stream_capturing(stream));
}
