/* SPDX-License-Identifier: Apache-2.0
 * race.c: the rounds of a race: each candidate once, at another placement each time; one that is clearly behind is
 * dropped. */
#include "tuning/search/race.h"

#include <math.h>

#include "src/process/limit.h"
#include "tuning/search/candidates.h"

enum {
  ENOUGH_ROUNDS = 12, /* when the errors are small: each placement of a graph once */
  MOST_ROUNDS = 41,
  MOST_LONGER = AT_MAX_SAMPLES, /* where noise leaves the choice open */
  LEAST_FIELD = 3,              /* challengers that race even when the time is up */
  MOST_FIELD = 20
};
static const double ENOUGH_ERROR = 0.0015; /* relative standard error of a paired ratio */
static const double WINS_BY = 0.005;       /* less is no win over the default */
static const double FAR_BEHIND = 1.06;     /* in each of the first rounds: no later one makes up for that */
static const double UNSEEN =
    0.01; /* how far a ratio may move at placements not met yet: before a few drop a candidate */

/* Power-hungry work is slower once the device is hot: rounds count from when the default's time stands still. */
static const double SETTLE_FROM_NS = 30e3;                       /* calls this long fill the device */
static const double SETTLE_MOST_NS = 200e6, SETTLE_SHARE = 0.35; /* of the race's time */
static const double SETTLED = 0.004;                             /* from one round to the next, so often: */
enum { SETTLED_ROUNDS = 4 };

/* The screened candidates, the default first; the count. */
static int lineup(at_race *race, at_candidate **out, int most) {
  int count = 0;
  for (int i = 0; i < race->count && count < most; i++)
    if (race->candidates[i]->state == AT_SCREENED) out[count++] = race->candidates[i];
  return count;
}

/* Makes all of the field ready. Who cannot be is dropped, but for the default: that is its own affair, and the others
 * race on. *count: those left, in their order. */
static attune_status make_ready(at_race *race, at_candidate **field, int *count) {
  int left = 0;
  for (int i = 0; i < *count; i++) {
    const attune_status status = at_sampler_ready(race->sampler, &field[i]->target);
    if (status == ATTUNE_OK)
      field[left++] = field[i];
    else if (at_race_stays(race, field[i]))
      return status;
    else
      at_race_drop(race, field[i], AT_FAILED);
  }
  *count = left;
  return ATTUNE_OK;
}

static attune_status one_round(at_race *race, at_candidate **field, int *among, int turn) {
  double ns[AT_ROUND_TARGETS];
  bool good = true;
  const int doubtful = race->longer || race->rounds >= ENOUGH_ROUNDS ? at_race_doubtful_place(race) : -1,
            place = doubtful >= 0 ? doubtful : race->rounds % at_sampler_placements(race->sampler);
  at_sampler_place(race->sampler, place);
  attune_status status = make_ready(race, field, among);
  const int count = *among;
  if (status == ATTUNE_OK) status = at_race_sample(race, field, count, turn, ns, &good);
  for (int i = 0; i < count && status == ATTUNE_OK && good; i++) {
    at_candidate *candidate = field[i];
    if (candidate->state != AT_SCREENED) continue;
    candidate->place[candidate->count] = (unsigned char)place;
    candidate->taken[candidate->count] = (float)candidate->target.taken;
    candidate->rough[candidate->count] = candidate->target.rough;
    candidate->samples[candidate->count++] = ns[i];
    at_race_note_cpus(candidate);
  }
  *among = at_race_left(field, count);
  if (status == ATTUNE_OK && good) race->rounds++;
  return status;
}

/* Rounds that do not count, until the device is as hot as the work makes it. */
static attune_status settle(at_race *race, int64_t until_ns) {
  const int64_t now = at_now_ns();
  const double left = SETTLE_SHARE * (double)(until_ns - now), most = left < SETTLE_MOST_NS ? left : SETTLE_MOST_NS;
  at_candidate *field[AT_ROUND_TARGETS];
  double ns[AT_ROUND_TARGETS], before = 0.0;
  bool good = true;
  int count = lineup(race, field, AT_ROUND_TARGETS);
  attune_status status = make_ready(race, field, &count);
  for (int still = 0; still < SETTLED_ROUNDS && status == ATTUNE_OK && (double)(at_now_ns() - now) < most;) {
    status = at_race_sample(race, field, count, 0, ns, &good);
    still = fabs(ns[0] - before) <= SETTLED * ns[0] ? still + 1 : 0;
    before = ns[0];
  }
  return status;
}

/* How much longer a candidate takes than the leader. */
typedef struct gap {
  double behind, error;
  double doubt; /* the error, or what placements not met yet may do */
} gap;

static gap gap_of(const at_candidate *candidate, const at_candidate *leader) {
  double shift = 0.0;
  gap g;
  at_paired_samples p;
  at_paired_samples_make(&p, candidate, leader);
  g.behind = at_placed_ratio(p.a, p.b, p.place, p.count, &g.error, &shift);
  const double unseen = UNSEEN / sqrt((double)p.count);
  g.doubt = g.error > unseen ? g.error : unseen;
  return g;
}

/* Can more rounds still change the winner? Whether the leader beats the default, or another the leader by what counts.
 * By how much it wins is no question of a race's on the host: confirm.h. */
