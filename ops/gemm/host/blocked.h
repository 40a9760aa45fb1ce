/* SPDX-License-Identifier: Apache-2.0
 * blocked.h: what host_blocked's driver and its kernels share. The kernels are written once, in the *_template.h
 * files, and compiled for every instruction set and accumulation type; a table of them per instruction set is what the
 * driver sees. */
#ifndef AT_GEMM_BLOCKED_H
#define AT_GEMM_BLOCKED_H

#include <attune/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "ops/gemm/host/small.h"

/* Copies `lines` lines of `depth` elements into panels of `panel` lines, depth-major, converted to the accumulation
 * type. Element (line, k) lies at from[line * line_step + k * depth_step]; one of the steps is 1. Panel p starts at to
 * + p * panel * depth. The last panel is as wide as its lines, rounded up with zeros to a multiple of `round`. */
typedef struct at_pack {
  attune_dtype dtype;
  void *to;
  const void *from;
  int64_t lines, depth, line_step, depth_step, panel;
  int round;
} at_pack;

typedef void (*at_pack_fn)(const at_pack *pack);

/* What complex products need besides. */
typedef struct at_pairs {
  double alpha_imag, beta_imag;
  at_join join;
} at_pairs;

/* D = alpha A B + beta C over one block, in the accumulation type; beta = 0 does not read C; C may be D. */
typedef struct at_block {
  int64_t m, n, k;
  const void *a;
  int64_t a_step; /* between k steps of A as it lies; ignored when A is packed */
  const void *b;
  int64_t b_k, b_n; /* between k steps and columns of B as it lies; ignored by `product` */
  double alpha, beta;
  const void *c;
  void *d;
  int64_t ldc, ldd;
  int vectors;           /* rows of a tile of A, in vectors */
  bool a_packed;         /* panels of vectors * lanes rows, rounded to lanes */
  const at_pairs *pairs; /* complex: m rows and all steps are in real numbers, n columns are pairs */
} at_block;

/* partial(line, column) = sum over depth of wide(line, k) * thin(k, column): one pass over `wide`, few columns. */
typedef struct at_stream_job {
  attune_dtype dtype; /* of wide; thin and partial have the accumulation type */
  const void *wide;
  int64_t lines, depth, line_step, depth_step;
  const void *thin;
  int64_t thin_k, thin_column; /* steps of thin */
  int64_t columns;
  void *partial; /* column-major, leading dimension partial_ld, a multiple of the lanes */
  int64_t partial_ld;
} at_stream_job;

/* D = alpha partial + beta C, rounded once to dtype_out; element (i, j) of D lies at d[i * d_row + j * d_column]. */
typedef struct at_finish {
  attune_dtype dtype_out;
  int64_t rows, columns;
  const void *partial;
  int64_t partial_ld;
  double alpha, beta;
  const void *c;
  void *d;
  int64_t c_row, c_column, d_row, d_column;
} at_finish;

typedef struct at_blocked_ops {
  int lanes;            /* elements of a vector */
  int vectors, columns; /* a tile is at most vectors * lanes rows by columns */
  at_pack_fn pack;
  at_pack_fn pack_pairs;                        /* of c128, depth_step is 1; f64's has it */
  void (*product)(const at_block *block);       /* A and B packed */
  void (*direct)(const at_block *block);        /* B as it lies, A packed or not */
  void (*product_pairs)(const at_block *block); /* the same of complex matrices */
  void (*direct_pairs)(const at_block *block);
  void (*stream_columns)(const at_stream_job *job); /* line_step is 1 */
  void (*stream_rows)(const at_stream_job *job);    /* depth_step and thin_k are 1 */
  void (*finish)(const at_finish *finish);
} at_blocked_ops;

typedef struct at_blocked_isa {
  const char *name;
  const at_blocked_ops *f32, *f64; /* by accumulation type */
  const at_small_ops *small[AT_SMALL_TYPES];
} at_blocked_isa;

extern const at_blocked_isa at_blocked_portable;
#if defined(__x86_64__)
extern const at_blocked_isa at_blocked_avx2, at_blocked_avx512;
#endif

#endif
