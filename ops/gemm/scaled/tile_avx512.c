/* SPDX-License-Identifier: Apache-2.0
 * tile_avx512.c: the tile of host_scaled by AVX-512; with WITH_VNNI, as tile_avx512_vnni.c includes it, pairs of i16
 * are multiplied and added by one instruction. */
#include "ops/gemm/scaled/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef WITH_VNNI
#define NAME avx512_vnni
#define add_pairs(x, y, sum) _mm512_dpwssd_epi32(sum, x, y)
#else
#define NAME avx512
#define add_pairs(x, y, sum) _mm512_add_epi32(sum, _mm512_madd_epi16(x, y))
#endif
#define LANES 16
#define VECTORS 2
#define COLUMNS 12
typedef __m512 vector_f32;
typedef __m512i vector_i32;
#define load_f32(p) _mm512_loadu_ps(p)
#define store_f32(p, x) _mm512_storeu_ps(p, x)
#define every_f32(x) _mm512_set1_ps(x)
#define fma_f32(x, y, sum) _mm512_fmadd_ps(x, y, sum)
#define load_i32(p) _mm512_loadu_si512((const void *)(p))
#define store_i32(p, x) _mm512_storeu_si512((void *)(p), x)
#define every_i32(x) _mm512_set1_epi32(x)
#include "ops/gemm/scaled/tile_template.h"
#endif
