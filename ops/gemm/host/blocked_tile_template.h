/* SPDX-License-Identifier: Apache-2.0
 * blocked_tile_template.h: the tile kernels, a rows-of-vectors by columns outer product in registers over k, and the
 * loops over tiles. Part of blocked_kernels_template.h. */

typedef struct FN(tile) {
  int64_t k, a_step, b_k, b_n, ldc, ldd;
  const E *a, *b, *c;
  E *d;
  E alpha, beta;
  int64_t rows; /* of the last vector, 1..LANES */
} FN(tile);

/* D = alpha acc + beta C for the tile, from a copy in memory: the general case, kept small; the common one is below. */
static AT_TARGET void FN(tile_store)(const FN(tile) * t, int64_t vectors, int64_t columns, const E *sums) {
  P(vector) alpha = P(set1)(t->alpha), beta = P(set1)(t->beta);
  P(mask) last = P(first)(t->rows);
  bool read = t->beta != 0;
  int64_t whole = t->rows == LANES ? vectors : vectors - 1;
  for (int64_t j = 0; j < columns; j++, sums += vectors * LANES) {
    const E *c = t->c + j * t->ldc;
    E *d = t->d + j * t->ldd;
    for (int64_t i = 0; i < whole; i++) {
      P(vector) x = P(mul)(alpha, P(load)(sums + i * LANES));
      P(store)(d + i * LANES, read ? P(fma)(beta, P(load)(c + i * LANES), x) : x);
    }
    if (whole == vectors) continue;
    P(vector) x = P(mul)(alpha, P(load)(sums + whole * LANES));
    P(store_part)(d + whole * LANES, last, read ? P(fma)(beta, P(load_part)(c + whole * LANES, last), x) : x);
  }
}

/* `part`: the last vector of A ends early and is read under a mask. `unit`: the columns of B lie side by side. */
SIMD void FN(tile_body)(const FN(tile) * t, const int vectors, const int columns, const bool part, const bool unit) {
  P(vector) acc[VECTORS][COLUMNS];
  AT_UNROLL
  for (int i = 0; i < vectors; i++) {
    AT_UNROLL
    for (int j = 0; j < columns; j++) acc[i][j] = P(zero)();
  }
  const E *a = t->a, *b = t->b;
  int64_t a_step = t->a_step, b_k = t->b_k, b_n = unit ? 1 : t->b_n;
  P(mask) last = P(first)(t->rows);
  for (int64_t k = t->k; k > 0; k--) {
    P(vector) x[VECTORS];
    AT_UNROLL
    for (int i = 0; i < vectors; i++)
      x[i] = part && i == vectors - 1 ? P(load_part)(a + i * LANES, last) : P(load)(a + i * LANES);
    AT_UNROLL
    for (int j = 0; j < columns; j++) {
      P(vector) y = P(set1)(b[j * b_n]);
      AT_UNROLL
      for (int i = 0; i < vectors; i++) acc[i][j] = P(fma)(x[i], y, acc[i][j]);
    }
    a += a_step;
    b += b_k;
  }
  bool plain =
      t->alpha == 1 && t->beta == 0 && t->rows == LANES; /* scaling by one costs a small tile as much as a step of k */
  E sums[VECTORS * COLUMNS * LANES];
  E *to = plain ? t->d : sums;
  int64_t step = plain ? t->ldd : vectors * LANES;
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    AT_UNROLL
    for (int i = 0; i < vectors; i++) P(store)(to + j * step + i * LANES, acc[i][j]);
  }
  if (!plain) FN(tile_store)(t, vectors, columns, sums);
}

#define TILE(v, n)                                                     \
  static AT_TARGET void FN(runs_##v##_##n)(const FN(tile) * t) {       \
    FN(tile_body)(t, v, n, false, true);                               \
  }                                                                    \
  static AT_TARGET void FN(lines_##v##_##n)(const FN(tile) * t) {      \
    FN(tile_body)(t, v, n, false, false);                              \
  }                                                                    \
  static AT_TARGET void FN(part_runs_##v##_##n)(const FN(tile) * t) {  \
    FN(tile_body)(t, v, n, true, true);                                \
  }                                                                    \
  static AT_TARGET void FN(part_lines_##v##_##n)(const FN(tile) * t) { \
    FN(tile_body)(t, v, n, true, false);                               \
  }
