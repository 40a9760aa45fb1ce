/* SPDX-License-Identifier: Apache-2.0
 * test_gemv.c: which products are matrix-vector products, and that they are the same product: both are made by plain
 * loops over small whole numbers and compared. Needs no GPU. */
#include "ops/gemm/cublas/gemv.h"

#include "tests/support/check.h"

#include <complex.h>
#include <stdlib.h>

enum { MOST_K = 9, GAP = 4, MATRIX = (MOST_K + GAP) * (MOST_K + GAP), BATCH = 3, ROOM = BATCH * MATRIX };

typedef double complex number;

static number a[ROOM], b[ROOM], d[ROOM], by_gemv[ROOM];

static int draw(int count) {
  return rand() % count;
}

static void fill(number *x) {
  double *const parts = (double *)x;
  for (int i = 0; i < 2 * ROOM; i++) parts[i] = draw(9) - 4;
}

/* Element (row, column) of op(X). */
static number at(const number *x, int trans, int64_t ld, int64_t row, int64_t column) {
  const number value = trans ? x[column + row * ld] : x[row + column * ld];
  return trans == ATTUNE_C ? conj(value) : value;
}

static void multiply(const at_gemm *g) {
  for (int64_t i = 0; i < g->batch; i++)
    for (int64_t column = 0; column < g->n; column++)
      for (int64_t row = 0; row < g->m; row++) {
        number sum = 0;
        for (int64_t k = 0; k < g->k; k++)
          sum += at(a + i * g->stride_a, g->trans_a, g->lda, row, k) *
                 at(b + i * g->stride_b, g->trans_b, g->ldb, k, column);
        d[i * g->stride_d + row + column * g->ldd] = sum;
      }
}

static void multiply_by_gemv(const at_gemv *v, int64_t batch) {
  const int trans = v->op == CUBLAS_OP_N ? ATTUNE_N : v->op == CUBLAS_OP_T ? ATTUNE_T : ATTUNE_C;
  const int64_t lines = trans ? v->cols : v->rows, terms = trans ? v->rows : v->cols;
  for (int64_t i = 0; i < batch; i++)
    for (int64_t line = 0; line < lines; line++) {
      const number *m = (v->swapped ? b : a) + i * v->stride_m, *x = (v->swapped ? a : b) + i * v->stride_x;
      number sum = 0;
      for (int64_t k = 0; k < terms; k++) sum += at(m, trans, v->ld, line, k) * x[k * v->inc_x];
      by_gemv[i * v->stride_y + line * v->inc_y] = sum;
    }
}

static at_gemm problem_of(int ta, int tb, int64_t m, int64_t n, int64_t k) {
  at_gemm g = {.m = m, .n = n, .k = k, .batch = 1 + draw(BATCH), .dtype = ATTUNE_C128, .dtype_out = ATTUNE_C128};
  g.trans_a = (uint8_t)ta, g.trans_b = (uint8_t)tb;
  g.lda = at_gemm_rows_a(&g) + draw(GAP), g.ldb = at_gemm_rows_b(&g) + draw(GAP), g.ldd = m + draw(GAP);
  if (g.batch > 1) g.stride_a = draw(2) * MATRIX, g.stride_b = draw(2) * MATRIX, g.stride_d = MATRIX;
  return g;
}

TEST(they_are_the_same_products) {
  int made = 0;
  for (int turn = 0; turn < 4000; turn++) {
    const int ta = turn % 3, tb = turn / 3 % 3, size = 1 + draw(MOST_K);
    const bool row = draw(2);
    const at_gemm g = problem_of(ta, tb, row ? 1 : size, row ? size : 1, 1 + draw(MOST_K));
    at_gemv v;
    if (!at_gemv_of(&v, &g)) {
      assert_true(tb == ATTUNE_C || (g.n > 1 && ta == ATTUNE_C)); /* only a conjugated x would do */
      continue;
    }
    fill(a), fill(b), fill(d);
    memcpy(by_gemv, d, sizeof d);
    multiply(&g);
    multiply_by_gemv(&v, g.batch);
    assert_memory_equal(d, by_gemv, sizeof d);
    made++;
  }
  assert_true(made > 2000);
}

TEST(others_are_none) {
  at_gemv v;
  const at_gemm square = problem_of(0, 0, 2, 2, 1);
  assert_false(at_gemv_of(&v, &square));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
