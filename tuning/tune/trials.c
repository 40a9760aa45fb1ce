/* SPDX-License-Identifier: Apache-2.0
 * trials.c: what a search measured beside its winner, for whoever asks. */
#include <stdlib.h>
#include <string.h>

#include "tuning/search/search.h"
#include "tuning/tuner/tuner.h"

static attune_status find(attune_tuner *tuner, attune_device *device, const char *problem, at_trial *out, int *count) {
  const char *fingerprint = NULL;
  at_store *const layers[] = {at_tuner_store(tuner), tuner->system};
  const char *measure = at_measure_name(at_tuner_measure(tuner, device));
  attune_status status = at_tuner_fingerprint(tuner, device, &fingerprint);
  *count = 0;
  for (size_t i = 0; i < AT_COUNT(layers) && status == ATTUNE_OK && *count == 0; i++)
    if (layers[i]) status = at_store_trials(layers[i], fingerprint, problem, measure, out, AT_MAX_TRIALS, count);
  return status;
}

attune_status attune_tuner_trials(attune_tuner *tuner, attune_device *device, const char *problem, attune_trial_fn fn,
                                  void *user) {
  if (!tuner || !device || !problem || !fn)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given",
                   !tuner     ? "tuner"
                   : !device  ? "device"
                   : !problem ? "problem"
                              : "fn");
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
