/* SPDX-License-Identifier: Apache-2.0
 * fake_blas.c: an OpenBLAS that a program brings along. Its product is a number that no other has. FAKE_CONFIG is what
 * it says of itself, FAKE_PREFIX what comes before the names of its functions. */
#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)
#define FAKE_NAME(name) JOIN(FAKE_PREFIX, name)
#define EXPORT __attribute__((visibility("default")))
EXPORT char *openblas_get_config(void);
EXPORT int openblas_get_num_threads(void);
EXPORT void openblas_set_num_threads(int wanted);
EXPORT void FAKE_NAME(sgemm)(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                             int lda, const float *b, int ldb, float beta, float *c, int ldc);
EXPORT void FAKE_NAME(dgemm)(int layout, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                             int lda, const double *b, int ldb, double beta, double *c, int ldc);

static int threads = 3;

char *openblas_get_config(void) {
  static char config[] = FAKE_CONFIG;
  return config;
}

int openblas_get_num_threads(void) {
  return threads;
}

void openblas_set_num_threads(int wanted) {
  threads = wanted;
}

void FAKE_NAME(sgemm)(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc) {
  (void)layout, (void)trans_a, (void)trans_b, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b;
  (void)ldb, (void)beta, (void)ldc;
  c[0] = 12345.0f;
}

void FAKE_NAME(dgemm)(int layout, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                      const double *b, int ldb, double beta, double *c, int ldc) {
  (void)layout, (void)trans_a, (void)trans_b, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b;
  (void)ldb, (void)beta, (void)ldc;
  c[0] = 12345.0;
}
