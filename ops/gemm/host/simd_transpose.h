/* SPDX-License-Identifier: Apache-2.0
 * simd_transpose.h: transposes in AVX registers, shared by the AVX2 and AVX-512 words. Line i of the source becomes
 * column i of the destination: 8x8 of f32 and halves, 4x4 of f64, 2x2 of c128. */
#ifndef AT_GEMM_SIMD_TRANSPOSE_H
#define AT_GEMM_SIMD_TRANSPOSE_H

#include "ops/gemm/host/simd_unroll.h"

#define VF_BLOCK 8 /* lines and columns of one transposed block */
#define VD_BLOCK 4

SIMD void vf_turn(__m256 r[8]) {
  __m256 t[8], u[8];
  AT_UNROLL
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  AT_UNROLL
  for (int i = 0; i < 2; i++) {
    u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  AT_UNROLL
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

SIMD void vd_turn(__m256d r[4]) {
  __m256d t[4];
  AT_UNROLL
  for (int i = 0; i < 2; i++) {
    t[2 * i] = _mm256_unpacklo_pd(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_pd(r[2 * i], r[2 * i + 1]);
  }
  AT_UNROLL
  for (int i = 0; i < 2; i++) {
    r[i] = _mm256_permute2f128_pd(t[i], t[i + 2], 0x20);
    r[i + 2] = _mm256_permute2f128_pd(t[i], t[i + 2], 0x31);
  }
}

SIMD void vf_block(__m256 r[8], const float *from, int64_t step) {
  AT_UNROLL
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(from + i * step);
  vf_turn(r);
}

SIMD void vf_block_f16(__m256 r[8], const uint16_t *from, int64_t step) {
  AT_UNROLL
  for (int i = 0; i < 8; i++) r[i] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i * step)));
  vf_turn(r);
}

SIMD void vf_block_bf16(__m256 r[8], const uint16_t *from, int64_t step) {
  AT_UNROLL
  for (int i = 0; i < 8; i++) {
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(from + i * step));
    r[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  vf_turn(r);
}

SIMD void vd_block(__m256d r[4], const double *from, int64_t step) {
  AT_UNROLL
  for (int i = 0; i < 4; i++) r[i] = _mm256_loadu_pd(from + i * step);
  vd_turn(r);
}

/* One block: LINES lines by as many columns. */
#define AT_TRANSPOSE(name, block, T, S, V, store, n)                         \
  SIMD void name(T *to, int64_t to_step, const S *from, int64_t from_step) { \
    V r[n];                                                                  \
    block(r, from, from_step);                                               \
    AT_UNROLL                                                                \
    for (int i = 0; i < n; i++) store(to + i * to_step, r[i]);               \
  }
AT_TRANSPOSE(vf_transpose, vf_block, float, float, __m256, _mm256_storeu_ps, 8)
AT_TRANSPOSE(vf_transpose_f16, vf_block_f16, float, uint16_t, __m256, _mm256_storeu_ps, 8)
AT_TRANSPOSE(vf_transpose_bf16, vf_block_bf16, float, uint16_t, __m256, _mm256_storeu_ps, 8)
AT_TRANSPOSE(vd_transpose, vd_block, double, double, __m256d, _mm256_storeu_pd, 4)
#undef AT_TRANSPOSE

/* Two lines of two complex numbers. */
SIMD void vd_transpose_pairs(double *to, int64_t to_step, const double *from, int64_t from_step) {
  const __m256d x = _mm256_loadu_pd(from), y = _mm256_loadu_pd(from + from_step);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(x, y, 0x20));
  _mm256_storeu_pd(to + to_step, _mm256_permute2f128_pd(x, y, 0x31));
}

#endif
