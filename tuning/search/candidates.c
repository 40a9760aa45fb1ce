/* SPDX-License-Identifier: Apache-2.0
 * candidates.c: the candidates of a race: added, dropped, and what their threads cost. */
#include "tuning/search/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"

/* A team measured back to back is awake and has the CPUs to itself; in a program it must be woken, and others want the
 * CPUs: each additional one that it keeps busy has a price, so that two CPUs for a few percent are no win. */
static const double TEAM_NS = 1500.0, CPU_PRICE = 0.15; /* once a call; of the time for each CPU more */

/* CPUs that it keeps busy: as measured, else all its threads. */
static double cpus_of(const at_candidate *candidate) {
  int64_t threads = 1;
  if (!at_configuration_get(&candidate->configuration, "threads", &threads) || threads < 2) return 1.0;
  return candidate->cpus > 0.0 ? candidate->cpus : (double)threads;
}

double at_race_team_cost(const at_candidate *candidate, double ns) {
  const double more = cpus_of(candidate) - 1.0;
  return ns * (1.0 + CPU_PRICE * more) + TEAM_NS * (more < 1.0 ? more : 1.0);
}

at_candidate *at_race_add(at_race *race, const at_implementation *implementation,
                          const at_configuration *configuration) {
  for (int i = 0; i < race->count; i++)
    if (race->candidates[i]->implementation == implementation && !race->candidates[i]->bare &&
        strcmp(race->candidates[i]->configuration.text, configuration->text) == 0)
      return NULL;
  if (!AT_ARRAY_ROOM(race->candidates, race->count, race->room)) return NULL;
  at_candidate *candidate = calloc(1, sizeof *candidate);
  if (!candidate) return NULL;
  candidate->implementation = implementation;
  candidate->configuration = *configuration;
  race->candidates[race->count++] = candidate;
  return candidate;
}

at_candidate *at_race_incumbent(const at_race *race) {
  return race->incumbent ? race->incumbent : race->count > 0 ? race->candidates[0] : NULL;
}

void at_race_add_default(at_race *race, const at_implementation *base, const at_configuration *configuration) {
  at_candidate *first = at_race_add(race, base, configuration);
  if (!first || !base->bare) return;
  first->bare = true;
  race->incumbent = at_race_add(race, base, configuration);
}

bool at_race_stays(const at_race *race, const at_candidate *candidate) {
  return candidate == race->candidates[0] || candidate == race->incumbent;
}

void at_race_drop(at_race *race, at_candidate *candidate, at_candidate_state state) {
  at_sampler_forget(race->sampler, &candidate->target);
  at_plan_destroy(candidate->plan);
  candidate->plan = NULL;
  candidate->made = false;
  candidate->state = state;
}

int at_race_left(at_candidate **field, int count) {
  int left = 0;
  for (int i = 0; i < count; i++)
    if (field[i]->state == AT_SCREENED) field[left++] = field[i];
  return left;
}

/* False: no candidate failed, or one that stays, or the device is lost; then the round's status is the race's. What was
 * given to the stream before the launch that failed ends first, for it uses plans. */
static bool drop_failed(at_race *race, at_candidate *const *field, int count) {
  for (int i = 0; i < count; i++) {
    if (&field[i]->target != race->sampler->failed) continue;
    if (at_race_stays(race, field[i])) return false;
    if (attune_stream_synchronize(race->sampler->timer->stream) != ATTUNE_OK) return false;
    at_race_drop(race, field[i], AT_FAILED);
    return true;
  }
  return false;
}

attune_status at_race_sample(at_race *race, at_candidate *const *field, int count, int turn, double *ns, bool *good) {
  at_timing_target *targets[AT_ROUND_TARGETS] = {NULL};
  double taken[AT_ROUND_TARGETS];
  int whose[AT_ROUND_TARGETS], running = 0;
  attune_status status;
  const int64_t start_ns = at_now_ns();
  do {
    running = 0;
    for (int i = 0; i < count; i++) {
      const int k = (i + turn) % count;
      if (field[k]->state != AT_SCREENED) continue;
      whose[running] = k;
      targets[running++] = &field[k]->target;
    }
    status = at_sampler_round(race->sampler, targets, running, taken, good);
  } while (status != ATTUNE_OK && drop_failed(race, field, count));
  for (int i = 0; i < running && status == ATTUNE_OK; i++) ns[whose[i]] = taken[i];
  if (running > 0) race->sample_ns = fmax(0.5 * race->sample_ns, (double)(at_now_ns() - start_ns) / running);
  return status;
}

void at_race_free(at_race *race) {
  for (int i = 0; i < race->count; i++) {
    at_race_drop(race, race->candidates[i], AT_SLOWER);
    free(race->candidates[i]);
  }
  free(race->candidates);
  race->candidates = NULL;
  race->count = 0;
  race->room = 0;
}

void at_race_note_cpus(at_candidate *candidate) {
  const double latest = candidate->target.cpus;
  if (latest <= 0.0) return;
  candidate->cpus = candidate->cpus > 0.0 ? 0.75 * candidate->cpus + 0.25 * latest : latest;
}
