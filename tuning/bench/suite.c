/* SPDX-License-Identifier: Apache-2.0
 * suite.c: the list of cases. */
#include "tuning/bench/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/support.h"

#define FAIL(...) at_fail(ATTUNE_INVALID_ARGUMENT, __VA_ARGS__)

static const unsigned FLAGS = ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH;

attune_status attune_bench_create(attune_bench **out) {
  if (!out) return FAIL("out is NULL; should point to where the bench goes");
  *out = calloc(1, sizeof **out);
  return *out ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a bench");
}

void at_bench_cut(attune_bench *bench, size_t count) {
  while (bench->count > count) {
    at_bench_entry *entry = &bench->entries[--bench->count];
    if (entry->release) entry->release(entry->shown.arg);
    free((char *)(uintptr_t)entry->shown.name);
    free((char *)(uintptr_t)entry->shown.peer_of);
  }
}

void attune_bench_destroy(attune_bench *bench) {
  if (!bench) return;
  at_bench_cut(bench, 0);
  at_random_destroy(bench->random);
  free(bench->entries);
  free(bench);
}

/* NULL: there is none of that name. */
static const attune_bench_case *called(const attune_bench *bench, const char *name) {
  for (size_t i = 0; i < bench->count; i++)
    if (strcmp(bench->entries[i].shown.name, name) == 0) return &bench->entries[i].shown;
  return NULL;
}

static attune_status check_name(const attune_bench *bench, const char *name) {
  if (!name || !*name) return FAIL("name is %s; should be what the case is called", name ? "empty" : "NULL");
  if (strlen(name) >= AT_BENCH_NAME_CHARS)
    return FAIL("name has %zu bytes; should have at most %d", strlen(name), AT_BENCH_NAME_CHARS - 1);
  for (const char *c = name; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      return FAIL("name holds the control character 0x%02x; should be plain text", (unsigned)(unsigned char)*c);
  if (called(bench, name)) return FAIL("name is \"%s\", as that of another case; should be its own", name);
  return ATTUNE_OK;
}

static attune_status check_number(const char *what, double number) {
  if (isfinite(number) && number >= 0.0) return ATTUNE_OK;
  return FAIL("%s is %g; should be 0 or more, and finite", what, number);
}

static attune_status check_flags(unsigned flags, const attune_device *device) {
  if (flags & ~FLAGS) return FAIL("flags is 0x%x; should be made of ATTUNE_BENCH_COLD and ATTUNE_BENCH_GRAPH", flags);
  if ((flags & ATTUNE_BENCH_GRAPH) && !device)
    return FAIL("device is NULL, but flags has ATTUNE_BENCH_GRAPH; should be the device whose work is captured");
  return ATTUNE_OK;
}

static attune_status check_peer(const attune_bench *bench, const char *name) {
  const attune_bench_case *found = name ? called(bench, name) : NULL;
  if (name && !found) return FAIL("peer_of is \"%.200s\"; should be the name of a case that was added before", name);
  if (found && found->peer_of)
    return FAIL("peer_of is \"%s\", a peer of \"%s\" itself; should be that one", name, found->peer_of);
  return ATTUNE_OK;
}

static attune_status check(const attune_bench *bench, const attune_bench_case *c) {
  if (c->size != sizeof *c)
    return FAIL("size is %zu; should be sizeof(attune_bench_case), %zu here", c->size, sizeof *c);
  attune_status status = check_name(bench, c->name);
  if (status == ATTUNE_OK && !c->run) status = FAIL("run is NULL; should be the function to be timed");
  if (status == ATTUNE_OK) status = check_number("bytes", c->bytes);
  if (status == ATTUNE_OK) status = check_number("flops", c->flops);
  if (status == ATTUNE_OK && c->flops > 0.0 && attune_dtype_size(c->dtype) == 0)
    status = FAIL("dtype is %d; should be what the flops are in", (int)c->dtype);
  if (status == ATTUNE_OK) status = check_peer(bench, c->peer_of);
  return status == ATTUNE_OK ? check_flags(c->flags, c->device) : status;
}

static bool make_room(attune_bench *bench) {
  if (bench->count < bench->capacity) return true;
  const size_t capacity = bench->capacity ? 2 * bench->capacity : 16;
  at_bench_entry *larger = realloc(bench->entries, capacity * sizeof *larger);
  if (!larger) return false;
  bench->entries = larger;
  bench->capacity = capacity;
  return true;
}

/* The name, with a number behind it where it is taken; NULL without memory. */
static char *own_name(const attune_bench *bench, const char *name) {
  char text[AT_BENCH_NAME_CHARS + 16];
  snprintf(text, sizeof text, "%s", name);
  for (unsigned number = 2; called(bench, text); number++) {
    const int room = AT_BENCH_NAME_CHARS - 1 - snprintf(NULL, 0, " #%u", number);
    snprintf(text, sizeof text, "%.*s #%u", room, name, number);
  }
  return strdup(text);
}

attune_status at_bench_add(attune_bench *bench, const at_bench_entry *entry) {
  char *name = own_name(bench, entry->shown.name), *peer = entry->shown.peer_of ? strdup(entry->shown.peer_of) : NULL;
  if (!name || (entry->shown.peer_of && !peer) || !make_room(bench)) {
    free(name);
    free(peer);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu cases", bench->count + 1);
  }
  at_bench_entry *added = &bench->entries[bench->count++];
  *added = *entry;
  added->shown.size = sizeof added->shown;
  added->shown.name = name;
  added->shown.peer_of = peer;
  return ATTUNE_OK;
}

attune_status attune_bench_add(attune_bench *bench, const attune_bench_case *c) {
  if (!bench || !c) return FAIL("%s is NULL; should be given", bench ? "c" : "bench");
  const attune_status status = check(bench, c);
  return status == ATTUNE_OK ? at_bench_add(bench, &(at_bench_entry){.shown = *c}) : status;
}

size_t attune_bench_size(const attune_bench *bench) {
  return bench ? bench->count : 0;
}

const attune_bench_case *attune_bench_at(const attune_bench *bench, size_t index) {
  return bench && index < bench->count ? &bench->entries[index].shown : NULL;
}
