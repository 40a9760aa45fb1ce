/* SPDX-License-Identifier: Apache-2.0
 * screen.c: candidates made ready, and quick samples that rule most of them out. */
#include "tuning/search/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "src/process/limit.h"
#include "tuning/search/candidate_build.h"

enum {
  SCREEN_BATCH = 16, /* candidates that share a screening round with the default */
  TRIES_MORE = 2,    /* of one that seems too slow */
  SCREEN_ROUNDS = 2,
  MOST_SCREEN_ROUNDS = 5,
  SCREEN_PLACES = 4, /* placements that batches are screened at, in turns */
  MAKE_A_CPU = 2,    /* candidates for which kernels are made at once, for each CPU; the budget is looked at between */
  MAKE_MOST = 16
};
static const double TRY_BELOW_NS = 5e6;       /* longer launches are not repeated */
static const double CALIBRATE_BELOW_NS = 1e6; /* what the host needs for a launch is little of a longer one */
/* On a device: one launch is measured wrong by up to so much when its code is loaded first, or when the CPU was away
 * between the launch and what times it, as it is while compilers run on every CPU. */
static const double DISTURBED_NS = 200e3;
static const double CALM = 1.15;        /* the default's two least samples of a batch are as near as this */
static const double KEEP_WITHIN = 1.12; /* of the best so far */
static const double TOO_SLOW = 1.20, TOO_SLOW_NS = 12e3; /* one launch, of the fastest such: not worth a sample */
static const double FAR_TOO_SLOW = 2.0;                  /* so much more than that: not worth a second launch */
static const double HOPELESS = 1.25;                     /* of the best */

static double slowest_of_use(const at_race *race) {
  return TOO_SLOW * race->best_once_ns + TOO_SLOW_NS;
}

static bool too_slow(const at_race *race, const at_candidate *candidate) {
  return !at_race_stays(race, candidate) && !candidate->kept && candidate->target.once_ns > slowest_of_use(race);
}

/* Launches it once more or twice when it seems too slow, and a device's default always: a single launch is easily
 * disturbed where other processes or threads want the processor. */
static attune_status try_candidate(at_race *race, at_candidate *candidate) {
  const bool must = at_race_stays(race, candidate) || candidate->kept,
             always = race->steady && candidate == race->candidates[0];
  const double repeat_ns = race->steady && !always ? DISTURBED_NS : TRY_BELOW_NS;
  const double slow_ns = must ? HUGE_VAL : FAR_TOO_SLOW * slowest_of_use(race) + (race->steady ? DISTURBED_NS : 0.0);
  attune_status status = at_sampler_try(race->sampler, &candidate->target, candidate->plan, slow_ns);
  double least = candidate->target.once_ns;
  for (int again = 0;
       again < TRIES_MORE && status == ATTUNE_OK && least < repeat_ns && (always || too_slow(race, candidate));
       again++) {
    status = at_sampler_try(race->sampler, &candidate->target, candidate->plan, slow_ns);
    if (candidate->target.once_ns > least) candidate->target.once_ns = least;
    least = candidate->target.once_ns;
  }
  return status;
}

