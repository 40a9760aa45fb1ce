/* SPDX-License-Identifier: Apache-2.0
 * work.c: work given to a stream of the host: run at once, queued, or written down. */
#include "src/host/work.h"

#include "src/host/event.h"
#include "src/host/host.h"
#include "src/host/queue.h"
#include "src/host/record.h"

#include <string.h>

attune_status at_host_submit(attune_stream *stream, void (*fn)(const void *args), const void *args, size_t bytes) {
  at_queue *queue = stream->state;
  if (AT_UNLIKELY(bytes > AT_HOST_ARGS_BYTES && (!queue || !stream->capture)))
    return at_fail(ATTUNE_INTERNAL, "work carries %zu bytes of arguments; should be at most %d", bytes,
                   AT_HOST_ARGS_BYTES);
  if (!queue) {
    fn(args);
    return ATTUNE_OK;
  }
  if (AT_UNLIKELY(stream->capture != NULL)) return at_record_work(stream, fn, args, bytes);
  attune_status status = at_queue_check_submit(queue);
  if (status == ATTUNE_OK) (void)at_queue_submit(queue, fn, args, bytes);
  return status;
}

/* ---- copies ---- */

static void run_copy(const void *args) {
  const attune_box_copy *c = args;
  for (size_t z = 0; z < c->slices; z++) {
    char *to = (char *)c->destination + z * c->destination_slice_pitch;
    const char *from = (const char *)c->source + z * c->source_slice_pitch;
    for (size_t y = 0; y < c->rows; y++) memcpy(to + y * c->destination_pitch, from + y * c->source_pitch, c->bytes);
  }
}

attune_status at_host_copy_box(attune_stream *stream, const attune_box_copy *copy) {
  return at_host_submit(stream, run_copy, copy, sizeof *copy);
}

attune_status at_host_copy_rows(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                                size_t source_pitch, size_t bytes, size_t count) {
  const attune_box_copy c = {.destination = destination,
                             .destination_pitch = destination_pitch,
                             .source = source,
                             .source_pitch = source_pitch,
                             .bytes = bytes,
                             .rows = count,
                             .slices = 1};
  return at_host_copy_box(stream, &c);
}

attune_status at_host_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  return at_host_copy_rows(stream, destination, bytes, source, bytes, bytes, 1);
}

/* ---- fills ---- */

/* The first element, then as much again as there is. */
static void fill_row(char *to, const attune_box_fill *f) {
  const size_t bytes = f->count * f->element_bytes;
  size_t done = f->element_bytes;
  memcpy(to, f->element, done);
  for (size_t more; done < bytes; done += more) {
    more = done < 4096 ? done : 4096 / f->element_bytes * f->element_bytes;
    if (more > bytes - done) more = bytes - done;
    memcpy(to + done, to, more);
  }
}

static void run_fill(const void *args) {
  const attune_box_fill *f = args;
  for (size_t z = 0; z < f->slices; z++)
    for (size_t y = 0; y < f->rows; y++) {
      char *row = (char *)f->destination + z * f->slice_pitch + y * f->pitch;
      if (f->element_bytes == 1)
        memset(row, f->element[0], f->count);
      else
        fill_row(row, f);
    }
}

attune_status at_host_fill_box(attune_stream *stream, const attune_box_fill *fill) {
  return at_host_submit(stream, run_fill, fill, sizeof *fill);
}

attune_status at_host_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  const attune_box_fill f = {.destination = destination,
                             .pitch = bytes,
                             .element = {(unsigned char)value},
                             .element_bytes = 1,
                             .count = bytes,
                             .rows = 1,
                             .slices = 1};
  return at_host_fill_box(stream, &f);
}

/* ---- functions of the program ---- */

static void run_call(const void *args) {
  const at_host_function *c = args;
  c->fn(c->user);
}

attune_status at_host_call(attune_stream *stream, attune_call_fn fn, void *user) {
  const at_host_function c = {fn, user};
  return at_host_submit(stream, run_call, &c, sizeof c);
}

at_host_work at_host_work_kind(void (*fn)(const void *args)) {
  if (fn == run_copy) return AT_HOST_COPY;
  if (fn == run_fill) return AT_HOST_FILL;
  if (fn == run_call) return AT_HOST_CALL;
  if (fn == at_host_record_node) return AT_HOST_RECORD;
  return fn == at_host_wait_node ? AT_HOST_WAIT : AT_HOST_OTHER;
}

const char *at_host_work_name(void (*fn)(const void *args)) {
  static const char *const names[] = {"work", "copy", "fill", "call", "record", "wait"};
  return names[at_host_work_kind(fn)];
}
