/* SPDX-License-Identifier: Apache-2.0
 * ranking.c: what the samples say: how much faster a candidate is, which wins, and whether that is open. */
#include <math.h>

#include "tuning/search/candidates.h"
#include "tuning/search/race.h"

static const double SWITCH_MARGIN = 0.005; /* a challenger must win by this, and by 3 standard errors */
/* What leaves the choice open: a candidate ahead in its median by so much, or that could be by so much more, two errors
 * up; a default whose own times vary by so much while nothing beats it. */
static const double OPEN_AHEAD = 0.02, OPEN_COULD = 0.05, OPEN_SPREAD = 0.20;
static const double NINE_OF_TEN = 1.28,
                    LEAST_WORST = 0.995; /* standard deviations; what is left at the tenth placement */
static const double LEAST_MET = 0.99;    /* what is left at the worst placement that was measured, so often: */
enum { LEAST_TIMES = 3 };

void at_race_judge(const at_candidate *base, at_candidate *candidate) {
  at_paired_samples p;
  at_paired_samples_make(&p, base, candidate);
  const double base_ns = at_median(p.a, p.count);
  candidate->speedup = at_placed_ratio(p.a, p.b, p.place, p.count, &candidate->error, &candidate->shift);
  candidate->least = at_placed_least(p.a, p.b, p.place, p.count, &candidate->least_place);
  candidate->least_times = 0;
  for (int i = 0; i < p.count; i++) candidate->least_times += p.place[i] == candidate->least_place;
  candidate->merit = base_ns / at_race_team_cost(candidate, base_ns / candidate->speedup);
}

/* Beyond the noise, in time and in merit too: what is slower than the default never wins because it is cheaper, nor
 * what is faster because it is dearer. Both were paired with candidate 0, so their errors add up. */
static bool beyond_noise(const at_race *race, const at_candidate *candidate) {
  const at_candidate *incumbent = at_race_incumbent(race);
  const bool judged = incumbent && incumbent->merit > 0.0;
  const double speedup = judged ? incumbent->speedup : 1.0, merit = judged ? incumbent->merit : 1.0,
               error = judged ? incumbent->error : 0.0;
  const double errors = 3.0 * sqrt(candidate->error * candidate->error + error * error);
  const double margin = 1.0 + (errors > SWITCH_MARGIN ? errors : SWITCH_MARGIN);
  return candidate->count >= AT_PAIRED_SAMPLES_LEAST && candidate->speedup > speedup * margin &&
         candidate->merit > merit * margin;
}

/* Is it ahead at nine of ten placements, or as good as even? */
static bool ahead_at_most(const at_candidate *candidate) {
  return candidate->merit * (1.0 - NINE_OF_TEN * candidate->shift) > LEAST_WORST;
}

static bool behind_somewhere(const at_candidate *candidate) {
  return candidate->merit / candidate->speedup * candidate->least <= LEAST_MET;
}

/* That, and clearly behind at none that was measured. */
static bool ahead_wherever(const at_race *race, const at_candidate *candidate) {
  return !race->steady || (ahead_at_most(candidate) && !behind_somewhere(candidate));
}

/* Would it win but for a placement that was not measured often? */
static bool is_doubted(const at_race *race, const at_candidate *candidate) {
  return race->steady && beyond_noise(race, candidate) && ahead_at_most(candidate) && behind_somewhere(candidate) &&
         candidate->least_times < LEAST_TIMES;
}

int at_race_doubtful_place(const at_race *race) {
  const at_candidate *most = NULL;
  for (int i = 1; i < race->count; i++) {
    const at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_SCREENED || candidate == at_race_incumbent(race) || !is_doubted(race, candidate))
      continue;
    if (!most || candidate->merit > most->merit) most = candidate;
  }
  return most ? most->least_place : -1;
}

bool at_race_beats_default(const at_race *race, const at_candidate *candidate) {
  return beyond_noise(race, candidate) && ahead_wherever(race, candidate);
}

at_candidate *at_race_winner(at_race *race) {
  at_candidate *const incumbent = at_race_incumbent(race), *best = incumbent;
  for (int i = 1; i < race->count; i++) {
    at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_SCREENED || candidate == incumbent || !at_race_beats_default(race, candidate)) continue;
    if (best == incumbent || candidate->merit > best->merit * (1.0 + AT_RACE_SAME)) best = candidate;
  }
  return best;
}

bool at_race_open(at_race *race, at_candidate **could) {
  const at_candidate *base = race->candidates[0], *winner = at_race_winner(race);
  at_candidate *most = NULL;
  double most_gain = 0.0;
  int challengers = 0;
  for (int i = 1; i < race->count; i++) {
    at_candidate *candidate = race->candidates[i];
    if (candidate->state != AT_SCREENED) continue;
    challengers++;
    if (candidate == winner || candidate->count == 0) continue;
    if (beyond_noise(race, candidate) && !is_doubted(race, candidate)) continue;
    const double ahead = candidate->merit / winner->merit - 1.0, gain = ahead + 2.0 * candidate->error;
    if ((ahead > OPEN_AHEAD || gain > OPEN_COULD) && gain > most_gain) {
      most_gain = gain;
      most = candidate;
    }
  }
  if (could) *could = most;
  double spread = 0.0;
  (void)at_race_time(base, &spread);
  return most || (challengers && base->count < AT_PAIRED_SAMPLES_LEAST) ||
         (winner == at_race_incumbent(race) && spread > OPEN_SPREAD) || at_race_shaken(race, winner);
}
