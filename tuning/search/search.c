/* SPDX-License-Identifier: Apache-2.0
 * search.c: screens candidates, widens around the leaders, races the best, verifies the winner.
 *
 *   candidates   #0 the default   #1   #2   #3   ...   of all implementations, their best guesses first
 *      |
 *   screen       a few quick samples of each and the default   -> SLOWER: clearly behind; FAILED: cannot run
 *   widen        neighbours of the leaders' configurations, screened likewise
 *      |
 *   race         round 1:  #0  #3  #7  #9      each round samples every remaining candidate once,
 *                round 2:  #0  #7  #9          all at the same placement of the operands;
 *                round 3:  #0  #7  #9          dropped as soon as it is surely behind the leader
 *      |         until one is ahead of the default beyond the noise, or the time is over
 *   verify       the winner's numbers                          -> WRONG: the next one, in the end the default;
 *      |                                                          dropped candidates come back if all were wrong
 *   confirm      host: the winner and the default, each alone  -> lost: the next one, dropped candidates come back once
 *      v
 *   decision with its evidence and trials */
#include "tuning/search/search_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "src/process/floating.h"
#include "src/process/limit.h"
#include "tuning/tuner/winner.h"

typedef at_search_state search;

/* Winners of the race that are slower than the default alone; then no other is tried. */
enum { MOST_LOST = 3 };

static const at_schedule HOST = {420e6, 400.0, 0.58, 0.70, 0.94, 300e6, 24.0},
                         DEVICE = {190e6, 400.0, 0.58, 0.60, 0.94, 0.0, 0.0};

/* Of a hard limit, for warm-ups. */
static const double WARM_PART = 0.3;

/* The share of a budget set by the caller that confirmations may take. */
static const double CLAIM_SHARE = 0.33;

/* What was waited for, kernels that were compiled beside, is measured: so much time there is for that at least, where
 * nobody set a budget. */
static const double MADE_NS = 60e6;

static const double SIGMAS = 3.0;

/* The trusted result in calls of the default; what verification reads and compares; the part of what it should take
 * without which it is not begun. */
static const double TRUSTED_CALLS_HOST = 4.0, TRUSTED_CALLS_DEVICE = 30.0, VERIFIED_A_NS = 2.0, LEAST_OF_RESERVE = 0.25;

/* Where noise leaves the choice open the race goes on, for so much of the time more. */
static const double LONGER = 0.5;

/* A stage is over: what passed since the one before it is its time. */
static void end_stage(search *s, at_stage stage) {
  const int64_t now = at_now_ns();
  s->stage_ms[stage] += (double)(now - s->stage_ns) * 1e-6;
  s->stage_ns = now;
}

/* No stage goes on beyond a hard limit, whatever was late, nor into what verifying the winner will take of it. */
static int64_t within_limit(const search *s, int64_t end) {
  const int64_t most = s->start_ns + (int64_t)(s->most_ns - s->reserve_ns);
  return s->most_ns > 0.0 && most < end ? most : end;
}

int64_t at_search_until(const search *s, double fraction) {
  const double length_ns = (double)(s->deadline_ns - s->start_ns);
  return within_limit(s, s->start_ns + s->opened_ns + s->late_ns + (int64_t)(fraction * length_ns));
}

/* What this race says of the winner so far, which claims what it gains alone: by the winner's claim where it is that,
 * else by how far it is behind the winner. */
static void weigh_known(const search *s, double alone, at_search_result *out) {
  const at_candidate *c = s->known_one;
  if (!c) return;
  const double claim = s->known->time_ns > 0.0 ? s->known->default_time_ns / s->known->time_ns : 0.0;
  out->broken = c->state == AT_WRONG || c->state == AT_FAILED;
  out->refuted =
      out->broken || (c->count > 0 && alone * c->speedup + SIGMAS * c->error < claim * (1.0 - AT_CLAIM_LESS));
}

/* What verification takes, about: launches of the plan, and for the first plan operands and the trusted result; after
 * the first problem as much more or less as it took then. */
static double verify_ns(const search *s) {
  const at_op *op = s->op;
  const double launches = 2.0 + (op->problem->deterministic(s->problem) ? 3.0 : 0.0) +
                          (op->specials ? (double)op->specials->count(s->problem) : 0.0);
  const double trusted = s->check ? 0.0 : s->race.steady ? TRUSTED_CALLS_DEVICE : TRUSTED_CALLS_HOST;
  size_t bytes = 0;
  (void)at_operand_bytes(op, s->problem, &bytes);
  return (launches + trusted) * s->once_ns + (launches + (s->check ? 0.0 : 4.0)) * (double)bytes / VERIFIED_A_NS;
}

