/* SPDX-License-Identifier: Apache-2.0
 * blocked_complex.c: see blocked_complex.h. */
#include "ops/gemm/host/blocked_complex.h"

#include <string.h>

void at_complex_real_form(const at_gemm *g, const at_gemm_operands *o, at_gemm *real, at_gemm_operands *real_operands,
                          bool *fold, bool *scale) {
  const attune_dtype dtype = (attune_dtype)g->dtype;
  *fold = at_gemm_scalar_in(dtype, o->alpha_imag) != 0.0;
  *scale = g->c != AT_C_NONE && at_gemm_scalar_in(dtype, o->beta_imag) != 0.0;
  *real = *g;
  *real_operands = *o;
  real->dtype = real->dtype_out = (uint8_t)at_gemm_part(dtype);
  real->m *= 2, real->k *= 2;
  real->ldb *= 2, real->ldc *= 2, real->ldd *= 2;
  real->stride_b *= 2, real->stride_c *= 2, real->stride_d *= 2;
  if (*fold) real_operands->alpha = 1.0;
  if (!*scale) return;
  real_operands->c = o->d;
  real_operands->beta = 1.0;
  real->ldc = real->ldd, real->stride_c = real->stride_d;
}

/* What at_complex_pack says, as addresses: line l and depth k of the complex matrix at from[l * line_step + k *
 * depth_step]. */
typedef struct source {
  attune_dtype part;
  void *to;
  const void *from;
  int64_t lines, depth, line_step, depth_step, panel;
  int round;
  bool conjugate;
  double alpha, alpha_imag; /* A is multiplied by it */
} source;

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
  static void NAME(const source *p) {                                                                               \
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
  static void NAME(const source *p) {                                                       \
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

void at_complex_pack_lines(const at_complex_pack *p) {
  const at_gemm *g = p->g;
  const attune_dtype part = at_gemm_part(g->dtype);
  const int trans = p->of_a ? g->trans_a : g->trans_b;
  const int64_t ld = p->of_a ? g->lda : g->ldb, line_step = (trans != ATTUNE_N) == p->of_a ? ld : 1,
                depth_step = line_step == 1 ? ld : 1, line = p->of_a ? p->line / 2 : p->line;
  const int64_t at = p->batch * (p->of_a ? g->stride_a : g->stride_b) + line * line_step + p->k / 2 * depth_step;
  const size_t size = attune_dtype_size((attune_dtype)g->dtype);
  const bool fold = p->of_a && p->fold;
  const source s = {.part = part,
                    .to = p->to,
                    .from = (const char *)(p->of_a ? p->o->a : p->o->b) + (size_t)at * size,
                    .lines = p->lines,
                    .depth = p->depth,
                    .line_step = line_step,
                    .depth_step = depth_step,
                    .panel = p->panel,
                    .round = p->round,
                    .conjugate = trans == ATTUNE_C,
                    .alpha = fold ? p->o->alpha : 1.0,
                    .alpha_imag = fold ? p->o->alpha_imag : 0.0};
  if (part == ATTUNE_F64)
    (p->of_a ? pack_a_f64 : pack_b_f64)(&s);
  else
    (p->of_a ? pack_a_f32 : pack_b_f32)(&s);
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

void at_complex_scale(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i, int64_t m, int64_t j,
                      int64_t n) {
  const size_t size = attune_dtype_size((attune_dtype)g->dtype);
  const void *c = (const char *)o->c + (size_t)(batch * g->stride_c + i + j * g->ldc) * size;
  void *d = (char *)o->d + (size_t)(batch * g->stride_d + i + j * g->ldd) * size;
  if (g->dtype == ATTUNE_C128)
    scale_f64(o->beta, o->beta_imag, c, g->ldc, d, g->ldd, m, n);
  else
    scale_f32((float)o->beta, (float)o->beta_imag, c, g->ldc, d, g->ldd, m, n);
}
