/* SPDX-License-Identifier: Apache-2.0
 * suite.c: the list of cases. */
#include "tools/bench/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "src/base/struct_size.h"
#include "src/base/support.h"

static const unsigned FLAGS = ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH;

attune_status attune_bench_create(attune_bench **out) {
  AT_REQUIRE_AS(out, "point to an attune_bench *");
  *out = calloc(1, sizeof **out);
  return *out ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a bench");
}

/* --- names: a table of hashes with open addressing, half empty at least --- */

static uint32_t hash_of(const char *name) { /* FNV-1a */
  uint32_t hash = 2166136261u;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
  return hash;
}

/* The entry of that name; NULL: there is none. */
static at_bench_entry *find(const attune_bench *bench, const char *name) {
  if (!bench->slot_count) return NULL;
  const size_t mask = bench->slot_count - 1;
  for (size_t i = hash_of(name) & mask; bench->slots[i]; i = (i + 1) & mask)
    if (strcmp(bench->entries[bench->slots[i] - 1].shown.name, name) == 0) return &bench->entries[bench->slots[i] - 1];
  return NULL;
}

static void put(attune_bench *bench, size_t index) {
  const size_t mask = bench->slot_count - 1;
  size_t i = hash_of(bench->entries[index].shown.name) & mask;
  while (bench->slots[i]) i = (i + 1) & mask;
  bench->slots[i] = index + 1;
}

static void put_all(attune_bench *bench) {
  memset(bench->slots, 0, bench->slot_count * sizeof *bench->slots);
  for (size_t i = 0; i < bench->count; i++) put(bench, i);
}

void at_bench_cut(attune_bench *bench, size_t count) {
  while (bench->count > count) {
    at_bench_entry *entry = &bench->entries[--bench->count];
    if (entry->release) entry->release(entry->shown.arg);
    free((char *)(uintptr_t)entry->shown.name);
    free((char *)(uintptr_t)entry->shown.peer_of);
  }
  for (size_t i = 0; i < count; i++) bench->entries[i].copies = 0;
  if (bench->slot_count) put_all(bench);
}

void attune_bench_destroy(attune_bench *bench) {
  if (!bench) return;
  at_bench_cut(bench, 0);
  at_random_destroy(bench->random);
  free(bench->entries);
  free(bench->slots);
  free(bench);
}

static attune_status check_name(const attune_bench *bench, const char *name) {
  if (!name || !*name) return AT_INVALID("name is %s; should be the name of the case", name ? "empty" : "NULL");
  if (strlen(name) >= AT_BENCH_NAME_CHARS)
    return AT_INVALID("name has %zu bytes; should have at most %d", strlen(name), AT_BENCH_NAME_CHARS - 1);
  for (const char *c = name; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      return AT_INVALID("name contains the control character 0x%02x; should be plain text",
                        (unsigned)(unsigned char)*c);
  if (find(bench, name)) return AT_INVALID("name is \"%s\", which another case has already; should be unique", name);
  return ATTUNE_OK;
}

#define WORK_MOST 1e24 /* what a result file takes */

static attune_status check_number(const char *what, double number) {
  if (number >= 0.0 && number <= WORK_MOST) return ATTUNE_OK;
  return AT_INVALID("%s is %g; should be 0 to %g", what, number, WORK_MOST);
}

static attune_status check_flags(unsigned flags, const attune_device *device) {
  if (flags & ~FLAGS)
    return AT_INVALID("flags is 0x%x; should contain no bits but ATTUNE_BENCH_COLD and ATTUNE_BENCH_GRAPH", flags);
  if ((flags & ATTUNE_BENCH_GRAPH) && !device)
    return AT_INVALID(
        "device is NULL, but flags has ATTUNE_BENCH_GRAPH; should be the device that the captured work runs on");
  return ATTUNE_OK;
}

static attune_status check_peer(const attune_bench *bench, const char *name) {
  const at_bench_entry *found = name ? find(bench, name) : NULL;
  if (name && !found) return AT_INVALID("peer_of is \"%.200s\"; should be the name of a case added earlier", name);
  if (found && found->shown.peer_of)
    return AT_INVALID("peer_of is \"%s\", which is itself a peer of \"%s\"; should be the latter", name,
                      found->shown.peer_of);
  return ATTUNE_OK;
}

static attune_status check(const attune_bench *bench, const attune_bench_case *c) {
  attune_status status = check_name(bench, c->name);
  if (status == ATTUNE_OK && !c->run) status = AT_INVALID("run is NULL; should be the function to time");
  if (status == ATTUNE_OK) status = check_number("bytes", c->bytes);
  if (status == ATTUNE_OK) status = check_number("flops", c->flops);
  if (status == ATTUNE_OK && c->flops > 0.0 && attune_dtype_size(c->dtype) == 0)
    status = AT_INVALID("dtype is %d; should be the dtype that flops counts operations in", (int)c->dtype);
  if (status == ATTUNE_OK && (unsigned)c->accuracy > ATTUNE_REDUCED)
    status =
        AT_INVALID("accuracy is %d; should be ATTUNE_STRICT, ATTUNE_EQUIVALENT or ATTUNE_REDUCED", (int)c->accuracy);
  if (status == ATTUNE_OK) status = check_peer(bench, c->peer_of);
  return status == ATTUNE_OK ? check_flags(c->flags, c->device) : status;
}

void at_bench_arithmetic(char out[AT_BENCH_ARITHMETIC_CHARS], const attune_bench_case *c) {
  static const char *const accuracies[] = {"", "-equivalent", "-reduced"};
  snprintf(out, AT_BENCH_ARITHMETIC_CHARS, "%s%s", attune_dtype_name(c->dtype), accuracies[c->accuracy]);
}

static bool make_slots(attune_bench *bench) {
  if (2 * (bench->count + 1) <= bench->slot_count) return true;
  const size_t count = bench->slot_count ? 2 * bench->slot_count : 64;
  size_t *slots = malloc(count * sizeof *slots);
  if (!slots) return false;
  free(bench->slots);
  bench->slots = slots;
  bench->slot_count = count;
  put_all(bench);
  return true;
}

static bool make_room(attune_bench *bench) {
  return make_slots(bench) && AT_ARRAY_ROOM(bench->entries, bench->count, bench->capacity);
}

/* The name, with a number behind it where it is taken; NULL without memory. */
static char *own_name(const attune_bench *bench, const char *name) {
  char text[AT_BENCH_NAME_CHARS + 16];
  at_bench_entry *first = find(bench, name);
  snprintf(text, sizeof text, "%s", name);
  while (first && find(bench, text)) {
    const unsigned number = ++first->copies + 1;
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
  added->copies = 0;
  put(bench, bench->count - 1);
  added->shown.peer_of = peer;
  return ATTUNE_OK;
}

attune_status attune_bench_add(attune_bench *bench, const attune_bench_case *c) {
  attune_bench_case full;
  AT_REQUIRE(bench, c);
  AT_TRY(AT_TAKE(&full, c));
  AT_TRY(check(bench, &full));
  return at_bench_add(bench, &(at_bench_entry){.shown = full});
}

size_t attune_bench_size(const attune_bench *bench) {
  return bench ? bench->count : 0;
}

const attune_bench_case *attune_bench_at(const attune_bench *bench, size_t index) {
  return bench && index < bench->count ? &bench->entries[index].shown : NULL;
}
