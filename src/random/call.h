/* SPDX-License-Identifier: Apache-2.0
 * call.h: one call for random numbers, as the host's code and the kernels get it, and the samples of the portable mode.
 * C and CUDA read this file.
 *
 * Portable mode: block b of a call is Philox block offset / 4 + b; element i is sample i % E of block i / E, E samples
 * a block (at_random_per_block). A sample takes its words in order: 16 bits, the low half of a word first; 32; or 64,
 * the low word first. */
#ifndef AT_RANDOM_CALL_H
#define AT_RANDOM_CALL_H

#ifndef __CUDACC__
#include "src/random/transforms.h"
#endif

#define AT_UNIFORM 0
#define AT_NORMAL 1
#define AT_LOG_NORMAL 2
#define AT_EXPONENTIAL 3
#define AT_BERNOULLI 4
#define AT_INTEGERS 5
#define AT_PERMUTATION 6

/* attune_dtype's values, which the kernels do not see; random.c asserts that they agree. */
#define AT_F64 1
#define AT_F32 2
#define AT_F16 3
#define AT_BF16 4
#define AT_I32 5
#define AT_I64 6

#define AT_WIDE_RANGE (1u << 20)       /* integers from more than that many take 64 bits a sample */
#define AT_TORCH_WIDE_RANGE (1u << 28) /* the same in torch's mode */
#define AT_RANK_COUNT 1024u            /* permutations up to here are by sorting, beyond by a keyed bijection */
#define AT_PERMUTATION_ROUNDS 12
#define AT_PERMUTATION_WORDS 24u

typedef struct at_random_call {
  at_u64 seed, offset; /* words of 32 bits; a multiple of 4 */
  const at_u64 *state; /* in a graph: {seed, base}, read when the work runs; `offset` is added to base; else NULL */
  void *out;
  at_u64 count;
  at_u64 threads; /* torch's mode: of its grid; 0: portable mode */
  at_i64 from;    /* integers: from <= x < from + range; range 0 is 2^64 */
  at_u64 range;
  at_u64 limit; /* Bernoulli: 1 when the sample's bits are <= limit ... */
  double d[3];  /* uniform: from, to - from, to; normal: mean, deviation; exponential: 1 / (2 rate) and rate; Bernoulli:
                   ... x d[0], p */
  float f[3];   /* the same, rounded */
  int distribution, dtype;
} at_random_call;

/* The same with its round keys, which a kernel reads as constants; unused in a graph, where the seed is not known
 * before. */
typedef struct at_fill_call {
  at_random_call call;
  at_philox_keys keys;
} at_fill_call;

/* 64 bits a sample in the portable mode. */
AT_BOTH int at_random_wide(int distribution, int dtype, at_u64 range) {
  if (dtype == AT_F64 || dtype == AT_I64) return 1;
  return distribution == AT_INTEGERS && range - 1u >= AT_WIDE_RANGE;
}

/* Samples of one block: 8 of 16 bits, 4 of 32 or 2 of 64. */
AT_BOTH at_u32 at_random_per_block(int distribution, int dtype, at_u64 range) {
  if (at_random_wide(distribution, dtype, range)) return 2u;
  return (dtype == AT_F16 || dtype == AT_BF16) && (distribution == AT_UNIFORM || distribution == AT_NORMAL) ? 8u : 4u;
}

AT_BOTH float at_uniform32(at_u32 w, float from, float extent, float to) {
  const float x = AT_FMA(AT_MUL((float)(int)(w >> 8), 0x1p-24f), extent, from);
  return x >= to ? from : x;
}

/* Before its rounding toward zero, after which `to` must give way to `from` again. */
AT_BOTH float at_uniform16(at_u32 bits, float from, float extent) {
  return AT_FMA(AT_MUL((float)(int)bits, 0x1p-16f), extent, from);
}

AT_BOTH double at_uniform64(at_u64 w, double from, double extent, double to) {
  const double x = AT_FMA64(at_unit64(w), extent, from);
  return x >= to ? from : x;
}

AT_BOTH float at_exponential32(at_u32 w, float half_scale) {
  return AT_MUL(at_log32(at_open32(w)), half_scale);
}
AT_BOTH double at_exponential64(at_u64 w, double half_scale) {
  return AT_MUL64(at_log64(at_open64(w)), half_scale);
}

AT_BOTH at_i64 at_integer32(at_u32 w, at_i64 from, at_u64 range) {
  return from + (at_i64)(((at_u64)w * range) >> 32);
}
AT_BOTH at_i64 at_integer64(at_u64 w, at_i64 from, at_u64 range) {
  return (at_i64)((at_u64)from + (range ? AT_HIGH64(w, range) : w));
}

AT_BOTH at_u64 at_join64(at_u32 low, at_u32 high) {
  return (at_u64)high << 32 | low;
}

/* A mixer of 64 bits: multiplications and shifts, each a bijection. */
AT_BOTH at_u64 at_mix64(at_u64 x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return x ^ x >> 32;
}

/* Where i < count goes: an unbalanced Feistel network over the next power of two, walked until it is back below count.
 * `bits` >= 2. */
AT_BOTH at_u64 at_permute(at_u64 i, at_u64 count, int bits, const at_u64 *keys) {
  const int low_bits = bits / 2, high_bits = bits - low_bits;
  const at_u64 low_mask = (1ull << low_bits) - 1u, high_mask = (1ull << high_bits) - 1u;
  do {
    at_u64 low = i & low_mask, high = i >> low_bits;
    for (int round = 0; round < AT_PERMUTATION_ROUNDS; round += 2) {
      low ^= at_mix64(high ^ keys[round]) & low_mask;
      high ^= at_mix64(low ^ keys[round + 1]) & high_mask;
    }
    i = high << low_bits | low;
  } while (i >= count);
  return i;
}

/* The least number of bits that count - 1 fits, at least 2. */
AT_BOTH int at_permutation_bits(at_u64 count) {
  int bits = 2;
  while (bits < 63 && (count - 1u) >> bits) bits++;
  return bits;
}

#endif
