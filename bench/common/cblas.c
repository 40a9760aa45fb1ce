/* SPDX-License-Identifier: Apache-2.0
 * cblas.c: a CBLAS that is loaded by its name, and its calls. */
#include "bench/common/cblas.h"

#include <dlfcn.h>
#include <string.h>

enum { COLUMNS = 102, PLAIN = 111, TRANSPOSED = 112, CONJUGATED = 113 };

bool bench_cblas_load(bench_cblas *out, const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  const struct {
    const char *name;
    void *slot;
    bool needed;
  } functions[] = {{"cblas_sgemm", &out->sgemm, true},
                   {"cblas_dgemm", &out->dgemm, true},
                   {"cblas_sgemv", &out->sgemv, true},
                   {"cblas_dgemv", &out->dgemv, true},
                   {"cblas_cgemm", &out->cgemm, true},
                   {"cblas_zgemm", &out->zgemm, true},
                   {"openblas_set_num_threads", &out->set_threads, false},
                   {"openblas_get_num_threads", &out->threads, false},
                   {"openblas_get_config", &out->configuration, false},
                   {"bli_thread_set_num_threads", &out->blis_set_threads, false},
                   {"bli_thread_get_num_threads", &out->blis_threads, false},
                   {"bli_info_get_version_str", &out->blis_version, false}};
  *out = (bench_cblas){0};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *address = handle ? dlsym(handle, functions[i].name) : NULL;
    if (!address && functions[i].needed) return false;
    memcpy(functions[i].slot, &address, sizeof address);
  }
  return true;
}

/* BLIS has -1 where nothing was said, and one thread then. */
int bench_cblas_threads(const bench_cblas *blas) {
  const int threads = blas->threads ? blas->threads() : blas->blis_threads ? (int)blas->blis_threads() : 1;
  return threads < 1 ? 1 : threads;
}

void bench_cblas_set_threads(const bench_cblas *blas, int threads) {
  if (blas->set_threads)
    blas->set_threads(threads);
  else if (blas->blis_set_threads)
    blas->blis_set_threads(threads);
}

bool bench_cblas_has(const attune_gemm_problem *g) {
  const int64_t most = INT32_MAX;
  if (g->m > most || g->n > most || g->k > most || g->lda > most || g->ldb > most || g->ldd > most) return false;
  return g->dtype == g->dtype_out && g->dtype != ATTUNE_F16 && g->dtype != ATTUNE_BF16;
}

/* gemv as a program would call it. */
#define RUN(NAME, TYPE, GEMM, GEMV)                                                                                 \
  static void NAME(const bench_cblas *c, const attune_gemm_problem *g, const TYPE *a, const TYPE *b, TYPE *d,       \
                   bool vectors) {                                                                                  \
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd; \
    const int ta = g->trans_a ? TRANSPOSED : PLAIN, tb = g->trans_b ? TRANSPOSED : PLAIN;                           \
    if (vectors && n == 1)                                                                                          \
      c->GEMV(COLUMNS, ta, g->trans_a ? k : m, g->trans_a ? m : k, 1, a, lda, b, g->trans_b ? ldb : 1, 0, d, 1);    \
    else if (vectors && m == 1)                                                                                     \
      c->GEMV(COLUMNS, g->trans_b ? PLAIN : TRANSPOSED, g->trans_b ? n : k, g->trans_b ? k : n, 1, b, ldb, a,       \
              g->trans_a ? 1 : lda, 0, d, ldd);                                                                     \
    else                                                                                                            \
      c->GEMM(COLUMNS, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, d, ldd);                                              \
  }

RUN(run_f32, float, sgemm, sgemv)
RUN(run_f64, double, dgemm, dgemv)

static int transpose_of(attune_transpose t) {
  return t == ATTUNE_N ? PLAIN : t == ATTUNE_T ? TRANSPOSED : CONJUGATED;
}

#define RUN_COMPLEX(NAME, TYPE, GEMM)                                                                             \
  static void NAME(const bench_cblas *c, const attune_gemm_problem *g, const void *a, const void *b, void *d) {   \
    const TYPE one[2] = {1, 0}, zero[2] = {0, 0};                                                                 \
    c->GEMM(COLUMNS, transpose_of(g->trans_a), transpose_of(g->trans_b), (int)g->m, (int)g->n, (int)g->k, one, a, \
            (int)g->lda, b, (int)g->ldb, zero, d, (int)g->ldd);                                                   \
  }
RUN_COMPLEX(run_c64, float, cgemm)
RUN_COMPLEX(run_c128, double, zgemm)

void bench_cblas_run(const bench_cblas *blas, const attune_gemm_problem *g, const attune_gemm_operands *o,
                     bool vectors) {
  for (int64_t i = 0; i < g->batch; i++) {
    const int64_t a = i * g->stride_a, b = i * g->stride_b, d = i * g->stride_d;
    if (g->dtype == ATTUNE_C64)
      run_c64(blas, g, (const float *)o->a + 2 * a, (const float *)o->b + 2 * b, (float *)o->d + 2 * d);
    else if (g->dtype == ATTUNE_C128)
      run_c128(blas, g, (const double *)o->a + 2 * a, (const double *)o->b + 2 * b, (double *)o->d + 2 * d);
    else if (g->dtype == ATTUNE_F64)
      run_f64(blas, g, (const double *)o->a + a, (const double *)o->b + b, (double *)o->d + d, vectors);
    else
      run_f32(blas, g, (const float *)o->a + a, (const float *)o->b + b, (float *)o->d + d, vectors);
  }
}
