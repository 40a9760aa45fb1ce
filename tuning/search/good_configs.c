/* SPDX-License-Identifier: Apache-2.0
 * good_configs.c: see search_parts.h. One search at a time uses a timer, so nothing here is locked. */
#include "tuning/search/search_parts.h"

#include <string.h>

enum { NOTED = 3 }; /* of one search */
static const double AS_GOOD = 0.99;

/* To the front; the oldest falls out. */
static void note(at_timer *timer, const at_candidate *candidate) {
  at_good_config *list = timer->favourites;
  int at = 0;
  while (at < timer->favourite_count && (list[at].implementation != candidate->implementation ||
                                         strcmp(list[at].configuration.text, candidate->configuration.text) != 0))
    at++;
  if (at == timer->favourite_count) {
    if (at == AT_GOOD_CONFIGS) at--;
    timer->favourite_count = at + 1;
  }
  memmove(&list[1], &list[0], (size_t)at * sizeof *list);
  list[0] = (at_good_config){candidate->implementation, candidate->configuration};
}

void at_good_configs_note(at_timer *timer, const at_race *race, const at_candidate *winner) {
  int noted = 0;
  for (int i = race->count - 1; i >= 0 && noted < NOTED; i--) {
    const at_candidate *c = race->candidates[i];
    if (c == winner || !c->implementation->neighbours || c->count == 0 || c->state != AT_SCREENED ||
        c->speedup < AS_GOOD * winner->speedup)
      continue;
    note(timer, c);
    noted++;
  }
  if (winner->implementation->neighbours) note(timer, winner);
}

void at_good_configs_add(const at_timer *timer, at_race *race, const void *problem) {
  for (int i = 0; i < timer->favourite_count; i++) {
    const at_good_config *f = &timer->favourites[i];
    if (!at_registry_usable(f->implementation, problem, timer->device)) continue;
    at_candidate *candidate = at_race_add(race, f->implementation, &f->configuration);
    if (candidate) candidate->favourite = true;
  }
}
