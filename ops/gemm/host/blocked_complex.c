/* SPDX-License-Identifier: Apache-2.0
 * blocked_complex.c: see blocked_complex.h. */
#include "ops/gemm/host/blocked_complex.h"

#include <string.h>

/* One complex row of A in a panel: its two lines, for each step of depth. A real factor leaves what is not finite in
 * its part, as all who multiply by it do. */
#define ROW_OF_A(E, NAME)                                                                                          \
  static inline void NAME(E *to, const E *from, int64_t depth, int64_t step, int64_t padded, E sign, E re, E im) { \
    for (int64_t k = 0; k < depth; k += 2, from += 2 * step, to += 2 * padded) {                                   \
      const E x = from[0], y = sign * from[1];                                                                     \
      const E a = im == 0 ? re * x : re * x - im * y, b = im == 0 ? re * y : re * y + im * x;                      \
      to[0] = a;                                                                                                   \
      to[1] = b;                                                                                                   \
      to[padded] = -b;                                                                                             \
      to[padded + 1] = a;                                                                                          \
    }                                                                                                              \
  }

/* Where the rows lie side by side they are read so, step after step. */
#define PACK_A(E, NAME, ROW)                                                                                        \
  ROW_OF_A(E, ROW)                                                                                                  \
  static void NAME(const at_complex_pack *p) {                                                                      \
    const E sign = p->conjugate ? -1 : 1, re = (E)p->alpha, im = (E)p->alpha_imag;                                  \
    for (int64_t first = 0; first < p->lines; first += p->panel) {                                                  \
      const int64_t width = p->lines - first < p->panel ? p->lines - first : p->panel,                              \
                    padded = (width + p->round - 1) / p->round * p->round;                                          \
      const E *from = (const E *)p->from + first * p->line_step;                                                    \
      E *to = (E *)p->to + first * p->depth;                                                                        \
      const int64_t block = p->line_step == 1 ? 2 : p->depth;                                                       \
      for (int64_t k = 0; k < p->depth; k += block)                                                                 \
        for (int64_t i = 0; i < width; i += 2)                                                                      \
          ROW(to + k * padded + i, from + i * p->line_step + k * p->depth_step, block, p->depth_step, padded, sign, \
              re, im);                                                                                              \
      for (int64_t k = 0; k < p->depth && width < padded; k++)                                                      \
        memset(to + k * padded + width, 0, (size_t)(padded - width) * sizeof(E));                                   \
    }                                                                                                               \
  }
PACK_A(float, pack_a_f32, row_of_a_f32)
PACK_A(double, pack_a_f64, row_of_a_f64)

#define PACK_B(E, NAME)                                                                     \
  static void NAME(const at_complex_pack *p) {                                              \
    const E sign = p->conjugate ? -1 : 1;                                                   \
    for (int64_t first = 0; first < p->lines; first += p->panel) {                          \
      const int64_t width = p->lines - first < p->panel ? p->lines - first : p->panel;      \
      const E *from = (const E *)p->from + 2 * first * p->line_step;                        \
      E *to = (E *)p->to + first * p->depth;                                                \
      for (int64_t k = 0; k < p->depth; k += 2, to += 2 * width, from += 2 * p->depth_step) \
        for (int64_t j = 0; j < width; j++) {                                               \
          to[j] = from[2 * j * p->line_step];                                               \
          to[width + j] = sign * from[2 * j * p->line_step + 1];                            \
        }                                                                                   \
    }                                                                                       \
  }
PACK_B(float, pack_b_f32)
PACK_B(double, pack_b_f64)

void at_complex_pack_a(const at_complex_pack *p) {
  (p->part == ATTUNE_F64 ? pack_a_f64 : pack_a_f32)(p);
}

void at_complex_pack_b(const at_complex_pack *p) {
  (p->part == ATTUNE_F64 ? pack_b_f64 : pack_b_f32)(p);
}

#define SCALE(E, NAME)                                                                                      \
  static void NAME(E re, E im, const E *c, int64_t ldc, E *d, int64_t ldd, int64_t rows, int64_t columns) { \
    for (int64_t j = 0; j < columns; j++, c += 2 * ldc, d += 2 * ldd)                                       \
      for (int64_t i = 0; i < 2 * rows; i += 2) {                                                           \
        const E x = c[i], y = c[i + 1];                                                                     \
        d[i] = im == 0 ? re * x : re * x - im * y;                                                          \
        d[i + 1] = im == 0 ? re * y : re * y + im * x;                                                      \
      }                                                                                                     \
  }
SCALE(float, scale_f32)
SCALE(double, scale_f64)

void at_complex_scale(attune_dtype part, double beta, double beta_imag, const void *c, int64_t ldc, void *d,
                      int64_t ldd, int64_t rows, int64_t columns) {
  if (part == ATTUNE_F64)
    scale_f64(beta, beta_imag, c, ldc, d, ldd, rows, columns);
  else
    scale_f32((float)beta, (float)beta_imag, c, ldc, d, ldd, rows, columns);
}
