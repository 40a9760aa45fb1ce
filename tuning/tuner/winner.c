/* SPDX-License-Identifier: Apache-2.0
 * winner.c: from a stored row to a plan that runs here, or to a miss. */
#include "tuning/tuner/winner.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "tuning/measure/statistics.h"
#include "tuning/plans/guard.h"

attune_status at_decision_begin(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                attune_decision *out) {
  memset(out, 0, sizeof *out);
  at_copy_text(out->device, sizeof out->device, device->name);
  at_copy_text(out->measure, sizeof out->measure, at_measure_name(at_tuner_measure(tuner, device)));
  const at_implementation *base = at_registry_default(op, problem, device);
  if (base) at_copy_text(out->default_implementation, sizeof out->default_implementation, base->name);
  return op->problem->format(problem, out->problem, sizeof out->problem);
}

bool at_decision_has_threads(const attune_device *device, const attune_decision *decision) {
  at_configuration configuration;
  int64_t threads = 1;
  return device->properties.kind != ATTUNE_DEVICE_HOST ||
         !at_copy_text(configuration.text, sizeof configuration.text, decision->configuration) ||
         !at_configuration_get(&configuration, "threads", &threads) || threads <= at_cpu_count();
}

attune_status at_plan_of_decision(const at_op *op, const void *problem, attune_device *device,
                                  const attune_decision *decision, at_plan **plan) {
  at_configuration configuration;
  const at_implementation *implementation = at_registry_find(op, decision->implementation, device);
  if (!implementation || implementation->version != decision->implementation_version ||
      !at_copy_text(configuration.text, sizeof configuration.text, decision->configuration))
    return at_fail(ATTUNE_NOT_FOUND,
                   "the stored winner, %s version %d, is not in this build of attune; tune the problem again",
                   decision->implementation, decision->implementation_version);
  if (!at_decision_has_threads(device, decision))
    return at_fail(ATTUNE_NOT_FOUND,
                   "the stored winner, %s %s, needs more threads than the %d that this process may use; allow more "
                   "CPUs, or tune the problem here",
                   decision->implementation, configuration.text, at_cpu_count());
  const attune_status status = at_plan_create(plan, op, implementation, &configuration, problem, device);
  if (status == ATTUNE_OK) at_guard_attach(*plan, decision);
  return status;
}

static bool runs_at_once(const at_implementation *implementation, const void *problem, attune_device *device,
                         const at_configuration *configuration) {
  return !implementation->compile ||
         implementation->compile(implementation, problem, device, configuration, NULL) == ATTUNE_OK;
}

bool at_compiles_first(const at_op *op, const void *problem, attune_device *device, const attune_decision *decision) {
  at_configuration configuration;
  const at_implementation *implementation = at_registry_find(op, decision->implementation, device),
                          *base = at_registry_default(op, problem, device);
  if (!implementation || !implementation->compile || !base) return false; /* as most are */
  const at_message kept = at_message_keep();
  const bool first = at_copy_text(configuration.text, sizeof configuration.text, decision->configuration) &&
                     !runs_at_once(implementation, problem, device, &configuration) &&
                     base->configurations(base, problem, device, &configuration, 1) == 1 &&
                     runs_at_once(base, problem, device, &configuration);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return first;
}

/* --- the winners of one key that hold here --- */

typedef struct held {
  bool same; /* it was compared with exactly what is here */
  char fingerprint[AT_FINGERPRINT_CHARS];
  attune_decision decision;
} held;

/* A look for one; too large for the stack of a small thread. */
typedef struct seeking {
  held found;
  attune_decision key; /* the texts that it is found by */
  char family[AT_FAMILY_CHARS];
} seeking;

typedef struct holding {
  const at_op *op;
  attune_device *device;
  int count;
  bool failed;
  held *winners; /* the best first, once they are sorted */
} holding;

static int add_held(void *user, const char *fingerprint, const attune_decision *row) {
  holding *h = user;
  char words[AT_DIFFERENCE_CHARS];
  if (at_winner_difference(h->op, h->device, fingerprint, row, words, sizeof words) > 0) return 0;
  held *larger = realloc(h->winners, (size_t)(h->count + 1) * sizeof *larger);
  h->failed = !larger;
  if (!larger) return 1;
  h->winners = larger;
  held *one = &h->winners[h->count++];
  one->same = false;
  one->decision = *row;
  (void)at_copy_text(one->fingerprint, sizeof one->fingerprint, fingerprint);
  return 0;
}

static int best_first(const void *left, const void *right) {
  const held *a = left, *b = right;
  if (a->same != b->same) return a->same ? -1 : 1;
  if (a->decision.tuned_at != b->decision.tuned_at) return a->decision.tuned_at > b->decision.tuned_at ? -1 : 1;
  return strcmp(a->fingerprint, b->fingerprint);
}

