/* SPDX-License-Identifier: Apache-2.0
 * small_template.h: the tiles for the type that the includer defines; no include guard, it is included once for each:
 *   E, P(name), FN(name), LANES      as in blocked_kernels_template.h
 *   COLUMNS_1, COLUMNS_2, COLUMNS_3  the most columns beside 1, 2 and 3 vectors of rows: 8, 6, 4 or 2
 *   TABLE                            the name of the table */

/* D = alpha acc + beta C from a copy of the sums: the scalars that are not 0 or 1. */
static AT_TARGET void FN(small_scaled)(const at_small *s, E alpha, E beta, const E *sums, const E *c, E *d,
                                       int64_t rows, int64_t columns, int64_t padded) {
  P(vector) by = P(set1)(alpha), and = P(set1)(beta);
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < rows; i += LANES) {
      P(mask) some = P(first)(rows - i < LANES ? rows - i : LANES);
      P(vector) x = P(mul)(by, P(load)(sums + i + j * padded));
      if (beta != 0) x = P(fma)(and, P(load_part)(c + i + j * s->ldc, some), x);
      P(store_part)(d + i + j * s->ldd, some, x);
    }
}

SIMD P(vector) FN(small_load)(const E *p, const bool part, const P(mask) mask) {
  return part ? P(load_part)(p, mask) : P(load)(p);
}

/* `part`: the last vector has s->rows rows only. With alpha 1 and beta 1 the sums start from C. */
SIMD void FN(small_tile)(const at_small *s, const attune_gemm_operands *o, const E *a, const E *b, E *d, int64_t count,
                         const E *c, const int vectors, const int columns, const bool part) {
  const E alpha = (E)o->alpha, beta = (E)o->beta;
  const bool onto = alpha == 1 && beta == 1, plain = onto || (alpha == 1 && beta == 0);
  const int64_t b_n = s->b_n, ldd = s->ldd;
  const P(mask) last = P(first)(part ? s->rows : LANES);
  for (;;) {
    P(vector) acc[AT_SMALL_VECTORS][AT_SMALL_COLUMNS];
    const E *x = a, *y = b;
    if (onto) {
      AT_UNROLL
      for (int j = 0; j < columns; j++) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++)
          acc[i][j] = FN(small_load)(c + i * LANES + j * s->ldc, part && i == vectors - 1, last);
      }
    } else {
      AT_UNROLL
      for (int j = 0; j < columns; j++) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++) acc[i][j] = P(zero)();
      }
    }
    for (int64_t k = s->k; k > 0; k--) {
      P(vector) row[AT_SMALL_VECTORS];
      AT_UNROLL
      for (int i = 0; i < vectors; i++) row[i] = FN(small_load)(x + i * LANES, part && i == vectors - 1, last);
      AT_UNROLL
      for (int j = 0; j < columns; j++) {
        P(vector) by = P(set1)(y[j * b_n]);
        AT_UNROLL
        for (int i = 0; i < vectors; i++) acc[i][j] = P(fma)(row[i], by, acc[i][j]);
      }
      x += s->a_step;
      y += s->b_k;
    }
    if (plain) {
      AT_UNROLL
      for (int j = 0; j < columns; j++) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++) {
          if (part && i == vectors - 1)
            P(store_part)(d + i * LANES + j * ldd, last, acc[i][j]);
          else
            P(store)(d + i * LANES + j * ldd, acc[i][j]);
        }
      }
    } else {
      E sums[AT_SMALL_VECTORS * AT_SMALL_COLUMNS * LANES];
      AT_UNROLL
      for (int j = 0; j < columns; j++) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++) P(store)(sums + (j * vectors + i) * LANES, acc[i][j]);
      }
      FN(small_scaled)
      (s, alpha, beta, sums, c, d, part ? (vectors - 1) * LANES + s->rows : vectors * LANES, columns, vectors * LANES);
    }
    if (--count <= 0) return;
    a += s->stride_a;
    b += s->stride_b;
    d += s->stride_d;
    if (beta != 0) c += s->stride_c;
  }
}

#define TILE(v, n)                                                                                                \
  static AT_TARGET void FN(small_##v##_##n)(const at_small *s, const attune_gemm_operands *o, const void *a,      \
                                            const void *b, void *d, int64_t count, const void *c) {               \
    FN(small_tile)(s, o, (const E *)a, (const E *)b, (E *)d, count, (const E *)c, v, n, false);                   \
  }                                                                                                               \
  static AT_TARGET void FN(small_part_##v##_##n)(const at_small *s, const attune_gemm_operands *o, const void *a, \
                                                 const void *b, void *d, int64_t count, const void *c) {          \
    FN(small_tile)(s, o, (const E *)a, (const E *)b, (E *)d, count, (const E *)c, v, n, true);                    \
  }
#define WHOLE(v, n) FN(small_##v##_##n),
#define PART(v, n) FN(small_part_##v##_##n),
#define EACH_2(X, v) X(v, 1) X(v, 2)
#define EACH_4(X, v) EACH_2(X, v) X(v, 3) X(v, 4)
#define EACH_6(X, v) EACH_4(X, v) X(v, 5) X(v, 6)
#define EACH_8(X, v) EACH_6(X, v) X(v, 7) X(v, 8)
#define EACH_UP_TO(count, X, v) EACH_##count(X, v)
#define EACH(count, X, v) EACH_UP_TO(count, X, v)

EACH(COLUMNS_1, TILE, 1)
EACH(COLUMNS_2, TILE, 2)
EACH(COLUMNS_3, TILE, 3)

const at_small_ops TABLE = {
    .lanes = LANES,
    .columns = {COLUMNS_1, COLUMNS_2, COLUMNS_3},
    .tiles = {{{EACH(COLUMNS_1, WHOLE, 1)}, {EACH(COLUMNS_2, WHOLE, 2)}, {EACH(COLUMNS_3, WHOLE, 3)}},
              {{EACH(COLUMNS_1, PART, 1)}, {EACH(COLUMNS_2, PART, 2)}, {EACH(COLUMNS_3, PART, 3)}}}};

#undef TILE
#undef WHOLE
#undef PART
#undef EACH_2
#undef EACH_4
#undef EACH_6
#undef EACH_8
#undef EACH_UP_TO
#undef EACH
