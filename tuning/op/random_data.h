/* SPDX-License-Identifier: Apache-2.0
 * random_data.h: random numbers to measure and verify with. Not zeros: they hide errors and run faster than real data.
 */
#ifndef AT_RANDOM_DATA_H
#define AT_RANDOM_DATA_H

#include <attune/types.h>

#include "src/base/support.h"

/* Numbers from low to high; of a complex number both parts are. {0, 0}: the usual ones of a dtype, -1 to 1 for reals,
 * -100 to 100 for integers, from 0 for unsigned ones, 0 and 1 for bool. */
typedef struct at_range {
  double low, high;
} at_range;

/* Data in host memory, made at first use and the same again whenever it is made again. Used by one thread at a time. */
typedef struct at_random at_random;
attune_status at_random_create(at_random **out, uint64_t seed);
void at_random_destroy(at_random *random);

/* A prime number of random elements of `dtype`, as they are after rounding all within the range; integers have both
 * ends. Borrowed: the latest AT_RANDOM_POOLS pairs of dtype and range stay. INTERNAL: no such dtype, or it has no
 * number in the range. */
#define AT_RANDOM_POOLS 16
attune_status at_random_data(at_random *random, attune_dtype dtype, at_range range, const void **out, size_t *bytes);

/* Number `index` of the range in steps of a 64th, so that few digits hold it: the same one each time. */
double at_random_number(const at_random *random, int index, at_range range);

#endif