/* So much of a hard limit is left for it. */
static void reserve(search *s) {
  const double known = s->sampler.timer->verify_ratio;
  s->reserve_ns = s->most_ns > 0.0 ? (known > 0.0 ? known : 1.0) * verify_ns(s) : 0.0;
}

static attune_status open_check(search *s, double expected_ns) {
  const at_timer *timer = s->sampler.timer;
  const attune_status status = s->reserve_ns > 0.0 ? at_limit_afford(LEAST_OF_RESERVE * expected_ns) : ATTUNE_OK;
  return status == ATTUNE_OK ? at_numerical_check_create(&s->check, s->op, s->problem, timer->stream, timer->random)
                             : status;
}

/* A plan that verified in full, with the making of the check, says how good the estimate is. */
static void note_verified(search *s, double expected_ns, double took_ns) {
  double *ratio = &s->sampler.timer->verify_ratio;
  const double now = expected_ns > 0.0 ? took_ns / expected_ns : 1.0, most = 20.0;
  const double bounded = now > most ? most : now < 1.0 / most ? 1.0 / most : now;
  *ratio = *ratio > 0.0 ? 0.5 * (*ratio + bounded) : bounded;
}

/* Verifies the winner, and the next one when it is wrong, down to the default. NULL: not even the default could be
 * verified. */
static at_candidate *verified_winner(search *s, at_search_result *out, attune_status *status) {
  const bool first = !s->check;
  const double expected_ns = verify_ns(s);
  const int64_t start_ns = at_now_ns(), limit_ns = at_limit_of();
  if (limit_ns != AT_NO_LIMIT) (void)at_limit_set(limit_ns + 2 * AT_LIMIT_GRACE_NS);
  if (first) *status = open_check(s, expected_ns);
  at_candidate *winner = NULL;
  while (*status == ATTUNE_OK && !winner) {
    at_candidate *candidate = at_race_winner(&s->race);
    const attune_status checked = at_numerical_check_run(s->check, candidate->plan, &out->decision.max_error);
    const double tolerance = s->sampler.timer->settings.tolerance;
    const bool exact = tolerance <= 0.0 || out->decision.max_error <= tolerance; /* the default is what it is */
    if (checked == ATTUNE_OK && (exact || candidate == at_race_incumbent(&s->race))) {
      winner = candidate;
      if (first) note_verified(s, expected_ns, (double)(at_now_ns() - start_ns));
    } else if (checked == ATTUNE_BUDGET_EXHAUSTED) {
      *status = checked;
    } else if (checked == ATTUNE_OK) {
      snprintf(out->warning, sizeof out->warning,
               "%s: its error is %.3g of the contract's tolerance; should be at most %.3g",
               candidate->implementation->name, out->decision.max_error, tolerance);
      at_race_drop(&s->race, candidate, AT_WRONG);
    } else if (candidate == at_race_incumbent(&s->race)) {
      *status = checked;
    } else {
      at_copy_text(out->warning, sizeof out->warning, attune_last_message());
      at_race_drop(&s->race, candidate, AT_WRONG);
    }
  }
  (void)at_limit_set(limit_ns);
  return winner;
}

/* Those that are wrong, and those that were measured before they failed: what they were faster than may have been
 * dropped for it. */
static int broken_ones(const search *s) {
  int count = 0;
  for (int i = 0; i < s->race.count; i++) {
    const at_candidate *c = s->race.candidates[i];
    count += c->state == AT_WRONG || (c->state == AT_FAILED && c->ran);
  }
  return count;
}

/* What was fast because it is wrong, or in short samples alone, or until it failed, had the others dropped: they come
 * back. */
static attune_status reopen(search *s) {
  s->broken = broken_ones(s);
  at_candidate *base = s->race.candidates[0];
  base->count = 0;
  s->race.best_quick = at_race_incumbent(&s->race)->quick;
  s->race.best_once_ns = base->target.once_ns;
  at_race_incumbent(&s->race)->count = 0;
  for (int i = 1; i < s->race.count; i++) {
    at_candidate *candidate = s->race.candidates[i];
    if ((candidate->state != AT_SCREENED && candidate->state != AT_SLOWER) || candidate == s->race.incumbent ||
        candidate->lost)
      continue;
    at_race_drop(&s->race, candidate, AT_WAITING);
    candidate->ran = false;
    candidate->quick = 0.0;
    candidate->count = 0;
  }
  return at_race_screen(&s->race, at_search_until(s, s->times->widen_until), AT_SEARCH_FIELD);
}

