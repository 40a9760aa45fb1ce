/* SPDX-License-Identifier: Apache-2.0
 * blocked_stream_template.h: one pass over a wide matrix against a thin one (GEMV and up to a few dozen columns), and
 * the final rounding. Part of blocked_kernels_template.h. */

#define GROUP \
  8 /* depth steps taken at once: as many streams of memory, and GROUP times fewer passes over the partial sums */

/* partial += wide(:, k..k+group) thin(k..k+group, :) for `vectors` vectors of lines at i. */
AT_INSTANCE void FN(axpy_lines)(const at_stream_job *s, int64_t i, int64_t k, const int group, const int vectors,
                                const bool part, const attune_dtype dtype) {
  const E *thin = (const E *)s->thin + k * s->thin_k;
  P(vector) x[2][GROUP];
  P(mask) rest = P(first)(part ? s->lines - i : 0);
  AT_UNROLL
  for (int q = 0; q < group; q++) {
    int64_t at = i + (k + q) * s->depth_step;
    AT_UNROLL
    for (int v = 0; v < vectors; v++)
      x[v][q] = part ? FN(load_part)(s->wide, at, rest, dtype) : FN(load)(s->wide, at + v * LANES, dtype);
  }
  for (int64_t j = 0; j < s->columns; j++) {
    E *y = (E *)s->partial + j * s->partial_ld + i;
    const E *t = thin + j * s->thin_column;
    P(vector) acc[2];
    AT_UNROLL
    for (int v = 0; v < vectors; v++) acc[v] = P(load)(y + v * LANES);
    AT_UNROLL
    for (int q = 0; q < group; q++) {
      P(vector) scale = P(set1)(t[q * s->thin_k]);
      AT_UNROLL
      for (int v = 0; v < vectors; v++) acc[v] = P(fma)(x[v][q], scale, acc[v]);
    }
    AT_UNROLL
    for (int v = 0; v < vectors; v++) P(store)(y + v * LANES, acc[v]);
  }
}

/* The same for all lines. */
SIMD void FN(axpy)(const at_stream_job *s, int64_t k, const int group, const attune_dtype dtype) {
  int64_t i = 0;
  for (; i + 2 * LANES <= s->lines; i += 2 * LANES) FN(axpy_lines)(s, i, k, group, 2, false, dtype);
  for (; i + LANES <= s->lines; i += LANES) FN(axpy_lines)(s, i, k, group, 1, false, dtype);
  if (i < s->lines) FN(axpy_lines)(s, i, k, group, 1, true, dtype);
}

SIMD void FN(columns_as)(const at_stream_job *s, const attune_dtype dtype) {
  for (int64_t j = 0; j < s->columns; j++)
    memset((E *)s->partial + j * s->partial_ld, 0, (size_t)((s->lines + LANES - 1) / LANES * LANES) * sizeof(E));
  int64_t k = 0;
  for (; k + GROUP <= s->depth; k += GROUP) FN(axpy)(s, k, GROUP, dtype);
  for (; k < s->depth; k++) FN(axpy)(s, k, 1, dtype);
}

/* partial(line.., column..) = dot products of `lines` lines and `columns` columns. */
AT_INSTANCE void FN(dot)(const at_stream_job *s, int64_t line, int64_t column, const int lines, const int columns,
                         const attune_dtype dtype) {
  P(vector) acc[4][4];
  const E *thin = (const E *)s->thin + column * s->thin_column;
  int64_t at = line * s->line_step, full = s->depth / LANES * LANES;
  AT_UNROLL
  for (int i = 0; i < lines; i++) {
    AT_UNROLL
    for (int j = 0; j < columns; j++) acc[i][j] = P(zero)();
  }
  for (int64_t k = 0; k < full; k += LANES) {
    P(vector) y[4];
    AT_UNROLL
    for (int j = 0; j < columns; j++) y[j] = P(load)(thin + j * s->thin_column + k);
    AT_UNROLL
    for (int i = 0; i < lines; i++) {
      P(vector) x = FN(load)(s->wide, at + i * s->line_step + k, dtype);
      AT_UNROLL
      for (int j = 0; j < columns; j++) acc[i][j] = P(fma)(x, y[j], acc[i][j]);
    }
  }
  P(mask) rest = P(first)(s->depth - full);
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    P(vector) y = P(load_part)(thin + j * s->thin_column + full, rest);
    AT_UNROLL
    for (int i = 0; i < lines; i++) {
      P(vector) x = FN(load_part)(s->wide, at + i * s->line_step + full, rest, dtype);
      ((E *)s->partial)[line + i + (column + j) * s->partial_ld] = P(sum)(P(fma)(x, y, acc[i][j]));
    }
  }
}

