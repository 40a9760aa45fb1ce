/* SPDX-License-Identifier: Apache-2.0
 * permutation.cu: the numbers 0 to count - 1 in random order; one pass, each thread finds where its element goes. */
#ifndef AT_EMBEDDED
/* in this order */
#include "src/random/philox.h"

#include "src/random/transforms.h"

#include "src/random/call.h"
#endif

#ifndef TYPE
#define TYPE 5 /* AT_I32 or AT_I64 */
#endif

#if TYPE == AT_I32
typedef int element;
#else
typedef long long element;
#endif

static __device__ at_u64 key_of(at_u64 seed, at_u64 offset, at_u32 index) {
  const at_philox_block block = at_philox(seed, offset / 4u + index / 2u, 0);
  return index & 1u ? at_join64(block.w[2], block.w[3]) : at_join64(block.w[0], block.w[1]);
}

static __device__ void place(const at_random_call &call, at_u64 *seed, at_u64 *offset) {
  *seed = call.state ? call.state[0] : call.seed;
  *offset = call.state ? call.state[1] + call.offset : call.offset;
}

/* At most AT_RANK_COUNT elements by one block: an element's place is the number of keys before its own. */
extern "C" __global__ void __launch_bounds__(AT_RANK_COUNT)
    at_random_rank(const __grid_constant__ at_random_call call) {
  __shared__ at_u64 keys[AT_RANK_COUNT];
  at_u64 seed, offset;
  place(call, &seed, &offset);
  const at_u32 i = threadIdx.x, count = (at_u32)call.count;
  if (i < count) keys[i] = key_of(seed, offset, i);
  __syncthreads();
  if (i >= count) return;
  const at_u64 mine = keys[i];
  at_u32 before = 0;
  for (at_u32 k = 0; k < count; k++) before += keys[k] < mine || (keys[k] == mine && k < i);
  ((element *)call.out)[before] = (element)i;
}

extern "C" __global__ void __launch_bounds__(256) at_random_permute(const __grid_constant__ at_random_call call) {
  __shared__ at_u64 keys[AT_PERMUTATION_ROUNDS];
  at_u64 seed, offset;
  place(call, &seed, &offset);
  if (threadIdx.x < AT_PERMUTATION_ROUNDS) keys[threadIdx.x] = key_of(seed, offset, threadIdx.x);
  __syncthreads();
  const int bits = at_permutation_bits(call.count);
  const at_u64 stride = (at_u64)gridDim.x * blockDim.x;
  for (at_u64 i = (at_u64)blockIdx.x * blockDim.x + threadIdx.x; i < call.count; i += stride)
    ((element *)call.out)[i] = (element)at_permute(i, call.count, bits, keys);
}
