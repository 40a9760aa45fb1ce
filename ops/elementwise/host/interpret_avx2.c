/* SPDX-License-Identifier: Apache-2.0
 * interpret_avx2.c: the interpreter's loops for AVX2, FMA and F16C. */
#include "src/base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "ops/elementwise/host/interpret_f16c.h"

static void stream(void *to, const void *from, size_t bytes) {
  const size_t head = (0 - (uintptr_t)to) % 32, start = head < bytes ? head : bytes, whole = (bytes - start) / 32 * 32;
  char *out = to;
  const char *in = from;
  memcpy(out, in, start);
  for (size_t i = start; i < start + whole; i += 32)
    _mm256_stream_si256((__m256i *)(void *)(out + i), _mm256_loadu_si256((const __m256i *)(const void *)(in + i)));
  memcpy(out + start + whole, in + start + whole, bytes - start - whole);
}

/* n of 8. */
static inline __m256i first_of(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline void load_part_F32(float *to, const float *from, size_t n) {
  _mm256_store_ps(to, _mm256_maskload_ps(from, first_of(n)));
}
static inline void store_part_F32(float *to, const float *from, size_t n) {
  _mm256_maskstore_ps(to, first_of(n), _mm256_load_ps(from));
}

typedef __m256d vector64;
static inline __m256i first_wide(size_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), _mm256_setr_epi64x(0, 1, 2, 3));
}
static inline void store_part_F64(double *to, const double *from, size_t n) {
  _mm256_maskstore_pd(to, first_wide(n), _mm256_load_pd(from));
}
static inline vector64 wide_load(const double *p) {
  return _mm256_loadu_pd(p);
}
static inline vector64 wide_load_part(const double *p, size_t n) {
  const __m256i first = first_wide(n);
  return _mm256_blendv_pd(_mm256_set1_pd(1.0), _mm256_maskload_pd(p, first), _mm256_castsi256_pd(first));
}
static inline void load_part_F64(double *to, const double *from, size_t n) {
  _mm256_store_pd(to, wide_load_part(from, n));
}
static inline void wide_store(double *p, vector64 x) {
  _mm256_storeu_pd(p, x);
}
static inline void wide_store_part(double *p, vector64 x, size_t n) {
  _mm256_maskstore_pd(p, first_wide(n), x);
}
#define WIDE vector64
#define WIDE_LANES 4
#define WIDE_ABI "_ZGVdN4"
#include "ops/elementwise/host/interpret_vectors.h"

#include "ops/elementwise/host/vmath/vmath_pow256.h"

#define POWER_PLAIN power_plain
#define LANES_F32 8
#define LANES_F64 4
#define AT_ISA at_interpret_avx2
#define AT_ISA_NAME "avx2"
#include "ops/elementwise/host/interpret_template.h"
#else
typedef int no_such_cpu;
#endif
