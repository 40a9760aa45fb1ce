/* SPDX-License-Identifier: Apache-2.0
 * timelines.c: see timelines.h. A stream knows its line by a number: 0 for none, else the epoch in the high half and
 * the index plus 1 in the low one, so that a new check has new lines. */
#include "src/check/timelines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/array.h"

static struct {
  at_timeline **at;
  uint32_t count;
  size_t room;
  uint32_t epoch;
  uint64_t host_version; /* grows when the host's clock does */
  uint64_t named;        /* streams met so far */
} lines;

static at_timeline *add_line(void) {
  for (uint32_t i = 1; i < lines.count; i++)
    if (lines.at[i]->users == 0) return lines.at[i];
  if (!AT_ARRAY_ROOM(lines.at, lines.count, lines.room)) return NULL;
  at_timeline *line = calloc(1, sizeof *line);
  if (!line) return NULL;
  line->index = lines.count;
  return lines.at[lines.count++] = line;
}

bool at_timelines_begin(void) {
  for (uint32_t i = 0; i < lines.count; i++) {
    at_clock_release(&lines.at[i]->now);
    at_clock_release(&lines.at[i]->captured);
    free(lines.at[i]);
  }
  lines.count = 0;
  lines.epoch++;
  lines.named = 0;
  at_timeline *host = add_line();
  if (!host) return false;
  host->users = 1;
  snprintf(host->name, sizeof host->name, "the calling thread");
  return true;
}

at_timeline *at_timelines_host(void) {
  return lines.at[0];
}

at_timeline *at_timelines_at(uint32_t index) {
  return index < lines.count ? lines.at[index] : NULL;
}

/* Names that CUDA has for streams that need no making (cudaStreamLegacy, cudaStreamPerThread). */
#define LEGACY ((void *)1)
#define PER_THREAD ((void *)2)

static bool is_default(const attune_stream *stream) {
  return stream == __atomic_load_n(&stream->device->default_stream, __ATOMIC_ACQUIRE);
}

/* Two handles of one stream of the program have one line. */
static at_timeline *same_native(const attune_stream *stream, void *native, uint64_t thread) {
  for (uint32_t i = 1; i < lines.count; i++) {
    at_timeline *line = lines.at[i];
    if (line->users > 0 && line->device == stream->device && line->native == native && line->thread == thread)
      return line;
  }
  return NULL;
}

static void name_line(at_timeline *line, const attune_stream *stream) {
  const char *device = stream->device->name;
  if (line->legacy)
    snprintf(line->name, sizeof line->name, "the default stream of %s", device);
  else
    snprintf(line->name, sizeof line->name, "stream %llu of %s (%p)", (unsigned long long)++lines.named, device,
             (const void *)stream);
}

static at_timeline *open_line(attune_stream *stream) {
  const bool wrapped = !stream->owned;
  void *native = wrapped ? stream->native ? stream->native : LEGACY : NULL;
  const uint64_t thread = native == PER_THREAD ? (uint64_t)syscall(SYS_gettid) : 0;
  at_timeline *line = wrapped ? same_native(stream, native, thread) : NULL;
  if (!line) {
    line = add_line();
    if (!line) return NULL;
    line->device = stream->device;
    line->native = native;
    line->thread = thread;
    line->host_seen = 0;
    line->legacy = native == LEGACY;
    line->joins = wrapped && !line->legacy && stream->device->backend.stream->joins(stream);
    name_line(line, stream);
  }
  line->users++;
  if (native != PER_THREAD) stream->watched = (uint64_t)lines.epoch << 32 | (line->index + 1);
  return line;
}

/* The stream's line, if it has one. */
static at_timeline *known_line(const attune_stream *stream) {
  if (!stream) return at_timelines_host();
  if (stream->device->backend.kind == ATTUNE_DEVICE_HOST && is_default(stream)) return at_timelines_host();
  return stream->watched >> 32 == lines.epoch ? lines.at[(uint32_t)stream->watched - 1] : NULL;
}

at_timeline *at_timelines_of(attune_stream *stream) {
  at_timeline *line = known_line(stream);
  return line ? line : open_line(stream);
}

/* CUDA's rule for its legacy default stream: its work waits for that of the streams that join, and theirs for its. */
static bool meet_legacy(at_timeline *line) {
  if (!line->legacy && !line->joins) return true;
  for (uint32_t i = 1; i < lines.count; i++) {
    const at_timeline *other = lines.at[i];
    if (other->device != line->device || (line->legacy ? !other->joins : !other->legacy)) continue;
    if (!at_clock_join(&line->now, &other->now)) return false;
  }
  return true;
}

at_clock *at_timeline_clock(at_timeline *line) {
  if (line->world) return &line->captured;
  at_timeline *host = at_timelines_host();
  if (line != host && line->host_seen != lines.host_version + 1) {
    if (!at_clock_join(&line->now, &host->now)) return NULL;
    line->host_seen = lines.host_version + 1;
  }
  return meet_legacy(line) ? &line->now : NULL;
}

uint64_t at_timeline_step(at_timeline *line) {
  at_clock *clock = at_timeline_clock(line);
  if (!clock || !at_clock_set(clock, line->index, line->position + 1)) return 0;
  if (line == at_timelines_host()) lines.host_version++;
  return ++line->position;
}

bool at_timelines_host_joins(const at_clock *clock) {
  lines.host_version++;
  return at_clock_join(&at_timelines_host()->now, clock);
}

void at_timelines_stream_gone(attune_stream *stream) {
  at_timeline *line = stream->watched >> 32 == lines.epoch ? lines.at[(uint32_t)stream->watched - 1] : NULL;
  stream->watched = 0;
  if (!line) return;
  (void)at_timelines_host_joins(&line->now);
  line->world = NULL;
  if (--line->users == 0) line->native = NULL;
}

static bool make_room(at_clock *clock, uint32_t count) {
  if (count > clock->room) {
    const uint32_t room = (count + 15) / 16 * 16;
    uint64_t *at = realloc(clock->at, room * sizeof *at);
    if (!at) return false;
    clock->at = at;
    clock->room = room;
  }
  for (; clock->count < count; clock->count++) clock->at[clock->count] = 0;
  return true;
}

bool at_clock_set(at_clock *clock, uint32_t line, uint64_t position) {
  if (!make_room(clock, line + 1)) return false;
  clock->at[line] = position;
  return true;
}

bool at_clock_join(at_clock *into, const at_clock *from) {
  if (into->count < from->count && !make_room(into, from->count)) return false;
  for (uint32_t i = 0; i < from->count; i++)
    if (into->at[i] < from->at[i]) into->at[i] = from->at[i];
  return true;
}

bool at_clock_copy(at_clock *out, const at_clock *from) {
  if (!make_room(out, from->count)) return false;
  if (from->count) memcpy(out->at, from->at, from->count * sizeof *from->at);
  out->count = from->count;
  return true;
}

void at_clock_release(at_clock *clock) {
  free(clock->at);
  *clock = (at_clock){0};
}
