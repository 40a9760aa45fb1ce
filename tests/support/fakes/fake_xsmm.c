/* SPDX-License-Identifier: Apache-2.0
 * fake_xsmm.c: a LIBXSMM whose kernels leave a number that no product has, and whose dispatch takes a lock for a while,
 * as the real one does. FAKE_OTHER: one of the development branch, whose functions have other names. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

#include "tests/support/fakes/fake_end.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *libxsmm_get_target_arch(void);
const char *libxsmm_get_target_arch(void) {
  return "fake";
}

#ifndef FAKE_OTHER
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void held(void) {
  pthread_mutex_lock(&lock);
  fake_nap(1000000);
  pthread_mutex_unlock(&lock);
}

#define KERNELS(LETTER, T)                                                                                             \
  typedef void (*LETTER##_kernel)(const T *a, const T *b, T *c);                                                       \
  EXPORT LETTER##_kernel libxsmm_##LETTER##mmdispatch(int m, int n, int k, const int *lda, const int *ldb,             \
                                                      const int *ldc, const T *alpha, const T *beta, const int *flags, \
                                                      const int *prefetch);                                            \
  static void LETTER##_plain(const T *a, const T *b, T *c) {                                                           \
    (void)a, (void)b;                                                                                                  \
    fake_work();                                                                                                       \
    c[0] = (T)54321;                                                                                                   \
  }                                                                                                                    \
  static void LETTER##_onto(const T *a, const T *b, T *c) {                                                            \
    (void)a, (void)b;                                                                                                  \
    c[0] += (T)54321;                                                                                                  \
  }                                                                                                                    \
  LETTER##_kernel libxsmm_##LETTER##mmdispatch(int m, int n, int k, const int *lda, const int *ldb, const int *ldc,    \
                                               const T *alpha, const T *beta, const int *flags, const int *prefetch) { \
    held();                                                                                                            \
    const bool right = m >= 1 && n >= 1 && k >= 1 && *lda >= m && *ldb >= (*flags & 2 ? n : k) && *ldc >= m;           \
    if (!right || *alpha != 1 || (*flags & ~2) || prefetch || m == 13) return NULL; /* 13 rows: it has no kernel */    \
    return *beta == 0 ? LETTER##_plain : LETTER##_onto;                                                                \
  }
KERNELS(s, float)
KERNELS(d, double)
#endif
