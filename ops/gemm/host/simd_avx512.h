/* SPDX-License-Identifier: Apache-2.0
 * simd_avx512.h: the vector words that the blocked kernels are written in, for AVX-512. Included by blocked_avx512.c
 * only. */
#ifndef AT_GEMM_SIMD_H
#define AT_GEMM_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#define AT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define SIMD static inline __attribute__((always_inline)) AT_TARGET

#define VF_LANES 16
typedef __m512 vf;
typedef __mmask16 vf_mask;

SIMD vf_mask vf_first(int64_t count) {
  return (vf_mask)((1u << count) - 1u);
} /* 0 <= count <= 16 */
SIMD vf vf_zero(void) {
  return _mm512_setzero_ps();
}
SIMD vf vf_set1(float x) {
  return _mm512_set1_ps(x);
}
SIMD vf vf_fma(vf a, vf b, vf c) {
  return _mm512_fmadd_ps(a, b, c);
}
SIMD vf vf_mul(vf a, vf b) {
  return _mm512_mul_ps(a, b);
}
SIMD vf vf_add(vf a, vf b) {
  return _mm512_add_ps(a, b);
}
SIMD vf vf_pair(float x, float y) {
  return _mm512_setr4_ps(x, y, x, y);
}
SIMD vf vf_swap_pairs(vf a) {
  return _mm512_permute_ps(a, 0xb1);
}
SIMD float vf_sum(vf a) {
  return _mm512_reduce_add_ps(a);
}
SIMD vf vf_load(const float *p) {
  return _mm512_loadu_ps(p);
}
SIMD vf vf_load_part(const float *p, vf_mask mask) {
  return _mm512_maskz_loadu_ps(mask, p);
}
SIMD void vf_store(float *p, vf x) {
  _mm512_storeu_ps(p, x);
}
SIMD void vf_store_part(float *p, vf_mask mask, vf x) {
  _mm512_mask_storeu_ps(p, mask, x);
}

SIMD vf vf_of_bf16(__m256i h) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
SIMD vf vf_load_f16(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SIMD vf vf_load_bf16(const uint16_t *p) {
  return vf_of_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SIMD vf vf_load_part_f16(const uint16_t *p, vf_mask mask) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}
SIMD vf vf_load_part_bf16(const uint16_t *p, vf_mask mask) {
  return vf_of_bf16(_mm256_maskz_loadu_epi16(mask, p));
}

SIMD void vf_store_part_f16(uint16_t *p, vf_mask mask, vf x) {
  _mm256_mask_storeu_epi16(p, mask, _mm512_maskz_cvtps_ph(mask, x, _MM_FROUND_TO_NEAREST_INT));
}

SIMD void vf_store_part_bf16(uint16_t *p, vf_mask mask, vf x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i high = _mm512_srli_epi32(bits, 16);
  __m512i odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
  _mm256_mask_storeu_epi16(p, mask, _mm512_cvtepi32_epi16(rounded));
}

#define VD_LANES 8
typedef __m512d vd;
typedef __mmask8 vd_mask;

SIMD vd_mask vd_first(int64_t count) {
  return (vd_mask)((1u << count) - 1u);
} /* 0 <= count <= 8 */
SIMD vd vd_zero(void) {
  return _mm512_setzero_pd();
}
SIMD vd vd_set1(double x) {
  return _mm512_set1_pd(x);
}
SIMD vd vd_fma(vd a, vd b, vd c) {
  return _mm512_fmadd_pd(a, b, c);
}
SIMD vd vd_mul(vd a, vd b) {
  return _mm512_mul_pd(a, b);
}
SIMD vd vd_add(vd a, vd b) {
  return _mm512_add_pd(a, b);
}
SIMD vd vd_pair(double x, double y) {
  return _mm512_setr4_pd(x, y, x, y);
}
SIMD vd vd_swap_pairs(vd a) {
  return _mm512_permute_pd(a, 0x55);
}
SIMD double vd_sum(vd a) {
  return _mm512_reduce_add_pd(a);
}
SIMD vd vd_load(const double *p) {
  return _mm512_loadu_pd(p);
}
SIMD vd vd_load_part(const double *p, vd_mask mask) {
  return _mm512_maskz_loadu_pd(mask, p);
}
SIMD void vd_store(double *p, vd x) {
  _mm512_storeu_pd(p, x);
}
SIMD void vd_store_part(double *p, vd_mask mask, vd x) {
  _mm512_mask_storeu_pd(p, mask, x);
}

#include "ops/gemm/host/simd_transpose.h"

/* A vector of lines by one block of columns: what is stored as a whole vector is forwarded to the tile kernel's whole
 * loads. */
#define AT_TRANSPOSE_LANES(name, block, T, S, V, join, store, n)                \
  SIMD void name(T *to, int64_t to_step, const S *from, int64_t from_step) {    \
    V low[n], high[n];                                                          \
    block(low, from, from_step);                                                \
    block(high, from + n * from_step, from_step);                               \
    AT_UNROLL                                                                   \
    for (int i = 0; i < n; i++) store(to + i * to_step, join(low[i], high[i])); \
  }
SIMD vf vf_join(__m256 low, __m256 high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
SIMD vd vd_join(__m256d low, __m256d high) {
  return _mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
}
AT_TRANSPOSE_LANES(vf_transpose_lanes, vf_block, float, float, __m256, vf_join, vf_store, 8)
AT_TRANSPOSE_LANES(vf_transpose_lanes_f16, vf_block_f16, float, uint16_t, __m256, vf_join, vf_store, 8)
AT_TRANSPOSE_LANES(vf_transpose_lanes_bf16, vf_block_bf16, float, uint16_t, __m256, vf_join, vf_store, 8)
AT_TRANSPOSE_LANES(vd_transpose_lanes, vd_block, double, double, __m256d, vd_join, vd_store, 4)
#undef AT_TRANSPOSE_LANES

#endif
