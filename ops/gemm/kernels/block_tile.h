/* SPDX-License-Identifier: Apache-2.0
 * block_tile.h: what the families of block_tile.cuh's kernel share: a problem as X (m x k) times Y (k x n), m the larger. */
#ifndef AT_GEMM_BLOCK_TILE_H
#define AT_GEMM_BLOCK_TILE_H

#include "ops/gemm/kernels/kernel.h"

typedef struct at_gemm_shape {
  int64_t m, n, k, batch;
  int in, out, sum;              /* bytes of an element, of D's, of a sum */
  bool swapped;                  /* X is B, and D is made transposed */
  bool x_k, y_k;                 /* lies along k */
  int grain_x, grain_y, grain_d; /* the widest access that is permitted, an element at least */
  uint64_t workspace_cap;
} at_gemm_shape;

at_gemm_shape at_gemm_shape_of(const at_gemm *g);

/* The arguments of a recipe for a shape: X is A and Y is B, whichever they were. */
void at_gemm_launch_spec_swap(at_gemm_launch_spec *recipe, const at_gemm_shape *s);

/* How a kernel is launched: each of `tiles` by `split` blocks of a cluster, `parts` times along k, whose sums a second launch adds. */
typedef struct at_gemm_launch {
  int64_t tiles;
  int split, parts, threads;
  int units; /* elements of a tile */
  int shared_bytes;
} at_gemm_launch;

void at_gemm_launch_spec_launch(at_gemm_launch_spec *recipe, const at_gemm_shape *s, const at_gemm_launch *launch);

/* size / unit, rounded up. */
int64_t at_gemm_parts(int64_t size, int64_t unit);

/* Processors that blocks of a cluster of `split` can have: clusters of 4 and 8 leave some of each group of processors idle
 * (an H200 holds 66 clusters of 2, 30 of 4 and 15 of 8, with one block a processor). */
int at_gemm_usable(int split, const at_gemm_machine *machine);

/* Shared memory to ask for, `needed` or more: so much that no processor takes more blocks than others while the kernel before
 * leaves, where all blocks find a place at once. */
int at_gemm_spread(int64_t blocks, int needed, const at_gemm_machine *machine);

#endif
