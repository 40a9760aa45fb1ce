/* SPDX-License-Identifier: Apache-2.0
 * fill_avx2.c: the host's portable mode with AVX2: eight Philox blocks at a time. */
#include "src/host/random/fill.h"

#if defined(__x86_64__)
#include <immintrin.h>

static void f16_of(uint16_t *out, const float *x, size_t count, int toward_zero) {
  for (size_t i = 0; i < count; i += 4) { /* samples come by fours */
    const __m128 v = _mm_loadu_ps(x + i);
    _mm_storel_epi64((__m128i *)(void *)(out + i),
                     toward_zero ? _mm_cvtps_ph(v, _MM_FROUND_TO_ZERO) : _mm_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
}

/* Four blocks, a word of each in the low halves of 64-bit lanes; what the upper halves hold does not matter. */
typedef struct lanes {
  __m256i c0, c1, c2, c3;
} lanes;

static inline void philox_round(lanes *v, __m256i k0, __m256i k1) {
  const __m256i p0 = _mm256_mul_epu32(v->c0, _mm256_set1_epi64x(AT_PHILOX_M0)),
                p1 = _mm256_mul_epu32(v->c2, _mm256_set1_epi64x(AT_PHILOX_M1));
  v->c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), v->c1), k0);
  v->c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), v->c3), k1);
  v->c1 = p1;
  v->c3 = p0;
}

/* Lanes hold blocks 0, 2, 1, 3: so unpacking within halves of the register gives them in order. */
static inline lanes start(at_u64 low, at_u64 high) {
  const __m256i counter = _mm256_add_epi64(_mm256_set1_epi64x((long long)low), _mm256_set_epi64x(3, 1, 2, 0));
  return (lanes){counter, _mm256_srli_epi64(counter, 32), _mm256_set1_epi64x((long long)high),
                 _mm256_set1_epi64x((long long)(high >> 32))};
}

static inline void finish(at_u32 *out, const lanes *v) {
  const __m256i a = _mm256_blend_epi32(v->c0, _mm256_slli_epi64(v->c1, 32), 0xaa),
                b = _mm256_blend_epi32(v->c2, _mm256_slli_epi64(v->c3, 32), 0xaa);
  const __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b); /* blocks 0 and 1; 2 and 3 */
  _mm256_storeu_si256((__m256i *)(void *)out, even);
  _mm256_storeu_si256((__m256i *)(void *)(out + 8), odd);
}

static void philox_blocks(at_u32 *words, at_u64 seed, at_u64 low, at_u64 high, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    lanes x = start(low + i, high), y = start(low + i + 4, high);
    __m256i k0 = _mm256_set1_epi64x((long long)(seed & 0xffffffffu)), k1 = _mm256_set1_epi64x((long long)(seed >> 32));
    for (int round = 0; round < AT_PHILOX_ROUNDS; round++) {
      philox_round(&x, k0, k1);
      philox_round(&y, k0, k1);
      k0 = _mm256_add_epi32(k0, _mm256_set1_epi64x(AT_PHILOX_W0));
      k1 = _mm256_add_epi32(k1, _mm256_set1_epi64x(AT_PHILOX_W1));
    }
    finish(words + 4 * i, &x);
    finish(words + 4 * i + 16, &y);
  }
  for (; i < count; i++) {
    const at_philox_block block = at_philox(seed, low + i, high);
    for (int k = 0; k < 4; k++) words[4 * i + (size_t)k] = block.w[k];
  }
}

#include "src/host/random/fill_template.h"

const at_fill_isa at_fill_avx2 = {.name = "avx2", .philox = philox_blocks, .fill = fill};

#endif
