/* SPDX-License-Identifier: Apache-2.0
 * gemm_cases.h: the one list of GEMM cases that every implementation has to get right. Tests, and whatever else wants
 * problems of every kind, walk it; a new implementation is tested by it without new test code. */
#ifndef AT_TEST_GEMM_CASES_H
#define AT_TEST_GEMM_CASES_H

#include "ops/gemm/problem/problem.h"

/* Contents of the matrices. */
typedef enum at_gemm_data {
  AT_DATA_NORMAL = 0,  /* mean 0, deviation 1 */
  AT_DATA_UNIFORM = 1, /* [0, 1): sums grow, truncation bias shows */
  AT_DATA_WIDE = 2,    /* exponents over a wide range of the dtype */
  AT_DATA_SPECIAL = 3, /* normal, with a few zeros, infinities and NaN */
  AT_DATA_KINDS = 4
} at_gemm_data;

typedef struct at_gemm_case {
  char name[64];               /* "17: bf16:f32 tn row 33x1x64" */
  attune_gemm_problem problem; /* as a caller gives it: row- or column-major, ld and stride 0 where packed */
  double alpha, beta, alpha_imag, beta_imag;
  at_gemm_c c;   /* NONE: beta is 0 and C is NULL; the others may have beta = 0 too */
  int alignment; /* the pointers' greatest common power of two, from the largest element to 128 */
  at_gemm_data data;
  uint64_t seed; /* of the data */
} at_gemm_case;

/* The number of cases; constant for a build. */
int at_gemm_case_count(void);

/* Case `index`, 0 <= index < at_gemm_case_count(), into *out: the same one in every run. */
void at_gemm_case_at(int index, at_gemm_case *out);

#endif
