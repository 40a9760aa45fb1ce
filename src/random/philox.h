/* SPDX-License-Identifier: Apache-2.0
 * philox.h: Philox4x32-10, the generator of all random numbers: a counter of 128 bits and a key of 64 give 128 random
 * bits (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3). C and CUDA read this file. */
#ifndef AT_RANDOM_PHILOX_H
#define AT_RANDOM_PHILOX_H

#ifdef __CUDACC__
typedef unsigned int at_u32;
typedef unsigned long long at_u64;
typedef long long at_i64;
#define AT_BOTH static __device__ __forceinline__
#else
#include <stdint.h>
typedef uint32_t at_u32;
typedef uint64_t at_u64;
typedef int64_t at_i64;
#define AT_BOTH static inline
#endif

#define AT_PHILOX_M0 0xD2511F53u
#define AT_PHILOX_M1 0xCD9E8D57u
#define AT_PHILOX_W0 0x9E3779B9u
#define AT_PHILOX_W1 0xBB67AE85u
#define AT_PHILOX_ROUNDS 10

typedef struct at_philox_block {
  at_u32 w[4];
} at_philox_block;

/* Said to the compiler of kernels in its own words: of a plain product it adds 0 to the upper half, once a product. */
AT_BOTH at_u64 at_philox_product(at_u32 x, at_u32 y) {
#ifdef __CUDA_ARCH__
  at_u64 product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "r"(y));
  return product;
#else
  return (at_u64)x * y;
#endif
}

/* The round keys of a seed. */
typedef struct at_philox_keys {
  at_u32 k[2 * AT_PHILOX_ROUNDS];
} at_philox_keys;

AT_BOTH at_philox_keys at_philox_key(at_u64 seed) {
  at_philox_keys keys;
#ifdef __CUDACC__
#pragma unroll
#endif
  for (at_u32 round = 0; round < AT_PHILOX_ROUNDS; round++) {
    keys.k[2 * round] = (at_u32)seed + round * AT_PHILOX_W0;
    keys.k[2 * round + 1] = (at_u32)(seed >> 32) + round * AT_PHILOX_W1;
  }
  return keys;
}

/* The block at counter `high`:`low`. */
AT_BOTH at_philox_block at_philox_with(const at_philox_keys *keys, at_u64 low, at_u64 high) {
  at_u32 c0 = (at_u32)low, c1 = (at_u32)(low >> 32), c2 = (at_u32)high, c3 = (at_u32)(high >> 32);
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int round = 0; round < AT_PHILOX_ROUNDS; round++) {
    const at_u64 p0 = at_philox_product(AT_PHILOX_M0, c0), p1 = at_philox_product(AT_PHILOX_M1, c2);
    c0 = (at_u32)(p1 >> 32) ^ c1 ^ keys->k[2 * round];
    c2 = (at_u32)(p0 >> 32) ^ c3 ^ keys->k[2 * round + 1];
    c1 = (at_u32)p1;
    c3 = (at_u32)p0;
  }
  at_philox_block block = {{c0, c1, c2, c3}};
  return block;
}

AT_BOTH at_philox_block at_philox(at_u64 seed, at_u64 low, at_u64 high) {
  const at_philox_keys keys = at_philox_key(seed);
  return at_philox_with(&keys, low, high);
}

#endif
