/* SPDX-License-Identifier: Apache-2.0
 * simd_transpose.h: 8x8 f32 and 4x4 f64 transposes in AVX registers, shared by the AVX2 and AVX-512 words. Line i of the source
 * becomes column i of the destination. */
#ifndef AT_GEMM_SIMD_TRANSPOSE_H
#define AT_GEMM_SIMD_TRANSPOSE_H

#define VF_BLOCK 8 /* lines and columns of one transposed block */
#define VD_BLOCK 4

SIMD void transpose_8x8(float *to, int64_t to_step, const __m256 r[8]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(to + i * to_step, _mm256_permute2f128_ps(u[i], u[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_step, _mm256_permute2f128_ps(u[i], u[i + 4], 0x31));
  }
}

SIMD void vf_transpose(float *to, int64_t to_step, const float *from, int64_t from_step) {
  __m256 r[8];
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(from + i * from_step);
  transpose_8x8(to, to_step, r);
}

SIMD void vf_transpose_f16(float *to, int64_t to_step, const uint16_t *from, int64_t from_step) {
  __m256 r[8];
  for (int i = 0; i < 8; i++)
    r[i] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i * from_step)));
  transpose_8x8(to, to_step, r);
}

SIMD void vf_transpose_bf16(float *to, int64_t to_step, const uint16_t *from, int64_t from_step) {
  __m256 r[8];
  for (int i = 0; i < 8; i++) {
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(from + i * from_step));
    r[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  transpose_8x8(to, to_step, r);
}

SIMD void vd_transpose(double *to, int64_t to_step, const double *from, int64_t from_step) {
  __m256d r[4], t[4];
  for (int i = 0; i < 4; i++) r[i] = _mm256_loadu_pd(from + i * from_step);
  for (int i = 0; i < 2; i++) {
    t[2 * i] = _mm256_unpacklo_pd(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_pd(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    _mm256_storeu_pd(to + i * to_step, _mm256_permute2f128_pd(t[i], t[i + 2], 0x20));
    _mm256_storeu_pd(to + (i + 2) * to_step, _mm256_permute2f128_pd(t[i], t[i + 2], 0x31));
  }
}

#endif
