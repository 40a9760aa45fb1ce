/* SPDX-License-Identifier: Apache-2.0
 * interpret_template.h: the interpreter's loops, compiled once for each instruction set by a file that defines
 * `encode_f16`, `decode_f16`, `stream`, `fence`, `load_part_F32` and `store_part_F32`, the same of F64, `find_vector`,
 * LANES_F32 and LANES_F64 (elements of a vector) and AT_ISA and AT_ISA_NAME first; FIND_FIRST, if defined, finds
 * kernels that are better than those here. Loops without branches: the compiler makes vectors of them. */
#include <math.h>
#include <string.h>

#include "ops/elementwise/host/convert.h"
#include "ops/elementwise/host/vmath/vmath_trig32.h"
#include "ops/elementwise/host/vmath/vmath_trig64.h"
#include "ops/elementwise/host/vmath/vmath_erf64.h"
#include "ops/elementwise/host/vmath/vmath_inverse32.h"
#include "ops/elementwise/host/vmath/vmath_inverse64.h"
#include "ops/elementwise/host/interpret_integer.h"
#include "ops/elementwise/host/interpret_kernels.h"
#include "ops/elementwise/host/vmath/vmath_log64.h"
#include "ops/elementwise/host/vmath/vmath_activation32.h"
#include "ops/elementwise/host/vmath/vmath_pow32.h"
#include "ops/elementwise/host/vmath/vmath_f32_via_f64.h"
#include "src/base/dtype.h"

/* Element i depends on element i alone, whatever memory is shared. */
#if defined(__clang__)
#define AT_EACH _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* of what has no vector form, such as integer powers */
#else
#define AT_EACH _Pragma("GCC ivdep")
#endif


#pragma GCC diagnostic ignored "-Wtype-limits" /* the same text serves integers with a sign and without */

typedef struct pair32 {
  float re, im;
} pair32;
typedef struct pair64 {
  double re, im;
} pair64;

/* ---- functions: missing arguments stand at x ---- */

/* to[i] = expression in x = from[i] and y = other[i] for i < n: whole vectors, and a last one whose other elements are
 * 0, or 1 of f64, and go nowhere. */
#define AT_LONG_LOOP(D, T, to, from, other, n, expression)                       \
  const size_t whole = (n) & ~(size_t)(LANES_##D - 1), left = (n) - whole;        \
  AT_EACH for (size_t i = 0; i < whole; i++) {                                    \
    const T x = (from)[i], y = (other)[i];                                        \
    (void)y;                                                                      \
    (to)[i] = (expression);                                                       \
  }                                                                               \
  if (left > 0) {                                                                 \
    _Alignas(64) T last[LANES_##D], beside[LANES_##D];                            \
    load_part_##D(last, (from) + whole, left);                                    \
    load_part_##D(beside, (other) + whole, left);                                 \
    AT_EACH for (size_t i = 0; i < LANES_##D; i++) {                              \
      const T x = last[i], y = beside[i];                                         \
      (void)y;                                                                    \
      last[i] = (expression);                                                     \
    }                                                                             \
    store_part_##D((to) + whole, last, left);                                     \
  }

#define AT_KERNEL(F, D, R, A, expression)                                                    \
  static void F##_##D(void *out, const void *xs, const void *ys, const void *zs, size_t n) { \
    R *o = out;                                                                              \
    const A *xp = xs, *yp = ys, *zp = zs;                                                    \
    AT_EACH for (size_t i = 0; i < n; i++) {                                                 \
      const A x = xp[i], y = yp[i], z = zp[i];                                               \
      (void)x, (void)y, (void)z;                                                             \
      o[i] = (R)(expression);                                                                \
    }                                                                                        \
  }
#define AT_LONG_KERNEL(F, D, T, expression)                                                  \
  static void F##_##D(void *out, const void *xs, const void *ys, const void *zs, size_t n) { \
    T *o = out;                                                                              \
    const T *xp = xs, *yp = ys;                                                              \
    (void)zs;                                                                                \
    AT_LONG_LOOP(D, T, o, xp, yp, n, expression)                                             \
  }
#include "ops/elementwise/host/interpret_float.def"
#include "ops/elementwise/host/interpret_integer.def"
#undef AT_LONG_KERNEL
#undef AT_KERNEL

#define AT_SELECT(D, T)                                                                         \
  static void SELECT_##D(void *out, const void *cs, const void *xs, const void *ys, size_t n) { \
    T *o = out;                                                                                 \
    const uint8_t *c = cs;                                                                      \
    const T *x = xs, *y = ys;                                                                   \
    AT_EACH for (size_t i = 0; i < n; i++) o[i] = c[i] ? x[i] : y[i];                           \
  }
#define AT_EACH_SIZE(define) \
  define(BOOL, uint8_t) define(I16, int16_t) define(F32, float) define(F64, double) define(C128, pair64)
AT_EACH_SIZE(AT_SELECT)

/* Arguments that are not near, which are rare, go to the C library one by one, after the others; in place these are
 * kept. N is as wide as T: vectors of both have the same number of elements. */
