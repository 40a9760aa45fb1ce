/* SPDX-License-Identifier: Apache-2.0
 * interpret_avx2.c: the interpreter's loops for AVX2, FMA and F16C. */
#include "src/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "ops/elementwise/interpret_f16c.h"

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
static inline void load_part(float *to, const float *from, size_t n) {
  _mm256_store_ps(to, _mm256_maskload_ps(from, first_of(n)));
}
static inline void store_part(float *to, const float *from, size_t n) {
  _mm256_maskstore_ps(to, first_of(n), _mm256_load_ps(from));
}

#define LANES 8
#define AT_ISA at_interpret_avx2
#define AT_ISA_NAME "avx2"
#include "ops/elementwise/interpret_template.h"
#else
typedef int no_such_cpu;
#endif
