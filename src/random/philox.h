/* SPDX-License-Identifier: Apache-2.0
 * philox.h: Philox4x32-10, the generator of all random numbers: a counter of 128 bits and a key of 64 give 128 random bits (Salmon, Moraes, Dror,
 * Shaw: Parallel random numbers: as easy as 1, 2, 3). C and CUDA read this file. */
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

/* The block at counter `high`:`low` under `seed`. */
AT_BOTH at_philox_block at_philox(at_u64 seed, at_u64 low, at_u64 high) {
  at_u32 c0 = (at_u32)low, c1 = (at_u32)(low >> 32), c2 = (at_u32)high, c3 = (at_u32)(high >> 32);
  at_u32 k0 = (at_u32)seed, k1 = (at_u32)(seed >> 32);
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int round = 0; round < AT_PHILOX_ROUNDS; round++) {
    at_u64 p0 = (at_u64)AT_PHILOX_M0 * c0, p1 = (at_u64)AT_PHILOX_M1 * c2;
    c0 = (at_u32)(p1 >> 32) ^ c1 ^ k0;
    c2 = (at_u32)(p0 >> 32) ^ c3 ^ k1;
    c1 = (at_u32)p1;
    c3 = (at_u32)p0;
    k0 += AT_PHILOX_W0;
    k1 += AT_PHILOX_W1;
  }
  at_philox_block block = {{c0, c1, c2, c3}};
  return block;
}

#endif
