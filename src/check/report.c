/* SPDX-License-Identifier: Apache-2.0
 * report.c: see report.h. */
#include "src/check/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS 1024 /* a power of two */

typedef struct found {
  struct found *next;
  at_access first, second;
  bool allocated;
  at_allocation allocation;
} found;

static struct {
  attune_race_fn fn;
  void *user;
  uint64_t count;
  found *waiting, **end;
  uint64_t kinds[KINDS]; /* hashes of those that the log had; 0: free */
} report = {.end = &report.waiting};

static _Thread_local bool telling;

void at_report_begin(attune_race_fn fn, void *user) {
  while (report.waiting) {
    found *next = report.waiting->next;
    free(report.waiting);
    report.waiting = next;
  }
  report.end = &report.waiting;
  report.fn = fn;
  report.user = user;
  report.count = 0;
  memset(report.kinds, 0, sizeof report.kinds);
}

uint64_t at_report_count(void) {
  return report.count;
}

bool at_report_waits(void) {
  return report.waiting != NULL;
}

void at_report_add(const at_access *first, const at_access *second, const at_allocation *allocation) {
  report.count++;
  found *f = malloc(sizeof *f);
  if (!f) return;
  *f = (found){.first = *first, .second = *second, .allocated = allocation != NULL};
  if (allocation) f->allocation = *allocation;
  *report.end = f;
  report.end = &f->next;
}

static uint64_t mix(uint64_t hash, const char *text) {
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
  return (hash ^ 0xFF) * 0x100000001B3u;
}

/* True for the first of its kind. Under the lock. */
static bool is_new_kind(const found *f) {
  uint64_t hash = 0xCBF29CE484222325u;
  const at_access *const both[] = {&f->first, &f->second};
  for (int i = 0; i < 2; i++) {
    hash = mix(mix(mix(hash, both[i]->call), both[i]->operand), both[i]->stream);
    hash = (hash ^ (uint64_t)(both[i]->reads | both[i]->writes << 1)) * 0x100000001B3u;
  }
  if (hash == 0) hash = 1;
  for (uint64_t i = hash; i < hash + 16; i++) {
    uint64_t *slot = &report.kinds[i & (KINDS - 1)];
    if (*slot == hash) return false;
    if (*slot) continue;
    *slot = hash;
    return true;
  }
  return false; /* there are very many kinds by now */
}

static attune_race_use use_of(const at_access *a) {
  const char *access = a->frees                ? "frees"
                       : a->allocates          ? "allocates"
                       : a->reads && a->writes ? "reads and writes"
                       : a->writes             ? "writes"
                                               : "reads";
  return (attune_race_use){.call = a->call,
                           .operand = a->operand,
                           .access = access,
                           .stream = a->stream,
                           .number = a->frees ? 0 : a->position,
                           .begin = (const void *)a->span.start,
                           .bytes = a->span.end - a->span.start};
}

static void append_use(char *text, size_t size, size_t *at, const attune_race_use *use) {
  (void)at_append(text, size, at, "%s %s %s%s%zu bytes at %p (", use->call, use->access, use->operand,
                  *use->operand ? ", " : "", use->bytes, use->begin);
  if (use->number) (void)at_append(text, size, at, "work %llu of ", (unsigned long long)use->number);
  (void)at_append(text, size, at, "%s)", use->stream);
}

static void write_remedy(char *out, size_t size, const attune_race *race, const at_access *second) {
  size_t at = 0;
  const char *first_stream = race->first.stream, *second_stream = race->second.stream;
  if (second->frees)
    (void)at_append(out, size, &at, "attune_record_use for %s, or attune_stream_wait_stream, before the free",
                    first_stream);
  else if (second->line == 0)
    (void)at_append(out, size, &at, "attune_stream_synchronize of %s before it", first_stream);
  else
    (void)at_append(out, size, &at, "attune_stream_wait_stream or an event before it, so that %s waits for %s",
                    second_stream, first_stream);
}

static void tell(const found *f, bool to_log, attune_race_fn fn, void *user) {
  char remedy[320], text[1024];
  size_t at = 0;
  attune_race race = {.first = use_of(&f->first), .second = use_of(&f->second), .allocation_stream = ""};
  write_remedy(remedy, sizeof remedy, &race, &f->second);
  race.remedy = remedy;
  race.text = text;
  (void)at_append(text, sizeof text, &at, "race: ");
  append_use(text, sizeof text, &at, &race.second);
  (void)at_append(text, sizeof text, &at, "; nothing orders it after ");
  append_use(text, sizeof text, &at, &race.first);
  if (f->allocated) {
    race.allocation = (const void *)f->allocation.range.start;
    race.allocation_bytes = f->allocation.range.end - f->allocation.range.start;
    race.allocation_stream = f->allocation.stream;
    (void)at_append(text, sizeof text, &at, "; the memory: %zu bytes at %p, allocated on %s", race.allocation_bytes,
                    race.allocation, *race.allocation_stream ? race.allocation_stream : "the host, pinned");
  }
  (void)at_append(text, sizeof text, &at, "; needed: %s", remedy);
  if (to_log) at_log(ATTUNE_LOG_ERROR, "%s", text);
  if (fn) fn(user, &race);
}

void at_report_tell(pthread_mutex_t *lock) {
  if (telling) return;
  telling = true;
  for (;;) {
    pthread_mutex_lock(lock);
    found *f = report.waiting;
    if (f && !(report.waiting = f->next)) report.end = &report.waiting;
    const bool to_log = f && is_new_kind(f);
    const attune_race_fn fn = report.fn;
    void *user = report.user;
    pthread_mutex_unlock(lock);
    if (!f) break;
    tell(f, to_log, fn, user);
    free(f);
  }
  telling = false;
}
