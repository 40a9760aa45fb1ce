/* SPDX-License-Identifier: Apache-2.0
 * interpret_avx512.c: the interpreter's loops for AVX-512. */
#include "src/base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "ops/elementwise/host/interpret_f16c.h"
#include "ops/elementwise/host/vmath/vmath_pow512.h"

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
static inline void load_part_F32(float *to, const float *from, size_t n) {
  _mm512_store_ps(to, _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from));
}
static inline void store_part_F32(float *to, const float *from, size_t n) {
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), _mm512_load_ps(from));
}

/* n of 8. */
static inline void store_part_F64(double *to, const double *from, size_t n) {
  _mm512_mask_storeu_pd(to, (__mmask8)((1u << n) - 1), _mm512_load_pd(from));
}

typedef __m512d vector64;
static inline vector64 wide_load(const double *p) {
  return _mm512_loadu_pd(p);
}
static inline vector64 wide_load_part(const double *p, size_t n) {
  return _mm512_mask_loadu_pd(_mm512_set1_pd(1.0), (__mmask8)((1u << n) - 1), p);
}
static inline void load_part_F64(double *to, const double *from, size_t n) {
  _mm512_store_pd(to, wide_load_part(from, n));
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
#include "ops/elementwise/host/interpret_vectors.h"

/* What few steps compute: the first elements in a masked vector, so that no later store crosses a cache line, and the
 * last ones in another. The compiler's loops do these one by one, which on few elements is most of the time. Of f64 it
 * gains nothing. */
#define MASKED(F)                                                                                                    \
  static inline void F##_part(float *o, const float *x, const float *y, size_t n) {                                  \
    const __mmask16 part = (__mmask16)((1u << n) - 1);                                                               \
    _mm512_mask_storeu_ps(o, part, _mm512_##F##_ps(_mm512_maskz_loadu_ps(part, x), _mm512_maskz_loadu_ps(part, y))); \
  }                                                                                                                  \
  static void F##_masked(void *out, const void *xs, const void *ys, const void *zs, size_t n) {                      \
    float *o = out;                                                                                                  \
    const float *x = xs, *y = ys;                                                                                    \
    size_t i = n < 48 ? 0 : (0 - (uintptr_t)o) % 64 / 4;                                                             \
    (void)zs;                                                                                                        \
    if (i > 0) F##_part(o, x, y, i);                                                                                 \
    for (; i + 16 <= n; i += 16)                                                                                     \
      _mm512_storeu_ps(o + i, _mm512_##F##_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)));                      \
    if (i < n) F##_part(o + i, x + i, y + i, n - i);                                                                 \
  }
MASKED(add)
MASKED(sub)
MASKED(mul)
#undef MASKED

/* NULL: none. */
static at_kernel find_masked(at_function function, attune_dtype dtype) {
  if (dtype != ATTUNE_F32) return NULL;
  return function == AT_FN_ADD        ? add_masked
         : function == AT_FN_SUBTRACT ? sub_masked
         : function == AT_FN_MULTIPLY ? mul_masked
                                      : NULL;
}

#define FIND_FIRST find_masked
#define POWER_PLAIN power_plain
#define LANES_F32 16
#define LANES_F64 8
#define AT_ISA at_interpret_avx512
#define AT_ISA_NAME "avx512"
#include "ops/elementwise/host/interpret_template.h"
#else
typedef int no_such_cpu;
#endif
