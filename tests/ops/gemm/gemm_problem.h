/* SPDX-License-Identifier: Apache-2.0
 * gemm_problem.h: problems and machines for the tests of GEMM kernels' models. */
#ifndef TEST_GEMM_PROBLEM_H
#define TEST_GEMM_PROBLEM_H

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"

enum { ROOM = 64 }; /* for configurations */

#define FAMILY(NAME) at_gemm_kernels_of(&at_gemm_##NAME)

static at_machine h200, a100, v100;

__attribute__((constructor)) static void make_machines(void) {
  h200 = at_machine_make(90, 132, "NVIDIA H200");
  a100 = at_machine_make(80, 108, "NVIDIA A100-SXM4-80GB");
  v100 = at_machine_make(70, 80, "Tesla V100-SXM2-32GB");
}

/* Packed matrices at 128 bytes. */
static inline at_gemm problem_of(attune_dtype dtype, int ta, int tb, int64_t m, int64_t n, int64_t k, int64_t batch) {
  at_gemm g = {.m = m, .n = n, .k = k, .batch = batch, .dtype = (uint8_t)dtype, .dtype_out = (uint8_t)dtype};
  g.trans_a = (uint8_t)ta, g.trans_b = (uint8_t)tb, g.alignment = 128;
  g.workspace_cap = ATTUNE_WORKSPACE_DEFAULT;
  g.lda = at_gemm_rows_a(&g), g.ldb = at_gemm_rows_b(&g), g.ldd = m;
  if (batch > 1) g.stride_a = m * k, g.stride_b = k * n, g.stride_d = m * n;
  return g;
}

#endif
