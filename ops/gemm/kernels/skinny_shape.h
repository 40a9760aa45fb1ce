/* SPDX-License-Identifier: Apache-2.0
 * skinny_shape.h: products of which one factor is large and the other thin: what the families for them have in
 * common. */
#ifndef AT_GEMM_SKINNY_SHAPE_H
#define AT_GEMM_SKINNY_SHAPE_H

#include "ops/gemm/kernels/kernel.h"

/* A problem as L (m x k) times S (k x n), m at least n. */
typedef struct at_gemm_skinny_shape {
  int64_t m, n, k, batch;
  int in, sum;           /* bytes of an element, of a sum */
  int wide;              /* elements of 16 bytes */
  bool swapped;          /* D is made transposed: L is B */
  bool large_k, small_k; /* L lies along k, S does */
  bool half;             /* f16 or bf16 */
} at_gemm_skinny_shape;

at_gemm_skinny_shape at_gemm_skinny_shape_of(const at_gemm *g);

/* The problem in the spec, L as A and S as B; BYTES_L and BYTES_S (the widest loads), SMALL_K, TURNED, READS_C and
 * RAGGED (16 bytes may reach beyond L) are defined. */
void at_gemm_skinny_shape_start(at_gemm_launch_spec *out, const at_gemm *g, const at_gemm_skinny_shape *s);

/* How much longer the busiest processor works than if all of the device's shared the work evenly: `clusters` of
 * `blocks` blocks each (1: no clusters), whose places on the device are fewer than its processors. */
double at_gemm_uneven(const at_machine *machine, double clusters, int blocks);

/* Is so many microseconds far more than reading the operands takes? */
bool at_gemm_skinny_is_slow(const at_gemm_skinny_shape *s, double cost, const at_machine *machine);

#endif
