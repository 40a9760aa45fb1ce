/* SPDX-License-Identifier: Apache-2.0
 * test_cublaslt_problem.c: which problems cuBLASLt is kept away from, at the bounds exactly. Needs no GPU. */
#include "ops/gemm/cublas/cublaslt.h"

#include "tests/support/check.h"

/* bf16, m x n x k, packed, not transposed. */
static at_gemm problem_of(int64_t m, int64_t n, int64_t k) {
  return (at_gemm){.dtype = ATTUNE_BF16,
                   .dtype_out = ATTUNE_BF16,
                   .c = AT_C_NONE,
                   .m = m,
                   .n = n,
                   .k = k,
                   .batch = 1,
                   .lda = m,
                   .ldb = k,
                   .ldc = m,
                   .ldd = m};
}

TEST(two_gib_are_too_many) {
  const int64_t side = 1 << 15;                                                   /* side x side of bf16 is 2 GiB */
  const int64_t sizes[][3] = {{side, 8, side}, {8, side, side}, {side, side, 8}}; /* A, B, D */
  for (size_t i = 0; i < AT_COUNT(sizes); i++) {
    at_gemm g = problem_of(sizes[i][0], sizes[i][1], sizes[i][2]);
    assert_true(at_lt_is_huge(&g));
    g = problem_of(sizes[i][0] - (sizes[i][0] > 8), sizes[i][1] - (sizes[i][1] > 8), sizes[i][2] - (sizes[i][2] > 8));
    assert_false(at_lt_is_huge(&g));
  }
  at_gemm g = problem_of(side - 1, side, 8); /* not by its elements, but by its columns' distance */
  assert_false(at_lt_is_huge(&g));
  g.ldd = side + 1;
  assert_true(at_lt_is_huge(&g));
}

TEST(batches_end_before_element_2_31) {
  at_gemm g = problem_of(64, 64, 64);
  g.batch = 1 << 19;
  g.stride_a = g.stride_b = g.stride_d = 4096; /* 2^31 elements */
  assert_true(at_lt_is_huge(&g));
  g.batch--;
  assert_false(at_lt_is_huge(&g));
  g.stride_d++;
  assert_true(at_lt_is_huge(&g));
}

/* C counts where it is a matrix of its own. */
TEST(c_counts_if_it_is_there) {
  at_gemm g = problem_of(64, 64, 64);
  g.ldc = (int64_t)1 << 30;
  assert_false(at_lt_is_huge(&g));
  g.c = AT_C_INPLACE;
  assert_false(at_lt_is_huge(&g));
  g.c = AT_C_SEPARATE;
  assert_true(at_lt_is_huge(&g));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
