/* SPDX-License-Identifier: Apache-2.0
 * winner.c: from a stored row to a plan that runs here, or to a miss. */
#include "tuning/winner.h"

#include <string.h>

#include "tuning/statistics.h"

attune_status at_decision_begin(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                attune_decision *out) {
  memset(out, 0, sizeof *out);
  at_copy_text(out->device, sizeof out->device, device->name);
  at_copy_text(out->measure, sizeof out->measure, at_measure_name(at_tuner_measure(tuner, device)));
  const at_implementation *base = at_registry_default(op, problem, device);
  if (base) at_copy_text(out->default_implementation, sizeof out->default_implementation, base->name);
  return op->format(problem, out->problem, sizeof out->problem);
}

attune_status at_plan_of_decision(const at_op *op, const void *problem, attune_device *device,
                                  const attune_decision *decision, at_plan **plan) {
  at_configuration configuration;
  const at_implementation *implementation = at_registry_find(op, decision->implementation, device);
  if (!implementation || implementation->version != decision->implementation_version ||
      !at_copy_text(configuration.text, sizeof configuration.text, decision->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "stored winner %s version %d is not in this build", decision->implementation,
                   decision->implementation_version);
  return at_plan_create(plan, op, implementation, &configuration, problem, device);
}

static attune_status find_in(at_store *store, const char *fingerprint, const attune_decision *key,
                             attune_decision *out) {
  if (!store) return ATTUNE_NOT_FOUND;
  attune_decision row;
  const attune_status status = at_store_find(store, fingerprint, key->problem, key->measure, &row);
  if (status != ATTUNE_OK) return status;
  at_copy_text(row.device, sizeof row.device, key->device);
  *out = row;
  return ATTUNE_OK;
}

attune_status at_find_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                             attune_decision *out, at_plan **plan) {
  attune_decision key;
  const char *fingerprint = NULL;
  attune_status status = at_decision_begin(tuner, op, problem, device, &key);
  if (status == ATTUNE_OK) status = at_tuner_fingerprint(tuner, device, &fingerprint);
  if (status != ATTUNE_OK) return status;
  const struct {
    at_store *store;
    attune_source source;
  } layers[] = {{tuner->user, ATTUNE_SOURCE_STORED}, {tuner->system, ATTUNE_SOURCE_SYSTEM}};
  status = ATTUNE_NOT_FOUND;
  for (size_t i = 0; i < AT_COUNT(layers); i++) {
    const attune_status found = find_in(layers[i].store, fingerprint, &key, out);
    if (found == ATTUNE_BUSY) status = ATTUNE_BUSY;
    if (found != ATTUNE_OK) continue;
    out->source = layers[i].source;
    at_plan *made = NULL;
    if (at_plan_of_decision(op, problem, device, out, &made) != ATTUNE_OK) {
      status = ATTUNE_UNSUPPORTED;
      continue;
    }
    if (plan)
      *plan = made;
    else
      at_plan_destroy(made);
    return ATTUNE_OK;
  }
  return status;
}

/* A new error counts as clearly larger from here: relative to the old one, and at least so much of the time. */
static const double LARGER = 2.0, LARGER_AT_LEAST = 0.002;

at_evidence_rank at_evidence(const attune_decision *decision) {
  return !decision->complete ? AT_EVIDENCE_PART : decision->unsure ? AT_EVIDENCE_OPEN : AT_EVIDENCE_FULL;
}

bool at_evidence_weaker(const attune_decision *fresh, const attune_decision *old) {
  const at_evidence_rank new_rank = at_evidence(fresh), old_rank = at_evidence(old);
  if (new_rank != old_rank) return new_rank < old_rank;
  if (old->samples == 0) return false;
  const double error = at_median_error(fresh->spread, fresh->samples),
               old_error = at_median_error(old->spread, old->samples);
  return fresh->samples == 0 || error > LARGER * old_error + LARGER_AT_LEAST;
}
