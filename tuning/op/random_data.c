/* SPDX-License-Identifier: Apache-2.0
 * random_data.c: uniform data from SplitMix64 (Steele, Lea, Flood 2014), rounded to the dtype. */
#include "tuning/op/random_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/dtype.h"
#include "src/base/float8.h"
#include "src/base/half.h"
#include "src/base/splitmix64.h"

enum {
  ELEMENTS = 2097143, /* the largest prime below 2^21 */
  MOST_DRAWS = 1000
};

typedef struct pool {
  attune_dtype dtype;
  at_range range;
  void *data; /* NULL: free */
  uint64_t used_at;
} pool;

struct at_random {
  uint64_t seed, clock;
  pool pools[AT_RANDOM_POOLS];
};

attune_status at_random_create(at_random **out, uint64_t seed) {
  *out = calloc(1, sizeof **out);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for random data");
  (*out)->seed = seed;
  return ATTUNE_OK;
}

void at_random_destroy(at_random *random) {
  if (!random) return;
  for (size_t i = 0; i < AT_COUNT(random->pools); i++) free(random->pools[i].data);
  free(random);
}

/* ---- reals ---- */

/* Stores x as the dtype, a complex one's part; what it has become. */
static double put_real(void *data, attune_dtype dtype, size_t at, double x) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: return ((double *)data)[at] = x;
  case ATTUNE_F32:
  case ATTUNE_C64: return (double)(((float *)data)[at] = (float)x);
  case ATTUNE_F16: return (double)at_f16_to_f32(((uint16_t *)data)[at] = at_f64_to_f16(x));
  case ATTUNE_BF16: return (double)at_bf16_to_f32(((uint16_t *)data)[at] = at_f64_to_bf16(x));
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(((uint8_t *)data)[at] = at_f64_to_f8e4m3(x));
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(((uint8_t *)data)[at] = at_f64_to_f8e5m2(x));
  default: return (double)NAN;
  }
}

static bool fill_reals(void *data, attune_dtype dtype, at_range range, uint64_t *state) {
  const size_t parts = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX ? 2 : 1;
  for (size_t i = 0; i < parts * ELEMENTS; i++) {
    double stored = (double)NAN;
    for (int draws = 0; !(stored >= range.low && stored <= range.high); draws++) {
      if (draws == MOST_DRAWS) return false;
      const double part = at_splitmix64_uniform(state);
      stored = put_real(data, dtype, i, range.low * (1.0 - part) + range.high * part);
    }
  }
  return true;
}

/* ---- integers ---- */

/* The least number of the dtype and the first one above its largest; for bool 0 and 2. */
static void limits(attune_dtype dtype, double *least, double *end) {
  const int bits = 8 * (int)attune_dtype_size(dtype);
  *least = at_dtype_unsigned(dtype) ? 0.0 : -ldexp(1.0, bits - 1);
  *end = dtype == ATTUNE_BOOL ? 2.0 : ldexp(1.0, at_dtype_unsigned(dtype) ? bits : bits - 1);
}

/* Stores the value's low bytes. */
static void put_integer(void *data, attune_dtype dtype, size_t at, uint64_t value) {
  switch (attune_dtype_size(dtype)) {
  case 1: ((uint8_t *)data)[at] = (uint8_t)value; break;
  case 2: ((uint16_t *)data)[at] = (uint16_t)value; break;
  case 4: ((uint32_t *)data)[at] = (uint32_t)value; break;
  default: ((uint64_t *)data)[at] = value; break;
  }
}

static bool fill_integers(void *data, attune_dtype dtype, at_range range, uint64_t *state) {
  double least, end;
  limits(dtype, &least, &end);
  const double low = ceil(range.low), high = floor(range.high);
  if (!(low >= least && low <= high && high < end)) return false;
  const bool is_unsigned = at_dtype_unsigned(dtype);
  const uint64_t first = is_unsigned ? (uint64_t)low : (uint64_t)(int64_t)low,
                 last = is_unsigned ? (uint64_t)high : (uint64_t)(int64_t)high,
                 count = last - first + 1; /* 0: all there are */
  for (size_t i = 0; i < ELEMENTS; i++)
    put_integer(data, dtype, i, first + (count ? at_splitmix64(state) % count : at_splitmix64(state)));
  return true;
}

/* ---- pools ---- */

static at_range usual_range(attune_dtype dtype) {
  if (dtype == ATTUNE_BOOL) return (at_range){0.0, 1.0};
  if (at_dtype_unsigned(dtype)) return (at_range){0.0, 100.0};
  return at_dtype_whole(dtype) ? (at_range){-100.0, 100.0} : (at_range){-1.0, 1.0};
}

static uint64_t seed_of(const at_random *random, attune_dtype dtype, at_range range) {
  uint64_t low, high, state = random->seed + (uint64_t)dtype;
  memcpy(&low, &range.low, sizeof low);
  memcpy(&high, &range.high, sizeof high);
  state = at_splitmix64(&state) ^ low;
  return at_splitmix64(&state) ^ high;
}

static pool *find(at_random *random, attune_dtype dtype, at_range range) {
  for (size_t i = 0; i < AT_COUNT(random->pools); i++) {
    pool *p = &random->pools[i];
    if (p->data && p->dtype == dtype && memcmp(&p->range, &range, sizeof range) == 0) return p;
  }
  return NULL;
}

/* A free one, or that which was used least lately. */
static pool *make_room(at_random *random) {
  pool *oldest = &random->pools[0];
  for (size_t i = 0; i < AT_COUNT(random->pools) && oldest->data; i++)
    if (!random->pools[i].data || random->pools[i].used_at < oldest->used_at) oldest = &random->pools[i];
  return oldest;
}

static attune_status make(at_random *random, attune_dtype dtype, at_range range, pool **out) {
  void *data = malloc(ELEMENTS * attune_dtype_size(dtype));
  if (!data) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for random data");
  uint64_t state = seed_of(random, dtype, range);
  if (!(at_dtype_whole(dtype) ? fill_integers : fill_reals)(data, dtype, range, &state)) {
    free(data);
    return at_fail(ATTUNE_INTERNAL, "%s has no number from %g to %g, as a buffer of random data needs",
                   attune_dtype_name(dtype), range.low, range.high);
  }
  pool *p = make_room(random);
  free(p->data);
  *p = (pool){.dtype = dtype, .range = range, .data = data};
  *out = p;
  return ATTUNE_OK;
}

attune_status at_random_data(at_random *random, attune_dtype dtype, at_range range, const void **out, size_t *bytes) {
  if (!attune_dtype_size(dtype)) return at_fail(ATTUNE_INTERNAL, "no random data for dtype %d", (int)dtype);
  if (range.low == 0.0 && range.high == 0.0) range = usual_range(dtype);
  pool *p = find(random, dtype, range);
  AT_TRY(p ? ATTUNE_OK : make(random, dtype, range, &p));
  p->used_at = ++random->clock;
  *out = p->data;
  *bytes = ELEMENTS * attune_dtype_size(dtype);
  return ATTUNE_OK;
}

double at_random_number(const at_random *random, int index, at_range range) {
  enum { STEPS = 64 };
  uint64_t state = random->seed ^ (uint64_t)(index + 1) << 32;
  const double step = (double)(at_splitmix64(&state) % (STEPS + 1));
  return (range.low * (STEPS - step) + range.high * step) / STEPS;
}
