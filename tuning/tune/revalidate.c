/* SPDX-License-Identifier: Apache-2.0
 * revalidate.c: does a stored winner hold? A race of two, the winner and the default, on the host then each alone, and
 * a verification on fresh data. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/struct_size.h"
#include "src/process/cancel.h"
#include "src/process/floating.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/search/confirm.h"
#include "tuning/tune/tune.h"
#include "tuning/tuner/winner.h"

static const double AUTO_NS = 150e6, AUTO_CALLS = 150.0;
static const double CLAIM_SHARE = 0.5; /* of that, once more: both alone, as the stored speedup was measured */
static const double SLOWER = 0.99;     /* of the default's speed: below it a winner does harm */
static const double SIGMAS = 3.0;

typedef struct recheck {
  at_race race;
  at_sampler sampler;
  at_candidate *winner, *standard; /* the winner's; the default's as attune calls it */
  at_confirmation claim;
  const at_op *op;
  const void *problem;
  attune_device *device;
} recheck;

/* The winner's place in the race: its own, or the default's through attune when it is that. */
static at_candidate *find(recheck *r, const at_implementation *implementation, const at_configuration *configuration) {
  for (int i = 0; i < r->race.count; i++) {
    at_candidate *candidate = r->race.candidates[i];
    if (!candidate->bare && candidate->implementation == implementation &&
        strcmp(candidate->configuration.text, configuration->text) == 0)
      return candidate;
  }
  return NULL;
}

