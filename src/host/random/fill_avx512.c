/* SPDX-License-Identifier: Apache-2.0
 * fill_avx512.c: the host's portable mode with AVX-512: sixteen Philox blocks at a time. */
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

/* Eight blocks, a word of each in the low halves of 64-bit lanes; what the upper halves hold does not matter. */
typedef struct lanes {
  __m512i c0, c1, c2, c3;
} lanes;

static inline void philox_round(lanes *v, __m512i k0, __m512i k1) {
  const __m512i p0 = _mm512_mul_epu32(v->c0, _mm512_set1_epi64((long long)AT_PHILOX_M0)),
                p1 = _mm512_mul_epu32(v->c2, _mm512_set1_epi64((long long)AT_PHILOX_M1));
  v->c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), v->c1, k0, 0x96); /* the exclusive or of three */
  v->c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), v->c3, k1, 0x96);
  v->c1 = p1;
  v->c3 = p0;
}

/* Lanes hold blocks 0, 4, 1, 5, 2, 6, 3, 7: so unpacking within quarters of the register gives them in order. */
static inline lanes start(at_u64 low, at_u64 high) {
  const __m512i counter = _mm512_add_epi64(_mm512_set1_epi64((long long)low), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
  return (lanes){counter, _mm512_srli_epi64(counter, 32), _mm512_set1_epi64((long long)high),
                 _mm512_set1_epi64((long long)(high >> 32))};
}

static inline void finish(at_u32 *out, const lanes *v) {
  const __m512i a = _mm512_mask_blend_epi32(0xaaaa, v->c0, _mm512_slli_epi64(v->c1, 32)),
                b = _mm512_mask_blend_epi32(0xaaaa, v->c2, _mm512_slli_epi64(v->c3, 32));
  const __m512i even = _mm512_unpacklo_epi64(a, b), odd = _mm512_unpackhi_epi64(a, b); /* blocks 0 to 3; 4 to 7 */
  _mm512_storeu_si512(out, even);
  _mm512_storeu_si512(out + 16, odd);
}

static void philox_blocks(at_u32 *words, at_u64 seed, at_u64 low, at_u64 high, size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    lanes x = start(low + i, high), y = start(low + i + 8, high);
    __m512i k0 = _mm512_set1_epi64((long long)(seed & 0xffffffffu)), k1 = _mm512_set1_epi64((long long)(seed >> 32));
    for (int round = 0; round < AT_PHILOX_ROUNDS; round++) {
      philox_round(&x, k0, k1);
      philox_round(&y, k0, k1);
      k0 = _mm512_add_epi32(k0, _mm512_set1_epi64((long long)AT_PHILOX_W0));
      k1 = _mm512_add_epi32(k1, _mm512_set1_epi64((long long)AT_PHILOX_W1));
    }
    finish(words + 4 * i, &x);
    finish(words + 4 * i + 32, &y);
  }
  for (; i < count; i++) {
    const at_philox_block block = at_philox(seed, low + i, high);
    for (int k = 0; k < 4; k++) words[4 * i + (size_t)k] = block.w[k];
  }
}

#include "src/host/random/fill_template.h"

const at_fill_isa at_fill_avx512 = {.name = "avx512", .philox = philox_blocks, .fill = fill};

#endif