/* Those of a store, to be freed by free_holding. What is here is looked at only where there is a choice. */
static attune_status find_holding(at_store *store, const at_op *op, const void *problem, attune_device *device,
                                  const char *fingerprint, const attune_decision *key, holding *out) {
  char words[AT_DIFFERENCE_CHARS];
  *out = (holding){.op = op, .device = device};
  if (!store) return ATTUNE_NOT_FOUND;
  attune_status status = at_store_each_of_key(store, fingerprint, key->problem, key->measure, add_held, out);
  if (status == ATTUNE_OK && out->failed) status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for stored winners");
  for (int i = 0; i < out->count && out->count > 1; i++) {
    held *h = &out->winners[i];
    h->same = at_rivals_difference(op, problem, device, h->fingerprint, &h->decision, words, sizeof words) == 0;
  }
  if (out->count > 1) qsort(out->winners, (size_t)out->count, sizeof *out->winners, best_first);
  for (int i = 0; i < out->count; i++)
    at_copy_text(out->winners[i].decision.device, sizeof out->winners[i].decision.device, device->name);
  return status;
}

bool at_winner_is_first(at_store *store, const at_op *op, const void *problem, attune_device *device,
                        const char *fingerprint, const attune_decision *winner) {
  holding h;
  (void)find_holding(store, op, problem, device, fingerprint, winner, &h);
  const bool is = h.count > 0 && strcmp(h.winners[0].fingerprint, fingerprint) == 0;
  free(h.winners);
  return is;
}

/* The first whose plan can be made; *uncompiled (NULL: that is waited for) instead of one that would take long. */
static attune_status first_usable(const at_op *op, const void *problem, attune_device *device, const holding *h,
                                  held *out, at_plan **plan, bool *uncompiled) {
  attune_status status = ATTUNE_NOT_FOUND;
  for (int i = 0; i < h->count; i++) {
    *out = h->winners[i];
    if (uncompiled && at_compiles_first(op, problem, device, &out->decision)) {
      *uncompiled = true;
      return ATTUNE_NOT_FOUND;
    }
    if (at_plan_of_decision(op, problem, device, &out->decision, plan) == ATTUNE_OK) return ATTUNE_OK;
    status = ATTUNE_UNSUPPORTED;
  }
  return status;
}

static attune_status find_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                 seeking *s, at_plan **plan, bool *uncompiled) {
  held *out = &s->found;
  const char *fingerprint = NULL;
  AT_TRY(at_decision_begin(tuner, op, problem, device, &s->key));
  AT_TRY(at_tuner_fingerprint(tuner, device, &fingerprint));
  const struct {
    at_store *store;
    attune_source source;
  } layers[] = {{tuner->user, ATTUNE_SOURCE_STORED}, {tuner->system, ATTUNE_SOURCE_SYSTEM}};
  attune_status status = ATTUNE_NOT_FOUND;
  for (size_t i = 0; i < AT_COUNT(layers); i++) {
    holding h;
    if (find_holding(layers[i].store, op, problem, device, fingerprint, &s->key, &h) == ATTUNE_BUSY)
      status = ATTUNE_BUSY;
    const attune_status found = first_usable(op, problem, device, &h, out, plan, uncompiled);
    free(h.winners);
    out->decision.source = layers[i].source;
    if (found == ATTUNE_OK) return ATTUNE_OK;
    if (uncompiled && *uncompiled) return ATTUNE_NOT_FOUND;
    if (found == ATTUNE_UNSUPPORTED) status = ATTUNE_UNSUPPORTED;
  }
  return status;
}

attune_status at_find_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                             attune_decision *out, at_plan **plan) {
  return at_find_ready_winner(tuner, op, problem, device, out, plan, NULL);
}

attune_status at_find_ready_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                   attune_decision *out, at_plan **plan, bool *uncompiled) {
  seeking *s = malloc(sizeof *s);
  at_plan *made = NULL;
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stored winner");
  const attune_status status = find_winner(tuner, op, problem, device, s, &made, uncompiled);
  if (status == ATTUNE_OK) *out = s->found.decision;
  free(s);
  if (plan && status == ATTUNE_OK)
    *plan = made;
  else
    at_plan_destroy(made);
  return status;
}

attune_status at_weigh_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              attune_decision *out) {
  seeking *s = malloc(sizeof *s);
  at_plan *made = NULL;
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stored winner");
  const attune_status status = find_winner(tuner, op, problem, device, s, &made, NULL);
  at_plan_destroy(made);
  if (status == ATTUNE_OK) {
    *out = s->found.decision;
    (void)at_rivals_difference(op, problem, device, s->found.fingerprint, out, out->changed, sizeof out->changed);
  }
  free(s);
  return status;
}

