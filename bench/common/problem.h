/* SPDX-License-Identifier: Apache-2.0
 * problem.h: a GEMM of a workload as the programs beside vendors need it: every size explicit, where operands may lie,
 * random numbers for them. What cannot go on ends the program with a message. */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include <attune/attune.h>

typedef struct bench_problem {
  char name[64];
  char text[ATTUNE_PROBLEM_CHARS];
  attune_gemm_problem gemm;  /* column-major; every size explicit, broadcast strides 0: as vendors' calls take it; of
                              * matrices that pointers name the strides say where the program puts them */
  attune_gemm_problem given; /* the same as attune takes it: broadcast strides are ATTUNE_BROADCAST */
  size_t bytes_a, bytes_b, bytes_d; /* from the first element to the end of the last */
} bench_problem;

/* Where operands lie: each starts at an odd multiple of `alignment`, `spacing` bytes of nothing between two of them. */
typedef struct bench_place {
  size_t alignment, spacing;
} bench_place;

/* Type of an element's parts: a complex element has two. */
static inline attune_dtype bench_part(attune_dtype dtype) {
  return dtype == ATTUNE_C64 ? ATTUNE_F32 : dtype == ATTUNE_C128 ? ATTUNE_F64 : dtype;
}
static inline int bench_parts(attune_dtype dtype) {
  return bench_part(dtype) == dtype ? 1 : 2;
}

void bench_problem_read(bench_problem *out, const attune_workload_entry *entry);
/* Where operands 0 (A), 1 (B) and 2 (D) of set `set` start in an area; returns the end. */
size_t bench_lay_out(const bench_problem *problem, bench_place place, int set, size_t out[3]);

/* Uniform in [-1,1], each part of a complex number too; f16 on a grid of 2^-11. */
void bench_random_fill(void *to, attune_dtype dtype, size_t bytes, uint64_t seed);
/* A copy at a multiple of 4096 bytes. */
void *bench_random_new(attune_dtype dtype, size_t bytes, uint64_t seed);

#endif