#define AT_MOSTLY(F, D, T, N, is_near, near, library)                                               \
  static __attribute__((noinline)) void F##_##D##_far(T *o, const T *xp, size_t n) {                \
    for (size_t i = 0; i < n; i++) {                                                                \
      const T x = xp[i];                                                                            \
      if (!(is_near)) o[i] = (T)library((double)x);                                                 \
    }                                                                                               \
  }                                                                                                 \
  FLAT bool F##_##D##_near(T *o, const T *xp, size_t n) {                                           \
    N far = 0;                                                                                      \
    AT_LONG_LOOP(D, T, o, xp, xp, n, (far |= (is_near) ? (N)0 : (N)1, near))                        \
    return far != 0;                                                                                \
  }                                                                                                 \
  static __attribute__((noinline)) void F##_##D##_in_place(T *x, size_t n) {                        \
    enum { CHUNK = 128 };                                                                           \
    T kept[CHUNK];                                                                                  \
    for (size_t count; n > 0; n -= count, x += count) {                                             \
      count = n < CHUNK ? n : CHUNK;                                                                \
      memcpy(kept, x, count * sizeof *kept);                                                        \
      if (F##_##D##_near(x, kept, count)) F##_##D##_far(x, kept, count);                            \
    }                                                                                               \
  }                                                                                                 \
  static void F##_##D(void *out, const void *xs, const void *ys, const void *zs, size_t n) {        \
    (void)ys, (void)zs;                                                                             \
    if (out == xs)                                                                                  \
      F##_##D##_in_place(out, n);                                                                   \
    else if (F##_##D##_near(out, xs, n))                                                            \
      F##_##D##_far(out, xs, n);                                                                    \
  }
#define AT_CIRCLE32(F, near, library) \
  AT_MOSTLY(F, F32, float, int32_t, __builtin_fabsf(x) <= NEAR_CIRCLE, near, library)
AT_CIRCLE32(SIN, circle32(x, 0), sin)
AT_CIRCLE32(COS, circle32(x, 1), cos)
AT_CIRCLE32(TAN, tan32(x), tan)
#ifdef __FMA__
#define AT_CIRCLE64(F, near, library) \
  AT_MOSTLY(F, F64, double, int64_t, __builtin_fabs(x) <= NEAR_CIRCLE_64, near, library)
AT_CIRCLE64(SIN, circle_64(x, 0), sin)
AT_CIRCLE64(COS, circle_64(x, 1), cos)
AT_CIRCLE64(TAN, tan_64(x), tan)
AT_MOSTLY(LOG2, F64, double, int64_t, is_normal_64(x), log2_64(x), log2)
AT_MOSTLY(LOG10, F64, double, int64_t, is_normal_64(x), log10_64(x), log10)
#endif

/* Likewise: 0, negative numbers, infinities and NaN. */
FLAT bool power_is_special(float x, float y) {
  return !((x > 0.0f) & (x < __builtin_inff()) & (__builtin_fabsf(y) < __builtin_inff()));
}
static __attribute__((noinline)) void power_special(float *o, const float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (power_is_special(x[i], y[i])) o[i] = (float)pow((double)x[i], (double)y[i]);
}
#ifndef POWER_PLAIN /* the instruction set has none of its own */
/* 0^0, which stands in what is left of the last vector, is right. */
FLAT bool power_is_wrong(float x, float y) {
  return power_is_special(x, y) & !((x == 0.0f) & (y == 0.0f));
}
FLAT bool power_plain(float *o, const float *xp, const float *yp, size_t n) {
  int32_t special = 0;
  AT_LONG_LOOP(F32, float, o, xp, yp, n, (special |= power_is_wrong(x, y) ? 1 : 0, power32(x, y)))
  return special != 0;
}
#endif
static __attribute__((noinline)) void power_in_place(float *o, const float *x, const float *y, size_t n) {
  enum { CHUNK = 128 };
  float kept_x[CHUNK], kept_y[CHUNK];
  for (size_t count; n > 0; n -= count, x += count, y += count, o += count) {
    count = n < CHUNK ? n : CHUNK;
    memcpy(kept_x, x, count * sizeof *kept_x);
    memcpy(kept_y, y, count * sizeof *kept_y);
    if (power_plain(o, kept_x, kept_y, count)) power_special(o, kept_x, kept_y, count);
  }
}
static void POWER_F32(void *out, const void *xs, const void *ys, const void *zs, size_t n) {
  (void)zs;
  if (out == xs || out == ys)
    power_in_place(out, xs, ys, n);
  else if (power_plain(out, xs, ys, n))
    power_special(out, xs, ys, n);
}

