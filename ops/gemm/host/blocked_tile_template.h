/* SPDX-License-Identifier: Apache-2.0
 * blocked_tile_template.h: the tile kernels, a rows-of-vectors by columns outer product in registers over k, and the
 * loops over tiles. Complex tiles have half as many columns, which are pairs (at_join): parts == 2. Part of
 * blocked_kernels_template.h. */

typedef struct FN(tile) {
  int64_t k, a_step, b_k, b_n, ldc, ldd;
  const E *a, *b, *c;
  E *d;
  E alpha, beta;
  int64_t rows; /* of the last vector, 1..LANES */
  const at_pairs *pairs;
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

static AT_TARGET void FN(tile_store_pairs)(const FN(tile) * t, int64_t vectors, int64_t columns, const E *sums) {
  const E a = (E)t->pairs->alpha_imag, b = (E)t->pairs->beta_imag;
  const P(vector) alpha = P(set1)(t->alpha), alpha_imag = P(pair)(-a, a);
  const P(vector) beta = P(set1)(t->beta), beta_imag = P(pair)(-b, b);
  const P(mask) last = P(first)(t->rows), all = P(first)(LANES);
  const bool read = t->beta != 0 || b != 0;
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < vectors; i++, sums += LANES) {
      const P(mask) some = i == vectors - 1 ? last : all;
      const E *c = t->c + j * t->ldc + i * LANES;
      P(vector) x = FN(times)(P(load)(sums), alpha, alpha_imag, a == 0);
      if (read) x = P(add)(x, FN(times)(P(load_part)(c, some), beta, beta_imag, b == 0));
      P(store_part)(t->d + j * t->ldd + i * LANES, some, x);
    }
}

/* `part`: the last vector of A ends early and is read under a mask. `unit`: the columns of B lie side by side. */
AT_INSTANCE void FN(tile_body)(const FN(tile) * t, const int vectors, const int columns, const bool part,
                               const bool unit, const int parts) {
  P(vector) acc[VECTORS][COLUMNS];
  AT_UNROLL
  for (int i = 0; i < vectors; i++) {
    AT_UNROLL
    for (int j = 0; j < columns * parts; j++) acc[i][j] = P(zero)();
  }
  const E *a = t->a, *b = t->b;
  int64_t a_step = t->a_step, b_k = t->b_k, b_n = unit ? parts : t->b_n;
  P(mask) last = P(first)(t->rows);
  for (int64_t k = t->k; k > 0; k--) {
    P(vector) x[VECTORS];
    AT_UNROLL
    for (int i = 0; i < vectors; i++)
      x[i] = part && i == vectors - 1 ? P(load_part)(a + i * LANES, last) : P(load)(a + i * LANES);
    AT_UNROLL
    for (int j = 0; j < columns * parts; j++) {
      P(vector) y = P(set1)(b[j / parts * b_n + j % parts]);
      AT_UNROLL
      for (int i = 0; i < vectors; i++) acc[i][j] = P(fma)(x[i], y, acc[i][j]);
    }
    a += a_step;
    b += b_k;
  }
  bool plain =
      t->alpha == 1 && t->beta == 0 && t->rows == LANES; /* scaling by one costs a small tile as much as a step of k */
  if (parts == 2) plain = plain && t->pairs->alpha_imag == 0 && t->pairs->beta_imag == 0;
  const P(vector) turn = parts == 2 ? P(pair)((E)t->pairs->join.turn[0], (E)t->pairs->join.turn[1]) : P(zero)();
  const P(vector) sign = parts == 2 ? P(pair)(1, (E)t->pairs->join.sign) : P(zero)();
  E sums[VECTORS * COLUMNS * LANES];
  E *to = plain ? t->d : sums;
  int64_t step = plain ? t->ldd : vectors * LANES;
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    AT_UNROLL
    for (int i = 0; i < vectors; i++) P(store)
    (to + j * step + i * LANES, parts == 2 ? FN(join)(acc[i][2 * j], acc[i][2 * j + 1], turn, sign) : acc[i][j]);
  }
  if (!plain) (parts == 2 ? FN(tile_store_pairs) : FN(tile_store))(t, vectors, columns, sums);
}

#define TILE_AS(name, v, n, part, unit, parts)                     \
  static AT_TARGET void FN(name##_##v##_##n)(const FN(tile) * t) { \
    FN(tile_body)(t, v, n, part, unit, parts);                     \
  }
#define TILE(v, n)                        \
  TILE_AS(runs, v, n, false, true, 1)     \
  TILE_AS(lines, v, n, false, false, 1)   \
  TILE_AS(part_runs, v, n, true, true, 1) \
  TILE_AS(part_lines, v, n, true, false, 1)
#define PAIRS_TILE(v, n)                        \
  TILE_AS(pairs_runs, v, n, false, true, 2)     \
  TILE_AS(pairs_lines, v, n, false, false, 2)   \
  TILE_AS(pairs_part_runs, v, n, true, true, 2) \
  TILE_AS(pairs_part_lines, v, n, true, false, 2)