static attune_status line_up(recheck *r, const attune_decision *stored) {
  const at_implementation *base = at_registry_default(r->op, r->problem, r->device),
                          *implementation = at_registry_find(r->op, stored->implementation, r->device);
  at_configuration first = {""}, configuration = {""};
  if (!base || !implementation || base->configurations(base, r->problem, r->device, &first, 1) < 1 ||
      !at_copy_text(configuration.text, sizeof configuration.text, stored->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "the stored winner, %s, is not in this build of attune; tune the problem again",
                   stored->implementation);
  at_race_add_default(&r->race, base, &first);
  if (!find(r, implementation, &configuration)) (void)at_race_add(&r->race, implementation, &configuration);
  r->winner = find(r, implementation, &configuration);
  if (!r->winner) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for two candidates");
  r->standard = at_race_incumbent(&r->race);
  r->race.incumbent = r->winner; /* never dropped, however slow it is */
  return ATTUNE_OK;
}

static attune_status measure(recheck *r, double budget_ns) {
  double once_ns = 0.0;
  const int64_t start_ns = at_now_ns();
  attune_status status = at_race_start(&r->race, &once_ns);
  const double length_ns = budget_ns > 0.0 ? budget_ns : AUTO_NS + AUTO_CALLS * once_ns;
  const int64_t until_ns = start_ns + (int64_t)length_ns;
  if (status == ATTUNE_OK) status = at_race_screen(&r->race, INT64_MAX, r->race.count);
  if (status == ATTUNE_OK && r->winner != r->race.candidates[0] && r->winner->state != AT_SCREENED)
    status = at_fail(ATTUNE_NOT_FOUND, "the stored winner, %s %s, can no longer be run; tune the problem again",
                     r->winner->implementation->name, r->winner->configuration.text);
  if (status == ATTUNE_OK) status = at_race_run(&r->race, until_ns);
  if (status == ATTUNE_OK)
    status = at_confirm_measure(&r->claim, &r->race, r->winner, CLAIM_SHARE * length_ns, INT64_MAX);
  at_confirm_take(&r->claim, r->winner);
  return status;
}

static attune_status try_numbers(recheck *r, attune_recheck *out) {
  at_numerical_check *check = NULL;
  at_timer *timer = r->sampler.timer;
  attune_status status = at_numerical_check_create(&check, r->op, r->problem, timer->stream, timer->random);
  if (status == ATTUNE_OK) status = at_numerical_check_run(check, r->winner->plan, &out->max_error);
  at_numerical_check_destroy(check);
  if (status != ATTUNE_BAD_DATA) return status;
  out->verdict = ATTUNE_VERDICT_WRONG;
  return ATTUNE_OK;
}

static void judge(const recheck *r, const attune_decision *stored, attune_recheck *out) {
  const at_candidate *base = r->race.candidates[0], *winner = r->winner;
  out->samples = winner->count;
  out->time_ns = r->claim.rounds ? r->claim.time_ns : at_race_time(winner, NULL);
  /* What was chosen because nothing is faster cannot do harm: it is the default, called through attune, and no
   * faster. */
  const bool chosen = winner != base && winner != r->standard;
  out->speedup = winner == base || (!chosen && winner->speedup > 1.0) ? 1.0 : winner->speedup;
  out->error = winner == base ? 0.0 : winner->error;
  out->default_time_ns = out->time_ns * out->speedup;
  if (out->verdict == ATTUNE_VERDICT_WRONG) return;
  const double claim = stored->time_ns > 0.0 ? stored->default_time_ns / stored->time_ns : 1.0;
  const double most = out->speedup + SIGMAS * out->error;
  out->verdict = chosen && most < SLOWER                          ? ATTUNE_VERDICT_SLOWER
                 : chosen && most < claim * (1.0 - AT_CLAIM_LESS) ? ATTUNE_VERDICT_GAINS_LESS
                                                                  : ATTUNE_VERDICT_HOLDS;
  if (at_race_shaken(&r->race, winner)) out->verdict = ATTUNE_VERDICT_UNSURE;
}

attune_status at_revalidate(attune_recheck *out, at_timer *timer, const at_op *op, const void *problem,
                            attune_measure how, const attune_decision *stored, double budget_ns) {
  recheck r = {.op = op, .problem = problem, .device = timer->device};
  r.race.sampler = &r.sampler;
  r.race.steady = r.device->properties.kind != ATTUNE_DEVICE_HOST;
  const at_floating floating = at_floating_enter();
  out->verdict = ATTUNE_VERDICT_HOLDS;
  attune_status status = at_sampler_open(&r.sampler, timer, op, problem, how);
  if (status == ATTUNE_OK) status = line_up(&r, stored);
  if (status == ATTUNE_OK) status = measure(&r, budget_ns);
  if (status == ATTUNE_OK) status = try_numbers(&r, out);
  if (status == ATTUNE_OK) judge(&r, stored, out);
  at_race_free(&r.race);
  at_sampler_close(&r.sampler);
  at_floating_leave(&floating);
  return status;
}

typedef struct request {
  attune_tuner *tuner;
  const at_op *op;
  const void *problem;
  double budget_ns;
  attune_decision stored;
  attune_recheck out;
} request;

/* Under the device's lease: no other process measures the problem. */
static void note_doubt(request *q, attune_device *device) {
  char why[sizeof q->stored.note];
  attune_recheck *out = &q->out;
  if (out->verdict == ATTUNE_VERDICT_WRONG)
    snprintf(why, sizeof why, "does not hold: its numbers are outside the contract");
  else if (out->verdict == ATTUNE_VERDICT_SLOWER || out->verdict == ATTUNE_VERDICT_GAINS_LESS)
    snprintf(why, sizeof why, "does not hold: measured again it was %.3f x as fast as the default", out->speedup);
  else
    return;
  out->marked = at_doubt_winner(q->tuner, q->op, q->problem, device, &q->stored, why);
}

static attune_status under_device(void *user, at_timer *timer) {
  request *q = user;
  const attune_status status = at_revalidate(&q->out, timer, q->op, q->problem,
                                             at_tuner_measure(q->tuner, timer->device), &q->stored, q->budget_ns);
  if (status == ATTUNE_OK) note_doubt(q, timer->device);
  return status;
}

attune_status attune_verify(attune_tuner *tuner, attune_device *device, const char *problem, double budget_ms,
                            attune_decision *stored, attune_recheck *out) {
  AT_REQUIRE(tuner, device, problem, out);
  AT_TRY(AT_CLEAR(out));
  AT_TRY(at_tune_check_stack(device));
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  char shown[AT_SHOWN_CHARS];
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  at_tuner_open(tuner);
  request *q = calloc(1, sizeof *q);
  if (!q) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to measure a winner");
  q->tuner = tuner, q->op = op, q->problem = bytes, q->budget_ns = budget_ms > 0.0 ? budget_ms * 1e6 : 0.0;
  attune_status status = op->problem->parse(problem, bytes);
  if (status == ATTUNE_OK) op->problem->fold(bytes, device);
  const at_call_scope scope = at_call_enter(device);
  if (status == ATTUNE_OK) status = at_weigh_winner(tuner, op, bytes, device, &q->stored);
  if (status == ATTUNE_NOT_FOUND)
    status = at_fail(ATTUNE_NOT_FOUND, "no stored winner of %s is valid on %s; tune it first", at_shown(shown, problem),
                     device->name);
  else if (stored)
    at_decision_give(stored, &q->stored);
  if (status == ATTUNE_OK) status = at_with_timer(tuner, device, under_device, q);
  if (status == ATTUNE_OK) status = AT_GIVE(out, &q->out);
  free(q);
  return at_call_leave(&scope, status);
}
