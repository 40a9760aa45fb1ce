/* SPDX-License-Identifier: Apache-2.0
 * blocked_stream_complex.c: `stream` for complex products, by the real kernels: the wide matrix is read as it lies, and
 * the thin one is copied so that a column of it is a pair of real ones. */
#include "ops/gemm/host/blocked_complex.h"

#include "src/host/host.h"

enum { SUMS_BYTES = 16384 /* kept in L1 */ };

/* Lines of the wide matrix times columns of the thin one; steps in complex numbers. `dots`: the wide matrix's lines lie
 * along the depth; else side by side. */
typedef struct pass {
  const at_gemm_operands *o;
  bool dots, conjugate_wide, conjugate_thin, reads_c;
  int64_t lines, columns, depth, ld;          /* of the wide matrix */
  int64_t thin_k, thin_column;                /* steps of the thin matrix */
  int64_t d_line, d_column, c_line, c_column; /* steps of D and C along the wide matrix's lines and the thin columns */
  int64_t partial_ld;
} pass;

/* With dots a pair of columns gives both parts of a sum: (re, -im) and (im, re) along the depth; without them the pair
 * is re and im, and the parts of the wide matrix's lines have sums of their own. The thin matrix is conjugated here;
 * the wide one here with dots, else where its sums are joined. */
#define STREAM(E, SUFFIX)                                                                                      \
  static void copy_thin_##SUFFIX(const pass *p, E *to, const E *from) {                                        \
    const E sign = p->conjugate_thin ? -1 : 1, wide = p->conjugate_wide ? -1 : 1;                              \
    for (int64_t t = 0; t < p->columns; t++)                                                                   \
      for (int64_t k = 0; k < p->depth; k++) {                                                                 \
        const E *x = from + 2 * (k * p->thin_k + t * p->thin_column);                                          \
        const E re = x[0], im = sign * x[1];                                                                   \
        E *at = p->dots ? to + 4 * t * p->depth + 2 * k : to + 2 * (k * p->columns + t);                       \
        at[0] = re;                                                                                            \
        at[1] = p->dots ? -wide * im : im;                                                                     \
        if (!p->dots) continue;                                                                                \
        at[2 * p->depth] = im;                                                                                 \
        at[2 * p->depth + 1] = wide * re;                                                                      \
      }                                                                                                        \
  }                                                                                                            \
  static void finish_##SUFFIX(const pass *p, const E *sums, const E *c, E *d, int64_t lines) {                 \
    const E alpha = (E)p->o->alpha, alpha_imag = (E)p->o->alpha_imag, beta = (E)p->o->beta,                    \
            beta_imag = (E)p->o->beta_imag, sign = p->conjugate_wide ? -1 : 1;                                 \
    for (int64_t t = 0; t < p->columns; t++)                                                                   \
      for (int64_t l = 0; l < lines; l++) {                                                                    \
        const E *by_re = sums + 2 * t * p->partial_ld + (p->dots ? l : 2 * l), *by_im = by_re + p->partial_ld; \
        const E re = p->dots ? by_re[0] : by_re[0] - sign * by_im[1],                                          \
                im = p->dots ? by_im[0] : sign * by_re[1] + by_im[0];                                          \
        E x = alpha_imag == 0 ? alpha * re : alpha * re - alpha_imag * im,                                     \
          y = alpha_imag == 0 ? alpha * im : alpha * im + alpha_imag * re;                                     \
        if (c) {                                                                                               \
          const E *z = c + 2 * (l * p->c_line + t * p->c_column);                                              \
          x += beta_imag == 0 ? beta * z[0] : beta * z[0] - beta_imag * z[1];                                  \
          y += beta_imag == 0 ? beta * z[1] : beta * z[1] + beta_imag * z[0];                                  \
        }                                                                                                      \
        E *to = d + 2 * (l * p->d_line + t * p->d_column);                                                     \
        to[0] = x;                                                                                             \
        to[1] = y;                                                                                             \
      }                                                                                                        \
  }
STREAM(float, f32)
STREAM(double, f64)

static pass pass_of(const at_gemm *g, const at_gemm_operands *o, const at_complex_area *r) {
  const bool wide_b = g->m < g->n;
  const int a = g->trans_a, b = g->trans_b;
  pass p = {.o = o, .depth = g->k};
  p.reads_c = g->c != AT_C_NONE && !at_gemm_beta_is_0((attune_dtype)g->dtype, o);
  p.lines = wide_b ? r->n : r->m;
  p.columns = wide_b ? r->m : r->n;
  p.dots = wide_b ? !b : a != 0;
  p.ld = wide_b ? g->ldb : g->lda;
  p.conjugate_wide = (wide_b ? b : a) == ATTUNE_C;
  p.conjugate_thin = (wide_b ? a : b) == ATTUNE_C;
  const bool along_k = wide_b ? a != 0 : !b;
  const int64_t ld = wide_b ? g->lda : g->ldb;
  p.thin_k = along_k ? 1 : ld;
  p.thin_column = along_k ? ld : 1;
  p.d_line = wide_b ? g->ldd : 1, p.d_column = wide_b ? 1 : g->ldd;
  p.c_line = wide_b ? g->ldc : 1, p.c_column = wide_b ? 1 : g->ldc;
  return p;
}

