/* SPDX-License-Identifier: Apache-2.0
 * trials.c: what a search measured besides its winner. */
#include <attune/tools.h>

#include <stdlib.h>
#include <string.h>

#include "tuning/search/search.h"
#include "tuning/store/fingerprint.h"
#include "tuning/tuner/tuner.h"
#include "tuning/tuner/winner.h"

/* Too large for the stack of a small thread. */
typedef struct room {
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  char fingerprint[AT_FINGERPRINT_CHARS];
} room;

/* Those of the winner that runs here, not of one that was measured with other threads. */
static attune_status find(attune_tuner *tuner, attune_device *device, const char *text, at_trial *out, int *count) {
  const at_op *op = at_tuner_op(tuner, text);
  const char *measure = at_measure_name(at_tuner_measure(tuner, device));
  at_store *store = NULL;
  *count = 0;
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  room *r = calloc(1, sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for trials");
  at_tuner_open(tuner);
  attune_status status = op->problem->parse(text, r->problem);
  if (status == ATTUNE_OK)
    status = at_find_winner_row(tuner, op, r->problem, device, r->fingerprint, sizeof r->fingerprint, &store);
  if (status == ATTUNE_OK) status = at_store_trials(store, r->fingerprint, text, measure, out, AT_MAX_TRIALS, count);
  free(r);
  return status == ATTUNE_NOT_FOUND ? ATTUNE_OK : status;
}

attune_status attune_tuner_trials(attune_tuner *tuner, attune_device *device, const char *problem, attune_trial_fn fn,
                                  void *user) {
  AT_REQUIRE(tuner, device, problem, fn);
  attune_decision *decision = malloc(sizeof *decision); /* for the problem's text as it is stored */
  at_trial *trials = malloc(AT_MAX_TRIALS * sizeof *trials);
  attune_status status = decision && trials ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for trials");
  int count = 0;
  if (status == ATTUNE_OK) status = attune_explain(tuner, device, problem, decision);
  if (status == ATTUNE_OK) status = find(tuner, device, decision->problem, trials, &count);
  if (status == ATTUNE_OK && count == 0)
    status = at_fail(ATTUNE_NOT_FOUND,
                     "no trials of the problem are stored for %s; attune_tune measures them, and a database keeps them",
                     device->name);
  for (int i = 0; status == ATTUNE_OK && i < count; i++) {
    const attune_trial one = {.implementation = trials[i].implementation,
                              .configuration = trials[i].configuration,
                              .verdict = trials[i].verdict,
                              .time_ns = trials[i].time_ns,
                              .spread = trials[i].spread,
                              .samples = trials[i].samples};
    if (fn(user, &one)) break;
  }
  free(trials);
  free(decision);
  return status;
}
