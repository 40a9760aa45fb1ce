/* SPDX-License-Identifier: Apache-2.0
 * small.h: the tile kernels of host_small, which multiply matrices as they lie, without copies or set-up. They are
 * written once, in small_template.h, and compiled for every instruction set and type. */
#ifndef AT_GEMM_SMALL_H
#define AT_GEMM_SMALL_H

#include <attune/gemm.h>

/* What all tiles of a plan have in common; steps and strides in elements. */
typedef struct at_small {
  int64_t k;
  int64_t a_step;   /* between k steps of A; its rows lie side by side */
  int64_t b_k, b_n; /* between k steps and columns of B */
  int64_t ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d; /* between the matrices of a batch */
  int64_t rows;                                   /* of the last vector of a tile that ends early */
} at_small;

/* D = A B, or with C, D = C + A B: one tile of `count` matrices of a batch, or `count` tiles of a matrix. Unless it is
 * NULL, each four steps of a tile with several vectors fetch the next AT_SMALL_AHEAD bytes from `ahead` into L2. */
typedef void (*at_small_tile_fn)(const at_small *s, const void *a, const void *b, void *d, int64_t count, const void *c,
                                 const void *ahead);

/* One product with one vector of rows, without C: what overhead there is counts here. Steps in bytes. */
typedef struct at_small_one {
  int64_t k;
  int64_t a_step, b_k, b_n, ldd;
  int64_t rows; /* of a vector that ends early */
} at_small_one;

/* D = A B; always OK, so that a launch ends with it. */
typedef attune_status (*at_small_one_fn)(const at_small_one *s, const void *a, const void *b, void *d);

/* D = alpha sums + beta C for rows x columns; beta = 0 does not read C. The sums' columns are `padded` apart. */
typedef struct at_small_scale {
  double alpha, beta;
  const void *sums, *c;
  void *d;
  int64_t rows, columns, padded, ldc, ldd;
} at_small_scale;

enum { AT_SMALL_VECTORS = 4, AT_SMALL_COLUMNS = 16, AT_SMALL_SUMS_BYTES = 64 * 28, AT_SMALL_AHEAD = 256 };

typedef struct at_small_ops {
  int lanes;                     /* elements of a vector */
  int columns[AT_SMALL_VECTORS]; /* the most columns of a tile, by its vectors less 1 */
  void (*scale)(const at_small_scale *scale);
  /* By: the last vector ends early; then vectors - 1, columns - 1. A tile is at most AT_SMALL_SUMS_BYTES. */
  at_small_tile_fn tiles[2][AT_SMALL_VECTORS][AT_SMALL_COLUMNS];
  /* By: B's columns are as many elements apart as there are columns; the vector ends early; columns - 1. */
  at_small_one_fn ones[2][2][AT_SMALL_COLUMNS];
} at_small_ops;

extern const at_small_ops at_small_portable_f32, at_small_portable_f64;
#if defined(__x86_64__)
extern const at_small_ops at_small_avx2_f32, at_small_avx2_f64, at_small_avx512_f32, at_small_avx512_f64;
#endif

#endif
