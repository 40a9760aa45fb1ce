/* SPDX-License-Identifier: Apache-2.0
 * interpret_avx512.c: the interpreter's loops for AVX-512. */
#include "src/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "ops/elementwise/interpret_f16c.h"

static void stream(void *to, const void *from, size_t bytes) {
  const size_t head = (0 - (uintptr_t)to) % 64, start = head < bytes ? head : bytes, whole = (bytes - start) / 64 * 64;
  char *out = to;
  const char *in = from;
  memcpy(out, in, start);
  for (size_t i = start; i < start + whole; i += 64)
    _mm512_stream_si512((__m512i *)(void *)(out + i), _mm512_loadu_si512(in + i));
  memcpy(out + start + whole, in + start + whole, bytes - start - whole);
}

/* n of 16. */
static inline void load_part(float *to, const float *from, size_t n) {
  _mm512_store_ps(to, _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from));
}
static inline void store_part(float *to, const float *from, size_t n) {
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), _mm512_load_ps(from));
}

typedef __m512d vector64;
static inline vector64 wide_load(const double *p) {
  return _mm512_loadu_pd(p);
}
static inline vector64 wide_load_part(const double *p, size_t n) {
  return _mm512_mask_loadu_pd(_mm512_set1_pd(1.0), (__mmask8)((1u << n) - 1), p);
}
static inline void wide_store(double *p, vector64 x) {
  _mm512_storeu_pd(p, x);
}
static inline void wide_store_part(double *p, vector64 x, size_t n) {
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), x);
}
#define WIDE vector64
#define WIDE_LANES 8
#define WIDE_ABI "_ZGVeN8"
#include "ops/elementwise/interpret_vectors.h"

#define LANES 16
#define AT_ISA at_interpret_avx512
#define AT_ISA_NAME "avx512"
#include "ops/elementwise/interpret_template.h"
#else
typedef int no_such_cpu;
#endif
