/* SPDX-License-Identifier: Apache-2.0
 * small_template.h: the tiles for the type that the includer defines; no include guard, it is included once for each:
 *   E, TYPE, COMPLEX, P(name), FN(name), LANES   as in each_type_template.h
 *   COLUMNS_1 ... COLUMNS_4          the most columns with 1 to 4 vectors of rows: 2, 4, 6, 8, 9, 12, 14 or 16
 *   PAIRS_1 ... PAIRS_4              the most columns of a complex tile: 1 to 4, 6, 7 or 8
 *   TABLE(type)                      the name of the table of f32, f64, c64 or c128
 *
 * A complex tile is a real one: A's rows are twice as many, re and im in turn, and a column of B is a pair of columns,
 * its real and its imaginary parts. The sums of the second column, with the parts of each row swapped, complete those
 * of the first: parts == 2. */

#include "ops/gemm/host/complex_template.h"

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

static AT_TARGET void FN(small_scale_pairs)(const at_small_scale *s) {
  const E alpha = (E)s->alpha_imag, beta = (E)s->beta_imag;
  const P(vector) by = P(set1)((E)s->alpha), by_imag = P(pair)(-alpha, alpha);
  const P(vector) and = P(set1)((E)s->beta), and_imag = P(pair)(-beta, beta);
  const bool reads_c = (E)s->beta != 0 || beta != 0;
  for (int64_t j = 0; j < s->columns; j++)
    for (int64_t i = 0; i < s->rows; i += LANES) {
      const P(mask) some = P(first)(s->rows - i < LANES ? s->rows - i : LANES);
      P(vector) x = FN(times)(P(load)((const E *)s->sums + i + j * s->padded), by, by_imag, alpha == 0);
      if (reads_c)
        x = P(add)(x, FN(times)(P(load_part)((const E *)s->c + i + j * s->ldc, some), and, and_imag, beta == 0));
      P(store_part)((E *)s->d + i + j * s->ldd, some, x);
    }
}

/* Where column j of B is read: columns in groups of four, each with a pointer of its own, so that the addresses of all
 * take few registers. b_n3 is 3 b_n. */
#define AT_COLUMN(group, j) ((group)[(j) / 4] + ((j) % 4 == 3 ? b_n3 : (j) % 4 * b_n))
#define AT_PART(column, part) (*(const E *)(const void *)((column) + (part) * (int64_t)sizeof(E)))

/* The compiler forgets how x was made: it stays in one register, however far the loop is unrolled. */
#define AT_KEEP(x) __asm__("" : "+r"(x))

