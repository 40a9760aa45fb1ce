/* SPDX-License-Identifier: Apache-2.0
 * history.c: a ring of the latest things that happened to a device's memory. */
#include "src/memory/allocator.h"
#include "src/memory/text.h"

#include <stdlib.h>
#include <time.h>

#define NOTE_BYTES 32

typedef struct record {
  at_action action;
  uintptr_t address; /* OOM: what the device had free */
  size_t bytes;
  uint64_t front;
  int64_t time_us; /* since 1970 */
  char note[NOTE_BYTES];
} record;

struct at_history {
  size_t room, begun; /* begun: records ever */
  record records[];
};

static _Thread_local char note[NOTE_BYTES];

void attune_memory_annotate(const char *text) {
  (void)at_copy_text(note, sizeof note, text ? text : "");
}

void at_history_add(at_allocator *allocator, at_action action, uintptr_t address, size_t bytes, const at_front *front) {
  at_history *history = allocator->history;
  if (AT_LIKELY(!history)) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  record *r = &history->records[history->begun++ % history->room];
  *r = (record){.action = action,
                .address = address,
                .bytes = bytes,
                .front = front ? front->id : 0,
                .time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
  (void)at_copy_text(r->note, sizeof r->note, note);
}

at_history *at_history_make(size_t entries) {
  size_t bytes = 0;
  at_history *history = NULL;
  if (!__builtin_mul_overflow(entries, sizeof(record), &bytes) && bytes < PTRDIFF_MAX)
    history = malloc(sizeof *history + bytes);
  if (!history) return NULL;
  history->room = entries;
  history->begun = 0;
  return history;
}

static void write_record(const record *r, struct at_text *out) {
  static const char *const names[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                      "segment_free", "segment_map",    "segment_unmap",  "oom",
                                      "snapshot"};
  at_text_add(out, "{\"action\":\"%s\",\"%s\":%llu,\"size\":%zu,\"stream\":%llu,\"time_us\":%lld,\"frames\":[]",
              names[r->action], r->action == AT_ACTION_OOM ? "device_free" : "addr", (unsigned long long)r->address,
              r->bytes, (unsigned long long)r->front, (long long)r->time_us);
  at_text_add(out, ",\"user_metadata\":");
  at_text_quote(out, r->note);
  at_text_add(out, "}");
}

void at_history_write(const at_allocator *allocator, struct at_text *out) {
  const at_history *history = allocator->history;
  size_t end = history ? history->begun : 0, first = history && end > history->room ? end - history->room : 0;
  at_text_add(out, "[");
  for (size_t i = first; i < end; i++) {
    at_text_add(out, i > first ? ",\n" : "");
    write_record(&history->records[i % history->room], out);
  }
  at_text_add(out, "]");
}
