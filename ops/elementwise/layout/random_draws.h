/* SPDX-License-Identifier: Apache-2.0
 * random_draws.h: rand() and randn(). Draw k of an expression over n elements is what the k-th of a row of
 * calls of attune_random_uniform or attune_random_normal for n numbers in f32 would write, row-major, in the
 * generator's portable mode: the same bits on every device. rand()'s draws come first. */
#ifndef AT_RANDOM_DRAWS_H
#define AT_RANDOM_DRAWS_H

#include <stdint.h>

typedef struct at_random_draws {
  uint64_t seed, offset; /* of the generator, when the work runs; words, a multiple of 4 */
} at_random_draws;

/* Blocks of 4 words that one draw of `count` elements takes, and words that all draws take from the generator. */
static inline uint64_t at_draw_blocks(int64_t count) {
  return (uint64_t)count / 4 + (count % 4 != 0);
}
static inline uint64_t at_draw_words(int64_t count, int draws) {
  return 4 * at_draw_blocks(count) * (uint64_t)draws;
}

/* `n` numbers of draw `draw`, of the elements from `first` on, one after another. normal: 0 or 1. */
void at_draw_row(float *out, const at_random_draws *draws, int64_t count, int draw, int normal, int64_t first,
                 int64_t n);

#endif