/* The latest row of a key, of as many threads as are here. */
typedef struct latest {
  const attune_device *device;
  bool found;
  int64_t tuned_at;
  char *out;
  size_t size;
} latest;

static int take_later(void *user, const char *fingerprint, const attune_decision *row) {
  latest *l = user;
  const int threads = at_fingerprint_threads(fingerprint);
  if (l->device->properties.kind == ATTUNE_DEVICE_HOST && threads > 0 && threads != at_cpu_count()) return 0;
  if (l->found && row->tuned_at <= l->tuned_at) return 0;
  l->found = at_copy_text(l->out, l->size, fingerprint);
  l->tuned_at = row->tuned_at;
  return 0;
}

attune_status at_find_winner_row(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                 char *out, size_t size, at_store **store) {
  at_store *const layers[] = {tuner->user, tuner->system};
  const char *fingerprint = NULL;
  latest l = {.device = device, .out = out, .size = size};
  seeking *s = malloc(sizeof *s);
  at_plan *made = NULL;
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stored winner");
  attune_status status = find_winner(tuner, op, problem, device, s, &made, NULL);
  at_plan_destroy(made);
  if (status == ATTUNE_OK) {
    *store = layers[s->found.decision.source == ATTUNE_SOURCE_SYSTEM];
    (void)at_copy_text(out, size, s->found.fingerprint);
  } else if ((status = at_tuner_fingerprint(tuner, device, &fingerprint)) == ATTUNE_OK) {
    for (size_t i = 0; i < AT_COUNT(layers) && !l.found && status == ATTUNE_OK; i++) {
      *store = layers[i];
      if (*store) status = at_store_each_of_key(*store, fingerprint, s->key.problem, s->key.measure, take_later, &l);
    }
    if (status == ATTUNE_OK && !l.found) status = ATTUNE_NOT_FOUND;
  }
  free(s);
  return status;
}

static void doubt_here(attune_tuner *tuner, const at_op *op, const void *problem, const attune_device *device,
                       const attune_decision *winner, const char *why) {
  at_key key;
  at_key_make(&key, op, problem, device);
  at_plan_table_doubt(&tuner->plans, &key, winner->tuned_at, why);
}

bool at_doubt_winner(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                     const attune_decision *winner, const char *why) {
  enum { WAIT_MS = 1000 };
  at_plan *plan = NULL;
  doubt_here(tuner, op, problem, device, winner, why);
  seeking *s = malloc(sizeof *s);
  attune_decision *found = s ? &s->found.decision : NULL;
  const bool is = s && find_winner(tuner, op, problem, device, s, &plan, NULL) == ATTUNE_OK &&
                  found->source == ATTUNE_SOURCE_STORED && found->tuned_at == winner->tuned_at &&
                  strcmp(found->configuration, winner->configuration) == 0;
  at_plan_destroy(plan);
  bool noted = false;
  if (is && op->problem->family(problem, s->family, sizeof s->family) == ATTUNE_OK) {
    found->unsure = 1;
    at_copy_text(found->note, sizeof found->note, why);
    noted = at_store_doubt(tuner->user, s->found.fingerprint, s->family, found, WAIT_MS) == ATTUNE_OK;
    if (!noted)
      at_log(ATTUNE_LOG_WARNING, "%s: its winner no longer holds, but this cannot be stored: %s", winner->problem,
             attune_last_message());
  }
  free(s);
  return noted;
}

/* A new error counts as clearly larger from here: relative to the old one, and at least so much of the time. */
static const double LARGER = 2.0, LARGER_AT_LEAST = 0.002;

at_evidence_rank at_evidence(const attune_decision *decision) {
  if (!decision->complete) return AT_EVIDENCE_PART;
  return decision->unsure || decision->changed[0] ? AT_EVIDENCE_OPEN : AT_EVIDENCE_FULL;
}

bool at_evidence_weaker(const attune_decision *fresh, const attune_decision *old, bool refuted) {
  if (old->changed[0])
    return false; /* it was compared with something else, and stays in the database next to this one */
  const at_evidence_rank new_rank = at_evidence(fresh), old_rank = at_evidence(old);
  if (new_rank != old_rank) return new_rank < old_rank;
  if (refuted && (new_rank == AT_EVIDENCE_FULL || fresh->disturbed <= old->disturbed)) return false;
  if (old->samples == 0) return false;
  const double error = at_median_error(fresh->spread, fresh->samples),
               old_error = at_median_error(old->spread, old->samples);
  return fresh->samples == 0 || error > LARGER * old_error + LARGER_AT_LEAST;
}
