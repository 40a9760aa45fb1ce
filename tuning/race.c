/* SPDX-License-Identifier: Apache-2.0
 * race.c: screening, rounds, elimination, choice. */
#include "tuning/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  SCREEN_BATCH = 16, /* contenders that share a screening round with the default */
  SCREEN_ROUNDS = 2,
  LEAST_ROUNDS = 4,   /* before anything is dropped */
  ENOUGH_ROUNDS = 11, /* when the errors are small */
  MOST_ROUNDS = 41,
  LEAST_FIELD = 3, /* challengers who race even when the time is up */
  MOST_FIELD = 20
};
static const double KEEP_WITHIN = 1.12;                  /* screening: of the best so far */
static const double TOO_SLOW = 1.20, TOO_SLOW_NS = 12e3; /* one launch, of the fastest such: not worth a sample */
static const double ENOUGH_ERROR = 0.0015;               /* relative standard error of a paired ratio */
static const double SWITCH_MARGIN = 0.005;               /* a challenger must win by this, and by 3 standard errors */
static const double SAME = 0.003;                        /* contenders this close are equals */

/* A team measured back to back is awake and has the CPUs to itself; in a program it must be woken, and others want the
 * CPUs: each one that it keeps busy beside its own has a price, so that two CPUs for a few percent are no win. */
static const double TEAM_NS = 1500.0, CPU_PRICE = 0.15; /* once a call; of the time for each CPU more */

/* CPUs that it keeps busy: as measured, else all its threads. */
static double cpus_of(const at_contender *contender) {
  int64_t threads = 1;
  if (!at_configuration_get(&contender->configuration, "threads", &threads) || threads < 2) return 1.0;
  return contender->cpus > 0.0 ? contender->cpus : (double)threads;
}

static double with_team_cost(const at_contender *contender, double ns) {
  const double more = cpus_of(contender) - 1.0;
  return ns * (1.0 + CPU_PRICE * more) + TEAM_NS * (more < 1.0 ? more : 1.0);
}

at_contender *at_race_add(at_race *race, const at_implementation *implementation,
                          const at_configuration *configuration) {
  for (int i = 0; i < race->count; i++)
    if (race->contenders[i]->implementation == implementation && !race->contenders[i]->bare &&
        strcmp(race->contenders[i]->configuration.text, configuration->text) == 0)
      return NULL;
  if (race->count == race->room) {
    const int room = race->room ? 2 * race->room : 64;
    at_contender **contenders = realloc(race->contenders, (size_t)room * sizeof *contenders);
    if (!contenders) return NULL;
    race->contenders = contenders;
    race->room = room;
  }
  at_contender *contender = calloc(1, sizeof *contender);
  if (!contender) return NULL;
  contender->implementation = implementation;
  contender->configuration = *configuration;
  race->contenders[race->count++] = contender;
  return contender;
}

at_contender *at_race_incumbent(const at_race *race) {
  return race->incumbent ? race->incumbent : race->contenders[0];
}

void at_race_add_default(at_race *race, const at_implementation *base, const at_configuration *configuration) {
  at_contender *first = at_race_add(race, base, configuration);
  if (!first || !base->bare) return;
  first->bare = true;
  race->incumbent = at_race_add(race, base, configuration);
}

/* The default, in both its forms, stays whatever it measures. */
static bool stays(const at_race *race, const at_contender *contender) {
  return contender == race->contenders[0] || contender == race->incumbent;
}

void at_race_drop(at_race *race, at_contender *contender, at_contender_state state) {
  at_profile_forget(race->profile, &contender->subject);
  at_plan_destroy(contender->plan);
  contender->plan = NULL;
  contender->state = state;
}

void at_race_free(at_race *race) {
  for (int i = 0; i < race->count; i++) {
    at_race_drop(race, race->contenders[i], AT_SLOWER);
    free(race->contenders[i]);
  }
  free(race->contenders);
  race->contenders = NULL;
  race->count = race->room = 0;
}

/* Prepares and tries one contender. What is wrong with it is its own affair, unless the device itself no longer
 * answers. */
