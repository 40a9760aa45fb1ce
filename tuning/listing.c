/* SPDX-License-Identifier: Apache-2.0
 * listing.c: what a tuner holds and knows, for people and programs that ask: winners, implementations. */
#include <stdlib.h>
#include <string.h>

#include "tuning/tuner.h"

typedef struct walk {
  attune_tuner *tuner;
  attune_winner_fn fn;
  void *user;
  attune_source source;
  bool ended;
} walk;

/* The first device here from number *next on that a fingerprint belongs to; NULL: none. Equal devices share one. */
static attune_device *device_of(attune_tuner *tuner, const char *fingerprint, int *next) {
  at_message kept;
  at_message_keep(&kept);
  for (int count = attune_device_count(); *next < count;) {
    attune_device *device = NULL;
    const char *own = NULL;
    if (attune_device_at(&device, (*next)++) != ATTUNE_OK || at_tuner_fingerprint(tuner, device, &own) != ATTUNE_OK)
      continue;
    if (strcmp(own, fingerprint) != 0) continue;
    (void)at_message_settle(&kept, ATTUNE_OK);
    return device;
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
  return NULL;
}

static int show(void *user, const char *fingerprint, const attune_decision *row) {
  walk *w = user;
  attune_decision decision = *row;
  int next = 0;
  const attune_device *device = device_of(w->tuner, fingerprint, &next);
  const bool valid = device != NULL;
  decision.source = w->source;
  do {
    at_copy_text(decision.device, sizeof decision.device, device ? device->name : "elsewhere");
    w->ended = w->fn(w->user, &decision, fingerprint, valid) != 0;
  } while (!w->ended && device && (device = device_of(w->tuner, fingerprint, &next)));
  return w->ended;
}

attune_status attune_tuner_winners(attune_tuner *tuner, attune_winner_fn fn, void *user) {
  if (!tuner || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", tuner ? "fn" : "tuner");
  walk w = {.tuner = tuner, .fn = fn, .user = user, .source = ATTUNE_SOURCE_STORED};
  attune_status status = tuner->user ? at_store_each_winner(tuner->user, show, &w) : ATTUNE_OK;
  w.source = ATTUNE_SOURCE_SYSTEM;
  if (status == ATTUNE_OK && !w.ended && tuner->system) status = at_store_each_winner(tuner->system, show, &w);
  return status;
}

attune_status attune_tuner_implementations(attune_tuner *tuner, attune_device *device, const char *problem,
                                           attune_implementation_fn fn, void *user) {
  if (!tuner || !device || !problem || !fn)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL",
                   !tuner     ? "tuner"
                   : !device  ? "device"
                   : !problem ? "problem"
                              : "fn");
  enum { MOST = 256 };
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  attune_status status = op->parse(problem, bytes);
  if (status == ATTUNE_OK && op->fold) op->fold(bytes, device);
  at_configuration *room = status == ATTUNE_OK ? malloc(MOST * sizeof *room) : NULL;
  if (status == ATTUNE_OK && !room) status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d configurations", MOST);
  for (size_t i = 0; i < op->implementation_count && status == ATTUNE_OK; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, device->backend->name) != 0) continue;
    at_message kept;
    at_message_keep(&kept);
    const bool can = implementation->supports(bytes, device);
    const int count = can ? implementation->configurations(bytes, device, room, MOST) : 0;
    (void)at_message_settle(&kept, ATTUNE_OK);
    if (can && fn(user, implementation->name, implementation->version, count)) break;
  }
  free(room);
  return status;
}