static bool is_settled(const at_race *race, const at_candidate *candidate, const gap *g) {
  const double error = g->error;
  if (error < ENOUGH_ERROR) return true;
  if (candidate == at_race_incumbent(race))
    return g->behind - 3.0 * error > 1.0 + WINS_BY || g->behind + 3.0 * error < 1.0 + WINS_BY;
  return g->behind - 3.0 * error > 1.0 - AT_RACE_SAME;
}

/* Drops candidates whose best case is behind the leader's worst; true when what is left is clear enough. */
static bool eliminate(at_race *race, at_candidate **field, int count) {
  const at_candidate *leader = at_race_incumbent(race);
  for (int i = 0; i < count; i++)
    if (!field[i]->bare && field[i]->merit > leader->merit) leader = field[i];
  bool settled = true;
  int left = 0;
  for (int i = 0; i < count; i++) {
    at_candidate *candidate = field[i];
    const gap g = gap_of(candidate, leader);
    if (candidate != leader && !at_race_stays(race, candidate) && g.behind - 3.0 * g.doubt > 1.0 + AT_RACE_SAME) {
      at_race_drop(race, candidate, AT_SLOWER);
      continue;
    }
    if (candidate != leader && !candidate->bare) settled = settled && is_settled(race, candidate, &g);
    left += !candidate->bare;
  }
  return left == 1 || settled;
}

/* Before there are rounds enough to judge by: drops those far behind the leader in every round so far, but for a few,
 * so that there are others if the leader turns out to be wrong. */
static void drop_far_behind(at_race *race, at_candidate **field, int count) {
  const at_candidate *leader = at_race_incumbent(race);
  for (int i = 0; i < count; i++)
    if (!field[i]->bare && field[i]->merit > leader->merit) leader = field[i];
  for (int i = 0, left = count; i < count && left > 1 + LEAST_FIELD && race->steady && race->rounds >= 2; i++) {
    bool far = field[i] != leader && !at_race_stays(race, field[i]) && !field[i]->kept;
    for (int r = 0; r < field[i]->count && far; r++)
      far = r < leader->count && field[i]->samples[r] > FAR_BEHIND * leader->samples[r];
    if (!far) continue;
    at_race_drop(race, field[i], AT_SLOWER);
    left--;
  }
}

/* How many can be sampled often enough in the time. */
static int affordable(const at_race *race, int64_t left_ns) {
  const double round_ns = at_race_sample_ns(race) + race->sampler->ready_ns;
  const double count = (double)left_ns / (round_ns * ENOUGH_ROUNDS) - 1.0;
  const int least = at_limit_of() == AT_NO_LIMIT ? LEAST_FIELD : 1;
  return count < least ? least : count > MOST_FIELD ? MOST_FIELD : (int)count;
}

/* Is there no time for a round of so many? A few rounds there are in any case; where a hard limit ends, if they are
 * short. */
static bool is_over(const at_race *race, int count, int64_t until_ns) {
  const double left_ns = (double)(until_ns - at_now_ns()),
               grace_ns = race->rounds < AT_PAIRED_SAMPLES_LEAST ? AT_LIMIT_GRACE_NS : 0.0;
  if (at_limit_of() != AT_NO_LIMIT)
    return left_ns + grace_ns < count * (at_race_sample_ns(race) + race->sampler->ready_ns);
  return left_ns < 0.0 && race->rounds >= AT_PAIRED_SAMPLES_LEAST;
}

attune_status at_race_run(at_race *race, int64_t until_ns) {
  if (at_sampler_be_sure(race->sampler))
    for (int i = 0; i < race->count; i++) at_sampler_forget(race->sampler, &race->candidates[i]->target);
  race->rounds = race->candidates[0]->count; /* counted rounds: disturbed ones are repeated */
  if (race->rounds == 0) at_race_prune(race, affordable(race, until_ns - at_now_ns()));
  attune_status status = ATTUNE_OK;
  const attune_search_options *settings = &race->sampler->timer->settings;
  const int usual = race->longer ? MOST_LONGER : MOST_ROUNDS;
  const int most = settings->rounds > 0 && settings->rounds < usual ? settings->rounds : usual;
  if (settings->candidate_ms > 0.0) {
    at_candidate *field[AT_ROUND_TARGETS];
    const int64_t bound = at_now_ns() + (int64_t)(settings->candidate_ms * 1e6 * lineup(race, field, AT_ROUND_TARGETS));
    if (bound < until_ns) until_ns = bound;
  }
  if (race->rounds == 0 && race->steady && race->sampler->once_ns >= SETTLE_FROM_NS) status = settle(race, until_ns);
  for (int turn = 0; status == ATTUNE_OK && turn < 2 * most && race->rounds < most; turn++) {
    at_candidate *field[AT_ROUND_TARGETS];
    int count = lineup(race, field, AT_ROUND_TARGETS);
    if (is_over(race, count, until_ns)) break;
    status = one_round(race, field, &count, turn);
    for (int i = 0; i < count && status == ATTUNE_OK; i++) at_race_judge(race->candidates[0], field[i]);
    if (race->rounds < AT_PAIRED_SAMPLES_LEAST) drop_far_behind(race, field, count);
    if (race->rounds >= AT_PAIRED_SAMPLES_LEAST && eliminate(race, field, count) && race->rounds >= ENOUGH_ROUNDS &&
        !at_race_open(race, NULL))
      break;
    if (race->longer && !at_race_open(race, NULL)) break;
  }
  return status;
}