/* Races and verifies; again without the broken ones when only the default is left otherwise. */
static at_candidate *raced_winner(search *s, at_search_result *out, attune_status *status) {
  for (int pass = 0;; pass++) {
    *status = at_race_run(&s->race, at_search_until(s, s->times->race_until));
    if (*status == ATTUNE_OK && out->decision.complete && at_race_open(&s->race, NULL)) {
      s->race.longer = true;
      *status = at_race_run(&s->race, at_search_until(s, s->times->race_until + LONGER));
      s->race.longer = false;
    }
    end_stage(s, AT_STAGE_RACE);
    if (*status != ATTUNE_OK) return NULL;
    if (s->race.candidates[0]->count == 0)
      *status = at_fail(ATTUNE_BUDGET_EXHAUSTED,
                        "there was no time to measure the default; give this problem a larger budget");
    at_candidate *winner = *status == ATTUNE_OK ? verified_winner(s, out, status) : NULL;
    s->reserve_ns = 0.0;
    end_stage(s, AT_STAGE_VERIFY);
    if (!winner || winner != at_race_incumbent(&s->race) || broken_ones(s) == s->broken || pass == AT_SEARCH_WAVES ||
        at_now_ns() >= at_search_until(s, s->times->widen_until))
      return winner;
    *status = reopen(s);
    if (*status != ATTUNE_OK) return NULL;
  }
}

/* Half of a hard limit: what noise disturbs takes longer. Of a budget that was set all claims share one part. */
static double claim_left_ns(const search *s) {
  const double two_ns = 2e6 * s->sampler.timer->settings.candidate_ms,
               all = s->budget_ns > 0.0 ? s->claim_most_ns - s->claimed_ns : s->claim_most_ns,
               most = two_ns > 0.0 && two_ns < all ? two_ns : all,
               left = s->most_ns > 0.0 ? 0.5 * (s->most_ns - (double)(at_now_ns() - s->start_ns)) : most;
  return left < most ? left : most;
}

/* Measures it alone. What noise disturbs takes longer, but not beyond that part, nor beyond a hard limit. */
static attune_status claim(search *s, at_candidate *one) {
  const int64_t start_ns = at_now_ns();
  const double left_ns = s->claim_most_ns - s->claimed_ns;
  const int64_t until_ns = within_limit(s, s->budget_ns > 0.0 ? start_ns + (int64_t)left_ns : INT64_MAX);
  const attune_status status = at_confirm_measure(&s->claim, &s->race, one, claim_left_ns(s), until_ns);
  s->claimed_ns += (double)(at_now_ns() - start_ns);
  end_stage(s, AT_STAGE_CLAIM);
  return status;
}

/* The candidate to confirm: the winner or, if that is the default and noise may hide a faster one, that
 * one. NULL: none. */
static at_candidate *claimant(search *s, at_candidate *winner) {
  at_candidate *could = NULL;
  if (winner != at_race_incumbent(&s->race)) return winner;
  if (at_race_open(&s->race, &could) && !at_race_shaken(&s->race, winner)) return could;
  return NULL;
}

/* After a winner failed its confirmation: candidates that it had eliminated come back if there is time,
 * once. */
static at_candidate *next_winner(search *s, at_search_result *out, int lost, attune_status *status) {
  const double longer_ns = LONGER * (double)(s->deadline_ns - s->start_ns);
  if (lost == 1 && (s->most_ns <= 0.0 || claim_left_ns(s) > 0.0)) {
    s->late_ns += (int64_t)longer_ns;
    reserve(s);
    *status = reopen(s);
    return *status == ATTUNE_OK ? raced_winner(s, out, status) : NULL;
  }
  at_candidate *winner = verified_winner(s, out, status);
  end_stage(s, AT_STAGE_VERIFY);
  return winner;
}

/* `one` failed its confirmation; after a few such, the others are given up. */
static void lose(search *s, at_candidate *one, int lost) {
  if (!s->claim.failed) {
    s->settled = one->lost = true;
    at_race_drop(&s->race, one, AT_SLOWER);
  }
  for (int i = 1; i < s->race.count && lost == MOST_LOST; i++)
    if (s->race.candidates[i] != at_race_incumbent(&s->race) && s->race.candidates[i]->state == AT_SCREENED)
      at_race_drop(&s->race, s->race.candidates[i], AT_SLOWER);
}

