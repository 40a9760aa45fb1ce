/* SPDX-License-Identifier: Apache-2.0
 * signature_simd.h: what identifies a recent call: sixteen words, compared and hashed in registers, two at a time. */
#ifndef AT_SIGNATURE_SIMD_H
#define AT_SIGNATURE_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
typedef __m128i at_signature_pair;
#else
typedef struct at_signature_pair {
  uint64_t low, high;
} at_signature_pair;
#endif

enum { AT_SIGNATURE_PAIRS = 8 };

typedef struct at_signature_words {
  at_signature_pair pair[AT_SIGNATURE_PAIRS];
} at_signature_words;

/* Two words from any address. */
static inline at_signature_pair at_signature_pair_load(const void *from) {
  at_signature_pair pair;
  memcpy(&pair, from, sizeof pair);
  return pair;
}

static inline bool at_signature_words_equal(const at_signature_words *x, const at_signature_words *y) {
#if defined(__SSE2__)
  __m128i same = _mm_cmpeq_epi32(x->pair[0], y->pair[0]);
  for (int i = 1; i < AT_SIGNATURE_PAIRS; i++) same = _mm_and_si128(same, _mm_cmpeq_epi32(x->pair[i], y->pair[i]));
  return _mm_movemask_epi8(same) == 0xffff;
#else
  return memcmp(x, y, sizeof *x) == 0;
#endif
}

/* The sum of the words' low halves, each times an odd number of its own, and `more`, spread to the highest bits. */
static inline uint64_t at_signature_words_hash(const at_signature_words *x, uint64_t more) {
  static const uint64_t odd[2 * AT_SIGNATURE_PAIRS] __attribute__((aligned(16))) = {
      0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du, 0x27D4EB2Fu, 0x165667B1u, 0xD6E8FEB9u, 0xA0761D65u, 0xE7037ED1u,
      0x8EBC6AF1u, 0x589965CDu, 0x1D8E4E27u, 0xEB44ACCBu, 0x2D358DCDu, 0x8BB84B93u, 0x4B33A62Fu, 0x4D5A2DA5u};
  uint64_t sum;
#if defined(__SSE2__)
  __m128i sums = _mm_setzero_si128();
  for (int i = 0; i < AT_SIGNATURE_PAIRS; i++)
    sums = _mm_add_epi64(sums, _mm_mul_epu32(x->pair[i], _mm_load_si128((const __m128i *)(const void *)&odd[2 * i])));
  sums = _mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums));
  memcpy(&sum, &sums, sizeof sum);
#else
  sum = 0;
  for (int i = 0; i < AT_SIGNATURE_PAIRS; i++)
    sum += (uint64_t)(uint32_t)x->pair[i].low * odd[2 * i] + (uint64_t)(uint32_t)x->pair[i].high * odd[2 * i + 1];
#endif
  return (sum + more) * 0x9E3779B97F4A7C15u;
}

#endif