/* Element (row, column) of a stored matrix of the batch. */
static const void *at(const at_gemm *g, const void *matrix, int64_t batch, int64_t stride, int64_t row, int64_t column,
                      int64_t ld) {
  return (const char *)matrix +
         (batch * stride + row + column * ld) * (int64_t)attune_dtype_size((attune_dtype)g->dtype);
}

static const void *a_at(const at_gemm *g, const void *a, int64_t batch, int64_t i) {
  return at(g, a, batch, g->stride_a, g->trans_a ? 0 : i, g->trans_a ? i : 0, g->lda);
}
static const void *b_at(const at_gemm *g, const void *b, int64_t batch, int64_t j) {
  return at(g, b, batch, g->stride_b, g->trans_b ? j : 0, g->trans_b ? 0 : j, g->ldb);
}

static at_stream_job job_of(const at_gemm *g, const pass *p, void *sums, void *thin) {
  return (at_stream_job){.dtype = at_gemm_part(g->dtype),
                         .depth = p->dots ? 2 * p->depth : p->depth,
                         .line_step = p->dots ? 2 * p->ld : 1,
                         .depth_step = p->dots ? 1 : 2 * p->ld,
                         .thin = thin,
                         .thin_k = p->dots ? 1 : 2 * p->columns,
                         .thin_column = p->dots ? 2 * p->depth : 1,
                         .columns = 2 * p->columns,
                         .partial = sums,
                         .partial_ld = p->partial_ld};
}

/* Lines of the wide matrix whose sums stay in L1, of matrix `batch`, one part after another. */
static void run_lines(const at_gemm *g, const pass *p, const at_blocked_ops *ops, at_stream_job *s,
                      const at_complex_area *r, int64_t batch) {
  const at_gemm_operands *o = p->o;
  const bool wide_b = g->m < g->n;
  const int64_t pair = p->dots ? 1 : 2, most = p->partial_ld / pair;
  for (int64_t line = 0; line < p->lines; line += most) {
    const int64_t i = r->i + (wide_b ? 0 : line), j = r->j + (wide_b ? line : 0);
    const int64_t lines = p->lines - line < most ? p->lines - line : most;
    s->wide = wide_b ? b_at(g, o->b, batch, j) : a_at(g, o->a, batch, i);
    s->lines = lines * pair;
    (p->dots ? ops->stream_rows : ops->stream_columns)(s);
    const void *c = p->reads_c ? at(g, o->c, batch, g->stride_c, i, j, g->ldc) : NULL;
    void *d = (void *)(uintptr_t)at(g, o->d, batch, g->stride_d, i, j, g->ldd);
    if (g->dtype == ATTUNE_C128)
      finish_f64(p, (const double *)s->partial, (const double *)c, (double *)d, lines);
    else
      finish_f32(p, (const float *)s->partial, (const float *)c, (float *)d, lines);
  }
}

bool at_complex_stream(const at_gemm *g, const at_gemm_operands *o, const at_blocked_ops *ops,
                       const at_complex_area *r) {
  pass p = pass_of(g, o, r);
  const int64_t size = g->dtype == ATTUNE_C128 ? 8 : 4, lanes = ops->lanes, line = 2 * p.columns * size;
  const int64_t chunk = SUMS_BYTES / line / lanes * lanes;
  p.partial_ld = chunk < 4 * lanes ? 4 * lanes : chunk;
  char *sums = (char *)at_host_scratch((size_t)((p.partial_ld + (p.dots ? 2 : 1) * g->k) * line));
  if (!sums) return false;
  void *thin = sums + p.partial_ld * line;
  at_stream_job s = job_of(g, &p, sums, thin);
  for (int64_t batch = r->batch; batch < r->batch + r->batches; batch++) {
    const void *from = g->m < g->n ? a_at(g, o->a, batch, r->i) : b_at(g, o->b, batch, r->j);
    if (g->dtype == ATTUNE_C128)
      copy_thin_f64(&p, (double *)thin, (const double *)from);
    else
      copy_thin_f32(&p, (float *)thin, (const float *)from);
    run_lines(g, &p, ops, &s, r, batch);
  }
  return true;
}
