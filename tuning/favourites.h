/* SPDX-License-Identifier: Apache-2.0
 * favourites.h: configurations that were the best for other problems of the same device, of implementations that cannot
 * list all they have. Problems are alike: what was good for one is tried early for the next, and its code is loaded. */
#ifndef AT_FAVOURITES_H
#define AT_FAVOURITES_H

#include "tuning/race.h"

/* Notes the race's winner, and those as good within a percent, of implementations with neighbours. */
void at_favourites_note(at_profiler *profiler, const at_race *race, const at_contender *winner);

/* Adds those of implementations that can do the problem to the race. What one of them cannot do there is no failure. */
void at_favourites_add(const at_profiler *profiler, at_race *race, const void *problem);

#endif