/* Has the implementation make what the candidate and those of its kind that come next need, up to `most` in all. */
static void make_many(at_race *race, int from, int most) {
  const at_sampler *sampler = race->sampler;
  const at_implementation *implementation = race->candidates[from]->implementation;
  at_configuration configurations[MAKE_MOST];
  int count = 0;
  if (!implementation->prepare_many || race->candidates[from]->made) return;
  for (int i = from; i < race->count && count < most; i++) {
    at_candidate *candidate = race->candidates[i];
    if (candidate->implementation != implementation || candidate->made || candidate->state != AT_WAITING) continue;
    candidate->made = true;
    configurations[count++] = candidate->configuration;
  }
  const at_message kept = at_message_keep();
  implementation->prepare_many(implementation, sampler->problem, sampler->timer->device, configurations, count);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

static int make_at_once(void) {
  const int most = MAKE_A_CPU * at_cpu_count();
  return most < MAKE_MOST ? most : MAKE_MOST;
}

/* Prepares and tries one candidate. What is wrong with it is its own affair, unless the device itself no longer
 * answers. */
static attune_status get_ready(at_race *race, at_candidate *candidate) {
  at_sampler *sampler = race->sampler;
  const at_candidate *base = race->candidates[0];
  attune_status status = at_plan_create(&candidate->plan, sampler->op, candidate->implementation,
                                        &candidate->configuration, sampler->problem, sampler->timer->device);
  if (status == ATTUNE_OK) status = try_candidate(race, candidate);
  candidate->target.bare = candidate->bare;
  if (status == ATTUNE_OK && candidate == base) at_sampler_calibrate(sampler, candidate->target.once_ns);
  candidate->hidden = candidate->target.rough;
  if (status == ATTUNE_OK && too_slow(race, candidate)) {
    candidate->hopeless = candidate->target.once_ns > HOPELESS * race->best_once_ns + TOO_SLOW_NS;
    at_race_drop(race, candidate, AT_SLOWER);
    return ATTUNE_OK;
  }
  if (status == ATTUNE_OK) status = at_sampler_ready(sampler, &candidate->target);
  if (status == ATTUNE_OK) {
    if (candidate == base || candidate->target.once_ns < race->best_once_ns)
      race->best_once_ns = candidate->target.once_ns;
    candidate->state = AT_SCREENED;
    candidate->ran = true;
    return ATTUNE_OK;
  }
  if (at_timer_between(sampler->timer) != ATTUNE_OK) return status; /* it is no fault of the candidate's */
  at_race_drop(race, candidate, candidate->favourite && status == ATTUNE_NOT_FOUND ? AT_SLOWER : AT_FAILED);
  return attune_stream_synchronize(sampler->timer->stream) == ATTUNE_OK && !at_race_stays(race, candidate) ? ATTUNE_OK
                                                                                                           : status;
}

/* The ratio of its least time to the default's is the first estimate of its speed. */
static void note_look(at_race *race, at_candidate *candidate, double ns, double base_ns) {
  candidate->quick = base_ns > 0.0 ? at_race_team_cost(candidate, ns) / base_ns : 1.0;
  char time[AT_TIME_CHARS];
  if (AT_UNLIKELY(at_log_wanted(ATTUNE_LOG_DEBUG)))
    at_log(ATTUNE_LOG_DEBUG, "candidate %s%s%s: screened, %.3f of the default's time, %s per call",
           candidate->implementation->name, candidate->configuration.text[0] ? " " : "", candidate->configuration.text,
           candidate->quick, at_time_text(time, ns, 3));
  if (candidate->quick < race->best_quick) race->best_quick = candidate->quick;
}

/* Quick samples of a batch and the default; the least of each counts, so that one disturbed sample, of a candidate
 * or of the default, misleads no decision. When the default's two least differ, all were disturbed: more rounds. */
static attune_status screen_batch(at_race *race, at_candidate **batch, int count, int64_t until_ns) {
  at_candidate *field[SCREEN_BATCH + 1] = {race->candidates[0]};
  double ns[SCREEN_BATCH + 1] = {0.0}, least[SCREEN_BATCH + 1] = {0.0}, second = INFINITY;
  memcpy(&field[1], batch, (size_t)count * sizeof *batch);
  for (int round = 0;
       round < SCREEN_ROUNDS || (round < MOST_SCREEN_ROUNDS && second > CALM * least[0] && at_now_ns() < until_ns);
       round++) {
    bool good = true;
    AT_TRY(at_race_sample(race, field, count + 1, 0, ns, &good));
    if (round > 0) second = ns[0] < least[0] ? least[0] : ns[0] < second ? ns[0] : second;
    for (int i = 0; i <= count; i++)
      if (round == 0 || ns[i] < least[i]) least[i] = ns[i];
    at_race_note_cpus(race->candidates[0]);
    for (int i = 0; i < count; i++) at_race_note_cpus(batch[i]);
    for (int i = 0; i < count; i++) batch[i]->hidden = batch[i]->target.rough && (round == 0 || batch[i]->hidden);
  }
  for (int i = 0; i < count; i++)
    if (batch[i]->state == AT_SCREENED) note_look(race, batch[i], least[i + 1], least[0]);
  for (int i = 0; i < count; i++) batch[i]->hopeless = batch[i]->quick > HOPELESS * race->best_quick;
  return ATTUNE_OK;
}

static int by_quick(const void *left, const void *right) {
  const at_candidate *a = *(at_candidate *const *)left, *b = *(at_candidate *const *)right;
  return (a->quick > b->quick) - (a->quick < b->quick);
}

void at_race_prune(at_race *race, int keep) {
  at_candidate *left[SCREEN_BATCH * 8];
  int count = 0;
  for (int i = 1; i < race->count; i++) {
    at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_SCREENED || candidate->kept || at_race_stays(race, candidate)) continue;
    if (candidate->quick > KEEP_WITHIN * race->best_quick || count == (int)AT_COUNT(left))
      at_race_drop(race, candidate, AT_SLOWER);
    else
      left[count++] = candidate;
  }
  qsort(left, (size_t)count, sizeof *left, by_quick);
  for (int i = keep; i < count; i++) at_race_drop(race, left[i], AT_SLOWER);
}

