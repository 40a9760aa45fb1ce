/* SPDX-License-Identifier: Apache-2.0
 * small_run.h: a plan of host_small and the walks over its products. */
#ifndef AT_GEMM_SMALL_RUN_H
#define AT_GEMM_SMALL_RUN_H

#include "ops/gemm/host/blocked.h"
#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

typedef enum at_small_ahead { AT_SMALL_AHEAD_NONE, AT_SMALL_AHEAD_A, AT_SMALL_AHEAD_B } at_small_ahead;

/* Tiles of one size that follow each other, down the rows or across the columns: one call of a kernel. */
typedef struct at_small_strip {
  at_small_tile_fn tile;
  const at_small *shape; /* its strides lead from one tile to the next */
  int64_t count;
  int64_t a, b, c, d;    /* bytes from the product's matrices to the first tile's */
  int64_t rows, columns; /* of each tile */
  at_small_ahead ahead;  /* of which matrix of the next product the tile asks for a part, */
  int64_t ahead_from;    /* and from which byte */
} at_small_strip;

/* What does not change from call to call. */
typedef struct at_small_plan {
  at_small_one one;                           /* one product with one vector of rows */
  at_small_one_fn ones[2];                    /* by: the last columns */
  int64_t one_count;                          /* adjacent tiles */
  int64_t one_b, one_d;                       /* bytes from one to the next */
  const at_gemm *g;                           /* `form` */
  int64_t size, lanes;                        /* bytes of an element, of a complex one of a part */
  int64_t threads;                            /* that share the batch */
  at_small shapes[2];                         /* those that the strips point to */
  at_small each;                              /* of a product that is one tile: strides of the batch */
  void (*scale)(const at_small_scale *scale); /* D = alpha sums + beta C */
  at_pack_fn pack;                            /* of a transposed A */
  at_pack packing;                            /* all but the addresses */
  int64_t packed_bytes;                       /* of all panels */
  const at_gemm *problem;                     /* the plan's */
  at_gemm form;                               /* of a complex problem: sizes and steps in parts */
  int64_t strip_count;
  at_small_strip strips[];
} at_small_plan;

/* Is the problem small enough for host_small, and of its types? */
bool at_small_takes(const at_gemm *g);

/* How many threads a batch of such products is worth. */
int at_small_threads(const at_gemm *g);

/* What plan->launch may be, with an at_small_plan as plan->state; one list for real products, one for complex ones. In
 * stream order; nothing allocated, nothing waited for but the team's threads. */
typedef struct at_small_launches {
  at_launch_fn one, ones; /* `one`, and several of them */
  at_launch_fn tile;      /* one strip of one tile */
  at_launch_fn strips;
  at_launch_fn packed; /* transposed A */
  at_launch_fn team;   /* any of them, in threads */
} at_small_launches;
extern const at_small_launches at_small_real, at_small_complex;

#endif
