/* SPDX-License-Identifier: Apache-2.0
 * case_index.c: a table of hashes with open addressing, half empty at least. */
#include "tools/compare/stats/case_index.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"

#define ROOM_LEAST 64

struct gate_case_place {
  uint64_t hash;
  size_t next; /* 1 + the place in the list; 0: free */
};

static bool same_case(const gate_case *a, const gate_case *b) {
  return strcmp(a->name, b->name) == 0 && strcmp(a->device, b->device) == 0 && strcmp(a->mode, b->mode) == 0;
}

/* FNV-1a, with the end of the text. */
static uint64_t add_text(uint64_t hash, const char *text) {
  do hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  while (*text++);
  return hash;
}

static uint64_t hash_of(const gate_case *c) {
  return add_text(add_text(add_text(14695981039346656037u, c->name), c->device), c->mode);
}

size_t gate_case_index_find(const gate_case_index *x, const gate_case *like,
                            const gate_case *(*at)(const void *list, size_t place), const void *list) {
  const uint64_t hash = hash_of(like);
  for (size_t i = hash & (x->room - 1); x->room && x->places[i].next; i = (i + 1) & (x->room - 1))
    if (x->places[i].hash == hash && same_case(at(list, x->places[i].next - 1), like)) return x->places[i].next - 1;
  return GATE_CASE_NOWHERE;
}

static void put(gate_case_index *x, struct gate_case_place place) {
  size_t i = place.hash & (x->room - 1);
  while (x->places[i].next) i = (i + 1) & (x->room - 1);
  x->places[i] = place;
}

static void grow(gate_case_index *x) {
  const gate_case_index old = *x;
  x->room = old.room ? 2 * old.room : ROOM_LEAST;
  x->places = gate_alloc(x->room, sizeof *x->places);
  for (size_t i = 0; i < old.room; i++)
    if (old.places[i].next) put(x, old.places[i]);
  free(old.places);
}

void gate_case_index_add(gate_case_index *x, const gate_case *c, size_t place) {
  if (2 * (x->count + 1) > x->room) grow(x);
  put(x, (struct gate_case_place){hash_of(c), place + 1});
  x->count++;
}

void gate_case_index_free(gate_case_index *x) {
  free(x->places);
  *x = (gate_case_index){0};
}
