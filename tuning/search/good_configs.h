/* SPDX-License-Identifier: Apache-2.0
 * good_configs.h: configurations that were the best for other problems of the same device, of implementations that cannot
 * list all they have. Problems are alike: what was good for one is tried early for the next, and its code is loaded. */
#ifndef AT_GOOD_CONFIGS_H
#define AT_GOOD_CONFIGS_H

#include "tuning/search/race.h"

/* Notes the race's winner, and those as good within a percent, of implementations with neighbours. */
void at_good_configs_note(at_timer *profiler, const at_race *race, const at_candidate *winner);

/* Adds those of implementations that can do the problem to the race. What one of them cannot do there is no failure. */
void at_good_configs_add(const at_timer *profiler, at_race *race, const void *problem);

#endif
