/* SPDX-License-Identifier: Apache-2.0
 * enumerate.c: what a tuner holds and knows, for people and programs that ask: winners, implementations. */
#include <attune/tools.h>

#include <stdlib.h>
#include <string.h>

#include "tuning/store/decision.h"
#include "tuning/store/fingerprint.h"
#include "tuning/tuner/winner.h"

typedef struct walk {
  attune_tuner *tuner;
  at_store *store;
  attune_winner_fn fn;
  void *user;
  attune_source source;
  bool ended;
  struct listed *room; /* too large for the stack of a small thread */
} walk;

/* A winner on its way to the caller. */
typedef struct listed {
  const at_op *op;
  const char *fingerprint;
  const attune_decision *row;
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  char own[AT_FINGERPRINT_CHARS];
  attune_decision decision; /* with what differs, once a device was looked at */
} listed;

/* Does it hold on the device? Else it says what differs, unless it says so of a device that is nearer. */
static bool holds_on(walk *w, listed *l, attune_device *device) {
  attune_decision *d = &l->decision;
  const char *here = NULL;
  char words[sizeof d->changed];
  if (at_tuner_fingerprint(w->tuner, device, &here) != ATTUNE_OK) return false;
  const bool other = at_fingerprint_difference(l->fingerprint, here, words, sizeof words) > 0;
  if (other && d->changed[0]) return false;
  d->changed[0] = '\0';
  if (other || at_winner_difference(l->op, device, l->fingerprint, l->row, words, sizeof words) > 0) {
    at_copy_text(d->changed, sizeof d->changed, words);
    if (!other) at_copy_text(d->device, sizeof d->device, device->name);
    return false;
  }
  at_copy_text(d->device, sizeof d->device, device->name);
  if (!at_winner_is_first(w->store, l->op, l->problem, device, l->fingerprint, l->row)) {
    at_copy_text(d->changed, sizeof d->changed, "there is a later winner of the problem");
    return false;
  }
  (void)at_rivals_difference(l->op, l->problem, device, l->fingerprint, l->row, d->changed, sizeof d->changed);
  return true;
}

static void give(walk *w, const listed *l, bool valid) {
  w->ended = w->ended || w->fn(w->user, &l->decision, l->own, valid) != 0;
}

static int show(void *user, const char *fingerprint, const attune_decision *row) {
  walk *w = user;
  listed *l = w->room;
  bool valid = false;
  /* a winner of no operation of here, or a device that fails, is none of the caller's failures */
  const at_message kept = at_message_keep();
  memset(l, 0, sizeof *l);
  l->fingerprint = fingerprint;
  l->row = row;
  at_decision_give(&l->decision, row);
  l->decision.source = w->source;
  at_copy_text(l->decision.device, sizeof l->decision.device, "elsewhere");
  at_fingerprint_own(fingerprint, row, l->own, sizeof l->own);
  l->op = at_tuner_op(w->tuner, row->problem);
  const bool known = l->op && l->op->problem->parse(row->problem, l->problem) == ATTUNE_OK;
  for (int i = 0; known && !w->ended && i < attune_device_count(); i++) {
    attune_device *device = NULL;
    if (attune_device_at(&device, i) != ATTUNE_OK || !holds_on(w, l, device)) continue;
    valid = true;
    (void)at_message_settle(&kept, ATTUNE_OK);
    give(w, l, true);
    l->decision.changed[0] = '\0';
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
  if (!valid) give(w, l, false);
  return w->ended;
}

static attune_status walk_layer(walk *w, at_store *store, attune_source source) {
  w->store = store;
  w->source = source;
  return store && !w->ended ? at_store_each_winner(store, show, w) : ATTUNE_OK;
}

attune_status attune_tuner_winners(attune_tuner *tuner, attune_winner_fn fn, void *user) {
  AT_REQUIRE(tuner, fn);
  at_tuner_open(tuner);
  walk w = {.tuner = tuner, .fn = fn, .user = user, .room = malloc(sizeof(listed))};
  if (!w.room) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to list winners");
  attune_status status = walk_layer(&w, tuner->user, ATTUNE_SOURCE_STORED);
  if (status == ATTUNE_OK) status = walk_layer(&w, tuner->system, ATTUNE_SOURCE_SYSTEM);
  free(w.room);
  return status;
}

attune_status attune_tuner_implementations(attune_tuner *tuner, attune_device *device, const char *problem,
                                           attune_implementation_fn fn, void *user) {
  AT_REQUIRE(tuner, device, problem, fn);
  enum { MOST = 256 };
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  attune_status status = op->problem->parse(problem, bytes);
  if (status == ATTUNE_OK) op->problem->fold(bytes, device);
  at_configuration *room = status == ATTUNE_OK ? malloc(MOST * sizeof *room) : NULL;
  if (status == ATTUNE_OK && !room) status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d configurations", MOST);
  for (size_t i = 0; i < op->implementation_count && status == ATTUNE_OK; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, device->backend.name) != 0) continue;
    const at_message kept = at_message_keep();
    const bool can = at_registry_usable(implementation, bytes, device);
    const int count = can ? implementation->configurations(implementation, bytes, device, room, MOST) : 0;
    (void)at_message_settle(&kept, ATTUNE_OK);
    if (can && fn(user, implementation->name, implementation->version, count)) break;
  }
  free(room);
  return status;
}
