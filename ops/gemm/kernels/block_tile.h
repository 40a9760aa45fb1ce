/* SPDX-License-Identifier: Apache-2.0
 * block_tile.h: what the families of block_tile.cuh's kernel share: a problem as X (m x k) times Y (k x n), m the
 * larger. */
#ifndef AT_GEMM_BLOCK_TILE_H
#define AT_GEMM_BLOCK_TILE_H

#include "ops/gemm/kernels/kernel.h"

typedef struct at_gemm_shape {
  int64_t m, n, k, batch;
  int in, out, sum;              /* bytes of an element, of D's, of a sum */
  bool swapped;                  /* X is B, and D is made transposed */
  bool x_k, y_k;                 /* lies along k */
  bool pointers;                 /* arrays of them say where the matrices are */
  int grain_x, grain_y, grain_d; /* the widest access that is permitted, an element at least */
  uint64_t workspace_cap;
} at_gemm_shape;

at_gemm_shape at_gemm_shape_of(const at_gemm *g);

/* A configuration of a family, read; what the family does not have is 0. */
typedef struct at_block_choice {
  int tm, tn, step, warps_m, warps_n, warps_k, lanes, stages, split, parts, pads, early, bound;
  double cost; /* microseconds, by the model */
} at_block_choice;

enum { AT_BLOCK_WARPS = 8 };

/* The tunables that both families have, in two pieces. */
#define AT_BLOCK_TILE_TUNABLES(NUMBER, PAIR, LEAST_N, MOST_N)                                                          \
  PAIR("tile", tm, "TM", 16, 256, tn, "TN", LEAST_N, MOST_N, AT_POWERS, "rows and columns of D that a block computes") \
  NUMBER("step", step, "BK", 8, 128, AT_POWERS, "of k, by a block at a time")                                          \
  PAIR("warps", warps_m, "WARPS_M", 1, AT_BLOCK_WARPS, warps_n, "WARPS_N", 1, AT_BLOCK_WARPS, AT_POWERS,               \
       "warps of a block along the rows and the columns")                                                              \
  NUMBER("along", warps_k, "WARPS_K", 1, AT_BLOCK_WARPS, AT_POWERS, "warps that share a step")
#define AT_BLOCK_SHARE_TUNABLES(NUMBER, MOST_PARTS)                                                           \
  NUMBER("stages", stages, "STAGES", 1, 16, 0, "steps that a block has in shared memory or on the way there") \
  NUMBER("splitk", split, "SPLIT", 1, 8, 0,                                                                   \
         "blocks, a cluster, that share k; more than one on devices of capability 9.0 and later")             \
  NUMBER("parts", parts, "PARTS", 1, MOST_PARTS, 0,                                                           \
         "clusters that share k further: their sums go to the workspace, and another launch adds them up")

int at_block_warps(const at_block_choice *c);
int64_t at_block_tiles(const at_gemm_shape *s, const at_block_choice *c);  /* of a matrix */
int64_t at_block_blocks(const at_gemm_shape *s, const at_block_choice *c); /* of all */

/* Steps along k of a block, at most; whether all of them have a place in shared memory. */
int64_t at_block_steps(const at_gemm_shape *s, const at_block_choice *c);
bool at_block_is_whole(const at_gemm_shape *s, const at_block_choice *c);

/* Bytes of the workspace for the sums of parts. */
size_t at_block_sums(const at_gemm_shape *s, const at_block_choice *c);

/* Can a configuration that takes so much share k so, and run? */
bool at_block_fits(const at_gemm_shape *s, const at_block_choice *c, int shared_bytes, size_t workspace,
                   const at_machine *machine);

/* For a list of candidates, c->parts is how many times parts are to fill the processors, 0: no parts; it becomes their
 * number. False: k is too short, or there are more of them than `most`. */
bool at_block_share(const at_gemm_shape *s, at_block_choice *c, int most, const at_machine *machine);

/* How the blocks of a configuration fall on the processors, for a model. */
typedef struct at_block_load {
  double processors, blocks;
  double mine;         /* steps of a block */
  double whole, busy;  /* blocks of a processor: in all, at a time */
  double rounds, used; /* used: the part of the processors that has any */
  double few;          /* more than 1: too few warps to hide what they wait for */
} at_block_load;

at_block_load at_block_load_of(const at_gemm_shape *s, const at_block_choice *c, int resident,
                               const at_machine *machine);

/* Microseconds of a configuration whose loop takes so many for memory, sums and the L2 cache, each alone. */
typedef struct at_block_times {
  double memory, compute, level2;
  double deep;   /* how much longer it takes for its many stages, 1: no longer */
  double meet;   /* for blocks of a cluster to meet */
  double before; /* for a launch in front of it */
  double cycle;
} at_block_times;

double at_block_cost(const at_gemm_shape *s, const at_block_choice *c, const at_block_load *load,
                     const at_block_times *times, const at_machine *machine);

/* Processors that blocks of a cluster of `split` can have. */
int at_gemm_usable(int split, const at_machine *machine);

/* Shared memory to ask for, `needed` or more: so much that no processor takes more blocks than others while the kernel
 * before leaves, where all blocks find a place at once. */
int at_gemm_spread(int64_t blocks, int needed, const at_machine *machine);

/* How the kernel is launched: each tile by a cluster's blocks, so many times along k as there are parts, whose sums a
 * second launch adds. */
void at_block_launch(at_gemm_launch_spec *spec, const at_gemm_shape *s, const at_block_choice *c, int shared_bytes);

#endif