static int place_of(const at_race *race, const at_candidate *candidate) {
  int place = 0;
  while (race->candidates[place] != candidate) place++;
  return place;
}

/* On a device a launch alone takes as long as the host needs for it, 50 to 250 us of cuBLAS's first ones. What a call
 * takes in a sample says how many a sample should have: with too few, what happens between two targets counts. */
static attune_status calibrate_again(at_race *race, double *once_ns) {
  at_sampler *sampler = race->sampler;
  at_timing_target *target = &race->candidates[0]->target;
  double ns = 0.0;
  bool good = true;
  attune_status status = at_sampler_round(sampler, &target, 1, &ns, &good);
  if (status != ATTUNE_OK || ns <= 0.0 || ns >= *once_ns) return status;
  *once_ns = ns;
  at_sampler_forget(sampler, target);
  at_sampler_calibrate(sampler, ns);
  return at_sampler_ready(sampler, target);
}

/* A search is so many calls of the default at least: both its forms tried and sampled, a few rounds, a verification. */
enum { LEAST_CALLS = 20 };

attune_status at_race_start(at_race *race, double *once_ns) {
  at_candidate *base = race->candidates[0];
  make_many(race, 0, 1);
  attune_status status = at_limit_look();
  if (status == ATTUNE_OK) status = get_ready(race, base);
  base->quick = race->best_quick = 1.0;
  *once_ns = base->target.once_ns;
  if (status == ATTUNE_OK) status = at_limit_afford(LEAST_CALLS * *once_ns - AT_LIMIT_GRACE_NS);
  if (status == ATTUNE_OK && race->steady && *once_ns < CALIBRATE_BELOW_NS) status = calibrate_again(race, once_ns);
  if (status != ATTUNE_OK || !race->incumbent || race->incumbent == base) return status;
  make_many(race, place_of(race, race->incumbent), 1);
  status = get_ready(race, race->incumbent);
  if (status != ATTUNE_OK) return status;
  race->best_quick = HUGE_VAL; /* what is behind the vendor's own call may still be the best through attune */
  return screen_batch(race, &race->incumbent, 1, 0);
}

double at_race_sample_ns(const at_race *race) {
  const at_sampler *sampler = race->sampler;
  const double calm_ns = sampler->once_ns * sampler->calls * sampler->turns;
  return calm_ns > race->sample_ns ? calm_ns : race->sample_ns;
}

