/* SPDX-License-Identifier: Apache-2.0
 * device_random.cuh: rand() and randn() of an element: draw k of an expression is what the generator's k-th call for f32
 * numbers on as many elements would give, all calls taking their stretch of the generator at once. The lanes of a thread
 * that share a Philox block get it once: the compiler sees equal counters, where elements begin at multiples of 4. */
struct at_draws {
  at_u64 seed, first; /* block of element 0's first draw */
};

AT_INLINE at_philox_block at_draw_block(const at_draws &d, at_u64 blocks, at_u64 draw, at_u64 element) {
  return at_philox(d.seed, d.first + draw * blocks + element / 4u, 0);
}

AT_INLINE float at_draw_uniform(const at_draws &d, at_u64 blocks, at_u64 draw, at_u64 element) {
  const at_philox_block block = at_draw_block(d, blocks, draw, element);
  const at_u32 k = (at_u32)element & 3u;
  return AT_MUL((float)(int)((k & 2u   ? (k & 1u ? block.w[3] : block.w[2])
                              : k & 1u ? block.w[1]
                                       : block.w[0]) >>
                             8),
                0x1p-24f);
}

AT_INLINE float at_draw_normal(const at_draws &d, at_u64 blocks, at_u64 draw, at_u64 element) {
  const at_philox_block block = at_draw_block(d, blocks, draw, element);
  const bool second = ((at_u32)element & 2u) != 0;
  const at_u32 v = second ? block.w[2] : block.w[0], w = second ? block.w[3] : block.w[1];
  const at_pair32 pair = at_normal32(at_radius32(at_make_log_row(at_log_index(v)), v), w);
  return (at_u32)element & 1u ? pair.y : pair.x;
}
