/* SPDX-License-Identifier: Apache-2.0
 * device_random.cuh: rand() and randn() of elements: draw k of an expression is what the generator's k-th call for f32
 * numbers on as many elements would give, all calls taking their stretch of the generator at once. Neighbours share a
 * Philox block, so a thread makes those of all its elements at once. */
struct at_random_draws {
  at_u64 seed, first; /* block of element 0's first draw */
};

/* The four words of a block, or the bits of the four normal numbers that they give. */
template <bool NORMAL> AT_INLINE void at_draw_block(at_u32 *out, const at_random_draws &d, at_u64 at) {
  const at_philox_block block = at_philox(d.seed, d.first + at, 0);
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    const at_u32 v = block.w[k], w = block.w[k + 1];
    if constexpr (NORMAL) {
      const at_pair32 pair = at_normal32(at_radius32(at_make_log_row(at_log_index(v)), v), w);
      out[k] = __float_as_uint(pair.x), out[k + 1] = __float_as_uint(pair.y);
    } else {
      out[k] = v, out[k + 1] = w;
    }
  }
}

/* Of N elements in a row from `element` on. Blocks begin at multiples of 4, elements as a rule too; `skip` says how far
 * behind one they begin. */
template <bool NORMAL, int N>
AT_INLINE void at_draw_row(at_u32 (&out)[N], const at_random_draws &d, at_u64 blocks, at_u64 draw, at_u64 element,
                           at_u32 skip) {
  constexpr int whole = (N + 3) / 4;
  const at_u64 first = draw * blocks + element / 4u;
  at_u32 all[4 * whole + 4] = {};
#pragma unroll
  for (int b = 0; b < whole; b++) at_draw_block<NORMAL>(all + 4 * b, d, first + b);
  if (skip > 0) {
    if (skip + N > 4 * whole) at_draw_block<NORMAL>(all + 4 * whole, d, first + whole);
#pragma unroll
    for (int k = 0; k < 4 * whole + 2; k++) all[k] = skip & 2u ? all[k + 2] : all[k];
#pragma unroll
    for (int k = 0; k < N; k++) all[k] = skip & 1u ? all[k + 1] : all[k];
  }
#pragma unroll
  for (int k = 0; k < N; k++) out[k] = all[k];
}

AT_INLINE float at_uniform_of(at_u32 w) {
  return AT_MUL((float)(int)(w >> 8), 0x1p-24f);
}

/* at_uniform_of(w) < p in whole numbers: w >> 8 is below p 2^24, rounded up. */
AT_INLINE bool at_is_below(at_u32 w, float p) {
#ifdef __CUDA_ARCH__
  const at_u32 below = __float2uint_ru(__saturatef(p) * 0x1p24f); /* 0 of NaN */
#else
  const at_u32 below = p > 0.0f ? (p < 1.0f ? (at_u32)ceilf(p * 0x1p24f) : 0x1000000u) : 0u;
#endif
  return below > 0 && w <= (below << 8) - 1u;
}

/* Loads stay in front of it, all under way before the numbers are made: the assembler would rather have few registers.
 * All threads of the warp come here. */
#define AT_RANDOM_DRAWS 1
AT_INLINE void at_loads_begun() {
#ifdef __CUDA_ARCH__
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#endif
}