/* The next one: what was compiled in the background as soon as all of it is, else the others in their order. What is
 * being made is passed over: preparing it would wait, and no budget ends that. Where it was left before all was made,
 * what was made counts. -1: none waits. */
static int next_waiting(at_race *race) {
  const bool all = !race->build || at_candidate_build_done(race->build);
  const int made = all                                    ? AT_CANDIDATE_BUILD_ROOM
                   : at_candidate_build_left(race->build) ? at_candidate_build_made(race->build)
                                                          : 0;
  int other = -1;
  for (int i = 1; i < race->count; i++) {
    const at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_WAITING || candidate->beside > made) continue;
    if (candidate->beside) return i;
    if (other < 0) other = i;
  }
  return other;
}

/* The word of a configuration's text that begins at *at; *at moves behind it. Its length; 0: there is no other. */
static size_t next_word(const char **at, const char **word) {
  if (**at == ',') ++*at;
  *word = *at;
  const size_t chars = strcspn(*at, ",");
  *at += chars;
  return chars;
}

/* Does `more` differ from the leader in all in which `one` does, and alike? */
static bool goes_further(const at_candidate *more, const at_candidate *one) {
  const char *a = more->configuration.text, *b = one->configuration.text, *c = one->leader->configuration.text;
  const char *word_a, *word_b, *word_c;
  for (;;) {
    const size_t chars_a = next_word(&a, &word_a), chars_b = next_word(&b, &word_b), chars_c = next_word(&c, &word_c);
    if (!chars_b || !chars_c) return chars_a == chars_b && chars_b == chars_c;
    const bool differs = chars_b != chars_c || strncmp(word_b, word_c, chars_b) != 0;
    if (differs && (chars_a != chars_b || strncmp(word_a, word_b, chars_b) != 0)) return false;
  }
}

/* What changes a leader in a way that was hopeless, and in another one too, is hopeless as well: most that differ in
 * two tunables need not be tried. */
static bool is_out(const at_race *race, const at_candidate *candidate) {
  for (int i = 1; race->steady && candidate->leader && i < race->count; i++) {
    const at_candidate *other = race->candidates[i];
    if (other->hopeless && other->leader == candidate->leader && other != candidate && goes_further(candidate, other))
      return true;
  }
  return false;
}

/* Is there time for a batch of so many? Only a hard limit looks ahead: what else is under way at its end is
 * finished. */
static bool batch_fits(const at_race *race, int count, int64_t until_ns) {
  if (at_limit_of() == AT_NO_LIMIT) return true;
  return (double)(until_ns - at_now_ns()) >= SCREEN_ROUNDS * (count + 1) * at_race_sample_ns(race);
}

attune_status at_race_screen(at_race *race, int64_t until_ns, int keep) {
  for (int next = next_waiting(race); next > 0 && at_now_ns() < until_ns && batch_fits(race, 2, until_ns);) {
    at_candidate *batch[SCREEN_BATCH];
    int count = 0;
    at_sampler_place(race->sampler, race->batches++ % SCREEN_PLACES);
    const attune_status base = at_sampler_ready(race->sampler, &race->candidates[0]->target);
    if (base != ATTUNE_OK) return base;
    for (; next > 0 && count < SCREEN_BATCH && at_now_ns() < until_ns && batch_fits(race, count + 2, until_ns);
         next = next_waiting(race)) {
      at_candidate *candidate = race->candidates[next];
      if (is_out(race, candidate)) {
        at_race_drop(race, candidate, AT_SLOWER);
        continue;
      }
      make_many(race, next, make_at_once());
      AT_TRY(get_ready(race, candidate));
      if (candidate->state == AT_SCREENED) batch[count++] = candidate;
    }
    if (!count) continue;
    AT_TRY(screen_batch(race, batch, count, until_ns));
    at_race_prune(race, keep);
  }
  return ATTUNE_OK;
}
