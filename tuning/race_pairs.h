/* SPDX-License-Identifier: Apache-2.0
 * race_pairs.h: which samples of a race count. */
#ifndef AT_RACE_PAIRS_H
#define AT_RACE_PAIRS_H

#include "tuning/race.h"

#define AT_PAIRS_LEAST 4 /* rounds before anything is decided */

/* Two contenders' samples of the same rounds. */
typedef struct at_pairs {
  double a[AT_MAX_SAMPLES], b[AT_MAX_SAMPLES];
  unsigned char place[AT_MAX_SAMPLES];
  int count;
} at_pairs;

/* The pairs of b's rounds that others left alone; where these are fewer than AT_PAIRS_LEAST, those that they took least
 * from. */
void at_pairs_make(at_pairs *out, const at_contender *a, const at_contender *b);

#endif
