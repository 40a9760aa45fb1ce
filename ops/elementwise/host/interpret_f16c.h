/* SPDX-License-Identifier: Apache-2.0
 * interpret_f16c.h: f16 by the CPU's own conversions, and the fence, for the files of AVX2 and AVX-512. */
#ifndef AT_INTERPRET_F16C_H
#define AT_INTERPRET_F16C_H

#include <immintrin.h>
#include <stddef.h>

#include "src/base/half.h"

static void decode_f16(float *out, const uint16_t *x, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
  for (; i < n; i++) out[i] = at_f16_to_f32(x[i]);
}

static void encode_f16(uint16_t *out, const float *x, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) out[i] = at_f32_to_f16(x[i]);
}

static void fence(void) {
  _mm_sfence();
}

#endif
