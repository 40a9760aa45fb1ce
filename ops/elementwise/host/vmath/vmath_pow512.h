/* SPDX-License-Identifier: Apache-2.0
 * vmath_pow512.h: powers of f32 with AVX-512, x^y for 0 < x < infinity and finite y, as 2^(y log2(x)), the
 * logarithm in two parts: a register holds a table, which leaves no division and few steps. Within 0.6 units in the
 * last place, 0.8 below the normal numbers; a power that is a number of f32 is exact. See vmath.h. */
#ifndef AT_VMATH_POW512_H
#define AT_VMATH_POW512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#include "ops/elementwise/host/vmath/vmath_pow_tables.h"

static inline __m512 power_entry(const float *table, __m512i place) {
  return _mm512_permutexvar_ps(place, _mm512_load_ps(table));
}
static inline __m512 all_16(float x) {
  return _mm512_set1_ps(x);
}

/* log2(x) is high + low, low not always far below high. x = 2^e m. */
typedef struct pair_16 {
  __m512 high, low;
} pair_16;
static inline pair_16 power_log2(__m512 x) {
  const __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src), less = _mm512_getexp_ps(x);
  const __m512 e = _mm512_mask_add_ps(less, _mm512_cmp_ps_mask(m, all_16(1.0f), _CMP_LT_OQ), less, all_16(1.0f));
  const __m512i place = _mm512_castps_si512(m + all_16(0x1.8p19f));
  const __m512 r = _mm512_fmsub_ps(m, power_entry(power_factor, place), all_16(1.0f)), half = r * all_16(-0.5f);
  const __m512 u = _mm512_fmadd_ps(r, half, r), u_low = _mm512_fmadd_ps(r, half, r - u); /* exactly r - r^2 / 2 */
  __m512 q = _mm512_fmadd_ps(all_16(POWER_Q4), r, all_16(POWER_Q3));
  q = _mm512_fmadd_ps(q, r, all_16(POWER_Q2));
  q = _mm512_fmadd_ps(q, r, all_16(POWER_Q1));
  q = _mm512_fmadd_ps(q, r, all_16(POWER_Q0));
  const __m512 cube = r * half * r, h = u * all_16(POWER_LOG2_E);
  __m512 low = _mm512_fmadd_ps(u, all_16(POWER_LOG2_E_LOW), _mm512_fmsub_ps(u, all_16(POWER_LOG2_E), h));
  low = _mm512_fmadd_ps(u_low, all_16(POWER_LOG2_E), low) + power_entry(power_log_low, place);
  low = _mm512_fmadd_ps(cube, q, low);
  const __m512 whole = e + power_entry(power_log, place), high = whole + h;
  return (pair_16){high, ((whole - high) + h) + low};
}

/* Of 8. */
static inline __m512 power_entry_of_8(const float *table, __m512i place) {
  return _mm512_permutexvar_ps(place, _mm512_broadcast_f32x8(_mm256_load_ps(table)));
}

/* t = y log2(x) is k / 8 + rest, k in the low bits of `shifted`. Far out the rest, which may be anything, is left out,
 * and the last step makes 0 or infinity. */
static inline __m512 power_16(__m512 x, __m512 y) {
  const pair_16 log = power_log2(x);
  const __m512 t = y * log.high;
  const __mmask16 near = _mm512_cmp_ps_mask(_mm512_abs_ps(t), all_16(300.0f), _CMP_LT_OQ);
  const __m512 t_low = _mm512_maskz_fmadd_ps(near, y, log.low, _mm512_fmsub_ps(y, log.high, t));
  const __m512 shifted = (t + t_low) + all_16(0x1.8p20f), rounded = shifted - all_16(0x1.8p20f);
  const __m512 rest = _mm512_maskz_add_ps(near, t - rounded, t_low);
  const __m512i k = _mm512_castps_si512(shifted);
  __m512 q = _mm512_fmadd_ps(all_16(POWER_E3), rest, all_16(POWER_E2));
  q = _mm512_fmadd_ps(q, rest, all_16(POWER_E1));
  q = _mm512_fmadd_ps(q, rest, all_16(POWER_E0));
  q = _mm512_fmadd_ps(q, rest, power_entry_of_8(power_root_low, k));
  const __m512 root = power_entry_of_8(power_root, k);
  return _mm512_scalef_ps(_mm512_fmadd_ps(root, q, root), rounded);
}

/* x is 0, negative, infinite or NaN, or y is infinite or NaN. */
static inline __mmask16 power_special_16(__m512 x, __m512 y) {
  enum { NOT_FINITE = 0x99, NOT_POSITIVE = 0x46 };
  return _mm512_kor(_mm512_fpclass_ps_mask(x, NOT_FINITE | NOT_POSITIVE), _mm512_fpclass_ps_mask(y, NOT_FINITE));
}

/* o[i] = x[i]^y[i] for i < n; whether some are special, which are anything. The rest of the last vector is 1^1. */
static inline bool power_plain(float *o, const float *xp, const float *yp, size_t n) {
  __mmask16 special = 0;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 x = _mm512_loadu_ps(xp + i), y = _mm512_loadu_ps(yp + i);
    special = _mm512_kor(special, power_special_16(x, y));
    _mm512_storeu_ps(o + i, power_16(x, y));
  }
  if (i < n) {
    const __mmask16 part = (__mmask16)((1u << (n - i)) - 1);
    const __m512 one = all_16(1.0f), x = _mm512_mask_loadu_ps(one, part, xp + i),
                 y = _mm512_mask_loadu_ps(one, part, yp + i);
    special = _mm512_kor(special, power_special_16(x, y));
    _mm512_mask_storeu_ps(o + i, part, power_16(x, y));
  }
  return special != 0;
}

#endif
