/* SPDX-License-Identifier: Apache-2.0
 * reference.h: private to reference*.c: the trusted result of one GEMM. */
#ifndef AT_GEMM_REFERENCE_H
#define AT_GEMM_REFERENCE_H

#include "ops/gemm/problem/problem.h"
#include "ops/gemm/reference/reference_value.h"
#include "ops/gemm/reference/ieee_specials.h"
#include "src/base/backend.h"

/* A complex product is a real one of twice the rows and depth: a complex row of A becomes (re, -im, re, -im, ...) and
 * (im, re, im, re, ...), a column of B (re, im, re, im, ...), and D is as it lies. So results have `parts` rows for one
 * of D, and all that follows is real. */
typedef struct at_reference {
  at_gemm g;
  int parts; /* 2 for complex problems, else 1 */
  double gamma;
  double *product;                  /* A B: m x n x batch, packed; NULL: */
  float *narrow;                    /* in float, as a GPU's of halves comes */
  double *added;                    /* C, packed; NULL: none */
  double *row_norms, *column_norms; /* of op(A), op(B): m, n a batch */
  uint64_t gaps;                    /* of an in-place D, as it was */
  int64_t place[AT_SPECIAL_PLACES]; /* where special values are planted along k */
  int places;
  double *a_at, *b_at;   /* op(A), op(B) there: by place, then line, those of the next matrix behind, then part */
  const void *a, *b, *c; /* the inputs in host memory, while it is made */
  void *fetched[AT_MAX_BUFFERS];
} at_reference;

static inline double at_reference_product(const at_reference *r, size_t i) {
  return r->product ? r->product[i] : (double)r->narrow[i];
}

/* reference_cuda.c: r->product or r->narrow = op(A) op(B), by cuBLAS. */
attune_status at_reference_expect_on_cuda(at_reference *r, attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]);

#endif
