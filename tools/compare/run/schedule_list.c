/* SPDX-License-Identifier: Apache-2.0
 * schedule_list.c: which cases there are, on which side, and in which process now. */
#include "tools/compare/run/schedule_parts.h"

#include <stdlib.h>
#include <string.h>

gate_case *gate_entry_case(const gate_rounds *r, const gate_entry *e, int side) {
  return e->at[side] == GATE_NOWHERE ? NULL : &r->sides[side].run->cases[e->at[side]];
}

const char *gate_entry_name(const gate_rounds *r, const gate_entry *e) {
  const gate_case *head = gate_entry_case(r, e, GATE_HEAD);
  return head ? head->name : gate_entry_case(r, e, GATE_BASE)->name;
}

bool gate_entry_open(const gate_entry *e, int side) {
  return e->index[side] != GATE_NOWHERE && e->failures[side] < GATE_FAILURES_MOST;
}

/* All cases of an entry have the same name, device and mode. */
static const gate_case *case_at(const void *rounds, size_t place) {
  const gate_rounds *r = rounds;
  const gate_case *head = gate_entry_case(r, &r->entries[place], GATE_HEAD);
  return head ? head : gate_entry_case(r, &r->entries[place], GATE_BASE);
}

static gate_entry *find(gate_rounds *r, const gate_case *c) {
  const size_t place = gate_case_index_find(&r->index, c, case_at, r);
  return place == GATE_CASE_NOWHERE ? NULL : &r->entries[place];
}

static gate_entry *add(gate_rounds *r, const gate_case *c) {
  gate_case_index_add(&r->index, c, r->count);
  if (r->count == r->room) r->entries = gate_grow(r->entries, r->room = r->room ? 2 * r->room : 64, sizeof *r->entries);
  gate_entry *e = &r->entries[r->count++];
  *e = (gate_entry){.active = true, .group = r->count - 1};
  for (int side = 0; side < GATE_SIDES; side++) e->at[side] = e->index[side] = GATE_NOWHERE;
  return e;
}

/* Takes what *c holds. */
static void give(gate_rounds *r, gate_entry *e, int side, gate_case *c) {
  gate_run *run = r->sides[side].run;
  run->cases = gate_grow(run->cases, run->case_count + 1, sizeof *run->cases);
  e->at[side] = run->case_count;
  run->cases[run->case_count++] = *c;
  *c = (gate_case){0};
}

/* The case that this one is a peer of is in the same list, before it, unless the filter left it out. */
static void join_group(gate_rounds *r, gate_entry *e, int side, size_t source) {
  const char *of = gate_entry_case(r, e, side)->peer_of;
  for (size_t i = 0; of && i < r->count; i++) {
    const gate_case *c = gate_entry_case(r, &r->entries[i], side);
    if (!c || r->entries[i].source[side] != source || strcmp(c->name, of) != 0) continue;
    e->group = i;
    r->grouped = true;
    return;
  }
}

/* A verdict is of one thing: no two cases of a side are alike. None comes in once samples are taken: pointers to cases
 * stay good. */
static char *note(gate_rounds *r, int side, size_t source, gate_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (gate_yardstick_note(r, side, source, i, &cases[i])) continue;
    if (r->schedule.filter && !strstr(cases[i].name, r->schedule.filter)) continue;
    gate_entry *e = find(r, &cases[i]);
    if (r->start_ns && (!e || e->at[side] == GATE_NOWHERE)) continue;
    if (!r->start_ns && e && e->at[side] != GATE_NOWHERE)
      return gate_say("two cases are called \"%s\"; names should be unique", cases[i].name);
    if (!e) e = add(r, &cases[i]);
    if (e->at[side] == GATE_NOWHERE) {
      give(r, e, side, &cases[i]);
      e->source[side] = source;
      join_group(r, e, side, source);
    }
    if (e->source[side] == source && e->index[side] == GATE_NOWHERE) e->index[side] = i;
  }
  return NULL;
}

static void forget(gate_rounds *r, int side, size_t source) {
  for (size_t i = 0; i < r->count; i++)
    if (r->entries[i].source[side] == source) r->entries[i].index[side] = GATE_NOWHERE;
}

char *gate_rounds_start(gate_rounds *r, int side, size_t source) {
  gate_source *s = r->sides[side].sources[source];
  gate_case *cases = NULL;
  size_t count = 0;
  forget(r, side, source);
  char *error = s->kind->start(s, &cases, &count);
  if (error) return error;
  error = note(r, side, source, cases, count);
  gate_cases_free(cases, count);
  return error;
}

void gate_rounds_stop(gate_rounds *r) {
  for (int side = 0; side < r->side_count; side++)
    for (size_t i = 0; i < r->sides[side].source_count; i++) {
      gate_source *s = r->sides[side].sources[i];
      s->kind->stop(s);
      forget(r, side, i);
    }
  r->listed = false;
}

/* --- failures --- */

char *gate_entry_fail(gate_rounds *r, gate_entry *e, int side, char *why) {
  gate_case *c = gate_entry_case(r, e, side);
  if (gate_interrupted(&r->schedule.limits)) {
    free(why);
    return NULL;
  }
  e->failures[side]++;
  c->state = GATE_CASE_FAILED;
  free(c->message);
  c->message = why;
  return r->schedule.file ? gate_file_add(r->schedule.file, r->sides[side].run->id, c, NULL) : NULL;
}

char *gate_rounds_start_or_fail(gate_rounds *r, int side, size_t source) {
  char *why = gate_rounds_start(r, side, source), *error = NULL;
  for (size_t i = 0; why && !error && i < r->count; i++) {
    gate_entry *e = &r->entries[i];
    if (e->at[side] != GATE_NOWHERE && e->source[side] == source && e->failures[side] < GATE_FAILURES_MOST)
      error = gate_entry_fail(r, e, side, gate_say("its process did not start: %s", why));
  }
  free(why);
  return error;
}
