/* SPDX-License-Identifier: Apache-2.0
 * search_collect.c: what a search looks at: the winner so far, every implementation's configurations, and neighbours of
 * the best of them. */
#include "tuning/search/search_parts.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"

typedef at_search_state search;

enum {
  KINDS = 3,      /* whose neighbours are looked at in the first wave: the best of each kind */
  LEADERS = 2,    /* and in a later one */
  NEIGHBOURS = 64 /* of one leader: those that change one tunable come first; the best lead the next wave */
};

static const double KIND_WITHIN = 1.35, LEADER_WITHIN = 1.05; /* of the best: worth widening */

/* The winner so far, second after the default, if this build still has it. */
static void add_known(search *s) {
  const at_implementation *implementation =
      s->known ? at_registry_find(s->op, s->known->implementation, s->device) : NULL;
  at_configuration configuration;
  if (!implementation || implementation->version != s->known->implementation_version ||
      !at_registry_usable(implementation, s->problem, s->device) ||
      !at_copy_text(configuration.text, sizeof configuration.text, s->known->configuration))
    return;
  at_candidate *candidate = at_race_add(&s->race, implementation, &configuration);
  if (candidate) candidate->kept = true;
  s->known_one = candidate; /* not where it is the default: then it claims nothing */
}

/* Adds them, and has what they need compiled while the search runs. */
static void add_beside(search *s, const at_implementation *implementation, const at_configuration *list, int count) {
  const int before = s->build.count, taken = at_candidate_build_add(&s->build, implementation, list, count);
  for (int i = 0; i < taken; i++) {
    at_candidate *candidate = at_race_add(&s->race, implementation, &list[i]);
    if (!candidate) continue;
    candidate->beside = before + i + 1;
    candidate->made = true;
  }
}

static int most_configurations(const search *s) {
  const int wanted = s->sampler.timer->settings.configurations;
  return wanted > 0 && wanted < AT_SEARCH_CONFIGURATIONS ? wanted : AT_SEARCH_CONFIGURATIONS;
}

attune_status at_search_collect(search *s) {
  const at_implementation *base = at_registry_default(s->op, s->problem, s->device);
  if (!base) return at_registry_fail(s->op, "this problem", s->device);
  const size_t n = s->op->implementation_count;
  at_configuration **lists = calloc(n, sizeof *lists);
  int *counts = calloc(n, sizeof *counts), most = 0;
  attune_status status = lists && counts ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a search");
  for (size_t i = 0; i < n && status == ATTUNE_OK; i++) {
    const at_implementation *implementation = s->op->implementations[i];
    if (!at_registry_usable(implementation, s->problem, s->device)) continue;
    if (implementation->fallback && implementation != base) continue;
    counts[i] = implementation->configurations(implementation, s->problem, s->device, s->room, most_configurations(s));
    lists[i] = counts[i] > 0 ? malloc((size_t)counts[i] * sizeof **lists) : NULL;
    if (lists[i])
      memcpy(lists[i], s->room, (size_t)counts[i] * sizeof **lists);
    else if (counts[i] > 0)
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d candidates", counts[i]);
    if (counts[i] > most) most = counts[i];
  }
  for (size_t i = 0; i < n && status == ATTUNE_OK; i++)
    if (s->op->implementations[i] == base && counts[i] > 0) at_race_add_default(&s->race, base, &lists[i][0]);
  if (status == ATTUNE_OK && s->race.count != (base->bare ? 2 : 1))
    status = at_fail(ATTUNE_INTERNAL, "%s offers no configuration", base->name);
  if (status == ATTUNE_OK) add_known(s);
  for (size_t i = 0; i < n && status == ATTUNE_OK && s->race.steady; i++) {
    const int first = s->op->implementations[i] == base; /* the default is made before all others */
    if (counts[i] > first && s->op->implementations[i]->prepare_many)
      add_beside(s, s->op->implementations[i], &lists[i][first], counts[i] - first);
  }
  if (s->budget_ns > 0.0 || s->most_ns > 0.0) s->build.at_once = at_cpu_count();
  if (status == ATTUNE_OK) at_candidate_build_start(&s->build, s->problem, s->device);
  for (int turn = 0; turn < most && status == ATTUNE_OK; turn++) {
    for (size_t i = 0; i < n; i++)
      if (turn < counts[i]) at_race_add(&s->race, s->op->implementations[i], &lists[i][turn]);
    if (turn == 0 && s->race.steady) at_good_configs_add(s->sampler.timer, &s->race, s->problem);
  }
  for (size_t i = 0; i < n && lists; i++) free(lists[i]);
  free(lists);
  free(counts);
  return status;
}

/* Do two configurations share their first tunable (the algorithm or path, by convention)? Then one leads for both. */
static bool same_kind(const at_candidate *a, const at_candidate *b) {
  const size_t chars = strcspn(a->configuration.text, ",");
  return a->implementation == b->implementation && strcspn(b->configuration.text, ",") == chars &&
         strncmp(a->configuration.text, b->configuration.text, chars) == 0;
}

static bool kind_widened(const search *s, const at_candidate *candidate) {
  for (int i = 0; i < s->race.count; i++)
    if (s->race.candidates[i]->widened && same_kind(s->race.candidates[i], candidate)) return true;
  return false;
}

/* The fastest candidate whose neighbours were not looked at yet, in the first wave of a kind that was not either; NULL:
 * none worth it. */
static at_candidate *next_leader(search *s, bool new_kind) {
  at_candidate *leader = NULL;
  for (int i = 0; i < s->race.count; i++) {
    at_candidate *candidate = s->race.candidates[i];
    if (candidate->quick == 0.0 || candidate->widened || !candidate->implementation->neighbours) continue;
    if (candidate->state != AT_SCREENED && !(new_kind && candidate->state == AT_SLOWER)) continue;
    if ((!leader || candidate->quick < leader->quick) && !(new_kind && kind_widened(s, candidate))) leader = candidate;
  }
  return leader && leader->quick <= (new_kind ? KIND_WITHIN : LEADER_WITHIN) * s->race.best_quick ? leader : NULL;
}

attune_status at_search_widen(search *s) {
  attune_status status = ATTUNE_OK;
  for (int wave = 0;
       wave < AT_SEARCH_WAVES && status == ATTUNE_OK && at_now_ns() < at_search_until(s, s->times->widen_until);
       wave++) {
    int added = 0;
    for (int i = 0; i < (wave ? LEADERS : KINDS); i++) {
      at_candidate *leader = next_leader(s, wave == 0);
      if (!leader) break;
      leader->widened = true;
      const int count = leader->implementation->neighbours(leader->implementation, s->problem, s->device,
                                                           &leader->configuration, s->room, NEIGHBOURS);
      for (int j = 0; j < count; j++) {
        at_candidate *candidate = at_race_add(&s->race, leader->implementation, &s->room[j]);
        if (candidate) candidate->leader = leader;
        added += candidate != NULL;
      }
    }
    if (!added && wave) break;
    status = at_race_screen(&s->race, at_search_until(s, s->times->widen_until), AT_SEARCH_FIELD);
  }
  return status;
}
