/* SPDX-License-Identifier: Apache-2.0
 * tile_template.h: a register tile of VECTORS vectors by COLUMNS columns, for f32 and for pairs of i16. Before it: the
 * vectors' words, LANES of each, and NAME. */

#define STRING(x) #x
#define NAME_OF(x) STRING(x)
#define JOIN(x, y) x##y
#define TILE(name) JOIN(at_scaled_tile_, name)

static void tile_f32(int64_t steps, const void *a_panel, const void *b_panel, void *into, int64_t ld) {
  const float *a = a_panel, *b = b_panel;
  float *sums = into;
  vector_f32 sum[COLUMNS][VECTORS];
#pragma GCC unroll 16
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) sum[j][v] = load_f32(sums + j * ld + v * LANES);
  for (int64_t p = 0; p < steps; p++, a += VECTORS * LANES, b += COLUMNS) {
    vector_f32 x[VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) x[v] = load_f32(a + v * LANES);
#pragma GCC unroll 16
    for (int j = 0; j < COLUMNS; j++) {
      const vector_f32 y = every_f32(b[j]);
#pragma GCC unroll 16
      for (int v = 0; v < VECTORS; v++) sum[j][v] = fma_f32(x[v], y, sum[j][v]);
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) store_f32(sums + j * ld + v * LANES, sum[j][v]);
}

static void tile_i16(int64_t steps, const void *a_panel, const void *b_panel, void *into, int64_t ld) {
  const int32_t *a = a_panel, *b = b_panel;
  int32_t *sums = into;
  vector_i32 sum[COLUMNS][VECTORS];
#pragma GCC unroll 16
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) sum[j][v] = load_i32(sums + j * ld + v * LANES);
  for (int64_t p = 0; p < steps; p++, a += VECTORS * LANES, b += COLUMNS) {
    vector_i32 x[VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) x[v] = load_i32(a + v * LANES);
#pragma GCC unroll 16
    for (int j = 0; j < COLUMNS; j++) {
      const vector_i32 y = every_i32(b[j]);
#pragma GCC unroll 16
      for (int v = 0; v < VECTORS; v++) sum[j][v] = add_pairs(x[v], y, sum[j][v]);
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) store_i32(sums + j * ld + v * LANES, sum[j][v]);
}

const at_scaled_tile TILE(NAME) = {NAME_OF(NAME), VECTORS *LANES, COLUMNS, tile_f32, tile_i16};
