/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_config.h: a configuration of sm90_wgmma_16b.cuh, and what it takes for a problem. */
#ifndef AT_GEMM_SM90_WGMMA_16B_CONFIG_H
#define AT_GEMM_SM90_WGMMA_16B_CONFIG_H

#include "ops/gemm/kernels/sm90_tma_maps.h"

enum {
  AT_WGMMA_STEP = 64, /* of k, in elements: the least */
  AT_WGMMA_DEEP = 4,
  AT_WGMMA_STAGES = 16,
  AT_WGMMA_GROUPS = 3,
  AT_WGMMA_PARTS = 192,
  AT_WGMMA_EARLY = 32,
  AT_WGMMA_BAND = 1024,
  AT_WGMMA_BLOCKS = 6
};

/* A configuration, read. */
typedef struct at_wgmma_choice {
  int tm, tn, stages;
  int deep;             /* times 64 of k in a step */
  int groups;           /* warpgroups that multiply */
  int split, parts;     /* blocks of a cluster, and clusters, that share k */
  int along_m, along_n; /* blocks of a cluster side by side */
  int band;             /* tiles along m that are taken together */
  int blocks;           /* of a processor */
  int early;            /* steps that a block asks for before what came before is done */
  bool late;            /* the work behind may start when the last copies are on their way; else at once */
  int kept;             /* 1: the larger factor leaves the L2 cache first, 2: and the smaller one last */
  bool turned;          /* X is B, and D is made transposed */
  double cost;          /* microseconds, by the model */
} at_wgmma_choice;

/* A problem as X (m x k) times Y (k x n). */
typedef struct at_wgmma_shape {
  int64_t m, n, k, batch;
  bool x_k, y_k; /* lies along k */
  int out, grain_d;
  bool reads_c;
  bool pads_x, pads_y;       /* is copied to the workspace first */
  size_t padded_x, padded_y; /* bytes that it takes there, X first; the sums of parts come behind */
  uint64_t workspace_cap;
} at_wgmma_shape;

at_wgmma_shape at_wgmma_shape_of(const at_gemm *g, bool turned);

int64_t at_wgmma_parts_of(int64_t size, int64_t unit); /* rounded up */

static inline int at_wgmma_cluster(const at_wgmma_choice *c) {
  return c->split * c->along_m * c->along_n;
}

/* A block makes one tile, of which it has a share of k, and does not go on to another. */
static inline bool at_wgmma_whole(const at_wgmma_choice *c) {
  return c->split > 1 || c->parts > 1;
}

/* Threads that copy, and all, as in sm90_wgmma_16b_tile.cuh. */
int at_wgmma_threads(const at_wgmma_choice *c);

int at_wgmma_shared_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c);

/* Where the barriers are in shared memory: behind all else. */
int at_wgmma_barriers(const at_wgmma_shape *s, const at_wgmma_choice *c);

/* Tiles of clusters, of one matrix; and of blocks. */
int64_t at_wgmma_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c);
int64_t at_wgmma_block_tiles(const at_wgmma_shape *s, const at_wgmma_choice *c);

/* Of padded copies and of sums; of the sums alone. */
size_t at_wgmma_sums_bytes(const at_wgmma_shape *s, const at_wgmma_choice *c);
size_t at_wgmma_workspace(const at_wgmma_shape *s, const at_wgmma_choice *c);

/* Clusters that run at the same time with `blocks` a processor. */
int at_wgmma_clusters(const at_wgmma_choice *c, const at_gemm_machine *machine);

/* Whether the kernel can be made and launched for the problem. */
bool at_wgmma_fits(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_gemm_machine *machine);

/* The words of a configuration, and back: false for what is none. */
bool at_wgmma_format(at_configuration *out, const at_wgmma_choice *c);
bool at_wgmma_parse(at_wgmma_choice *c, const at_configuration *text);

#endif