#define NAME_RUNS(v, n) FN(runs_##v##_##n),
#define NAME_LINES(v, n) FN(lines_##v##_##n),
#define NAME_PART_RUNS(v, n) FN(part_runs_##v##_##n),
#define NAME_PART_LINES(v, n) FN(part_lines_##v##_##n),
#if COLUMNS == 8
#define EACH_COLUMN(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4) X(v, 5) X(v, 6) X(v, 7) X(v, 8)
#elif COLUMNS == 6
#define EACH_COLUMN(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4) X(v, 5) X(v, 6)
#elif COLUMNS == 4
#define EACH_COLUMN(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#endif
#if VECTORS == 3
#define EACH_TILE(X)                          \
  {EACH_COLUMN(X, 1)}, {EACH_COLUMN(X, 2)}, { \
    EACH_COLUMN(X, 3)                         \
  }
EACH_COLUMN(TILE, 1)
EACH_COLUMN(TILE, 2)
EACH_COLUMN(TILE, 3)
#elif VECTORS == 2
#define EACH_TILE(X)     \
  {EACH_COLUMN(X, 1)}, { \
    EACH_COLUMN(X, 2)    \
  }
EACH_COLUMN(TILE, 1)
EACH_COLUMN(TILE, 2)
#endif

typedef void (*FN(tile_fn))(const FN(tile) * t);
/* By: last vector ends early, columns of B apart; then vectors - 1, columns - 1. */
static const FN(tile_fn) FN(tiles)[2][2][VECTORS][COLUMNS] = {
    {{EACH_TILE(NAME_RUNS)}, {EACH_TILE(NAME_LINES)}}, {{EACH_TILE(NAME_PART_RUNS)}, {EACH_TILE(NAME_PART_LINES)}}};

/* A panel of A is kept in L2, one of B in L1 while it meets all of A. */
static AT_TARGET void FN(product)(const at_block *block) {
  FN(tile) t = {.k = block->k, .ldc = block->ldc, .ldd = block->ldd, .alpha = (E)block->alpha, .beta = (E)block->beta};
  int64_t tile_rows = (int64_t)block->vectors * LANES;
  for (int64_t j = 0; j < block->n; j += COLUMNS) {
    int64_t columns = block->n - j < COLUMNS ? block->n - j : COLUMNS;
    t.b = (const E *)block->b + j * block->k;
    t.b_k = columns;
    for (int64_t i = 0; i < block->m; i += tile_rows) {
      int64_t rows = block->m - i < tile_rows ? block->m - i : tile_rows;
      int64_t vectors = (rows + LANES - 1) / LANES;
      t.a = (const E *)block->a + i * block->k;
      t.a_step = vectors * LANES;
      t.rows = rows - (vectors - 1) * LANES;
      t.d = (E *)block->d + i + j * block->ldd;
      t.c = t.beta != 0 ? (const E *)block->c + i + j * block->ldc : t.d;
      FN(tiles)[0][0][vectors - 1][columns - 1](&t);
    }
  }
}

static AT_TARGET void FN(direct)(const at_block *block) {
  FN(tile)
  t = {.k = block->k,
       .b_k = block->b_k,
       .b_n = block->b_n,
       .ldc = block->ldc,
       .ldd = block->ldd,
       .alpha = (E)block->alpha,
       .beta = (E)block->beta};
  int64_t tile_rows = (int64_t)block->vectors * LANES;
  int64_t panels = (block->n + COLUMNS - 1) / COLUMNS;
  int64_t width = block->n % COLUMNS == 0 ? COLUMNS : (block->n + panels - 1) / panels; /* panels of equal width */
  for (int64_t j = 0; j < block->n; j += width) {
    int64_t columns = block->n - j < width ? block->n - j : width;
    t.b = (const E *)block->b + j * block->b_n;
    for (int64_t i = 0; i < block->m; i += tile_rows) {
      int64_t rows = block->m - i < tile_rows ? block->m - i : tile_rows;
      int64_t vectors = (rows + LANES - 1) / LANES;
      t.a = (const E *)block->a + (block->a_packed ? i * block->k : i);
      t.a_step = block->a_packed ? vectors * LANES : block->a_step;
      t.rows = rows - (vectors - 1) * LANES;
      t.d = (E *)block->d + i + j * block->ldd;
      t.c = t.beta != 0 ? (const E *)block->c + i + j * block->ldc : t.d;
      FN(tiles)[!block->a_packed && t.rows < LANES][block->b_n != 1][vectors - 1][columns - 1](&t);
    }
  }
}