static at_kernel find_function(at_function function, attune_dtype dtype) {
  static const at_kernel table[AT_FN_COUNT][AT_DTYPE_LAST + 1] = {
#define AT_KERNEL(F, D, R, A, expression) [AT_FN_##F][ATTUNE_##D] = F##_##D,
#define AT_LONG_KERNEL(F, D, T, expression) [AT_FN_##F][ATTUNE_##D] = F##_##D,
#include "ops/elementwise/host/interpret_float.def"
#include "ops/elementwise/host/interpret_integer.def"
#undef AT_LONG_KERNEL
#undef AT_KERNEL
      [AT_FN_SIN][ATTUNE_F32] = SIN_F32,
      [AT_FN_COS][ATTUNE_F32] = COS_F32,
      [AT_FN_TAN][ATTUNE_F32] = TAN_F32,
#ifdef __FMA__
      [AT_FN_SIN][ATTUNE_F64] = SIN_F64,
      [AT_FN_COS][ATTUNE_F64] = COS_F64,
      [AT_FN_TAN][ATTUNE_F64] = TAN_F64,
      [AT_FN_LOG2][ATTUNE_F64] = LOG2_F64,
      [AT_FN_LOG10][ATTUNE_F64] = LOG10_F64,
#endif
      [AT_FN_POWER][ATTUNE_F32] = POWER_F32,
  };
  static const at_kernel select[] = {
      [1] = SELECT_BOOL, [2] = SELECT_I16, [4] = SELECT_F32, [8] = SELECT_F64, [16] = SELECT_C128};
  if (function == AT_FN_SELECT) return select[attune_dtype_size(dtype)];
#ifdef FIND_FIRST
  const at_kernel first = FIND_FIRST(function, dtype);
  if (first) return first;
#endif
  return table[function][dtype] ? table[function][dtype] : find_vector(function, dtype);
}

/* ---- conversions ---- */

#define MOST(T) ((T)(IS_SIGNED(T) ? UINT64_MAX >> (65 - 8 * (int)sizeof(T)) : UINT64_MAX >> (64 - 8 * (int)sizeof(T))))
#define LEAST(T) ((T)(IS_SIGNED(T) ? -(int64_t)MOST(T) - 1 : 0))
#define END(T, F) ((F)((F)(UINT64_C(1) << (8 * sizeof(T) - 1)) * (F)(IS_SIGNED(T) ? 1 : 2)))
#define SATURATE(T, F, x) \
  (x >= END(T, F) ? MOST(T) : x <= (IS_SIGNED(T) ? -END(T, F) : (F)-1) ? LEAST(T) : x != x ? 0 : (T)x)
#define WRAP(T, F, x) (T) x

/* To f32, the last bit set where digits are lost: rounding that to fewer digits then rounds the value itself. */
FLAT float odd32(double x) {
  const float near = (float)x;
  const uint32_t bits = at_bits_of_f32(near);
  if (x != x || (double)near == x) return near;
  const uint32_t low = __builtin_fabs((double)near) > __builtin_fabs(x) ? bits - 1 : bits; /* toward zero */
  return at_f32_of_bits(low | 1u);
}
FLAT float odd32_of_natural(uint64_t x) {
  const int drop = x >> 40 ? 24 : 0; /* what is below the highest 40 bits counts as one bit */
  const uint64_t kept = x >> drop | ((x & ((UINT64_C(1) << drop) - 1)) != 0);
  return odd32((double)kept) * (drop ? 0x1p24f : 1.0f);
}
FLAT float odd32_of_whole(int64_t x) {
  return x < 0 ? -odd32_of_natural(0 - (uint64_t)x) : odd32_of_natural((uint64_t)x);
}

#define AT_CONVERT(TO, T, FROM, F, expression)                                                     \
  static void FROM##_to_##TO(void *out, const void *xs, const void *ys, const void *zs, size_t n) { \
    T *o = out;                                                                                    \
    const F *xp = xs;                                                                              \
    (void)ys, (void)zs;                                                                            \
    AT_EACH for (size_t i = 0; i < n; i++) {                                                       \
      const F x = xp[i];                                                                           \
      o[i] = (expression);                                                                         \
    }                                                                                              \
  }
#include "ops/elementwise/host/interpret_convert.def"
#undef AT_CONVERT

static void F16_to_F32(void *out, const void *xs, const void *ys, const void *zs, size_t n) {
  (void)ys, (void)zs;
  decode_f16(out, xs, n);
}
static void F32_to_F16(void *out, const void *xs, const void *ys, const void *zs, size_t n) {
  (void)ys, (void)zs;
  encode_f16(out, xs, n);
}

static at_kernel find_convert(attune_dtype to, attune_dtype from) {
  static const at_kernel table[AT_DTYPE_LAST + 1][AT_DTYPE_LAST + 1] = {
#define AT_CONVERT(TO, T, FROM, F, expression) [ATTUNE_##TO][ATTUNE_##FROM] = FROM##_to_##TO,
#include "ops/elementwise/host/interpret_convert.def"
#undef AT_CONVERT
      [ATTUNE_F32][ATTUNE_F16] = F16_to_F32,
      [ATTUNE_F16][ATTUNE_F32] = F32_to_F16,
  };
  return table[to][from];
}

const at_interpret_isa AT_ISA = {AT_ISA_NAME, find_function, find_convert, stream, fence};
