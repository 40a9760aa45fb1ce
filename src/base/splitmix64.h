/* SPDX-License-Identifier: Apache-2.0
 * splitmix64.h: SplitMix64 (Steele, Lea, Flood 2014): random bits of whatever is drawn for tests and measurements. */
#ifndef AT_SPLITMIX64_H
#define AT_SPLITMIX64_H

#include <stdint.h>

static inline uint64_t at_splitmix64(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double at_splitmix64_uniform(uint64_t *state) {
  return (double)(at_splitmix64(state) >> 11) * 0x1p-53;
}

#endif
