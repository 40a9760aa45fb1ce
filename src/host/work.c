/* SPDX-License-Identifier: Apache-2.0
 * work.c: work given to a stream of the host: run at once, queued, or written down. */
#include "src/host/work.h"

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
  attune_status status = at_queue_check(queue);
  if (status == ATTUNE_OK) (void)at_queue_submit(queue, fn, args, bytes);
  return status;
}

typedef struct transfer {
  void *destination;
  const void *source;
  int value;
  size_t bytes;
} transfer;

static void run_copy(const void *args) {
  const transfer *t = args;
  memcpy(t->destination, t->source, t->bytes);
}

typedef struct rows {
  char *destination;
  const char *source;
  size_t destination_pitch, source_pitch, bytes, rows;
} rows;

static void run_rows(const void *args) {
  const rows *r = args;
  for (size_t i = 0; i < r->rows; i++)
    memcpy(r->destination + i * r->destination_pitch, r->source + i * r->source_pitch, r->bytes);
}

static void run_fill(const void *args) {
  const transfer *t = args;
  memset(t->destination, t->value, t->bytes);
}

typedef struct call {
  attune_call_fn fn;
  void *user;
} call;

static void run_call(const void *args) {
  const call *c = args;
  c->fn(c->user);
}

const char *at_host_work_name(void (*fn)(const void *args)) {
  return fn == run_copy || fn == run_rows ? "copy" : fn == run_fill ? "fill" : fn == run_call ? "call" : "work";
}

attune_status at_host_call(attune_stream *stream, attune_call_fn fn, void *user) {
  const call c = {fn, user};
  return at_host_submit(stream, run_call, &c, sizeof c);
}

attune_status at_host_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  transfer t = {.destination = destination, .source = source, .bytes = bytes};
  return at_host_submit(stream, run_copy, &t, sizeof t);
}

attune_status at_host_copy_rows(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                                size_t source_pitch, size_t bytes, size_t count) {
  const rows r = {destination, source, destination_pitch, source_pitch, bytes, count};
  return at_host_submit(stream, run_rows, &r, sizeof r);
}

attune_status at_host_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  transfer t = {.destination = destination, .value = value, .bytes = bytes};
  return at_host_submit(stream, run_fill, &t, sizeof t);
}