/* The race's winner, unless it is slower than the default when both are measured alone: then the next one, and after a
 * few the default. Where the race could not tell whether one is faster than the default, this may. */
static at_candidate *settled_winner(search *s, at_search_result *out, attune_status *status) {
  at_candidate *winner = raced_winner(s, out, status), *one = NULL;
  for (int lost = 1; winner && (one = claimant(s, winner)); lost++) {
    *status = claim(s, one);
    if (*status != ATTUNE_OK) return NULL;
    if (one == winner && !s->claim.failed && !at_confirm_lost(&s->claim)) break;
    if (one == winner) {
      lose(s, one, lost);
      winner = next_winner(s, out, lost, status);
    } else if (s->claim.failed || at_confirm_no_gain(&s->claim)) {
      lose(s, one, lost);
    } else {
      if (at_confirm_gains(&s->claim)) {
        at_confirm_take(&s->claim, one);
        winner = next_winner(s, out, 0, status);
      }
      break;
    }
  }
  if (winner != one) s->claim.rounds = 0; /* of another */
  return winner;
}

static bool any_waiting(const search *s) {
  for (int i = 0; i < s->race.count; i++)
    if (s->race.candidates[i]->state == AT_WAITING) return true;
  return false;
}

static bool any_beside(const search *s) {
  for (int i = 0; i < s->race.count; i++)
    if (s->race.candidates[i]->beside && s->race.candidates[i]->state == AT_WAITING) return true;
  return false;
}

/* Waits for the kernels that are compiled beside; where there is a budget or a limit no longer than that lasts. False:
 * they are not all made by then. */
static bool wait_for_kernels(search *s) {
  if (s->budget_ns > 0.0) return at_candidate_build_wait_until(&s->build, at_search_until(s, s->times->widen_until));
  if (s->most_ns > 0.0)
    return at_candidate_build_wait_until(&s->build, s->start_ns + (int64_t)(s->times->widen_until * s->most_ns));
  return at_candidate_build_wait(&s->build);
}

/* Screens all; candidates whose kernels were not compiled in time are waited for, and where a limit ends that, those
 * that have them by then are screened. Without a budget all later stages are delayed by the wait, and by
 * what the screening of these candidates takes: they are the best guesses. */
static attune_status screen(search *s) {
  attune_status status = at_race_screen(&s->race, at_search_until(s, s->times->screen_until), AT_SEARCH_FIELD);
  if (status != ATTUNE_OK || !any_beside(s)) return status;
  const int64_t before = at_now_ns();
  if (!wait_for_kernels(s)) at_candidate_build_leave(&s->build);
  const int64_t made = at_now_ns();
  int64_t end = at_search_until(s, s->times->widen_until);
  if (s->budget_ns <= 0.0) {
    s->late_ns = made - before;
    end = at_search_until(s, s->times->widen_until);
    if (end < made + (int64_t)MADE_NS) end = made + (int64_t)MADE_NS;
    end = within_limit(s, end);
  }
  status = at_race_screen(&s->race, end, AT_SEARCH_FIELD);
  const int64_t over = at_now_ns() - at_search_until(s, s->times->widen_until);
  if (s->budget_ns <= 0.0 && over > 0) s->late_ns += over;
  return status;
}

/* Level debug: how each candidate ended. */
static void log_candidates(const search *s) {
  static const char *const states[] = {"not measured", "raced", "slower", "failed", "wrong"};
  if (!at_log_wanted(ATTUNE_LOG_DEBUG)) return;
  for (int i = 0; i < s->race.count; i++) {
    const at_candidate *c = s->race.candidates[i];
    char time[AT_TIME_CHARS];
    if (c->count > 0)
      at_log(ATTUNE_LOG_DEBUG, "candidate %s%s%s: %s, %.3f of the default's time in %d rounds, %s per call",
             c->implementation->name, c->configuration.text[0] ? " " : "", c->configuration.text, states[c->state],
             c->speedup > 0.0 ? 1.0 / c->speedup : 1.0, c->count, at_time_text(time, at_race_time(c, NULL), 3));
    else
      at_log(ATTUNE_LOG_DEBUG, "candidate %s%s%s: %s", c->implementation->name, c->configuration.text[0] ? " " : "",
             c->configuration.text, states[c->state]);
  }
}