/* One step of k; returns the next place in A. */
SIMD const E *FN(small_step)(const E *a, int64_t a_step, const char **group, int64_t b_k, int64_t b_n, int64_t b_n3,
                             P(vector) (*acc)[AT_SMALL_COLUMNS], const int vectors, const int columns, const bool part,
                             const int parts, const P(mask) last) {
  P(vector) row[AT_SMALL_VECTORS];
  AT_UNROLL
  for (int i = 0; i < vectors; i++)
    row[i] = part && i == vectors - 1 ? P(load_part)(a + i * LANES, last) : P(load)(a + i * LANES);
  AT_UNROLL
  for (int j = 0; j < columns * parts; j++) {
    const P(vector) by = P(set1)(AT_PART(AT_COLUMN(group, j / parts), j % parts));
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
AT_INSTANCE void FN(small_tile)(const at_small *s, const E *a, const E *b, E *d, int64_t count, const E *c,
                                const char *ahead, const int vectors, const int columns, const bool part,
                                const int parts) {
  const int64_t b_n = s->b_n * (int64_t)sizeof(E), b_k = s->b_k * (int64_t)sizeof(E), a_step = s->a_step;
  const int64_t fours = vectors > 1 && ahead != NULL ? s->k / 4 : 0, rest = s->k - 4 * fours;
  const P(mask) last = P(first)(part ? s->rows : LANES);
  const at_join *join = &s->join;
  int64_t b_n3 = 3 * b_n;
  AT_KEEP(b_n3);
  for (;;) {
    P(vector) acc[AT_SMALL_VECTORS][AT_SMALL_COLUMNS];
    const char *group[AT_SMALL_COLUMNS / 4];
    AT_UNROLL
    for (int j = 0; j < columns * parts; j++) {
      AT_UNROLL
      for (int i = 0; i < vectors; i++) acc[i][j] = P(zero)();
    }
    if (c != NULL) {
      const E *from = c;
      AT_UNROLL
      for (int j = 0; j < columns; j++, from += s->ldc) {
        AT_UNROLL
        for (int i = 0; i < vectors; i++) {
          P(vector) x = part && i == vectors - 1 ? P(load_part)(from + i * LANES, last) : P(load)(from + i * LANES);
          acc[i][j * parts] = parts == 2 ? P(mul)(P(pair)(1, (E)join->sign), x) : x;
        }
      }
      c += s->stride_c;
    }
    AT_UNROLL
    for (int j = 0; j < columns; j += 4) group[j / 4] = (const char *)b + j * b_n;
    const E *x = a;
    AT_ROLLED
    for (int64_t k = rest; k > 0; k--)
      x = FN(small_step)(x, a_step, group, b_k, b_n, b_n3, acc, vectors, columns, part, parts, last);
    for (int64_t k = fours; k > 0; k--) {
      AT_UNROLL
      for (int i = 0; i < AT_SMALL_AHEAD; i += 64) __builtin_prefetch(ahead + i, 0, 2);
      ahead += AT_SMALL_AHEAD;
      AT_UNROLL
      for (int i = 0; i < 4; i++)
        x = FN(small_step)(x, a_step, group, b_k, b_n, b_n3, acc, vectors, columns, part, parts, last);
    }
    E *to = d;
    if (parts == 2) AT_KEEP(join); /* read here, not where it would take registers from the sums */
    const P(vector) turn = parts == 2 ? P(pair)((E)join->turn[0], (E)join->turn[1]) : P(zero)();
    const P(vector) sign = parts == 2 ? P(pair)(1, (E)join->sign) : P(zero)();
    AT_UNROLL
    for (int j = 0; j < columns; j++, to += s->ldd) {
      AT_UNROLL
      for (int i = 0; i < vectors; i++) {
        const P(vector) sum = parts == 2 ? FN(join)(acc[i][2 * j], acc[i][2 * j + 1], turn, sign) : acc[i][j];
        if (part && i == vectors - 1)
          P(store_part)(to + i * LANES, last, sum);
        else
          P(store)(to + i * LANES, sum);
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
AT_INSTANCE attune_status FN(small_one)(const at_small_one *s, const char *a, const char *b, char *d, const int columns,
                                        const bool part, const bool packed, const int parts) {
  const int64_t size = parts * (int64_t)sizeof(E);
  const int64_t b_n = packed ? columns * size : s->b_n, b_k = packed ? size : s->b_k;
  const int64_t ldd = s->ldd;
  const P(mask) last = P(first)(part ? s->rows : LANES);
  P(vector) acc[AT_SMALL_COLUMNS];
  const char *group[AT_SMALL_COLUMNS / 4];
  AT_UNROLL
  for (int j = 0; j < columns * parts; j++) acc[j] = P(zero)();
  AT_UNROLL
  for (int j = 0; j < columns; j += 4) group[j / 4] = b + j * b_n;
  int64_t k = s->k;
  do {
    const P(vector) row = part ? P(load_part)((const E *)(const void *)a, last) : P(load)((const E *)(const void *)a);
    AT_UNROLL
    for (int j = 0; j < columns * parts; j++) {
      const int c = j / parts;
      const char *y = packed ? b + c * b_n : group[c / 4] + c % 4 * b_n;
      acc[j] = P(fma)(row, P(set1)(AT_PART(y, j % parts)), acc[j]);
    }
    a += s->a_step;
    b += b_k;
    AT_UNROLL
    for (int j = 0; j < columns; j += 4) group[j / 4] += b_k;
  } while (--k > 0);
  const P(vector) turn = parts == 2 ? P(pair)((E)s->join.turn[0], (E)s->join.turn[1]) : P(zero)();
  const P(vector) sign = parts == 2 ? P(pair)(1, (E)s->join.sign) : P(zero)();
  AT_UNROLL
  for (int j = 0; j < columns; j++) {
    const P(vector) sum = parts == 2 ? FN(join)(acc[2 * j], acc[2 * j + 1], turn, sign) : acc[j];
    if (part)
      P(store_part)((E *)(void *)d, last, sum);
    else
      P(store)((E *)(void *)d, sum);
    d += ldd;
  }
  return ATTUNE_OK;
}

#define ONE_AS(name, n, part, packed, parts)                                                                    \
  static AT_TARGET attune_status FN(small_one##name##_##n)(const at_small_one *s, const void *a, const void *b, \
                                                           void *d) {                                           \
    return FN(small_one)(s, (const char *)a, (const char *)b, (char *)d, n, part, packed, parts);               \
  }
#define ONES(kind, n, parts)                   \
  ONE_AS(kind, n, false, false, parts)         \
  ONE_AS(kind##_part, n, true, false, parts)   \
  ONE_AS(kind##_packed, n, false, true, parts) \
  ONE_AS(kind##_packed_part, n, true, true, parts)
#define ONE(v, n) ONES(, n, 1)
#define PAIRS_ONE(v, n) ONES(_pairs, n, 2)
#define TILE_AS(name, v, n, part, parts)                                                                      \
  static AT_TARGET void FN(small##name##_##v##_##n)(const at_small *s, const void *a, const void *b, void *d, \
                                                    int64_t count, const void *c, const void *ahead) {        \
    FN(small_tile)                                                                                            \
    (s, (const E *)a, (const E *)b, (E *)d, count, (const E *)c, (const char *)ahead, v, n, part, parts);     \
  }
#define TILE(v, n) TILE_AS(, v, n, false, 1) TILE_AS(_part, v, n, true, 1)
#define PAIRS_TILE(v, n) TILE_AS(_pairs, v, n, false, 2) TILE_AS(_pairs_part, v, n, true, 2)
#define EACH_1(X, v) X(v, 1)
#define EACH_2(X, v) EACH_1(X, v) X(v, 2)
#define EACH_3(X, v) EACH_2(X, v) X(v, 3)
#define EACH_4(X, v) EACH_3(X, v) X(v, 4)
#define EACH_6(X, v) EACH_4(X, v) X(v, 5) X(v, 6)
#define EACH_7(X, v) EACH_6(X, v) X(v, 7)
#define EACH_8(X, v) EACH_7(X, v) X(v, 8)
#define EACH_9(X, v) EACH_8(X, v) X(v, 9)
#define EACH_12(X, v) EACH_9(X, v) X(v, 10) X(v, 11) X(v, 12)
#define EACH_14(X, v) EACH_12(X, v) X(v, 13) X(v, 14)
#define EACH_16(X, v) EACH_14(X, v) X(v, 15) X(v, 16)
#define EACH_UP_TO(count, X, v) EACH_##count(X, v)
#define EACH(count, X, v) EACH_UP_TO(count, X, v)

EACH(COLUMNS_1, TILE, 1)
EACH(COLUMNS_2, TILE, 2)
EACH(COLUMNS_3, TILE, 3)
EACH(COLUMNS_4, TILE, 4)
EACH(COLUMNS_1, ONE, 1)
EACH(PAIRS_1, PAIRS_TILE, 1)
EACH(PAIRS_2, PAIRS_TILE, 2)
EACH(PAIRS_3, PAIRS_TILE, 3)
EACH(PAIRS_4, PAIRS_TILE, 4)
EACH(PAIRS_1, PAIRS_ONE, 1)

#define WHOLE(v, n) FN(small_##v##_##n),
#define PART(v, n) FN(small_part_##v##_##n),
#define WHOLE_ONE(v, n) FN(small_one_##n),
#define PART_ONE(v, n) FN(small_one_part_##n),
#define PACKED_ONE(v, n) FN(small_one_packed_##n),
#define PACKED_PART_ONE(v, n) FN(small_one_packed_part_##n),
#define PAIRS_WHOLE(v, n) FN(small_pairs_##v##_##n),
#define PAIRS_PART(v, n) FN(small_pairs_part_##v##_##n),
#define PAIRS_WHOLE_ONE(v, n) FN(small_one_pairs_##n),
#define PAIRS_PART_ONE(v, n) FN(small_one_pairs_part_##n),
#define PAIRS_PACKED_ONE(v, n) FN(small_one_pairs_packed_##n),
#define PAIRS_PACKED_PART_ONE(v, n) FN(small_one_pairs_packed_part_##n),
#define EACH_TILE(most, X)                                                  \
  {EACH(most##_1, X, 1)}, {EACH(most##_2, X, 2)}, {EACH(most##_3, X, 3)}, { \
    EACH(most##_4, X, 4)                                                    \
  }
#define TABLE_OF(type) TABLE(type)
#define TABLE_AS(type, most, name, scaling)                                                 \
  const at_small_ops TABLE_OF(type) = {                                                     \
      .lanes = LANES,                                                                       \
      .columns = {most##_1, most##_2, most##_3, most##_4},                                  \
      .scale = scaling,                                                                     \
      .tiles = {{EACH_TILE(most, name##WHOLE)}, {EACH_TILE(most, name##PART)}},             \
      .ones = {{{EACH(most##_1, name##WHOLE_ONE, 1)}, {EACH(most##_1, name##PART_ONE, 1)}}, \
               {{EACH(most##_1, name##PACKED_ONE, 1)}, {EACH(most##_1, name##PACKED_PART_ONE, 1)}}}}
TABLE_AS(TYPE, COLUMNS, , FN(small_scale));
TABLE_AS(COMPLEX, PAIRS, PAIRS_, FN(small_scale_pairs));
