/* SPDX-License-Identifier: Apache-2.0
 * tile_avx2.c: the tile of host_scaled by AVX2. */
#include "ops/gemm/scaled/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME avx2
#define LANES 8
#define VECTORS 2
#define COLUMNS 6
typedef __m256 vector_f32;
typedef __m256i vector_i32;
#define load_f32(p) _mm256_loadu_ps(p)
#define store_f32(p, x) _mm256_storeu_ps(p, x)
#define every_f32(x) _mm256_set1_ps(x)
#define fma_f32(x, y, sum) _mm256_fmadd_ps(x, y, sum)
#define load_i32(p) _mm256_loadu_si256((const __m256i_u *)(const void *)(p))
#define store_i32(p, x) _mm256_storeu_si256((__m256i_u *)(void *)(p), x)
#define every_i32(x) _mm256_set1_epi32(x)
#define add_pairs(x, y, sum) _mm256_add_epi32(sum, _mm256_madd_epi16(x, y))
#include "ops/gemm/scaled/tile_template.h"
#endif