static attune_status get_ready(at_race *race, at_contender *contender) {
  at_profile *profile = race->profile;
  const at_contender *base = race->contenders[0];
  attune_status status = at_plan_create(&contender->plan, profile->op, contender->implementation,
                                        &contender->configuration, profile->problem, profile->profiler->device);
  if (status == ATTUNE_OK) status = at_profile_try(profile, &contender->subject, contender->plan);
  contender->subject.bare = contender->bare;
  if (status == ATTUNE_OK && contender == base) at_profile_calibrate(profile, contender->subject.once_ns);
  if (status == ATTUNE_OK && !stays(race, contender) &&
      contender->subject.once_ns > TOO_SLOW * race->best_once_ns + TOO_SLOW_NS) {
    at_race_drop(race, contender, AT_SLOWER);
    return ATTUNE_OK;
  }
  if (status == ATTUNE_OK && (contender == base || contender->subject.once_ns < race->best_once_ns))
    race->best_once_ns = contender->subject.once_ns;
  if (status == ATTUNE_OK) status = at_profile_ready(profile, &contender->subject);
  if (status == ATTUNE_OK) {
    contender->state = AT_SCREENED;
    return ATTUNE_OK;
  }
  at_race_drop(race, contender, AT_FAILED);
  return attune_stream_synchronize(profile->profiler->stream) == ATTUNE_OK && !stays(race, contender) ? ATTUNE_OK
                                                                                                      : status;
}

/* Running mean of the CPUs that a sample kept busy. */
static void note_cpus(at_contender *contender) {
  const double latest = contender->subject.cpus;
  if (latest <= 0.0) return;
  contender->cpus = contender->cpus > 0.0 ? 0.75 * contender->cpus + 0.25 * latest : latest;
}

/* Quick samples of a batch beside the default; each contender's best relative time counts. */
static attune_status screen_batch(at_race *race, at_contender **batch, int count) {
  at_subject *subjects[SCREEN_BATCH + 1];
  double ns[SCREEN_BATCH + 1];
  subjects[0] = &race->contenders[0]->subject;
  for (int i = 0; i < count; i++) subjects[i + 1] = &batch[i]->subject;
  for (int round = 0; round < SCREEN_ROUNDS; round++) {
    bool good = true;
    const attune_status status = at_profile_round(race->profile, subjects, count + 1, ns, &good);
    if (status != ATTUNE_OK) return status;
    note_cpus(race->contenders[0]);
    for (int i = 0; i < count; i++) {
      note_cpus(batch[i]);
      const double relative = ns[0] > 0.0 ? with_team_cost(batch[i], ns[i + 1]) / ns[0] : 1.0;
      if (batch[i]->quick == 0.0 || relative < batch[i]->quick) batch[i]->quick = relative;
      if (batch[i]->quick < race->best_quick) race->best_quick = batch[i]->quick;
    }
  }
  return ATTUNE_OK;
}

static int by_quick(const void *left, const void *right) {
  const at_contender *a = *(at_contender *const *)left, *b = *(at_contender *const *)right;
  return (a->quick > b->quick) - (a->quick < b->quick);
}

/* Drops what is clearly behind, and all but the best `keep`. The default is never dropped. */
static void prune(at_race *race, int keep) {
  at_contender *left[SCREEN_BATCH * 8];
  int count = 0;
  for (int i = 1; i < race->count; i++) {
    at_contender *contender = race->contenders[i];
    if (contender->state != AT_SCREENED || stays(race, contender)) continue;
    if (contender->quick > KEEP_WITHIN * race->best_quick || count == (int)AT_COUNT(left))
      at_race_drop(race, contender, AT_SLOWER);
    else
      left[count++] = contender;
  }
  qsort(left, (size_t)count, sizeof *left, by_quick);
  for (int i = keep; i < count; i++) at_race_drop(race, left[i], AT_SLOWER);
}

attune_status at_race_start(at_race *race, double *once_ns) {
  at_contender *base = race->contenders[0];
  attune_status status = get_ready(race, base);
  base->quick = race->best_quick = 1.0;
  *once_ns = base->subject.once_ns;
  if (status != ATTUNE_OK || !race->incumbent) return status;
  status = get_ready(race, race->incumbent);
  if (status != ATTUNE_OK) return status;
  race->best_quick = HUGE_VAL; /* what is behind the vendor's own call may still be the best through attune */
  return screen_batch(race, &race->incumbent, 1);
}

attune_status at_race_screen(at_race *race, int64_t until_ns, int keep) {
  for (int next = 1; next < race->count && at_now_ns() < until_ns;) {
    at_contender *batch[SCREEN_BATCH];
    int count = 0;
    for (; next < race->count && count < SCREEN_BATCH && at_now_ns() < until_ns; next++) {
      at_contender *contender = race->contenders[next];
      if (contender->state != AT_WAITING) continue;
      const attune_status status = get_ready(race, contender);
      if (status != ATTUNE_OK) return status;
      if (contender->state == AT_SCREENED) batch[count++] = contender;
    }
    if (!count) continue;
    const attune_status status = screen_batch(race, batch, count);
    if (status != ATTUNE_OK) return status;
    prune(race, keep);
  }
  return ATTUNE_OK;
}

/* The screened contenders, the default first; the count. */
static int lineup(at_race *race, at_contender **out, int most) {
  int count = 0;
  for (int i = 0; i < race->count && count < most; i++)
    if (race->contenders[i]->state == AT_SCREENED) out[count++] = race->contenders[i];
  return count;
}

