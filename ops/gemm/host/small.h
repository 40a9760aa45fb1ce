/* SPDX-License-Identifier: Apache-2.0
 * small.h: the tile kernels of host_small, which multiply matrices as they lie, without copies or set-up. They are
 * written once, in small_template.h, and compiled for every instruction set and type. */
#ifndef AT_GEMM_SMALL_H
#define AT_GEMM_SMALL_H

#include <attune/gemm.h>

/* A complex product by real kernels: the rows of A are those of its parts, re and im in turn, and each column of B is a
 * pair of columns, its real parts and its imaginary parts. Of A B's sums with both columns comes the column of D:
 * sign (sums with the real parts) + turn (sums with the imaginary parts, re and im of each row swapped). */
typedef struct at_join {
  double turn[2]; /* for re and for im; (-1, 1) where no matrix is conjugated */
  double sign;    /* of im */
} at_join;

/* What all tiles of a plan have in common; steps and strides in elements, of complex matrices in parts. */
typedef struct at_small {
  int64_t k;
  int64_t a_step;   /* between k steps of A; its rows lie side by side */
  int64_t b_k, b_n; /* between k steps and columns of B */
  int64_t ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d; /* between the matrices of a batch */
  int64_t rows;                                   /* of the last vector of a tile that ends early */
  at_join join;                                   /* of complex tiles */
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
  at_join join;
} at_small_one;

/* D = A B; always OK, so that a launch ends with it. */
typedef attune_status (*at_small_one_fn)(const at_small_one *s, const void *a, const void *b, void *d);

/* D = alpha sums + beta C for rows x columns; beta = 0 does not read C. The sums' columns are `padded` apart. Real
 * kernels do not read the imaginary parts. */
typedef struct at_small_scale {
  double alpha, alpha_imag, beta, beta_imag;
  const void *sums, *c;
  void *d;
  int64_t rows, columns, padded, ldc, ldd;
} at_small_scale;

/* The types that there are kernels for: the order of AT_SMALL_OPS. */
enum { AT_SMALL_F32, AT_SMALL_F64, AT_SMALL_C64, AT_SMALL_C128, AT_SMALL_TYPES };
enum { AT_SMALL_VECTORS = 4, AT_SMALL_COLUMNS = 16, AT_SMALL_SUMS_BYTES = 64 * 28, AT_SMALL_AHEAD = 256 };

typedef struct at_small_ops {
  int lanes;                     /* elements of a vector; of complex ones parts */
  int columns[AT_SMALL_VECTORS]; /* the most columns of a tile, by its vectors less 1 */
  void (*scale)(const at_small_scale *scale);
  /* By: the last vector ends early; then vectors - 1, columns - 1. A tile is at most AT_SMALL_SUMS_BYTES. */
  at_small_tile_fn tiles[2][AT_SMALL_VECTORS][AT_SMALL_COLUMNS];
  /* By: B's columns are as many elements apart as there are columns; the vector ends early; columns - 1. */
  at_small_one_fn ones[2][2][AT_SMALL_COLUMNS];
} at_small_ops;

#define AT_SMALL_OPS(X, isa) \
  X at_small_##isa##_f32, X at_small_##isa##_f64, X at_small_##isa##_c64, X at_small_##isa##_c128
extern const at_small_ops AT_SMALL_OPS(, portable);
#if defined(__x86_64__)
extern const at_small_ops AT_SMALL_OPS(, avx2), AT_SMALL_OPS(, avx512);
#endif

#endif
