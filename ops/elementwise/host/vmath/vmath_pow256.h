/* SPDX-License-Identifier: Apache-2.0
 * vmath_pow256.h: powers of f32 with AVX2, as vmath_pow512.h has them with AVX-512, to the
 * bit. A register holds half a table of the logarithm. */
#ifndef AT_VMATH_POW256_H
#define AT_VMATH_POW256_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#include "ops/elementwise/host/vmath/vmath_pow_tables.h"

static inline __m256 power_entry(const float *table, __m256i place) {
  return _mm256_permutevar8x32_ps(_mm256_load_ps(table), place);
}
/* Of 16; the sign of `second` says which half. */
static inline __m256 power_entry_of_16(const float *table, __m256i place, __m256 second) {
  return _mm256_blendv_ps(power_entry(table, place), power_entry(table + 8, place), second);
}
static inline __m256 all_8(float x) {
  return _mm256_set1_ps(x);
}

/* log2(x) is high + low, low not always far below high. x = 2^e m. */
typedef struct pair_8 {
  __m256 high, low;
} pair_8;
static inline pair_8 power_log2(__m256 x) {
  const __m256 tiny = _mm256_cmp_ps(x, all_8(0x1p-126f), _CMP_LT_OQ);
  const __m256i bits = _mm256_castps_si256(_mm256_blendv_ps(x, x * all_8(0x1p24f), tiny));
  const __m256i more = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f400000)); /* the bits of 3/4 */
  const __m256i exponent = _mm256_and_si256(more, _mm256_set1_epi32((int)0xff800000u));
  const __m256 m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, exponent));
  const __m256 e = _mm256_cvtepi32_ps(_mm256_srai_epi32(more, 23)) - _mm256_and_ps(tiny, all_8(24.0f));
  const __m256i place = _mm256_castps_si256(m + all_8(0x1.8p19f));
  const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(place, 28));
  const __m256 r = _mm256_fmsub_ps(m, power_entry_of_16(power_factor, place, second), all_8(1.0f)),
               half = r * all_8(-0.5f);
  const __m256 u = _mm256_fmadd_ps(r, half, r), u_low = _mm256_fmadd_ps(r, half, r - u); /* exactly r - r^2 / 2 */
  __m256 q = _mm256_fmadd_ps(all_8(POWER_Q4), r, all_8(POWER_Q3));
  q = _mm256_fmadd_ps(q, r, all_8(POWER_Q2));
  q = _mm256_fmadd_ps(q, r, all_8(POWER_Q1));
  q = _mm256_fmadd_ps(q, r, all_8(POWER_Q0));
  const __m256 cube = r * half * r, h = u * all_8(POWER_LOG2_E);
  __m256 low = _mm256_fmadd_ps(u, all_8(POWER_LOG2_E_LOW), _mm256_fmsub_ps(u, all_8(POWER_LOG2_E), h));
  low = _mm256_fmadd_ps(u_low, all_8(POWER_LOG2_E), low) + power_entry_of_16(power_log_low, place, second);
  low = _mm256_fmadd_ps(cube, q, low);
  const __m256 whole = e + power_entry_of_16(power_log, place, second), high = whole + h;
  return (pair_8){high, ((whole - high) + h) + low};
}

/* t = y log2(x) is k / 8 + rest, k in the low bits of `shifted`. 2^(k / 8), which may be outside of the normal numbers,
 * is made 2^64 times as large or as small and brought back at the end. Then what is far out, which may be anything, is
 * set right. */
static inline __m256 power_8(__m256 x, __m256 y) {
  const pair_8 log = power_log2(x);
  const __m256 t = y * log.high, t_low = _mm256_fmadd_ps(y, log.low, _mm256_fmsub_ps(y, log.high, t));
  const __m256 shifted = (t + t_low) + all_8(0x1.8p20f), rest = (t - (shifted - all_8(0x1.8p20f))) + t_low;
  const __m256i k = _mm256_castps_si256(shifted), n = _mm256_srai_epi32(k, 3);
  __m256 q = _mm256_fmadd_ps(all_8(POWER_E3), rest, all_8(POWER_E2));
  q = _mm256_fmadd_ps(q, rest, all_8(POWER_E1));
  q = _mm256_fmadd_ps(q, rest, all_8(POWER_E0));
  q = _mm256_fmadd_ps(q, rest, power_entry(power_root_low, k));
  const __m256 back = _mm256_blendv_ps(all_8(0x1p64f), all_8(0x1p-64f), t);
  /* the exponents add up: 2^n root / back */
  const __m256i moved = _mm256_sub_epi32(_mm256_set1_epi32(127 << 23), _mm256_castps_si256(back));
  const __m256i root = _mm256_add_epi32(_mm256_castps_si256(power_entry(power_root, k)), _mm256_slli_epi32(n, 23));
  const __m256 scale = _mm256_castsi256_ps(_mm256_add_epi32(root, moved));
  __m256 power = _mm256_fmadd_ps(scale, q, scale) * back;
  power = _mm256_blendv_ps(power, all_8(__builtin_inff()), _mm256_cmp_ps(t, all_8(160.0f), _CMP_GT_OQ));
  return _mm256_andnot_ps(_mm256_cmp_ps(t, all_8(-160.0f), _CMP_LT_OQ), power);
}

/* All bits of an element are set where x is 0, negative, infinite or NaN, or y is infinite or NaN. */
static inline __m256i power_special_8(__m256 x, __m256 y) {
  enum { LARGEST = 0x7f7fffff, LEAST = -0x7fffffff - 1 };
  /* from the least positive number on: these become the least integers */
  const __m256i x_bits = _mm256_add_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
  const __m256i y_bits = _mm256_castps_si256(_mm256_andnot_ps(all_8(-0.0f), y));
  return _mm256_or_si256(_mm256_cmpgt_epi32(x_bits, _mm256_set1_epi32(LEAST + LARGEST - 1)),
                         _mm256_cmpgt_epi32(y_bits, _mm256_set1_epi32(LARGEST)));
}

/* o[i] = x[i]^y[i] for i < n; whether some are special, which are anything. The rest of the last vector is 1^1. */
static inline bool power_plain(float *o, const float *xp, const float *yp, size_t n) {
  __m256i special = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(xp + i), y = _mm256_loadu_ps(yp + i);
    special = _mm256_or_si256(special, power_special_8(x, y));
    _mm256_storeu_ps(o + i, power_8(x, y));
  }
  if (i < n) {
    const __m256i part = first_of(n - i);
    const __m256 one = all_8(1.0f), mask = _mm256_castsi256_ps(part);
    const __m256 x = _mm256_blendv_ps(one, _mm256_maskload_ps(xp + i, part), mask);
    const __m256 y = _mm256_blendv_ps(one, _mm256_maskload_ps(yp + i, part), mask);
    special = _mm256_or_si256(special, power_special_8(x, y));
    _mm256_maskstore_ps(o + i, part, power_8(x, y));
  }
  return !_mm256_testz_si256(special, special);
}

#endif
