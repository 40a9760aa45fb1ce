/* SPDX-License-Identifier: Apache-2.0
 * race.c: screening, rounds, elimination, choice. */
#include "tuning/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/race_pairs.h"

enum {
  SCREEN_BATCH = 16, /* contenders that share a screening round with the default */
  TRIES_MORE = 2,    /* of one that seems too slow */
  SCREEN_ROUNDS = 2,
  MOST_SCREEN_ROUNDS = 5,
  SCREEN_PLACES = 4, /* placements that batches are screened at, in turns */
  LEAST_ROUNDS = AT_PAIRS_LEAST,
  ENOUGH_ROUNDS = 12, /* when the errors are small: each placement of a graph once */
  MOST_ROUNDS = 41,
  MOST_LONGER = AT_MAX_SAMPLES, /* where noise leaves the choice open */
  LEAST_FIELD = 3,              /* challengers who race even when the time is up */
  MOST_FIELD = 20
};
static const double TRY_BELOW_NS = 5e6; /* longer launches are not repeated */
static const double CALM = 1.15;        /* the default's two least samples of a batch are as near as this */
static const double KEEP_WITHIN = 1.12; /* screening: of the best so far */
static const double TOO_SLOW = 1.20, TOO_SLOW_NS = 12e3; /* one launch, of the fastest such: not worth a sample */
static const double ENOUGH_ERROR = 0.0015;               /* relative standard error of a paired ratio */
static const double SWITCH_MARGIN = 0.005;               /* a challenger must win by this, and by 3 standard errors */
static const double UNSEEN =
    0.01; /* how far a ratio may move at placements not met yet: before a few drop a contender */
static const double SAME = 0.003; /* contenders this close are equals */
/* What leaves the choice open: a contender ahead in its median by so much, or that could be by so much more, two errors
 * up; a default whose own times vary by so much while nothing beats it. */
static const double OPEN_AHEAD = 0.02, OPEN_COULD = 0.05, OPEN_SPREAD = 0.20;
static const double NINE_OF_TEN = 1.28,
                    LEAST_WORST = 0.995; /* standard deviations; what is left at the tenth placement */
static const double LEAST_MET = 0.99;    /* what is left at the worst placement that was measured */

/* Power-hungry work is slower once the device is hot: rounds count from when the default's time stands still. */
static const double SETTLE_FROM_NS = 30e3;                       /* calls this long fill the device */
static const double SETTLE_MOST_NS = 200e6, SETTLE_SHARE = 0.35; /* of the race's time */
static const double SETTLED = 0.004;                             /* from one round to the next, twice */

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
  return race->incumbent ? race->incumbent : race->count > 0 ? race->contenders[0] : NULL;
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

static bool too_slow(const at_race *race, const at_contender *contender) {
  return !stays(race, contender) && !contender->kept &&
         contender->subject.once_ns > TOO_SLOW * race->best_once_ns + TOO_SLOW_NS;
}

/* Launches it once more or twice when it seems too slow: a single launch is easily disturbed where other
 * processes want the processor. */
static attune_status try_contender(at_race *race, at_contender *contender) {
  attune_status status = at_profile_try(race->profile, &contender->subject, contender->plan);
  double least = contender->subject.once_ns;
  for (int again = 0;
       !race->steady && again < TRIES_MORE && status == ATTUNE_OK && least < TRY_BELOW_NS && too_slow(race, contender);
       again++) {
    status = at_profile_try(race->profile, &contender->subject, contender->plan);
    if (contender->subject.once_ns > least) contender->subject.once_ns = least;
    least = contender->subject.once_ns;
  }
  return status;
}

/* Prepares and tries one contender. What is wrong with it is its own affair, unless the device itself no longer
 * answers. */
