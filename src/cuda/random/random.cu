/* SPDX-License-Identifier: Apache-2.0
 * random.cu: the kernels of the portable mode, and of permutations. Specialised by macros; the values here make it
 * compile alone.
 *
 * A thread makes chunks of 16 bytes, each of one Philox block (two where a sample takes more bits than its element has)
 * and one store. A block makes tiles of UNROLL chunks a thread, so that what is written at a time lies together. Where
 * memory is the limit (uniform, Bernoulli, integers) the grid has a block for each tile, else it is resident and steps
 * over them. Measured on an H200: tiles of two chunks a thread, written by plain stores, are as fast as a fill of the
 * memory; a chunk a thread, or evict-first stores (st.cs), cost 10 %. Two chunks also hide each other's latency: normal
 * f32 gains 10 %. */
#ifndef AT_EMBEDDED
/* in this order */
#include "src/random/philox.h"

#include "src/random/transforms.h"

#include "src/random/call.h"
#endif

#ifndef KIND
#define KIND 1     /* AT_UNIFORM ... */
#define TYPE 2     /* AT_F64 ... */
#define WIDE 0     /* 64 bits a sample */
#define PLAIN 1    /* uniform from 0 to 1; normal of mean 0 and deviation 1 */
#define ALIGNED 1  /* out is aligned to 16 bytes */
#define IN_GRAPH 0 /* seed and base offset are read from call.state */
#define UNROLL 2   /* chunks a thread and tile */
#endif

#ifndef AT_EMBEDDED
#include "src/cuda/random/samples.cuh"
#endif

/* More time goes into the samples than into the memory. */
#define RESIDENT (KIND == AT_NORMAL || KIND == AT_LOG_NORMAL || KIND == AT_EXPONENTIAL)
#define THREADS 256
#define TABLE_THREADS 1024
#define TABLE_UNROLL 4
/* f32 samples of Box and Muller by a table of logarithms; not in small calls, where its making takes longer. */
#define LOGARITHMS (UNROLL > 2 && ((KIND == AT_NORMAL && TYPE == AT_F32) || (KIND == AT_LOG_NORMAL && TYPE != AT_F64)))

typedef union chunk {
  uint4 all;
  at_u32 words[4];
  element elements[ELEMENTS];
} chunk;

template <bool BY_TABLE>
static __device__ __forceinline__ chunk make_chunk(const at_random_call &call, const char *table, at_u64 seed,
                                                   const at_philox_keys &keys, at_u64 first) {
  chunk c;
#pragma unroll
  for (int b = 0; b < BLOCKS; b++)
    block_out<BY_TABLE>(call, table, seed, keys, first + (at_u64)b, c.words + b * (4 / BLOCKS));
  return c;
}

static __device__ __forceinline__ void put(char *at, const chunk &c) {
  if (ALIGNED) {
    *(uint4 *)at = c.all;
  } else {
#pragma unroll
    for (int k = 0; k < ELEMENTS; k++) ((element *)at)[k] = c.elements[k];
  }
}

/* Chunks from `first` to before `end`, one after the other; the call's last may be a part. */
template <bool BY_TABLE>
static __device__ __forceinline__ void fill_slowly(const at_random_call &call, const char *table, at_u64 seed,
                                                   const at_philox_keys &keys, at_u64 base, at_u64 first, at_u64 end) {
#pragma unroll 1
  for (at_u64 i = first + threadIdx.x; i < end; i += blockDim.x) {
    const chunk c = make_chunk<BY_TABLE>(call, table, seed, keys, base / 4u + i * BLOCKS);
    char *at = (char *)call.out + i * 16u;
    const at_u64 left = call.count - i * ELEMENTS;
    if (left >= ELEMENTS) {
      put(at, c);
    } else {
#pragma unroll
      for (int k = 0; k < ELEMENTS; k++)
        if (k < (int)left) ((element *)at)[k] = c.elements[k];
    }
  }
}

/* As if the counter's high half were the same in the whole tile, so that rounds that depend on it alone are computed
 * once. */
template <bool BY_TABLE, int PER_THREAD, at_u32 SIZE>
static __device__ __forceinline__ void fill_tile(const at_random_call &call, const char *table, at_u64 seed,
                                                 const at_philox_keys &keys, at_u64 base, at_u32 tile) {
  const at_u32 chunks = PER_THREAD * SIZE;
  const at_u64 counter = base / 4u + (at_u64)tile * (chunks * BLOCKS);
  const at_u32 low = (at_u32)counter + threadIdx.x * BLOCKS, high = (at_u32)(counter >> 32);
  char *at = (char *)call.out + (at_u64)tile * (chunks * 16u) + threadIdx.x * 16u;
#pragma unroll
  for (at_u32 u = 0; u < PER_THREAD; u++)
    put(at + u * SIZE * 16u,
        make_chunk<BY_TABLE>(call, table, seed, keys, (at_u64)high << 32 | (low + u * SIZE * BLOCKS)));
}

