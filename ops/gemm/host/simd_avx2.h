/* SPDX-License-Identifier: Apache-2.0
 * simd_avx2.h: the vector words that the blocked kernels are written in, for AVX2 with FMA. Included by blocked_avx2.c
 * only. */
#ifndef AT_GEMM_SIMD_H
#define AT_GEMM_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#include "src/base/half.h"

#define AT_TARGET __attribute__((target("avx2,fma,f16c")))
#define SIMD static inline __attribute__((always_inline)) AT_TARGET

#define VF_LANES 8
typedef __m256 vf;
typedef struct vf_mask {
  __m256i lanes;
  int64_t count;
} vf_mask;

SIMD vf_mask vf_first(int64_t count) { /* 0 <= count <= 8 */
  __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (vf_mask){_mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), index), count};
}
SIMD vf vf_zero(void) {
  return _mm256_setzero_ps();
}
SIMD vf vf_set1(float x) {
  return _mm256_set1_ps(x);
}
SIMD vf vf_fma(vf a, vf b, vf c) {
  return _mm256_fmadd_ps(a, b, c);
}
SIMD vf vf_mul(vf a, vf b) {
  return _mm256_mul_ps(a, b);
}
SIMD vf vf_add(vf a, vf b) {
  return _mm256_add_ps(a, b);
}
SIMD vf vf_pair(float x, float y) {
  return _mm256_setr_ps(x, y, x, y, x, y, x, y);
}
SIMD vf vf_swap_pairs(vf a) {
  return _mm256_permute_ps(a, 0xb1);
}
SIMD float vf_sum(vf a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
SIMD vf vf_load(const float *p) {
  return _mm256_loadu_ps(p);
}
SIMD vf vf_load_part(const float *p, vf_mask mask) {
  return _mm256_maskload_ps(p, mask.lanes);
}
SIMD void vf_store(float *p, vf x) {
  _mm256_storeu_ps(p, x);
}
SIMD void vf_store_part(float *p, vf_mask mask, vf x) {
  _mm256_maskstore_ps(p, mask.lanes, x);
}

SIMD vf vf_load_f16(const uint16_t *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD vf vf_load_bf16(const uint16_t *p) {
  __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
SIMD vf vf_load_part_f16(const uint16_t *p, vf_mask mask) {
  uint16_t part[8] = {0};
  for (int64_t i = 0; i < mask.count; i++) part[i] = p[i];
  return vf_load_f16(part);
}
SIMD vf vf_load_part_bf16(const uint16_t *p, vf_mask mask) {
  uint16_t part[8] = {0};
  for (int64_t i = 0; i < mask.count; i++) part[i] = p[i];
  return vf_load_bf16(part);
}

SIMD void vf_store_part_f16(uint16_t *p, vf_mask mask, vf x) {
  uint16_t part[8];
  _mm_storeu_si128((__m128i *)(void *)part, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  for (int64_t i = 0; i < mask.count; i++) p[i] = part[i];
}

SIMD void vf_store_part_bf16(uint16_t *p, vf_mask mask, vf x) {
  float part[8];
  vf_store(part, x);
  for (int64_t i = 0; i < mask.count; i++) p[i] = at_f32_to_bf16(part[i]);
}

#define VD_LANES 4
typedef __m256d vd;
typedef __m256i vd_mask;

SIMD vd_mask vd_first(int64_t count) { /* 0 <= count <= 4 */
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
SIMD vd vd_zero(void) {
  return _mm256_setzero_pd();
}
SIMD vd vd_set1(double x) {
  return _mm256_set1_pd(x);
}
SIMD vd vd_fma(vd a, vd b, vd c) {
  return _mm256_fmadd_pd(a, b, c);
}
SIMD vd vd_mul(vd a, vd b) {
  return _mm256_mul_pd(a, b);
}
SIMD vd vd_add(vd a, vd b) {
  return _mm256_add_pd(a, b);
}
SIMD vd vd_pair(double x, double y) {
  return _mm256_setr_pd(x, y, x, y);
}
SIMD vd vd_swap_pairs(vd a) {
  return _mm256_permute_pd(a, 0x5);
}
SIMD double vd_sum(vd a) {
  __m128d s = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
  return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}
SIMD vd vd_load(const double *p) {
  return _mm256_loadu_pd(p);
}
SIMD vd vd_load_part(const double *p, vd_mask mask) {
  return _mm256_maskload_pd(p, mask);
}
SIMD void vd_store(double *p, vd x) {
  _mm256_storeu_pd(p, x);
}
SIMD void vd_store_part(double *p, vd_mask mask, vd x) {
  _mm256_maskstore_pd(p, mask, x);
}

#include "ops/gemm/host/simd_transpose.h"

/* A vector of lines is one block here. */
#define vf_transpose_lanes vf_transpose
#define vf_transpose_lanes_f16 vf_transpose_f16
#define vf_transpose_lanes_bf16 vf_transpose_bf16
#define vd_transpose_lanes vd_transpose

#endif