static attune_status get_ready(at_race *race, at_contender *contender) {
  at_profile *profile = race->profile;
  const at_contender *base = race->contenders[0];
  attune_status status = at_plan_create(&contender->plan, profile->op, contender->implementation,
                                        &contender->configuration, profile->problem, profile->profiler->device);
  if (status == ATTUNE_OK) status = try_contender(race, contender);
  contender->subject.bare = contender->bare;
  if (status == ATTUNE_OK && contender == base) at_profile_calibrate(profile, contender->subject.once_ns);
  contender->hidden = contender->subject.rough;
  if (status == ATTUNE_OK && too_slow(race, contender)) {
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

/* Quick samples of a batch beside the default; the least of each counts, so that one disturbed sample, of a contender or
 * of the default, misleads nobody. When the default's two least differ, all were disturbed: more rounds. */
static attune_status screen_batch(at_race *race, at_contender **batch, int count, int64_t until_ns) {
  at_subject *subjects[SCREEN_BATCH + 1];
  double ns[SCREEN_BATCH + 1], least[SCREEN_BATCH + 1] = {0.0}, second = INFINITY;
  subjects[0] = &race->contenders[0]->subject;
  for (int i = 0; i < count; i++) subjects[i + 1] = &batch[i]->subject;
  for (int round = 0;
       round < SCREEN_ROUNDS || (round < MOST_SCREEN_ROUNDS && second > CALM * least[0] && at_now_ns() < until_ns);
       round++) {
    bool good = true;
    const attune_status status = at_profile_round(race->profile, subjects, count + 1, ns, &good);
    if (status != ATTUNE_OK) return status;
    if (round > 0) second = ns[0] < least[0] ? least[0] : ns[0] < second ? ns[0] : second;
    for (int i = 0; i <= count; i++)
      if (round == 0 || ns[i] < least[i]) least[i] = ns[i];
    note_cpus(race->contenders[0]);
    for (int i = 0; i < count; i++) note_cpus(batch[i]);
    for (int i = 0; i < count; i++) batch[i]->hidden = batch[i]->subject.rough && (round == 0 || batch[i]->hidden);
  }
  for (int i = 0; i < count; i++) {
    batch[i]->quick = least[0] > 0.0 ? with_team_cost(batch[i], least[i + 1]) / least[0] : 1.0;
    if (batch[i]->quick < race->best_quick) race->best_quick = batch[i]->quick;
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
    if (contender->state != AT_SCREENED || contender->kept || stays(race, contender)) continue;
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
  return screen_batch(race, &race->incumbent, 1, 0);
}

attune_status at_race_screen(at_race *race, int64_t until_ns, int keep) {
  for (int next = 1; next < race->count && at_now_ns() < until_ns;) {
    at_contender *batch[SCREEN_BATCH];
    int count = 0;
    at_profile_place(race->profile, race->batches++ % SCREEN_PLACES);
    const attune_status base = at_profile_ready(race->profile, &race->contenders[0]->subject);
    if (base != ATTUNE_OK) return base;
    for (; next < race->count && count < SCREEN_BATCH && at_now_ns() < until_ns; next++) {
      at_contender *contender = race->contenders[next];
      if (contender->state != AT_WAITING) continue;
      const attune_status status = get_ready(race, contender);
      if (status != ATTUNE_OK) return status;
      if (contender->state == AT_SCREENED) batch[count++] = contender;
    }
    if (!count) continue;
    const attune_status status = screen_batch(race, batch, count, until_ns);
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
  attune_status status = ATTUNE_OK;
  const int place = race->rounds % at_profile_placements(race->profile);
  at_profile_place(race->profile, place);
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    at_contender *contender = field[(i + turn) % count]; /* another order each round */
    subjects[i] = &contender->subject;
    status = at_profile_ready(race->profile, subjects[i]);
    if (status == ATTUNE_OK || stays(race, contender)) continue;
    at_race_drop(race, contender, AT_FAILED); /* its own affair; the others race on */
    return ATTUNE_OK;
  }
  if (status == ATTUNE_OK) status = at_profile_round(race->profile, subjects, count, ns, &good);
  for (int i = 0; i < count && status == ATTUNE_OK && good; i++) {
    at_contender *contender = field[(i + turn) % count];
    contender->place[contender->count] = (unsigned char)place;
    contender->taken[contender->count] = (float)contender->subject.taken;
    contender->rough[contender->count] = contender->subject.rough;
    contender->samples[contender->count++] = ns[i];
    note_cpus(contender);
  }
  if (status == ATTUNE_OK && good) race->rounds++;
  return status;
}

/* Rounds that do not count, until the device is as hot as the work makes it. */
static attune_status settle(at_race *race, int64_t until_ns) {
  const int64_t now = at_now_ns();
  const double left = SETTLE_SHARE * (double)(until_ns - now), most = left < SETTLE_MOST_NS ? left : SETTLE_MOST_NS;
  at_contender *field[AT_ROUND_SUBJECTS];
  at_subject *subjects[AT_ROUND_SUBJECTS];
  double ns[AT_ROUND_SUBJECTS], before = 0.0;
  bool good = true;
  const int count = lineup(race, field, AT_ROUND_SUBJECTS);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    subjects[i] = &field[i]->subject;
    status = at_profile_ready(race->profile, subjects[i]);
  }
  for (int still = 0; still < 2 && status == ATTUNE_OK && (double)(at_now_ns() - now) < most;) {
    status = at_profile_round(race->profile, subjects, count, ns, &good);
    still = fabs(ns[0] - before) <= SETTLED * ns[0] ? still + 1 : 0;
    before = ns[0];
  }
  return status;
}

void at_race_judge(const at_contender *base, at_contender *contender) {
  at_pairs p;
  at_pairs_make(&p, base, contender);
  const double base_ns = at_median(p.a, p.count);
  contender->speedup = at_placed_ratio(p.a, p.b, p.place, p.count, &contender->error, &contender->shift);
  contender->least = at_placed_least(p.a, p.b, p.place, p.count);
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
    double error = 0.0, shift = 0.0;
    at_pairs p;
    at_pairs_make(&p, contender, leader);
    const double behind = at_placed_ratio(p.a, p.b, p.place, p.count, &error, &shift);
    const double unseen = UNSEEN / sqrt((double)p.count), doubt = error > unseen ? error : unseen;
    if (contender != leader && !stays(race, contender) && behind - 3.0 * doubt > 1.0 + SAME) {
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
  const double count = (double)left_ns / ((sample_ns + profile->ready_ns) * ENOUGH_ROUNDS) - 1.0;
  return count < LEAST_FIELD ? LEAST_FIELD : count > MOST_FIELD ? MOST_FIELD : (int)count;
}

attune_status at_race_run(at_race *race, int64_t until_ns) {
  at_profile_be_sure(race->profile);
  race->rounds = race->contenders[0]->count; /* counted rounds: disturbed ones are repeated */
  if (race->rounds == 0) prune(race, affordable(race, until_ns - at_now_ns()));
  attune_status status = ATTUNE_OK;
  const int most = race->longer ? MOST_LONGER : MOST_ROUNDS;
  if (race->rounds == 0 && race->steady && race->profile->once_ns >= SETTLE_FROM_NS) status = settle(race, until_ns);
  for (int turn = 0; status == ATTUNE_OK && turn < 2 * most && race->rounds < most; turn++) {
    at_contender *field[AT_ROUND_SUBJECTS];
    const int count = lineup(race, field, AT_ROUND_SUBJECTS);
    if (at_now_ns() > until_ns && race->rounds >= LEAST_ROUNDS) break;
    status = one_round(race, field, count, turn);
    for (int i = 0; i < count && status == ATTUNE_OK; i++) at_race_judge(race->contenders[0], field[i]);
    if (race->rounds >= LEAST_ROUNDS && eliminate(race, field, count) && race->rounds >= ENOUGH_ROUNDS &&
        !at_race_open(race, NULL))
      break;
    if (race->longer && !at_race_open(race, NULL)) break;
  }
  return status;
}

/* Beyond the noise, in time and in merit too: what is slower than the default never wins because it is cheaper, nor what
 * is faster because it is dearer. Both were paired with contender 0, so their errors add up. */
static bool beyond_noise(const at_race *race, const at_contender *contender) {
  const at_contender *incumbent = at_race_incumbent(race);
  const bool judged = incumbent && incumbent->merit > 0.0;
  const double speedup = judged ? incumbent->speedup : 1.0, merit = judged ? incumbent->merit : 1.0,
               error = judged ? incumbent->error : 0.0;
  const double errors = 3.0 * sqrt(contender->error * contender->error + error * error);
  const double margin = 1.0 + (errors > SWITCH_MARGIN ? errors : SWITCH_MARGIN);
  return contender->count >= LEAST_ROUNDS && contender->speedup > speedup * margin && contender->merit > merit * margin;
}

/* Is it ahead at nine of ten placements, or as good as even, and clearly behind at none that was measured? */
static bool ahead_wherever(const at_race *race, const at_contender *contender) {
  return !race->steady || (contender->merit * (1.0 - NINE_OF_TEN * contender->shift) > LEAST_WORST &&
                           contender->merit / contender->speedup * contender->least > LEAST_MET);
}

bool at_race_beats_default(const at_race *race, const at_contender *contender) {
  return beyond_noise(race, contender) && ahead_wherever(race, contender);
}

at_contender *at_race_winner(at_race *race) {
  at_contender *const incumbent = at_race_incumbent(race), *best = incumbent;
  for (int i = 1; i < race->count; i++) {
    at_contender *contender = race->contenders[i];
    if (contender->state != AT_SCREENED || contender == incumbent || !at_race_beats_default(race, contender)) continue;
    if (best == incumbent || contender->merit > best->merit * (1.0 + SAME)) best = contender;
  }
  return best;
}

bool at_race_open(at_race *race, const at_contender **could) {
  const at_contender *base = race->contenders[0], *winner = at_race_winner(race), *most = NULL;
  double most_gain = 0.0;
  int challengers = 0;
  for (int i = 1; i < race->count; i++) {
    const at_contender *contender = race->contenders[i];
    if (contender->state != AT_SCREENED) continue;
    challengers++;
    if (contender == winner || contender->count == 0 || beyond_noise(race, contender)) continue;
    const double ahead = contender->merit / winner->merit - 1.0, gain = ahead + 2.0 * contender->error;
    if ((ahead > OPEN_AHEAD || gain > OPEN_COULD) && gain > most_gain) {
      most_gain = gain;
      most = contender;
    }
  }
  if (could) *could = most;
  double spread = 0.0;
  (void)at_race_time(base, &spread);
  return most || (challengers && base->count < LEAST_ROUNDS) ||
         (winner == at_race_incumbent(race) && spread > OPEN_SPREAD) || at_race_shaken(race, winner);
}
