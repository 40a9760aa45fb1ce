/* SPDX-License-Identifier: Apache-2.0
 * history.c: a ring of the latest things that happened to some memory. */
#include "src/memory/malloc/history.h"
#include "src/base/struct_size.h"

#include <stdlib.h>
#include <time.h>

#define NOTE_BYTES 32

typedef struct record {
  at_action action;
  int frames;
  uintptr_t address; /* OOM: what the device had free */
  size_t bytes;
  uint64_t stream;
  int64_t time_us; /* since 1970 */
  char note[NOTE_BYTES];
} record;

struct at_history {
  size_t room, begun; /* begun: records ever */
  unsigned skip;
  int depth;     /* frames of a record, at most */
  void **frames; /* of record i from i * depth on */
  record records[];
};

static _Thread_local char note[NOTE_BYTES];

void attune_memory_annotate(const char *text) {
  char *end = note;
  for (int i = 0; text && i < NOTE_BYTES - 1 && text[i]; i++)
    if (text[i] >= 0x20 && text[i] < 0x7f) *end++ = text[i];
  *end = '\0';
}

enum { USUAL_ENTRIES = 100000 };

static at_history *make(const attune_history_options *options, size_t entries) {
  size_t bytes = 0, stacks = 0;
  if (__builtin_mul_overflow(entries, sizeof(record), &bytes) ||
      __builtin_mul_overflow(entries, (size_t)options->frames * sizeof(void *), &stacks) || bytes > PTRDIFF_MAX / 2 ||
      stacks > PTRDIFF_MAX / 2)
    return NULL;
  at_history *history = malloc(sizeof *history + bytes);
  if (!history) return NULL;
  *history = (at_history){.room = entries, .skip = options->skip, .depth = options->frames, .frames = malloc(stacks)};
  if (history->frames || stacks == 0) return history;
  free(history);
  return NULL;
}

attune_status at_history_make(at_history **out, const attune_history_options *options) {
  *out = NULL;
  if (!options) return ATTUNE_OK;
  attune_history_options full;
  AT_TRY(AT_TAKE(&full, options));
  const size_t entries = full.entries ? full.entries : USUAL_ENTRIES;
  if (full.frames < 0 || full.frames > AT_BACKTRACE_MOST)
    return AT_INVALID("options.frames is %d; should be 0 to %d", full.frames, AT_BACKTRACE_MOST);
  if (full.skip & ~(unsigned)ATTUNE_HISTORY_EVERY)
    return AT_INVALID("options.skip is 0x%x; should contain no bits but those of ATTUNE_HISTORY_...", full.skip);
  *out = make(&full, entries);
  if (!*out)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a history of %zu entries with %d frames each", entries,
                   full.frames);
  if (full.frames > 0) at_backtrace_prepare();
  return ATTUNE_OK;
}

void at_history_destroy(at_history *history) {
  if (history) free(history->frames);
  free(history);
}

uint64_t at_history_note(at_history *history, at_action action, uintptr_t address, size_t bytes, uint64_t stream) {
  if (AT_LIKELY(!history) || history->skip & 1U << action) return 0;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const size_t place = history->begun++ % history->room;
  record *r = &history->records[place];
  *r = (record){.action = action,
                .address = address,
                .bytes = bytes,
                .stream = stream,
                .time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
  if (history->depth > 0)
    r->frames = at_backtrace_take(history->frames + place * (size_t)history->depth, history->depth);
  (void)at_copy_text(r->note, sizeof r->note, note);
  return history->begun;
}

static size_t first_of(const at_history *history) {
  return history->begun > history->room ? history->begun - history->room : 0;
}

/* Frames carry no line numbers: symbol tables have none. */
static void write_frames(const at_history *history, size_t place, at_backtrace_names *names, at_json *out) {
  void **frames = names && history->depth > 0 ? history->frames + place * (size_t)history->depth : NULL;
  at_json_list(out, NULL);
  for (int i = 0; frames && i < history->records[place].frames; i++) {
    const char *function = NULL, *file = NULL;
    at_backtrace_names_look(names, frames[i], &function, &file);
    at_json_object(out, NULL);
    at_json_word(out, "filename", file);
    at_json_number(out, "line", 0);
    at_json_word(out, "name", function);
    at_json_object_end(out);
  }
  at_json_list_end(out);
}

void at_history_write_frames(const at_history *history, uint64_t number, uintptr_t address, at_backtrace_names *names,
                             at_json *out) {
  const bool kept = history && number > first_of(history) && number <= history->begun;
  const size_t place = kept ? (number - 1) % history->room : 0;
  if (kept && history->records[place].address == address && history->records[place].action == AT_ACTION_ALLOC) {
    write_frames(history, place, names, out);
    return;
  }
  at_json_list(out, NULL);
  at_json_list_end(out);
}

static void write_record(const at_history *history, size_t place, at_backtrace_names *names, at_json *out) {
  static const char *const words[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                      "segment_free", "segment_map",    "segment_unmap",  "oom",
                                      "snapshot"};
  const record *r = &history->records[place];
  at_json_object(out, NULL);
  at_json_word(out, "action", words[r->action]);
  at_json_number(out, r->action == AT_ACTION_OOM ? "device_free" : "addr", (int64_t)r->address);
  at_json_number(out, "size", (int64_t)r->bytes);
  at_json_number(out, "stream", (int64_t)r->stream);
  at_json_number(out, "time_us", r->time_us);
  at_json_key(out, "frames");
  write_frames(history, place, names, out);
  at_json_word(out, "user_metadata", r->note);
  at_json_object_end(out);
}

void at_history_write(const at_history *history, at_backtrace_names *names, at_json *out) {
  at_json_list(out, NULL);
  for (size_t i = history ? first_of(history) : 0; history && i < history->begun; i++)
    write_record(history, i % history->room, names, out);
  at_json_list_end(out);
}

void at_history_want_names(const at_history *history, at_backtrace_names *names) {
  for (size_t i = history ? first_of(history) : 0; history && history->depth > 0 && i < history->begun; i++) {
    const size_t place = i % history->room;
    const size_t count = (size_t)history->records[place].frames;
    if (!at_backtrace_names_want(names, history->frames + place * (size_t)history->depth, count)) return;
  }
}
