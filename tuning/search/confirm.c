/* SPDX-License-Identifier: Apache-2.0
 * confirm.c: rounds of two, a candidate and the default, each alone. */
#include "tuning/search/confirm.h"

#include <math.h>

#include "src/process/limit.h"
#include "tuning/measure/sampler_host.h"
#include "tuning/search/candidates.h"

enum { ROUNDS = 9, LEAST_ROUNDS = 5 };

/* The least time that is worth beginning with, and what one sample gets of it. */
static const double LEAST_NS = 30e6, SLICE_LEAST_NS = 1e6, SLICE_MOST_NS = 10e6, SLICE_SHARE = 0.6;

/* Fewer rounds do where they agree so well, and one is ahead of the other by so many errors. */
static const double ENOUGH_ERROR = 0.008, CLEAR = 5.0;

/* Beyond what noise may hide a candidate is worth being chosen; the same as in a race. */
static const double SIGMAS = 3.0, COULD = 0.05, AHEAD = 0.02;

typedef struct rounds {
  double base[ROUNDS], own[ROUNDS];
  int count;
  bool restless; /* others of the process never come to rest: they are not waited for any more */
  bool failed;   /* the candidate, not the default, was what could not be run */
} rounds;

static attune_status sample(rounds *r, at_sampler *sampler, at_timing_target *target, int turn, double slice_ns,
                            double *ns, bool *good) {
  if (!r->restless) r->restless = !at_sampler_rest();
  return at_sampler_alone(sampler, target, turn % at_sampler_placements(sampler), slice_ns, ns, good);
}

/* Another order each round; a round that was disturbed does not count. */
static attune_status one_round(rounds *r, at_sampler *sampler, at_timing_target *const targets[2], int turn,
                               double slice_ns) {
  double ns[2] = {0.0};
  bool good[2] = {false};
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < 2 && status == ATTUNE_OK; i++) {
    const int which = (i + turn) % 2;
    status = sample(r, sampler, targets[which], turn, slice_ns, &ns[which], &good[which]);
    r->failed = status != ATTUNE_OK && which == 1;
  }
  if (status != ATTUNE_OK || !good[0] || !good[1]) return status;
  r->base[r->count] = ns[0];
  r->own[r->count++] = ns[1];
  return ATTUNE_OK;
}

static double slice_of(double most_ns) {
  const double ns = SLICE_SHARE * most_ns / (2 * ROUNDS);
  return ns < SLICE_LEAST_NS ? SLICE_LEAST_NS : ns > SLICE_MOST_NS ? SLICE_MOST_NS : ns;
}

static bool is_enough(const at_confirmation *claim) {
  return claim->error < ENOUGH_ERROR * claim->ratio && fabs(claim->ratio - 1.0) > CLEAR * claim->error;
}

/* The candidate and candidate 0, in turns. */
static attune_status measure_one(at_confirmation *out, at_race *race, at_candidate *candidate, double most_ns,
                                 int64_t until_ns) {
  at_sampler *sampler = race->sampler;
  at_timing_target *const targets[2] = {&race->candidates[0]->target, &candidate->target};
  const int wanted = sampler->timer->settings.rounds, most = wanted > 0 && wanted < ROUNDS ? wanted : ROUNDS;
  rounds r = {.count = 0};
  attune_status status = ATTUNE_OK;
  at_confirmation claim = *out;
  const int64_t start_ns = at_now_ns();
  const double slice_ns = slice_of(most_ns);
  for (int turn = 0; turn < 2 * most && r.count < most && status == ATTUNE_OK; turn++) {
    const int64_t now = at_now_ns();
    if (at_limit_of() != AT_NO_LIMIT && (double)(until_ns - now) < 2.0 * fmax(slice_ns, sampler->once_ns)) break;
    if (now > until_ns || (double)(now - start_ns) > most_ns * (r.count < LEAST_ROUNDS ? 2.0 : 1.0)) break;
    status = one_round(&r, sampler, targets, turn, slice_ns);
    if (r.count < LEAST_ROUNDS) continue;
    claim.rounds = r.count;
    claim.ratio = at_paired_ratio(r.base, r.own, r.count, &claim.error);
    claim.time_ns = at_median(r.own, r.count);
    if (is_enough(&claim)) break;
  }
  if (status == ATTUNE_OK) *out = claim;
  if (!r.failed || at_race_stays(race, candidate)) return status;
  at_race_drop(race, candidate, AT_FAILED);
  out->failed = true;
  return ATTUNE_OK;
}

attune_status at_confirm_measure(at_confirmation *out, at_race *race, at_candidate *candidate, double most_ns,
                                 int64_t until_ns) {
  at_candidate *const incumbent = at_race_incumbent(race);
  at_confirmation standard = {.rounds = 0};
  *out = (at_confirmation){.least = 1.0};
  if (race->steady || candidate == race->candidates[0] || most_ns < LEAST_NS) return ATTUNE_OK;
  attune_status status = measure_one(out, race, candidate, most_ns, until_ns);
  out->least_error = out->error;
  if (status != ATTUNE_OK || out->failed || candidate == incumbent || incumbent == race->candidates[0] ||
      !at_confirm_doubtful(out))
    return status;
  status = measure_one(&standard, race, incumbent, most_ns, until_ns);
  if (standard.rounds && standard.ratio < 1.0) {
    out->least = standard.ratio;
    out->least_error = sqrt(out->error * out->error + standard.error * standard.error);
  }
  if (!standard.rounds && at_now_ns() > until_ns) out->rounds = 0; /* there is nothing to compare it with */
  return status;
}

bool at_confirm_doubtful(const at_confirmation *claim) {
  return claim->rounds && claim->ratio + claim->least_error < claim->least;
}

bool at_confirm_lost(const at_confirmation *claim) {
  return at_confirm_doubtful(claim) && claim->ratio + SIGMAS * claim->least_error < claim->least * (1.0 + COULD);
}

bool at_confirm_no_gain(const at_confirmation *claim) {
  return claim->rounds && claim->ratio < claim->least * (1.0 + AHEAD) &&
         claim->ratio + SIGMAS * claim->least_error < claim->least * (1.0 + COULD);
}

bool at_confirm_gains(const at_confirmation *claim) {
  return claim->rounds && claim->ratio - SIGMAS * claim->least_error > claim->least * (1.0 + AHEAD);
}

void at_confirm_take(const at_confirmation *claim, at_candidate *winner) {
  if (!claim->rounds) return;
  winner->merit *= claim->ratio / winner->speedup;
  winner->speedup = claim->ratio;
  winner->error = claim->error;
}
