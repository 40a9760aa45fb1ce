/* SPDX-License-Identifier: Apache-2.0
 * random_data.h: random numbers to measure and verify with. Never zeros: they hide errors and run faster than real
 * data. */
#ifndef AT_RANDOM_DATA_H
#define AT_RANDOM_DATA_H

#include "src/support.h"

/* Data in host memory, made once for each dtype at first use: uniform in [-1, 1). Used by one thread at a time. */
typedef struct at_random at_random;
attune_status at_random_create(at_random **out, uint64_t seed);
void at_random_destroy(at_random *random);

/* A prime number of random elements of `dtype`, borrowed. */
attune_status at_random_data(at_random *random, attune_dtype dtype, const void **out, size_t *bytes);

#endif