static __device__ __forceinline__ at_u64 chunks_of(const at_random_call &call) {
  return (call.count + ELEMENTS - 1u) / ELEMENTS;
}

/* A block a tile, and one for what is no whole tile. */
template <bool BY_TABLE, int PER_THREAD, at_u32 SIZE>
static __device__ __forceinline__ void fill_one(const at_random_call &call, const char *table, at_u64 seed,
                                                const at_philox_keys &keys, at_u64 base) {
  const at_u32 chunks = PER_THREAD * SIZE, tile = blockIdx.x, tiles = (at_u32)(call.count / ELEMENTS / chunks);
  const at_u64 first = (at_u64)tile * chunks;
  const bool wraps = (at_u32)(base / 4u + first * BLOCKS) > 0xffffffffu - chunks * BLOCKS;
  if (tile < tiles && !wraps)
    fill_tile<BY_TABLE, PER_THREAD, SIZE>(call, table, seed, keys, base, tile);
  else
    fill_slowly<BY_TABLE>(call, table, seed, keys, base, first, tile < tiles ? first + chunks : chunks_of(call));
}

/* The blocks step over the tiles. Then the tiles in which the counter's low half wraps around are made again, each
 * chunk by the same thread, and the rest is made; a test in the loop would cost normal f32 7 %. */
template <bool BY_TABLE, int PER_THREAD, at_u32 SIZE>
static __device__ __forceinline__ void fill_by_steps(const at_random_call &call, const char *table, at_u64 seed,
                                                     const at_philox_keys &keys, at_u64 base) {
  const at_u32 chunks = PER_THREAD * SIZE, tiles = (at_u32)(call.count / ELEMENTS / chunks);
#pragma unroll 1
  for (at_u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    fill_tile<BY_TABLE, PER_THREAD, SIZE>(call, table, seed, keys, base, tile);
#pragma unroll 1
  for (at_u64 wrap = 0x100000000u - (base / 4u & 0xffffffffu);; wrap += 0x100000000u) {
    const at_u64 with_wrap = wrap / (chunks * BLOCKS);
    const at_u32 tile = with_wrap < tiles ? (at_u32)with_wrap : tiles;
    const at_u64 first = (at_u64)tile * chunks;
    if (tile % gridDim.x == blockIdx.x)
      fill_slowly<BY_TABLE>(call, table, seed, keys, base, first, tile < tiles ? first + chunks : chunks_of(call));
    if (tile == tiles) return;
  }
}

template <bool BY_TABLE, int PER_THREAD, at_u32 SIZE>
static __device__ __forceinline__ void fill(const at_random_call &call, const char *table, at_u64 seed,
                                            const at_philox_keys &keys, at_u64 base) {
  if (RESIDENT)
    fill_by_steps<BY_TABLE, PER_THREAD, SIZE>(call, table, seed, keys, base);
  else
    fill_one<BY_TABLE, PER_THREAD, SIZE>(call, table, seed, keys, base);
}

template <bool BY_TABLE, int PER_THREAD, at_u32 SIZE>
static __device__ __forceinline__ void start(const at_fill_call &c, const char *table) {
  if (IN_GRAPH) {
    const at_u64 seed = c.call.state[0];
    fill<BY_TABLE, PER_THREAD, SIZE>(c.call, table, seed, at_philox_key(seed), c.call.offset + c.call.state[1]);
  } else {
    fill<BY_TABLE, PER_THREAD, SIZE>(c.call, table, c.call.seed, c.keys, c.call.offset);
  }
}

/* With "at least 1 block a multiprocessor" the compiler takes the registers that it needs to interleave the chunks;
 * without, as many as a full multiprocessor allows, and normal f32 takes 10 % longer. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) at_random_fill(const __grid_constant__ at_fill_call c) {
#if LOGARITHMS
  __shared__ at_log_row rows[AT_LOG_ROWS];
  for (at_u32 i = threadIdx.x; i < AT_LOG_ROWS; i += THREADS) rows[i] = at_make_log_row(i);
  __syncthreads();
  start<false, UNROLL, THREADS>(c, (const char *)rows);
#else
  start<false, UNROLL, THREADS>(c, nullptr);
#endif
}

#if HALF && KIND == AT_NORMAL
/* Normal f16 and bf16 for large counts: the elements of all 16-bit words in shared memory, 128 KiB, computed by each
 * block first. */
extern "C" __global__ void __launch_bounds__(TABLE_THREADS, 1)
    at_random_fill_by_table(const __grid_constant__ at_fill_call c) {
  extern __shared__ unsigned short table[];
  make_table(c.call, table);
  __syncthreads();
  start<true, TABLE_UNROLL, TABLE_THREADS>(c, (const char *)table);
}
#endif

typedef struct state_write {
  at_u64 *state, seed, offset;
} state_write;

extern "C" __global__ void at_random_state(const __grid_constant__ state_write write) {
  write.state[0] = write.seed;
  write.state[1] = write.offset;
}
