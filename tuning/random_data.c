/* SPDX-License-Identifier: Apache-2.0
 * random_data.c: uniform data from SplitMix64 (Steele, Lea, Flood 2014), rounded to the dtype. */
#include "tuning/random_data.h"

#include <stdlib.h>
#include <string.h>

#include "src/half.h"

enum { ELEMENTS = 2097143 }; /* the largest prime below 2^21 */

struct at_random {
  uint64_t seed;
  void *data[ATTUNE_BF16 + 1]; /* by dtype */
};

attune_status at_random_create(at_random **out, uint64_t seed) {
  *out = calloc(1, sizeof **out);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for random data");
  (*out)->seed = seed;
  return ATTUNE_OK;
}

void at_random_destroy(at_random *random) {
  if (!random) return;
  for (size_t i = 0; i < AT_COUNT(random->data); i++) free(random->data[i]);
  free(random);
}

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* Uniform in [-1, 1), a multiple of 2^-52. */
static double uniform(uint64_t *state) {
  return (double)(int64_t)(next(state) >> 11) * 0x1p-52 - 1.0;
}

static void *make(attune_dtype dtype, uint64_t seed) {
  void *data = malloc(ELEMENTS * attune_dtype_size(dtype));
  if (!data) return NULL;
  for (size_t i = 0; i < ELEMENTS; i++) {
    const double value = uniform(&seed);
    switch (dtype) {
    case ATTUNE_F64: ((double *)data)[i] = value; break;
    case ATTUNE_F32: ((float *)data)[i] = (float)value; break;
    case ATTUNE_F16: ((uint16_t *)data)[i] = at_f32_to_f16((float)value); break;
    case ATTUNE_BF16: ((uint16_t *)data)[i] = at_f32_to_bf16((float)value); break;
    }
  }
  return data;
}

attune_status at_random_data(at_random *random, attune_dtype dtype, const void **out, size_t *bytes) {
  if (!attune_dtype_size(dtype)) return at_fail(ATTUNE_INTERNAL, "no random data for dtype %d", (int)dtype);
  if (!random->data[dtype]) random->data[dtype] = make(dtype, random->seed + (uint64_t)dtype);
  *out = random->data[dtype];
  *bytes = ELEMENTS * attune_dtype_size(dtype);
  return *out ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for random data");
}
