/* SPDX-License-Identifier: Apache-2.0
 * pad.h: copies of matrices with other leading dimensions, several in one launch of the kernel of pad.cu. */
#ifndef AT_GEMM_PAD_H
#define AT_GEMM_PAD_H

#include "src/cuda/jit/kernel_compile.h"

#define AT_PAD_MATRICES 3
#define AT_PAD_THREADS 256 /* of a block; THREADS in pad.cu */
#define AT_PAD_EACH 2      /* pieces of a thread; EACH in pad.cu */
#define AT_PAD_PIECE 16    /* bytes */

/* A column-major matrix or batch of them, to be copied; sizes in elements. */
typedef struct at_pad_copy {
  int64_t rows, cols, batch;
  int64_t ld_source, ld_destination, stride_source, stride_destination;
  size_t element;
  bool fill; /* the destination begins at a multiple of 16 bytes, and so do its columns: zeros fill them up to one */
  int64_t zero_cols; /* with fill: columns of zeros written behind the copied ones of each matrix */
} at_pad_copy;

/* n / d for n < 2^31, as pad.cu has it. */
typedef struct at_pad_divider {
  uint32_t factor, shift;
} at_pad_divider;

/* What the kernel takes: struct pad_matrix of pad.cu. */
typedef struct at_pad_matrix {
  const void *source;
  void *destination;
  int64_t ld_source, ld_destination, stride_source, stride_destination, extent;
  int32_t bytes, bytes_destination;
  uint32_t pieces, columns, total, first_block;
  at_pad_divider by_pieces, by_columns;
  uint32_t columns_source, unused;
} at_pad_matrix;
_Static_assert(sizeof(at_pad_matrix) == 104, "pad.cu lays it out so");

/* The kernel's argument. The caller sets each matrix's source and destination for every launch. */
typedef struct at_pad_arguments {
  at_pad_matrix matrix[AT_PAD_MATRICES];
} at_pad_arguments;

/* The kernel that moves words of `grain` bytes (2, 4 or 8; NULL for another): all pointers and elements are multiples
 * of it. Borrowed. */
const at_kernel_source *at_pad_source(size_t grain);

/* Fills *out for up to AT_PAD_MATRICES copies by the kernel of `grain`; *blocks is the grid: matrix i begins at block
 * matrix[i].first_block, so a smaller grid leaves the last ones out. False when a matrix is too large for the kernel or
 * empty. */
bool at_pad_plan(at_pad_arguments *out, const at_pad_copy *copies, int count, size_t grain, uint32_t *blocks);

#endif
