/* SPDX-License-Identifier: Apache-2.0
 * cblas_library.h: every CBLAS that this machine has, found and loaded at run time, side by side and out of the
 * program's sight. */
#ifndef AT_GEMM_CBLAS_LIBRARY_H
#define AT_GEMM_CBLAS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include <attune/device.h>

#include "ops/gemm/host/cblas/cblas_thread_setting.h"

/* Column-major is 102, no transpose 111, transpose 112, conjugate transpose 113. */
typedef void (*at_cblas_sgemm_fn)(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void (*at_cblas_dgemm_fn)(int layout, int trans_a, int trans_b, int m, int n, int k, double alpha,
                                  const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

/* c64 and c128; alpha and beta are pointers to one of them. */
typedef void (*at_cblas_complex_fn)(int layout, int trans_a, int trans_b, int m, int n, int k, const void *alpha,
                                    const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc);

typedef void (*at_cblas_sgemv_fn)(int layout, int trans, int m, int n, float alpha, const float *a, int lda,
                                  const float *x, int step_x, float beta, float *y, int step_y);
typedef void (*at_cblas_dgemv_fn)(int layout, int trans, int m, int n, double alpha, const double *a, int lda,
                                  const double *x, int step_x, double beta, double *y, int step_y);

typedef struct at_cblas {
  char id[64];         /* "openblas-0.3.21" */
  bool was_loaded;     /* it is the copy that the program had loaded */
  int default_threads; /* the setting when it was found, at least 1 */
  bool f32_overreads;  /* its f32 kernels read beyond the end of matrices, into pages that may not be there */
  bool loses_specials; /* beta = NaN is taken for 0, and zeros times NaN or Inf for 0 where a size is small */
  at_cblas_sgemm_fn sgemm;
  at_cblas_dgemm_fn dgemm;
  at_cblas_sgemv_fn sgemv; /* NULL: not there, as the next */
  at_cblas_dgemv_fn dgemv;
  at_cblas_complex_fn cgemm, zgemm;
  at_cblas_thread_setting gate;
} at_cblas;

/* The number of libraries here; the first call loads them, later ones cost a load. Any thread. */
int at_cblas_count(void);

/* Library `index`, OpenBLAS first. Never unloaded. */
at_cblas *at_cblas_at(int index);

/* The library of that id; NULL: not here. */
at_cblas *at_cblas_find(const char *id);

/* What work with the libraries depends on, as at_implementation.depends says it: "openblas-0.3.21 blis-0.9.0" for all
 * of them, "openblas-0.3.21" for the one here of the same name as `id`, whatever its version; "openblas-none" when
 * there is none, and "cblas-none" for all without any. False: it does not fit. Any thread. */
bool at_cblas_depends(const char *id, char *out, size_t size);

/* The libraries as attune_device_libraries tells them; the last return value of `fn`. Any thread. */
int at_cblas_each(attune_library_fn fn, void *user);

/* ---- cblas_open.c: opening libraries that start threads as they are opened ----
 * One that gets none ends the process (OpenBLAS raises SIGINT), and attune opens it on its own account: so it looks
 * before, and is on its guard. */

/* CPUs that this thread may run on, at least 1: so many threads a library has, whatever quota or setting attune goes
 * by. */
int at_cblas_cpus(void);

/* How many threads can be started beside this one, `most` at most: they are, all at once, and end. */
int at_cblas_startable(int most);

/* dlopen. `alone`: the library sees one CPU, and starts no thread. NULL: it is not here, or, with *refused, it could
 * not start its threads all the same, or could not be kept from trying; then it is not to be used, and stays loaded. */
void *at_cblas_open(const char *file, int flags, bool alone, bool *refused);

#endif