SIMD void FN(rows_as)(const at_stream_job *s, const attune_dtype dtype) {
  int64_t line = 0;
  for (; line + 4 <= s->lines; line += 4) {
    int64_t j = 0;
    for (; j + 4 <= s->columns; j += 4) FN(dot)(s, line, j, 4, 4, dtype);
    for (; j < s->columns; j++) FN(dot)(s, line, j, 4, 1, dtype);
  }
  for (; line < s->lines; line++)
    for (int64_t j = 0; j < s->columns; j++) FN(dot)(s, line, j, 1, 1, dtype);
}

#define EACH_DTYPE(dtype)                                             \
  static AT_TARGET void FN(columns_##dtype)(const at_stream_job *s) { \
    FN(columns_as)(s, dtype);                                         \
  }                                                                   \
  static AT_TARGET void FN(rows_##dtype)(const at_stream_job *s) {    \
    FN(rows_as)(s, dtype);                                            \
  }
#if HALVES
EACH_DTYPE(ATTUNE_F16)
EACH_DTYPE(ATTUNE_BF16)
EACH_DTYPE(ATTUNE_F32)
#else
EACH_DTYPE(ATTUNE_F64)
#endif

static AT_TARGET void FN(stream_columns)(const at_stream_job *s) {
#if HALVES
  if (s->dtype == ATTUNE_F16)
    FN(columns_ATTUNE_F16)(s);
  else if (s->dtype == ATTUNE_BF16)
    FN(columns_ATTUNE_BF16)(s);
  else
    FN(columns_ATTUNE_F32)(s);
#else
  FN(columns_ATTUNE_F64)(s);
#endif
}

static AT_TARGET void FN(stream_rows)(const at_stream_job *s) {
#if HALVES
  if (s->dtype == ATTUNE_F16)
    FN(rows_ATTUNE_F16)(s);
  else if (s->dtype == ATTUNE_BF16)
    FN(rows_ATTUNE_BF16)(s);
  else
    FN(rows_ATTUNE_F32)(s);
#else
  FN(rows_ATTUNE_F64)(s);
#endif
}

AT_INSTANCE void FN(finish_as)(const at_finish *f, const attune_dtype dtype) {
  P(vector) alpha = P(set1)((E)f->alpha), beta = P(set1)((E)f->beta);
  bool read = (E)f->beta != 0;
  for (int64_t j = 0; j < f->columns; j++) {
    const E *from = (const E *)f->partial + j * f->partial_ld;
    for (int64_t i = 0; i < f->rows; i += LANES) {
      P(mask) some = P(first)(f->rows - i < LANES ? f->rows - i : LANES);
      P(vector) x = P(mul)(alpha, P(load_part)(from + i, some));
      if (read) x = P(fma)(beta, FN(load_part)(f->c, i + j * f->c_column, some, dtype), x);
      int64_t at = i + j * f->d_column;
#if HALVES
      if (dtype == ATTUNE_F16)
        P(store_part_f16)((uint16_t *)f->d + at, some, x);
      else if (dtype == ATTUNE_BF16)
        P(store_part_bf16)((uint16_t *)f->d + at, some, x);
      else
#endif
        P(store_part)((E *)f->d + at, some, x);
    }
  }
}

/* Rows of D that do not lie side by side. */
AT_INSTANCE void FN(finish_scattered)(const at_finish *f, const attune_dtype dtype) {
  E alpha = (E)f->alpha, beta = (E)f->beta;
  for (int64_t i = 0; i < f->rows; i++)
    for (int64_t j = 0; j < f->columns; j++) {
      E x = alpha * ((const E *)f->partial)[i + j * f->partial_ld];
      if (beta != 0) x += beta * FN(load_one)(f->c, i * f->c_row + j * f->c_column, dtype);
      int64_t at = i * f->d_row + j * f->d_column;
#if HALVES
      if (dtype == ATTUNE_F16)
        ((uint16_t *)f->d)[at] = at_f32_to_f16(x);
      else if (dtype == ATTUNE_BF16)
        ((uint16_t *)f->d)[at] = at_f32_to_bf16(x);
      else
#endif
        ((E *)f->d)[at] = x;
    }
}

static AT_TARGET void FN(finish)(const at_finish *f) {
  if (f->d_row != 1 || ((E)f->beta != 0 && f->c_row != 1)) {
    FN(finish_scattered)(f, f->dtype_out);
    return;
  }
#if HALVES
  if (f->dtype_out == ATTUNE_F16) {
    FN(finish_as)(f, ATTUNE_F16);
    return;
  }
  if (f->dtype_out == ATTUNE_BF16) {
    FN(finish_as)(f, ATTUNE_BF16);
    return;
  }
#endif
  FN(finish_as)(f, (attune_dtype)(HALVES ? ATTUNE_F32 : ATTUNE_F64));
}
