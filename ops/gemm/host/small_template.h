/* SPDX-License-Identifier: Apache-2.0
 * small_template.h: the tiles for the type that the includer defines; no include guard, it is included once for each:
 *   E, TYPE, P(name), FN(name), LANES   as in each_type_template.h
 *   COLUMNS_1 ... COLUMNS_4          the most columns beside 1 to 4 vectors of rows: 2, 4, 6, 8, 9, 12, 14 or 16
 *   TABLE(type)                      the name of the table of f32 or f64 */

static AT_TARGET void FN(small_scale)(const at_small_scale *s) {
  const E alpha = (E)s->alpha, beta = (E)s->beta;
  const P(vector) by = P(set1)(alpha), and = P(set1)(beta);
  for (int64_t j = 0; j < s->columns; j++)
    for (int64_t i = 0; i < s->rows; i += LANES) {
      const P(mask) some = P(first)(s->rows - i < LANES ? s->rows - i : LANES);
      P(vector) x = P(mul)(by, P(load)((const E *)s->sums + i + j * s->padded));
      if (beta != 0) x = P(fma)(and, P(load_part)((const E *)s->c + i + j * s->ldc, some), x);
      P(store_part)((E *)s->d + i + j * s->ldd, some, x);
    }
}

/* Where column j of B is read: columns in groups of four, each with a pointer of its own, so that the addresses of all
 * take few registers. b_n3 is 3 b_n. */
#define AT_COLUMN(group, j) (*(const E *)(const void *)((group)[(j) / 4] + ((j) % 4 == 3 ? b_n3 : (j) % 4 * b_n)))

/* The compiler forgets how x was made: it stays in one register, however far the loop is unrolled. */
#define AT_KEEP(x) __asm__("" : "+r"(x))

/* One step of k; gives the next place in A. */
SIMD const E *FN(small_step)(const E *a, int64_t a_step, const char **group, int64_t b_k, int64_t b_n, int64_t b_n3,
                             P(vector) (*acc)[AT_SMALL_COLUMNS], const int vectors, const int columns, const bool part,
                             const P(mask) last) {
  P(vector) row[AT_SMALL_VECTORS];
  AT_UNROLL
  for (int i = 0; i < vectors; i++)
    row[i] = part && i == vectors - 1 ? P(load_part)(a + i * LANES, last) : P(load)(a + i * LANES);
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    const P(vector) by = P(set1)(AT_COLUMN(group, j));
    AT_UNROLL
    for (int i = 0; i < vectors; i++) acc[i][j] = P(fma)(row[i], by, acc[i][j]);
  }
  AT_UNROLL
  for (int j = 0; j < columns; j += 4) {
    group[j / 4] += b_k;
    AT_KEEP(group[j / 4]);
  }
  a += a_step;
  AT_KEEP(a);
  return a;
}

/* `part`: the last vector has s->rows rows only. Where operands come from beyond L2, four steps of k at a time: the
 * loads of each have a stride of their own then, and the processor fetches four times as far ahead. */
SIMD void FN(small_tile)(const at_small *s, const E *a, const E *b, E *d, int64_t count, const E *c, const char *ahead,
                         const int vectors, const int columns, const bool part) {
  const int64_t b_n = s->b_n * (int64_t)sizeof(E), b_k = s->b_k * (int64_t)sizeof(E), a_step = s->a_step;
  const int64_t fours = vectors > 1 && ahead != NULL ? s->k / 4 : 0, rest = s->k - 4 * fours;
  const P(mask) last = P(first)(part ? s->rows : LANES);
  int64_t b_n3 = 3 * b_n;
  AT_KEEP(b_n3);
  for (;;) {
    P(vector) acc[AT_SMALL_VECTORS][AT_SMALL_COLUMNS];
    const char *group[AT_SMALL_COLUMNS / 4];
    AT_UNROLL
    for (int j = 0; j < columns; j++) {
      AT_UNROLL
      for (int i = 0; i < vectors; i++) acc[i][j] = P(zero)();
    }
    if (c != NULL) {
      const E *from = c;
      AT_UNROLL
      for (int j = 0; j < columns; j++, from += s->ldc) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++)
          acc[i][j] = part && i == vectors - 1 ? P(load_part)(from + i * LANES, last) : P(load)(from + i * LANES);
      }
      c += s->stride_c;
    }
    AT_UNROLL
    for (int j = 0; j < columns; j += 4) group[j / 4] = (const char *)b + j * b_n;
    const E *x = a;
    AT_ROLLED
    for (int64_t k = rest; k > 0; k--)
      x = FN(small_step)(x, a_step, group, b_k, b_n, b_n3, acc, vectors, columns, part, last);
    for (int64_t k = fours; k > 0; k--) {
      AT_UNROLL
      for (int i = 0; i < AT_SMALL_AHEAD; i += 64) __builtin_prefetch(ahead + i, 0, 2);
      ahead += AT_SMALL_AHEAD;
      AT_UNROLL
      for (int i = 0; i < 4; i++)
        x = FN(small_step)(x, a_step, group, b_k, b_n, b_n3, acc, vectors, columns, part, last);
    }
    E *to = d;
    AT_UNROLL
    for (int j = 0; j < columns; j++, to += s->ldd) {
      AT_UNROLL
      for (int i = 0; i < vectors; i++) {
        if (part && i == vectors - 1)
          P(store_part)(to + i * LANES, last, acc[i][j]);
        else
          P(store)(to + i * LANES, acc[i][j]);
      }
    }
    if (--count <= 0) return;
    a += s->stride_a;
    b += s->stride_b;
    d += s->stride_d;
  }
}

