/* SPDX-License-Identifier: Apache-2.0
 * tile_portable.c: the tile of host_scaled in plain C. */
#include "ops/gemm/scaled/tile.h"

#include <string.h>

#define NAME portable
#define LANES 4
#define VECTORS 2
#define COLUMNS 4
typedef float vector_f32 __attribute__((vector_size(16)));
typedef int32_t vector_i32 __attribute__((vector_size(16)));

static inline vector_f32 load_f32(const float *p) {
  vector_f32 x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline vector_i32 load_i32(const int32_t *p) {
  vector_i32 x;
  memcpy(&x, p, sizeof x);
  return x;
}
/* The upper and the lower halves of all words: a sum wraps as an unsigned one does. */
static inline vector_i32 add_pairs(vector_i32 x, vector_i32 y, vector_i32 sum) {
  typedef uint32_t words __attribute__((vector_size(16)));
  const vector_i32 low_x = (vector_i32)((words)x << 16) >> 16, low_y = (vector_i32)((words)y << 16) >> 16;
  return (vector_i32)((words)sum + (words)(low_x * low_y) + (words)((x >> 16) * (y >> 16)));
}
#define store_f32(p, x) memcpy(p, &(x), sizeof(x))
#define store_i32(p, x) memcpy(p, &(x), sizeof(x))
#define every_f32(x) ((vector_f32){(x), (x), (x), (x)})
#define every_i32(x) ((vector_i32){(x), (x), (x), (x)})
#define fma_f32(x, y, sum) ((x) * (y) + (sum))
#include "ops/gemm/scaled/tile_template.h"
