/* SPDX-License-Identifier: Apache-2.0
 * tuners.h: all tuners of the process, so that the end of the process finds those that live, and what is written when a
 * tuner ends: the recorded calls and the profile. */
#ifndef AT_TUNERS_H
#define AT_TUNERS_H

#include "tuning/tuner/tuner.h"

void at_tuners_add(attune_tuner *tuner);

/* Takes it out, after the end of the process is done with it, and writes what there is to write. Before anything of it
 * is freed. */
void at_tuners_remove(attune_tuner *tuner);

#endif