/* The same for one product, with as little around it as can be; few columns need none of the caller's registers.
 * `packed`: B's columns are `columns` elements apart, as in a square matrix without gaps: their addresses are
 * constants, which the processor reads faster than sums of registers. */
SIMD attune_status FN(small_one)(const at_small_one *s, const char *a, const char *b, char *d, const int columns,
                                 const bool part, const bool packed) {
  const int64_t b_n = packed ? columns * (int64_t)sizeof(E) : s->b_n, b_k = packed ? (int64_t)sizeof(E) : s->b_k;
  const int64_t ldd = s->ldd;
  const P(mask) last = P(first)(part ? s->rows : LANES);
  P(vector) acc[AT_SMALL_COLUMNS];
  const char *group[AT_SMALL_COLUMNS / 4];
  AT_UNROLL
  for (int j = 0; j < columns; j++) acc[j] = P(zero)();
  AT_UNROLL
  for (int j = 0; j < columns; j += 4) group[j / 4] = b + j * b_n;
  int64_t k = s->k;
  do {
    const P(vector) row = part ? P(load_part)((const E *)(const void *)a, last) : P(load)((const E *)(const void *)a);
    AT_UNROLL
    for (int j = 0; j < columns; j++) {
      const char *y = packed ? b + j * b_n : group[j / 4] + j % 4 * b_n;
      acc[j] = P(fma)(row, P(set1)(*(const E *)(const void *)y), acc[j]);
    }
    a += s->a_step;
    b += b_k;
    AT_UNROLL
    for (int j = 0; j < columns; j += 4) group[j / 4] += b_k;
  } while (--k > 0);
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    if (part)
      P(store_part)((E *)(void *)d, last, acc[j]);
    else
      P(store)((E *)(void *)d, acc[j]);
    d += ldd;
  }
  return ATTUNE_OK;
}

#define ONE_AS(name, n, part, packed)                                                                           \
  static AT_TARGET attune_status FN(small_one##name##_##n)(const at_small_one *s, const void *a, const void *b, \
                                                           void *d) {                                           \
    return FN(small_one)(s, (const char *)a, (const char *)b, (char *)d, n, part, packed);                      \
  }
#define ONE(v, n)                 \
  ONE_AS(, n, false, false)       \
  ONE_AS(_part, n, true, false)   \
  ONE_AS(_packed, n, false, true) \
  ONE_AS(_packed_part, n, true, true)
#define WHOLE_ONE(v, n) FN(small_one_##n),
#define PART_ONE(v, n) FN(small_one_part_##n),
#define PACKED_ONE(v, n) FN(small_one_packed_##n),
#define PACKED_PART_ONE(v, n) FN(small_one_packed_part_##n),
#define TILE_AS(name, v, n, part)                                                                                \
  static AT_TARGET void FN(small##name##_##v##_##n)(const at_small *s, const void *a, const void *b, void *d,    \
                                                    int64_t count, const void *c, const void *ahead) {           \
    FN(small_tile)(s, (const E *)a, (const E *)b, (E *)d, count, (const E *)c, (const char *)ahead, v, n, part); \
  }
#define TILE(v, n) TILE_AS(, v, n, false) TILE_AS(_part, v, n, true)
#define WHOLE(v, n) FN(small_##v##_##n),
#define PART(v, n) FN(small_part_##v##_##n),
#define EACH_2(X, v) X(v, 1) X(v, 2)
#define EACH_4(X, v) EACH_2(X, v) X(v, 3) X(v, 4)
#define EACH_6(X, v) EACH_4(X, v) X(v, 5) X(v, 6)
#define EACH_8(X, v) EACH_6(X, v) X(v, 7) X(v, 8)
#define EACH_9(X, v) EACH_8(X, v) X(v, 9)
#define EACH_12(X, v) EACH_9(X, v) X(v, 10) X(v, 11) X(v, 12)
#define EACH_14(X, v) EACH_12(X, v) X(v, 13) X(v, 14)
#define EACH_16(X, v) EACH_14(X, v) X(v, 15) X(v, 16)
#define EACH_UP_TO(count, X, v) EACH_##count(X, v)
#define EACH(count, X, v) EACH_UP_TO(count, X, v)
#define EACH_TILE(X)                                                           \
  {EACH(COLUMNS_1, X, 1)}, {EACH(COLUMNS_2, X, 2)}, {EACH(COLUMNS_3, X, 3)}, { \
    EACH(COLUMNS_4, X, 4)                                                      \
  }

EACH(COLUMNS_1, TILE, 1)
EACH(COLUMNS_2, TILE, 2)
EACH(COLUMNS_3, TILE, 3)
EACH(COLUMNS_4, TILE, 4)
EACH(COLUMNS_1, ONE, 1)

#define TABLE_OF(type) TABLE(type)
const at_small_ops TABLE_OF(TYPE) = {
    .lanes = LANES,
    .columns = {COLUMNS_1, COLUMNS_2, COLUMNS_3, COLUMNS_4},
    .scale = FN(small_scale),
    .tiles = {{EACH_TILE(WHOLE)}, {EACH_TILE(PART)}},
    .ones = {{{EACH(COLUMNS_1, WHOLE_ONE, 1)}, {EACH(COLUMNS_1, PART_ONE, 1)}},
             {{EACH(COLUMNS_1, PACKED_ONE, 1)}, {EACH(COLUMNS_1, PACKED_PART_ONE, 1)}}}};