#define NAME_RUNS(v, n) FN(runs_##v##_##n),
#define NAME_LINES(v, n) FN(lines_##v##_##n),
#define NAME_PART_RUNS(v, n) FN(part_runs_##v##_##n),
#define NAME_PART_LINES(v, n) FN(part_lines_##v##_##n),
#define NAME_PAIRS_RUNS(v, n) FN(pairs_runs_##v##_##n),
#define NAME_PAIRS_LINES(v, n) FN(pairs_lines_##v##_##n),
#define NAME_PAIRS_PART_RUNS(v, n) FN(pairs_part_runs_##v##_##n),
#define NAME_PAIRS_PART_LINES(v, n) FN(pairs_part_lines_##v##_##n),
#if COLUMNS == 8
#define EACH_PAIR(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#define EACH_COLUMN(X, v) EACH_PAIR(X, v) X(v, 5) X(v, 6) X(v, 7) X(v, 8)
#elif COLUMNS == 6
#define EACH_PAIR(X, v) X(v, 1) X(v, 2) X(v, 3)
#define EACH_COLUMN(X, v) EACH_PAIR(X, v) X(v, 4) X(v, 5) X(v, 6)
#elif COLUMNS == 4
#define EACH_PAIR(X, v) X(v, 1) X(v, 2)
#define EACH_COLUMN(X, v) EACH_PAIR(X, v) X(v, 3) X(v, 4)
#endif
#if VECTORS == 3
#define EACH_TILE(EACH, X)      \
  {EACH(X, 1)}, {EACH(X, 2)}, { \
    EACH(X, 3)                  \
  }
EACH_COLUMN(TILE, 3)
EACH_PAIR(PAIRS_TILE, 3)
#elif VECTORS == 2
#define EACH_TILE(EACH, X) \
  {EACH(X, 1)}, {          \
    EACH(X, 2)             \
  }
#endif
EACH_COLUMN(TILE, 1)
EACH_COLUMN(TILE, 2)
EACH_PAIR(PAIRS_TILE, 1)
EACH_PAIR(PAIRS_TILE, 2)

typedef void (*FN(tile_fn))(const FN(tile) * t);
/* By: last vector ends early, columns of B apart; then vectors - 1, columns - 1. */
static const FN(tile_fn) FN(tiles)[2][2][VECTORS][COLUMNS] = {
    {{EACH_TILE(EACH_COLUMN, NAME_RUNS)}, {EACH_TILE(EACH_COLUMN, NAME_LINES)}},
    {{EACH_TILE(EACH_COLUMN, NAME_PART_RUNS)}, {EACH_TILE(EACH_COLUMN, NAME_PART_LINES)}}};
static const FN(tile_fn) FN(pairs_tiles)[2][2][VECTORS][COLUMNS] = {
    {{EACH_TILE(EACH_PAIR, NAME_PAIRS_RUNS)}, {EACH_TILE(EACH_PAIR, NAME_PAIRS_LINES)}},
    {{EACH_TILE(EACH_PAIR, NAME_PAIRS_PART_RUNS)}, {EACH_TILE(EACH_PAIR, NAME_PAIRS_PART_LINES)}}};

SIMD void FN(run_tile)(FN(tile) * t, bool part, bool lines, int64_t vectors, int64_t columns, const int parts) {
  (parts == 2 ? FN(pairs_tiles) : FN(tiles))[part][lines][vectors - 1][columns - 1](t);
}

SIMD bool FN(reads_c)(const FN(tile) * t, const int parts) {
  return t->beta != 0 || (parts == 2 && (E)t->pairs->beta_imag != 0);
}

/* A panel of A is kept in L2, one of B in L1 while it meets all of A. */
SIMD void FN(product_as)(const at_block *block, const int parts) {
  FN(tile) t = {.k = block->k, .ldc = block->ldc, .ldd = block->ldd, .alpha = (E)block->alpha, .beta = (E)block->beta};
  if (parts == 2) t.pairs = block->pairs;
  int64_t tile_rows = (int64_t)block->vectors * LANES;
  const int64_t most = COLUMNS / parts;
  for (int64_t j = 0; j < block->n; j += most) {
    int64_t columns = block->n - j < most ? block->n - j : most;
    t.b = (const E *)block->b + j * parts * block->k;
    t.b_k = columns * parts;
    for (int64_t i = 0; i < block->m; i += tile_rows) {
      int64_t rows = block->m - i < tile_rows ? block->m - i : tile_rows;
      int64_t vectors = (rows + LANES - 1) / LANES;
      t.a = (const E *)block->a + i * block->k;
      t.a_step = vectors * LANES;
      t.rows = rows - (vectors - 1) * LANES;
      t.d = (E *)block->d + i + j * block->ldd;
      t.c = FN(reads_c)(&t, parts) ? (const E *)block->c + i + j * block->ldc : t.d;
      FN(run_tile)(&t, false, false, vectors, columns, parts);
    }
  }
}

SIMD void FN(direct_as)(const at_block *block, const int parts) {
  FN(tile)
  t = {.k = block->k,
       .b_k = block->b_k,
       .b_n = block->b_n,
       .ldc = block->ldc,
       .ldd = block->ldd,
       .alpha = (E)block->alpha,
       .beta = (E)block->beta};
  if (parts == 2) t.pairs = block->pairs;
  const int64_t most = COLUMNS / parts;
  int64_t tile_rows = (int64_t)block->vectors * LANES;
  int64_t panels = (block->n + most - 1) / most;
  int64_t width = block->n % most == 0 ? most : (block->n + panels - 1) / panels; /* panels of equal width */
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
      t.c = FN(reads_c)(&t, parts) ? (const E *)block->c + i + j * block->ldc : t.d;
      FN(run_tile)(&t, !block->a_packed && t.rows < LANES, block->b_n != parts, vectors, columns, parts);
    }
  }
}

static AT_TARGET void FN(product)(const at_block *block) {
  FN(product_as)(block, 1);
}
static AT_TARGET void FN(direct)(const at_block *block) {
  FN(direct_as)(block, 1);
}
static AT_TARGET void FN(product_pairs)(const at_block *block) {
  FN(product_as)(block, 2);
}
static AT_TARGET void FN(direct_pairs)(const at_block *block) {
  FN(direct_as)(block, 2);
}