/* A budget and a limit end warm-ups too; 0: there is neither. Of a limit, beyond which nothing is measured any more,
 * they take a part. */
static int64_t warm_until(const search *s) {
  const double most_ns = WARM_PART * s->most_ns, least_ns = s->budget_ns > 0.0 && most_ns > 0.0
                                                                ? fmin(s->budget_ns, most_ns)
                                                                : fmax(s->budget_ns, most_ns);
  return least_ns > 0.0 ? s->start_ns + (int64_t)least_ns : 0;
}

static attune_status run(search *s, at_search_result *out) {
  double once_ns = 0.0;
  s->sampler.warm_until_ns = warm_until(s);
  attune_status status = at_search_collect(s);
  if (status == ATTUNE_OK) status = at_race_start(&s->race, &once_ns);
  const int64_t opened_ns =
      at_now_ns() - s->start_ns; /* loading libraries and first kernels: not counted without a budget */
  if (s->budget_ns <= 0.0) s->opened_ns = opened_ns;
  s->once_ns = once_ns;
  reserve(s);
  if (status == ATTUNE_OK) status = at_limit_afford(s->reserve_ns - AT_LIMIT_GRACE_NS);
  double length_ns = s->budget_ns > 0.0 ? s->budget_ns : s->times->auto_ns + s->times->auto_calls * once_ns;
  if (s->most_ns > 0.0 && length_ns > s->most_ns) length_ns = s->most_ns;
  s->deadline_ns = s->start_ns + (int64_t)length_ns;
  end_stage(s, AT_STAGE_OPEN);
  if (status == ATTUNE_OK) status = screen(s);
  end_stage(s, AT_STAGE_SCREEN);
  out->decision.complete =
      !any_waiting(s); /* every candidate of every list was looked at; widening has no natural end */
  if (status == ATTUNE_OK) status = at_search_widen(s);
  end_stage(s, AT_STAGE_WIDEN);
  if (status != ATTUNE_OK) return status;
  s->claim_most_ns =
      s->budget_ns > 0.0 ? CLAIM_SHARE * s->budget_ns : s->times->claim_ns + s->times->claim_calls * once_ns;
  at_candidate *winner = settled_winner(s, out, &status);
  if (!winner) return status;
  const double raced = winner->speedup; /* at_search_describe sets what it claims */
  if (s->claim.rounds) out->raced = raced;
  log_candidates(s);
  at_search_describe(s, winner, &out->decision);
  if (s->race.steady) at_good_configs_note(s->sampler.timer, &s->race, winner);
  weigh_known(s, winner != s->known_one && raced > 0.0 ? winner->speedup / raced : 1.0, out);
  at_search_list_trials(s, winner, out);
  return ATTUNE_OK;
}

attune_status at_search(at_search_result *out, at_timer *timer, const at_op *op, const void *problem,
                        attune_measure measure, double budget_ns, double most_ns, const attune_decision *known) {
  memset(out, 0, sizeof *out);
  search s = {.op = op,
              .problem = problem,
              .device = timer->device,
              .budget_ns = budget_ns,
              .most_ns = most_ns,
              .known = known,
              .stage_ms = out->stage_ms,
              .start_ns = at_now_ns()};
  const int64_t limit_ns = at_limit_set(most_ns > 0.0 ? s.start_ns + (int64_t)most_ns : AT_NO_LIMIT);
  s.stage_ns = s.start_ns;
  s.race.sampler = &s.sampler;
  s.race.build = &s.build;
  s.race.steady = s.device->properties.kind != ATTUNE_DEVICE_HOST;
  s.times = s.race.steady ? &DEVICE : &HOST;
  const at_floating floating = at_floating_enter(); /* what is stored must not depend on the caller's */
  s.room = malloc(AT_SEARCH_CONFIGURATIONS * sizeof *s.room);
  attune_status status = s.room ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a search");
  if (status == ATTUNE_OK) status = at_sampler_open(&s.sampler, timer, op, problem, measure);
  if (status == ATTUNE_OK) status = run(&s, out);
  at_candidate_build_stop(&s.build);
  at_numerical_check_destroy(s.check);
  at_race_free(&s.race);
  at_sampler_close(&s.sampler);
  free(s.room);
  (void)at_limit_set(limit_ns);
  at_floating_leave(&floating);
  out->decision.tuning_ms = (double)(at_now_ns() - s.start_ns) * 1e-6;
  return status;
}
