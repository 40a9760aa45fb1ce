/* SPDX-License-Identifier: Apache-2.0
 * tile.h: the inner loops of host_scaled, by instruction set. A panel of A has `rows` words for each step along k, one
 * of B `columns`. A word is an f32, a step 1 of k; or two i16, and a step 2. */
#ifndef AT_GEMM_SCALED_TILE_H
#define AT_GEMM_SCALED_TILE_H

#include <stdint.h>

/* sums[column * ld + row] += A B for a tile, whole: a word each, f32 or i32. */
typedef void (*at_scaled_tile_fn)(int64_t steps, const void *a, const void *b, void *sums, int64_t ld);

typedef struct at_scaled_tile {
  const char *name;
  int rows, columns;
  at_scaled_tile_fn f32, i16;
} at_scaled_tile;
enum { AT_SCALED_ROWS_MOST = 32, AT_SCALED_COLUMNS_MOST = 12 };

extern const at_scaled_tile at_scaled_tile_portable, at_scaled_tile_avx2, at_scaled_tile_avx512,
    at_scaled_tile_avx512_vnni; /* as avx512, i16 by the instruction of VNNI */

#endif
