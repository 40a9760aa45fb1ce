/* SPDX-License-Identifier: Apache-2.0
 * interpret_vectors.h: loops over f64 that call the C library's functions of whole vectors (libmvec). Included
 * once by the file of an instruction set, which defines WIDE (a vector of WIDE_LANES f64), WIDE_ABI (how their names
 * begin), wide_load, wide_load_part (the others are 1), wide_store and wide_store_part first.
 *
 * AT_VECTORS(function, what its name ends with): the functions that are within 2 units in the last place there: exp,
 * expm1, log1p, log2, log10, sin, cos, tan, asin, atan, atan2, asinh, atanh, tanh, cbrt and erf are not, with one
 * instruction set or both. */
#include <stdatomic.h>

#include "ops/elementwise/host/interpret_kernels.h"

/* clang-format off */
#define AT_EACH_VECTOR1(AT_VECTORS) \
  AT_VECTORS(LOG, "log") AT_VECTORS(EXP2, "exp2") AT_VECTORS(ACOS, "acos")
#define AT_EACH_VECTOR2(AT_VECTORS) AT_VECTORS(POWER, "pow") AT_VECTORS(HYPOT, "hypot")
/* clang-format on */

typedef WIDE (*wide1)(WIDE x);
typedef WIDE (*wide2)(WIDE x, WIDE y);

/* Set before a loop that calls it is handed out. */
#define AT_VECTOR1(F, name)                                                                  \
  static wide1 _Atomic F##_wide;                                                             \
  static void F##_F64(void *out, const void *xs, const void *ys, const void *zs, size_t n) { \
    const wide1 f = atomic_load_explicit(&F##_wide, memory_order_relaxed);                   \
    double *o = out;                                                                         \
    const double *x = xs;                                                                    \
    size_t i = 0;                                                                            \
    (void)ys, (void)zs;                                                                      \
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) wide_store(o + i, f(wide_load(x + i)));     \
    if (i < n) wide_store_part(o + i, f(wide_load_part(x + i, n - i)), n - i);               \
  }
#define AT_VECTOR2(F, name)                                                                                  \
  static wide2 _Atomic F##_wide;                                                                             \
  static void F##_F64(void *out, const void *xs, const void *ys, const void *zs, size_t n) {                 \
    const wide2 f = atomic_load_explicit(&F##_wide, memory_order_relaxed);                                   \
    double *o = out;                                                                                         \
    const double *x = xs, *y = ys;                                                                           \
    size_t i = 0;                                                                                            \
    (void)zs;                                                                                                \
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) wide_store(o + i, f(wide_load(x + i), wide_load(y + i)));   \
    if (i < n) wide_store_part(o + i, f(wide_load_part(x + i, n - i), wide_load_part(y + i, n - i)), n - i); \
  }
AT_EACH_VECTOR1(AT_VECTOR1)
AT_EACH_VECTOR2(AT_VECTOR2)

#define AT_FIND(F, name, prefix, T)                                  \
  case AT_FN_##F: {                                                  \
    T f;                                                             \
    if (!at_libmvec_function(WIDE_ABI prefix name, &f)) return NULL; \
    atomic_store_explicit(&F##_wide, f, memory_order_relaxed);       \
    return F##_F64;                                                  \
  }
#define AT_FIND1(F, name) AT_FIND(F, name, "v_", wide1)
#define AT_FIND2(F, name) AT_FIND(F, name, "vv_", wide2)

/* NULL: none. */
static at_kernel find_vector(at_function function, attune_dtype dtype) {
  if (dtype != ATTUNE_F64) return NULL;
  switch (function) {
    AT_EACH_VECTOR1(AT_FIND1)
    AT_EACH_VECTOR2(AT_FIND2)
  default: return NULL;
  }
}
