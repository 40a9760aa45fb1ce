/* SPDX-License-Identifier: Apache-2.0
 * blocked_run.h: how host_blocked runs one problem: which kernels, which walk over memory, which split for threads. */
#ifndef AT_GEMM_BLOCKED_RUN_H
#define AT_GEMM_BLOCKED_RUN_H

#include "ops/gemm/host/blocked.h"
#include "ops/gemm/problem/problem.h"

/* direct: A and B as they lie, for operands that stay in cache. panel: A packed over all of k, B as it lies. packed:
 * both packed in blocks. stream: one pass over the wide operand, for a thin m or n. The first two are not for halves,
 * direct not for a transposed A. */
typedef enum at_blocked_path { AT_PATH_DIRECT, AT_PATH_PANEL, AT_PATH_PACKED, AT_PATH_STREAM } at_blocked_path;

/* What is divided among the threads. No split divides k: each element of D is summed by one thread in one order. */
typedef enum at_blocked_split { AT_SPLIT_M, AT_SPLIT_N, AT_SPLIT_BATCH, AT_SPLIT_GRID } at_blocked_split;

typedef struct at_blocked_options {
  const at_blocked_isa *isa;
  at_blocked_path path;
  at_blocked_split split;
  int threads;
  int vectors;        /* rows of a tile in vectors, at most the kernels' */
  int64_t mc, kc, nc; /* blocks of m, k and n: A's in L2, B's in L3; panel uses mc, direct and stream none */
} at_blocked_options;

/* The most rows or columns that `stream` takes as thin. */
#define AT_STREAM_THIN 32

/* The kernels called `name` if this CPU runs them, else NULL; NULL gives the best ones. */
const at_blocked_isa *at_blocked_isa_find(const char *name);

/* Blocks that suit the caches, one thread, path packed. */
void at_blocked_defaults(at_blocked_options *out, const at_gemm *g, const at_blocked_isa *isa);

/* True when the path can do the problem. */
bool at_blocked_can(const at_gemm *g, at_blocked_path path);

/* Runs it in the calling thread and its team. Never fails: without scratch memory it takes the plain loops. */
void at_blocked_run(const at_gemm *g, const at_gemm_operands *operands, const at_blocked_options *options);

#endif
