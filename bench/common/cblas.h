/* SPDX-License-Identifier: Apache-2.0
 * cblas.h: a CBLAS that is loaded by its name, as a program would call it. */
#ifndef BENCH_CBLAS_H
#define BENCH_CBLAS_H

#include <attune/attune.h>

#include <stdbool.h>

typedef struct bench_cblas {
  void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
  void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
  void (*sgemv)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
  void (*dgemv)(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
  void (*cgemm)(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                int);
  void (*zgemm)(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                int);
  /* OpenBLAS's; NULL: it is another one */
  void (*set_threads)(int);
  int (*threads)(void);
  char *(*configuration)(void);
  /* BLIS's, likewise */
  void (*blis_set_threads)(int64_t);
  int64_t (*blis_threads)(void);
  const char *(*blis_version)(void);
} bench_cblas;

/* False: it is not here, or lacks a function. */
bool bench_cblas_load(bench_cblas *out, const char *library);
/* The threads it uses, if it says so, else 1; and sets them where it can. */
int bench_cblas_threads(const bench_cblas *blas);
void bench_cblas_set_threads(const bench_cblas *blas, int threads);
/* Can it do the problem (bench_problem.gemm)? */
bool bench_cblas_has(const attune_gemm_problem *g);
/* D = A B. `vectors`: by gemv where D is a vector. */
void bench_cblas_run(const bench_cblas *blas, const attune_gemm_problem *g, const attune_gemm_operands *o,
                     bool vectors);

#endif