static attune_status one_round(at_race *race, at_contender **field, int count, int turn) {
  at_subject *subjects[AT_ROUND_SUBJECTS];
  double ns[AT_ROUND_SUBJECTS];
  bool good = true;
  for (int i = 0; i < count; i++) subjects[i] = &field[(i + turn) % count]->subject; /* another order each round */
  const attune_status status = at_profile_round(race->profile, subjects, count, ns, &good);
  for (int i = 0; i < count && status == ATTUNE_OK && good; i++) {
    at_contender *contender = field[(i + turn) % count];
    contender->samples[contender->count++] = ns[i];
    note_cpus(contender);
  }
  return status;
}

void at_race_judge(const at_contender *base, at_contender *contender) {
  const double base_ns = at_median(base->samples, base->count);
  contender->speedup = at_paired_ratio(base->samples, contender->samples, contender->count, &contender->error);
  contender->merit = base_ns / with_team_cost(contender, base_ns / contender->speedup);
}

/* Drops contenders whose best case is behind the leader's worst; true when what is left is clear enough. */
static bool eliminate(at_race *race, at_contender **field, int count) {
  const at_contender *leader = at_race_incumbent(race);
  for (int i = 0; i < count; i++)
    if (!field[i]->bare && field[i]->merit > leader->merit) leader = field[i];
  double worst_error = 0.0;
  int left = 0;
  for (int i = 0; i < count; i++) {
    at_contender *contender = field[i];
    double error = 0.0;
    const double behind = at_paired_ratio(contender->samples, leader->samples, contender->count, &error);
    if (contender != leader && !stays(race, contender) && behind - 3.0 * error > 1.0 + SAME) {
      at_race_drop(race, contender, AT_SLOWER);
      continue;
    }
    if (contender != leader && !contender->bare && error > worst_error) worst_error = error;
    left += !contender->bare;
  }
  return left == 1 || worst_error < ENOUGH_ERROR;
}

/* How many can be sampled often enough in the time. */
static int affordable(const at_race *race, int64_t left_ns) {
  const at_profile *profile = race->profile;
  const double sample_ns = profile->once_ns * profile->calls * profile->turns;
  const double count = (double)left_ns / (sample_ns * ENOUGH_ROUNDS) - 1.0;
  return count < LEAST_FIELD ? LEAST_FIELD : count > MOST_FIELD ? MOST_FIELD : (int)count;
}

attune_status at_race_run(at_race *race, int64_t until_ns) {
  int rounds = 0; /* counted rounds: disturbed ones are repeated */
  at_profile_be_sure(race->profile);
  prune(race, affordable(race, until_ns - at_now_ns()));
  for (int turn = 0; turn < 2 * MOST_ROUNDS && rounds < MOST_ROUNDS; turn++) {
    at_contender *field[AT_ROUND_SUBJECTS];
    const int count = lineup(race, field, AT_ROUND_SUBJECTS);
    if (at_now_ns() > until_ns && rounds >= LEAST_ROUNDS) break;
    const attune_status status = one_round(race, field, count, turn);
    if (status != ATTUNE_OK) return status;
    rounds = race->contenders[0]->count;
    for (int i = 0; i < count; i++) at_race_judge(race->contenders[0], field[i]);
    if (rounds >= LEAST_ROUNDS && eliminate(race, field, count) && rounds >= ENOUGH_ROUNDS) break;
  }
  return ATTUNE_OK;
}

/* Beyond the noise, in time and in merit too: what is slower than the default never wins because it is cheaper, nor what
 * is faster because it is dearer. Both were paired with contender 0, so their errors add up. */
static bool beats(const at_contender *contender, double speedup, double merit, double error) {
  const double errors = 3.0 * sqrt(contender->error * contender->error + error * error);
  const double margin = 1.0 + (errors > SWITCH_MARGIN ? errors : SWITCH_MARGIN);
  return contender->count >= LEAST_ROUNDS && contender->speedup > speedup * margin && contender->merit > merit * margin;
}

bool at_race_beats_default(const at_contender *contender) {
  return beats(contender, 1.0, 1.0, 0.0);
}

at_contender *at_race_winner(at_race *race) {
  at_contender *const incumbent = at_race_incumbent(race), *best = incumbent;
  const bool judged = incumbent->merit > 0.0;
  for (int i = 1; i < race->count; i++) {
    at_contender *contender = race->contenders[i];
    if (contender->state != AT_SCREENED || contender == incumbent ||
        !beats(contender, judged ? incumbent->speedup : 1.0, judged ? incumbent->merit : 1.0,
               judged ? incumbent->error : 0.0))
      continue;
    if (best == incumbent || contender->merit > best->merit * (1.0 + SAME)) best = contender;
  }
  return best;
}
