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

/* tm, tn: of X and Y, as the problem is turned; deep: times 64 of k in a step. */
#define AT_WGMMA_TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                   \
  PAIR("tile", tm, "TM", 64, 256, tn, "TN", 16, 256, 0,                                                               \
       "rows and columns of D that a block computes; columns and rows where `turned`")                                \
  NUMBER("deep", deep, "DEEP", 1, AT_WGMMA_DEEP, 0, "of k, 64 at a time: how many of these a step has")               \
  NUMBER("stages", stages, "STAGES", 1, AT_WGMMA_STAGES, 0,                                                           \
         "steps that a block has in shared memory or on the way there")                                               \
  NUMBER("groups", groups, "GROUPS", 1, AT_WGMMA_GROUPS, 0, "warpgroups of a block that multiply")                    \
  NUMBER("splitk", split, "SPLIT", 1, 8, 0, "blocks of a cluster that share k")                                       \
  NUMBER("parts", parts, "PARTS", 1, AT_WGMMA_PARTS, 0,                                                               \
         "clusters that share k further: their sums go to the workspace, and another launch adds them up")            \
  PAIR("cluster", along_m, "ALONG_M", 1, 4, along_n, "ALONG_N", 1, 4, 0,                                              \
       "blocks of a cluster along the tile's rows and its columns: each brings a part of what they "                  \
       "share to all of them")                                                                                        \
  NUMBER("band", band, "BAND", 1, AT_WGMMA_BAND, 0, "tiles along the rows that are taken together along the columns") \
  NUMBER("blocks", blocks, "BLOCKS", 1, AT_WGMMA_BLOCKS, 0, "blocks of a multiprocessor")                             \
  NUMBER("early", early, "EARLY", 0, AT_WGMMA_EARLY, 0,                                                               \
         "steps that a block asks the L2 cache for before the work in front of it is done")                           \
  NUMBER("late", late, "LATE", 0, 1, 0,                                                                               \
         "1: the work behind may start when the last copies are on their way; 0: at once")                            \
  NUMBER("kept", kept, NULL, 0, 2, 0,                                                                                 \
         "1: the larger factor is the first to leave the L2 cache; 2: and the smaller one the last")                  \
  NUMBER("turned", turned, "TURNED", 0, 1, 0, "1: B is the left factor, and D is made transposed")

/* A configuration, read. */
typedef struct at_wgmma_choice {
  AT_TUNABLE_FIELDS(AT_WGMMA_TUNABLES)
  double cost; /* microseconds, by the model */
} at_wgmma_choice;

extern const at_tunables at_wgmma_tunables;

/* A problem as X (m x k) times Y (k x n). */
typedef struct at_wgmma_shape {
  int64_t m, n, k, batch;
  bool x_k, y_k; /* lies along k */
  int out, grain_d;
  bool gated, gated_rows;    /* gated_rows: along m, as the kernel has it */
  bool reads_c, rounded;     /* rounded: as ROUNDED of sm90_wgmma_16b_epilogue.cuh */
  bool pads_x, pads_y;       /* is copied to the workspace first */
  size_t padded_x, padded_y; /* bytes that it takes there, X first; the sums of parts come behind */
  uint64_t workspace_cap;
} at_wgmma_shape;

at_wgmma_shape at_wgmma_shape_of(const at_gemm *g, bool turned);

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
int at_wgmma_clusters(const at_wgmma_choice *c, const at_machine *machine);

/* Whether the kernel can be made and launched for the problem. */
bool at_wgmma_fits(const at_wgmma_shape *s, const at_wgmma_choice *c, const at_machine *machine);

/* sm90_wgmma_16b_heuristic.c: the candidates slot of at_gemm_sm90_wgmma_16b_family. */
int at_wgmma_candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide);

#endif
