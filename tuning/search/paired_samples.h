/* SPDX-License-Identifier: Apache-2.0
 * paired_samples.h: which samples of a race count. */
#ifndef AT_PAIRED_SAMPLES_H
#define AT_PAIRED_SAMPLES_H

#include "tuning/search/race.h"

#define AT_PAIRED_SAMPLES_LEAST 4 /* rounds before anything is decided */

/* Two contenders' samples of the same rounds. */
typedef struct at_paired_samples {
  double a[AT_MAX_SAMPLES], b[AT_MAX_SAMPLES];
  unsigned char place[AT_MAX_SAMPLES];
  int count;
} at_paired_samples;

/* The pairs of b's rounds that others left alone; where these are fewer than AT_PAIRED_SAMPLES_LEAST, those that they took least
 * from. */
void at_paired_samples_make(at_paired_samples *out, const at_candidate *a, const at_candidate *b);

#endif
