/* SPDX-License-Identifier: Apache-2.0
 * staging.c: see staging.h. Each part is on its way for a while: the device's copy of one and the CPUs' copy of another
 * go on at the same time. */
#include "tuning/measure/staging.h"

#include <attune/memory.h>
#include <attune/pinned.h>

#include <string.h>

#include "src/host/threads.h"

enum { PARTS = 4, PART_BYTES = 4 << 20, LEAST = 1 << 20 };

/* ---- within host memory ---- */

typedef struct shared_copy {
  char *to;
  const char *from;
  size_t bytes;
} shared_copy;

static void copy_share(void *arg, const at_team *team) {
  const shared_copy *c = arg;
  const size_t first = c->bytes / (size_t)team->size * (size_t)team->rank,
               end = team->rank + 1 < team->size ? c->bytes / (size_t)team->size * (size_t)(team->rank + 1) : c->bytes;
  memcpy(c->to + first, c->from + first, end - first);
}

void at_staging_copy(void *to, const void *from, size_t bytes) {
  shared_copy c = {to, from, bytes};
  at_parallel(bytes < LEAST ? 1 : at_cpu_count(), copy_share, &c);
}

/* ---- to and from a device ---- */

typedef struct staging {
  attune_stream *stream;
  char *pinned; /* PARTS of them */
  attune_event *copied[PARTS];
} staging;

static void close_staging(staging *s) {
  for (int i = 0; i < PARTS; i++) attune_event_destroy(s->copied[i]);
  if (s->pinned) (void)attune_pinned_free(s->pinned);
}

/* False: there is none, and the driver copies alone. */
static bool open_staging(staging *s, attune_stream *stream) {
  void *pinned = NULL;
  const at_message kept = at_message_keep();
  *s = (staging){.stream = stream};
  attune_status status = attune_pinned_alloc(&pinned, stream->device, (size_t)PARTS * PART_BYTES);
  s->pinned = pinned;
  for (int i = 0; i < PARTS && status == ATTUNE_OK; i++)
    status = attune_event_create(&s->copied[i], stream->device, NULL);
  if (status != ATTUNE_OK) close_staging(s);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status == ATTUNE_OK;
}

static size_t part_bytes(size_t bytes, size_t part) {
  const size_t left = bytes - part * PART_BYTES;
  return left < PART_BYTES ? left : PART_BYTES;
}

static char *pinned_of(const staging *s, size_t part) {
  return s->pinned + part % PARTS * PART_BYTES;
}

/* The device's copy of a part is begun; its end is an event. */
static attune_status begin(const staging *s, size_t part, void *to, const void *from, size_t bytes) {
  const attune_status status = attune_copy(s->stream, to, from, bytes);
  return status == ATTUNE_OK ? attune_event_record(s->copied[part % PARTS], s->stream) : status;
}

static attune_status wait(const staging *s, size_t part) {
  return attune_event_synchronize(s->copied[part % PARTS]);
}

static attune_status fetch(const staging *s, char *host, const char *device, size_t bytes) {
  const size_t parts = (bytes + PART_BYTES - 1) / PART_BYTES;
  attune_status status = ATTUNE_OK;
  for (size_t part = 0; part < parts + PARTS - 1 && status == ATTUNE_OK; part++) {
    if (part < parts) status = begin(s, part, pinned_of(s, part), device + part * PART_BYTES, part_bytes(bytes, part));
    if (part + 1 < PARTS || status != ATTUNE_OK) continue;
    const size_t done = part + 1 - PARTS;
    status = done < parts ? wait(s, done) : ATTUNE_OK;
    if (status == ATTUNE_OK && done < parts)
      at_staging_copy(host + done * PART_BYTES, pinned_of(s, done), part_bytes(bytes, done));
  }
  return status;
}

static attune_status put(const staging *s, char *device, const char *host, size_t bytes) {
  const size_t parts = (bytes + PART_BYTES - 1) / PART_BYTES;
  attune_status status = ATTUNE_OK;
  for (size_t part = 0; part < parts && status == ATTUNE_OK; part++) {
    if (part >= PARTS) status = wait(s, part - PARTS);
    if (status != ATTUNE_OK) break;
    at_staging_copy(pinned_of(s, part), host + part * PART_BYTES, part_bytes(bytes, part));
    status = begin(s, part, device + part * PART_BYTES, pinned_of(s, part), part_bytes(bytes, part));
  }
  return status;
}

/* The buffers are given back when the device is done with them. */
static attune_status end(staging *s, attune_status status) {
  const attune_status done = attune_stream_synchronize(s->stream);
  close_staging(s);
  return status == ATTUNE_OK ? done : status;
}

static bool is_plain(const attune_stream *stream, size_t bytes) {
  return stream->device->properties.kind == ATTUNE_DEVICE_HOST || bytes < LEAST;
}

attune_status at_staging_fetch(attune_stream *stream, void *host, const void *device, size_t bytes) {
  staging s;
  if (is_plain(stream, bytes) || !open_staging(&s, stream)) {
    const attune_status status = attune_copy(stream, host, device, bytes);
    return status == ATTUNE_OK ? attune_stream_synchronize(stream) : status;
  }
  return end(&s, fetch(&s, host, device, bytes));
}

attune_status at_staging_put(attune_stream *stream, void *device, const void *host, size_t bytes) {
  staging s;
  if (is_plain(stream, bytes) || !open_staging(&s, stream)) {
    const attune_status status = attune_copy(stream, device, host, bytes);
    return status == ATTUNE_OK ? attune_stream_synchronize(stream) : status;
  }
  return end(&s, put(&s, device, host, bytes));
}
