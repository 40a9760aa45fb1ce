/* SPDX-License-Identifier: Apache-2.0
 * test_host_gemm.c: the host's GEMM implementations, each configuration of each, against a naive loop in f64. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

#include "ops/gemm/blocked_run.h"
#include "ops/gemm/cblas_library.h"
#include "src/half.h"
#include "ops/gemm/host_blocked.h"
#include "ops/gemm/problem.h"
#include "tuning/registry.h"

extern const at_implementation at_gemm_host_reference, at_gemm_host_blocked, at_gemm_host_cblas;

#define POISON 0xa5

/* ---- one problem with its memory ---- */

typedef struct fixture {
  at_gemm g;
  at_gemm_operands o;
  size_t in_size, out_size, d_bytes;
  char *a, *b, *c, *d;
  double *expected, *bound; /* packed m x n x batch: the result, and the error allowed */
} fixture;

static uint64_t seed = 1;

static double draw(void) { /* uniform in [-1, 1) */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(seed >> 11) / 0x1p52 - 1.0;
}

static void put(char *p, int64_t at, int dtype, double x) {
  switch (dtype) {
    case ATTUNE_F64: ((double *)(void *)p)[at] = x; break;
    case ATTUNE_F32: ((float *)(void *)p)[at] = (float)x; break;
    case ATTUNE_F16: ((uint16_t *)(void *)p)[at] = at_f64_to_f16(x); break;
    default: ((uint16_t *)(void *)p)[at] = at_f64_to_bf16(x); break;
  }
}

static double get(const char *p, int64_t at, int dtype) {
  switch (dtype) {
    case ATTUNE_F64: return ((const double *)(const void *)p)[at];
    case ATTUNE_F32: return (double)((const float *)(const void *)p)[at];
    case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)(const void *)p)[at]);
    default: return (double)at_bf16_to_f32(((const uint16_t *)(const void *)p)[at]);
  }
}

/* Exactly `count` elements at the end of the allocation, so that a sanitizer sees every read past them. */
static char *fill(int64_t count, int dtype) {
  char *p = malloc((size_t)count * attune_dtype_size((attune_dtype)dtype));
  assert_non_null(p);
  for (int64_t i = 0; i < count; i++) put(p, i, dtype, draw());
  return p;
}

static int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch) {
  return rows + (columns - 1) * ld + (batch - 1) * stride;
}

static void expect(fixture *f) {
  const at_gemm *g = &f->g;
  double unit = g->dtype == ATTUNE_F64 ? 0x1p-53 : 0x1p-24;
  double unit_out = g->dtype_out == ATTUNE_F64 ? 0x1p-53 : g->dtype_out == ATTUNE_F32 ? 0x1p-24 : g->dtype_out == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
  double gamma = fmax(8.0, 2.0 * sqrt((double)g->k)) * unit;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        double sum = 0.0, size = 0.0;
        for (int64_t k = 0; k < g->k; k++) {
          double x = get(f->a, batch * g->stride_a + (g->trans_a ? k + i * g->lda : i + k * g->lda), g->dtype);
          double y = get(f->b, batch * g->stride_b + (g->trans_b ? j + k * g->ldb : k + j * g->ldb), g->dtype);
          sum += x * y;
          size += fabs(x * y);
        }
        double r = f->o.alpha * sum, s = fabs(f->o.alpha) * size;
        if (f->o.beta != 0.0) {
          double c = f->o.beta * get(f->c, batch * g->stride_c + i + j * g->ldc, g->dtype_out);
          r += c;
          s += fabs(c);
        }
        int64_t at = i + g->m * (j + g->n * batch);
        f->expected[at] = r;
        f->bound[at] = unit_out * fabs(r) + gamma * s + (g->dtype_out == ATTUNE_F16 ? 0x1p-25 : 0.0);
      }
}

static void fixture_make(fixture *f, const at_gemm *g, double alpha, double beta) {
  *f = (fixture){.g = *g, .o = {.alpha = alpha, .beta = beta}};
  f->in_size = attune_dtype_size((attune_dtype)g->dtype);
  f->out_size = attune_dtype_size((attune_dtype)g->dtype_out);
  f->a = fill(extent(at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch), g->dtype);
  f->b = fill(extent(at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch), g->dtype);
  int64_t c_count = g->c == AT_C_NONE ? 1 : extent(g->m, g->n, g->ldc, g->stride_c, g->batch);
  f->c = fill(c_count, g->dtype_out);
  f->d_bytes = (size_t)extent(g->m, g->n, g->ldd, g->stride_d, g->batch) * f->out_size;
  f->d = malloc(f->d_bytes);
  f->expected = malloc((size_t)(g->m * g->n * g->batch) * sizeof(double));
  f->bound = malloc((size_t)(g->m * g->n * g->batch) * sizeof(double));
  assert_true(f->d != NULL && f->expected != NULL && f->bound != NULL);
  f->o.a = f->a;
  f->o.b = f->b;
  f->o.c = g->c == AT_C_SEPARATE ? f->c : g->c == AT_C_INPLACE ? f->d : NULL;
  f->o.d = f->d;
  expect(f);
}

static void fixture_free(fixture *f) {
  free(f->a);
  free(f->b);
  free(f->c);
  free(f->d);
  free(f->expected);
  free(f->bound);
}

/* Poison everywhere; in place, C's elements (not its gaps) on top. */
static void fixture_reset(fixture *f) {
  const at_gemm *g = &f->g;
  memset(f->d, POISON, f->d_bytes);
  if (g->c != AT_C_INPLACE) return;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++) {
      int64_t at = batch * g->stride_d + j * g->ldd;
      memcpy(f->d + (size_t)at * f->out_size, f->c + (size_t)at * f->out_size, (size_t)g->m * f->out_size);
    }
}

static bool gaps_kept(const fixture *f) {
  const at_gemm *g = &f->g;
  size_t count = f->d_bytes / f->out_size;
  bool *used = calloc(count, sizeof *used);
  assert_non_null(used);
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) used[batch * g->stride_d + j * g->ldd + i] = true;
  bool kept = true;
  for (size_t i = 0; i < count; i++)
    for (size_t byte = 0; byte < f->out_size && !used[i]; byte++)
      kept = kept && (unsigned char)f->d[i * f->out_size + byte] == POISON;
  free(used);
  return kept;
}

static void check(const fixture *f, const char *what) {
  const at_gemm *g = &f->g;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        int64_t at = i + g->m * (j + g->n * batch);
        double x = get(f->d, batch * g->stride_d + j * g->ldd + i, g->dtype_out);
        if (!(fabs(x - f->expected[at]) <= f->bound[at]))
          fail_msg("%s: %lldx%lldx%lld ta=%d tb=%d dtype=%d out=%d: D(%lld,%lld) of %lld is %.17g, should be %.17g +- %g", what,
                   (long long)g->m, (long long)g->n, (long long)g->k, g->trans_a, g->trans_b, g->dtype, g->dtype_out, (long long)i,
                   (long long)j, (long long)batch, x, f->expected[at], f->bound[at]);
      }
  if (!gaps_kept(f)) fail_msg("%s: a gap of D was written", what);
}

/* ---- plans without a tuner ---- */

static attune_device *host(void) {
  attune_device *device = NULL;
  assert_int_equal(attune_device_get(&device, "host"), ATTUNE_OK);
  return device;
}

static attune_status plan_make(at_plan *plan, const at_implementation *implementation, const at_configuration *configuration,
                               const at_gemm *g) {
  memset(plan, 0, sizeof *plan);
  plan->launch = implementation->launch;
  plan->device = host();
  plan->implementation = implementation;
  plan->configuration = *configuration;
  memcpy(plan->problem, g, sizeof *g);
  return implementation->prepare(plan);
}

static void run_one(fixture *f, const at_implementation *implementation, const at_configuration *configuration) {
  at_plan plan;
  char what[256];
  snprintf(what, sizeof what, "%s %s", implementation->name, configuration->text);
  if (plan_make(&plan, implementation, configuration, &f->g) != ATTUNE_OK) fail_msg("%s: %s", what, attune_last_message());
  fixture_reset(f);
  assert_int_equal(plan.launch(&plan, &f->o, attune_stream_default(plan.device)), ATTUNE_OK);
  check(f, what);
  implementation->destroy(&plan);
}

#define MOST 96

static void run_all(fixture *f, const at_implementation *implementation) {
  static at_configuration list[MOST];
  if (!implementation->supports(&f->g, host())) return;
  int count = implementation->configurations(&f->g, host(), list, MOST);
  assert_in_range(count, 1, MOST - 1);
  for (int i = 0; i < count; i++) run_one(f, implementation, &list[i]);
}

/* Every path, instruction set, split and odd block of host_blocked, beyond what it would offer. */
static void run_blocked_odd(fixture *f) {
  static const char *const kernels[] = {"portable", "avx2", "avx512"};
  static const char *const paths[] = {"path=direct,vectors=2", "path=panel,vectors=1,mc=20", "path=stream",
                                      "path=packed,vectors=1,mc=17,kc=5,nc=9", "path=packed,vectors=2,mc=64,kc=512,nc=16"};
  static const at_blocked_path path[] = {AT_PATH_DIRECT, AT_PATH_PANEL, AT_PATH_STREAM, AT_PATH_PACKED, AT_PATH_PACKED};
  static const char *const splits[] = {"threads=1", "threads=2,split=m", "threads=3,split=n", "threads=4,split=grid",
                                       "threads=2,split=batch"};
  for (size_t k = 0; k < AT_COUNT(kernels); k++) {
    if (at_blocked_isa_find(kernels[k]) == NULL) continue;
    for (size_t p = 0; p < AT_COUNT(paths); p++) {
      if (!at_blocked_can(&f->g, path[p])) continue;
      for (size_t s = 0; s < AT_COUNT(splits); s++) {
        at_configuration c;
        snprintf(c.text, sizeof c.text, "%s,kernel=%s,%s", paths[p], kernels[k], splits[s]);
        run_one(f, &at_gemm_host_blocked, &c);
      }
    }
  }
}

static void try_problem(const at_gemm *g, double alpha, double beta) {
  fixture f;
  fixture_make(&f, g, alpha, beta);
  run_all(&f, &at_gemm_host_reference);
  run_all(&f, &at_gemm_host_blocked);
  run_all(&f, &at_gemm_host_cblas);
  run_blocked_odd(&f);
  fixture_free(&f);
}

static at_gemm problem(int dtype, int dtype_out, int trans, int64_t m, int64_t n, int64_t k, int64_t batch, int c, int64_t pad) {
  at_gemm g = {.m = m, .n = n, .k = k, .batch = batch, .workspace_cap = 1, .dtype = (uint8_t)dtype, .dtype_out = (uint8_t)dtype_out,
               .trans_a = (uint8_t)(trans & 1), .trans_b = (uint8_t)(trans >> 1 & 1), .c = (uint8_t)c, .alignment = 2};
  g.lda = at_gemm_rows_a(&g) + pad;
  g.ldb = at_gemm_rows_b(&g) + 2 * pad;
  g.ldd = m + 3 * pad;
  g.ldc = c == AT_C_NONE ? 0 : c == AT_C_INPLACE ? g.ldd : m + pad;
  if (batch > 1) {
    g.stride_a = g.lda * at_gemm_cols_a(&g) + pad;
    g.stride_b = pad != 0 ? g.ldb * at_gemm_cols_b(&g) + pad : 0; /* packed problems share B */
    g.stride_d = g.ldd * n + pad;
    g.stride_c = c == AT_C_NONE ? 0 : c == AT_C_INPLACE ? g.stride_d : pad != 0 ? 0 : g.ldc * n;
  }
  return g;
}

/* ---- tests ---- */

static const int dtypes[][2] = {{ATTUNE_F64, ATTUNE_F64}, {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F16, ATTUNE_F16},
                                {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

static void test_shapes(void **unused) {
  (void)unused;
  static const int64_t shapes[][4] = {{1, 1, 1, 1},   {3, 5, 7, 3},   {16, 16, 16, 2},  {17, 9, 33, 1}, {48, 8, 40, 1}, {1, 70, 65, 1},
                                      {70, 1, 65, 2}, {100, 3, 9, 1}, {7, 120, 31, 1}, {65, 50, 130, 1}};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (size_t s = 0; s < AT_COUNT(shapes); s++)
      for (int trans = 0; trans < 4; trans++) {
        const int64_t *z = shapes[s];
        int c = (int)(s + (size_t)trans) % 3;
        at_gemm g = problem(dtypes[d][0], dtypes[d][1], trans, z[0], z[1], z[2], z[3], c, (int64_t)(s % 2) * 3);
        try_problem(&g, 1.25, c == AT_C_NONE ? 0.0 : -0.5);
      }
}

static void test_larger(void **unused) {
  (void)unused;
  for (int trans = 0; trans < 4; trans++) {
    at_gemm g = problem(ATTUNE_F32, ATTUNE_F32, trans, 131, 117, 801, 1, AT_C_INPLACE, trans % 2);
    try_problem(&g, 1.0, 1.0);
    g = problem(ATTUNE_BF16, ATTUNE_BF16, trans, 131, 117, 801, 1, AT_C_SEPARATE, trans % 2);
    try_problem(&g, 1.0, 1.0);
  }
}

/* NaN in C under beta = 0 does not spread; NaN and infinity in A and B do, into the right elements only. */
static void test_not_finite(void **unused) {
  (void)unused;
  static at_configuration list[MOST];
  const at_implementation *all[] = {&at_gemm_host_reference, &at_gemm_host_blocked, &at_gemm_host_cblas};
  at_gemm g = problem(ATTUNE_F32, ATTUNE_F32, 0, 21, 13, 35, 1, AT_C_SEPARATE, 2);
  fixture f;
  fixture_make(&f, &g, 1.0, 0.0);
  for (int64_t i = 0; i < extent(g.m, g.n, g.ldc, 0, 1); i++) put(f.c, i, ATTUNE_F32, (double)NAN);
  for (size_t i = 0; i < AT_COUNT(all); i++) run_all(&f, all[i]);
  put(f.a, 20 + 3 * g.lda, ATTUNE_F32, (double)NAN);       /* row 20 */
  put(f.b, 4 + 12 * g.ldb, ATTUNE_F32, (double)INFINITY);  /* column 12 */
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    if (!all[i]->supports(&g, host())) continue;
    int count = all[i]->configurations(&g, host(), list, MOST);
    for (int c = 0; c < count; c++) {
      at_plan plan;
      assert_int_equal(plan_make(&plan, all[i], &list[c], &g), ATTUNE_OK);
      assert_int_equal(plan.launch(&plan, &f.o, attune_stream_default(plan.device)), ATTUNE_OK);
      for (int64_t col = 0; col < g.n; col++)
        for (int64_t row = 0; row < g.m; row++) {
          double x = get(f.d, row + col * g.ldd, ATTUNE_F32);
          assert_int_equal(isnan(x) != 0, row == 20);
          assert_int_equal(isinf(x) != 0, row != 20 && col == 12);
        }
      all[i]->destroy(&plan);
    }
  }
  fixture_free(&f);
}

/* Sums of halves are rounded once: 2048 + 1 + 1 ... needs more bits than f16 has on the way. */
static void test_halves_round_once(void **unused) {
  (void)unused;
  at_gemm g = problem(ATTUNE_F16, ATTUNE_F16, 0, 9, 5, 2000, 1, AT_C_NONE, 0);
  fixture f;
  fixture_make(&f, &g, 1.0, 0.0);
  for (int64_t i = 0; i < g.m * g.k; i++) put(f.a, i, ATTUNE_F16, i < g.m ? 2048.0 : 0.5);
  for (int64_t i = 0; i < g.n * g.k; i++) put(f.b, i, ATTUNE_F16, 1.0);
  for (int64_t i = 0; i < g.m * g.n; i++) {
    f.expected[i] = 3048.0; /* 2048 + 1999/2 = 3047.5, to even in steps of 2 */
    f.bound[i] = 0.0;
  }
  run_all(&f, &at_gemm_host_reference);
  run_all(&f, &at_gemm_host_blocked);
  run_blocked_odd(&f);
  fixture_free(&f);
}

static void test_same_bits_each_run(void **unused) {
  (void)unused;
  at_gemm g = problem(ATTUNE_F32, ATTUNE_F32, 1, 200, 150, 900, 1, AT_C_NONE, 0);
  fixture f;
  fixture_make(&f, &g, 1.0, 0.0);
  static at_configuration list[MOST];
  int count = at_gemm_host_blocked.configurations(&g, host(), list, MOST);
  char *first = malloc(f.d_bytes);
  assert_non_null(first);
  for (int i = 0; i < count; i++)
    for (int repeat = 0; repeat < 5; repeat++) {
      run_one(&f, &at_gemm_host_blocked, &list[i]);
      if (repeat == 0)
        memcpy(first, f.d, f.d_bytes);
      else
        assert_memory_equal(first, f.d, f.d_bytes);
    }
  free(first);
  fixture_free(&f);
}

static void test_blocked_f64(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{1, 1, 1}, {5, 1, 300}, {1, 40, 30}, {129, 65, 400}};
  for (size_t s = 0; s < AT_COUNT(shapes); s++)
    for (int trans = 0; trans < 4; trans++) {
      at_gemm g = problem(ATTUNE_F64, ATTUNE_F64, trans, shapes[s][0], shapes[s][1], shapes[s][2], 1, AT_C_NONE, 1);
      fixture f;
      fixture_make(&f, &g, 1.0, 0.0);
      fixture_reset(&f);
      assert_int_equal(at_blocked_f64(g.m, g.n, g.k, (double *)(void *)f.a, g.lda, g.trans_a != 0, (double *)(void *)f.b, g.ldb,
                                      g.trans_b != 0, (double *)(void *)f.d, g.ldd, 1 + trans % 2),
                       ATTUNE_OK);
      check(&f, "at_blocked_f64");
      fixture_free(&f);
    }
  assert_int_equal(at_blocked_f64(0, 1, 1, NULL, 1, false, NULL, 1, false, NULL, 1, 1), ATTUNE_INVALID_ARGUMENT);
}

static void test_scale(void **unused) {
  (void)unused;
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (int c = 0; c < 3; c++)
      for (int zero = 0; zero < 2; zero++) {
        at_gemm g = problem(dtypes[d][0], dtypes[d][1], 0, 13, 7, 1, 2, c, 2);
        double beta = c == AT_C_NONE || zero ? 0.0 : 0.75;
        fixture f;
        fixture_make(&f, &g, 0.0, beta);
        fixture_reset(&f);
        assert_int_equal(at_gemm_scale_host(attune_stream_default(host()), &g, &f.o), ATTUNE_OK);
        check(&f, "scale");
        fixture_free(&f);
      }
}

static void test_unknown_configurations(void **unused) {
  (void)unused;
  static const char *const blocked[] = {"", "path=packed", "path=direct,kernel=avx9000,threads=1,vectors=1",
                                        "path=stream,kernel=portable,threads=0", "path=direct,kernel=portable,threads=2,vectors=1",
                                        "path=direct,kernel=portable,threads=1,vectors=99",
                                        "path=packed,kernel=portable,threads=1,vectors=1,mc=0,kc=1,nc=1",
                                        "path=stream,kernel=portable,threads=1"}; /* m and n are not thin */
  static const char *const cblas[] = {"", "library=openblas-0.0.1,threads=1", "library=none", "threads=1"};
  at_gemm g = problem(ATTUNE_F32, ATTUNE_F32, 0, 64, 64, 64, 1, AT_C_NONE, 0);
  at_plan plan;
  at_configuration c;
  for (size_t i = 0; i < AT_COUNT(blocked); i++) {
    snprintf(c.text, sizeof c.text, "%s", blocked[i]);
    assert_int_equal(plan_make(&plan, &at_gemm_host_blocked, &c, &g), ATTUNE_NOT_FOUND);
  }
  for (size_t i = 0; i < AT_COUNT(cblas); i++) {
    snprintf(c.text, sizeof c.text, "%s", cblas[i]);
    assert_int_equal(plan_make(&plan, &at_gemm_host_cblas, &c, &g), ATTUNE_NOT_FOUND);
  }
  snprintf(c.text, sizeof c.text, "tile=1");
  assert_int_equal(plan_make(&plan, &at_gemm_host_reference, &c, &g), ATTUNE_NOT_FOUND);
  at_gemm half = problem(ATTUNE_F16, ATTUNE_F16, 0, 8, 8, 8, 1, AT_C_NONE, 0);
  assert_false(at_gemm_host_cblas.supports(&half, host()));
}

/* ---- the libraries ---- */

static void test_cblas_side_by_side(void **unused) {
  (void)unused;
  if (at_cblas_count() == 0) skip();
  char text[256];
  assert_int_equal(at_cblas_fingerprint(text, sizeof text), 0);
  for (int i = 0; i < at_cblas_count(); i++) {
    at_cblas *library = at_cblas_at(i);
    assert_ptr_equal(at_cblas_find(library->id), library);
    assert_non_null(strstr(text, library->id));
    assert_null(strchr(library->id, ','));
    assert_in_range(library->default_threads, 1, 65535);
    for (int j = 0; j < i; j++) assert_ptr_not_equal(library->sgemm, at_cblas_at(j)->sgemm);
  }
  assert_int_equal(at_cblas_fingerprint(text, 2), -1);
}

/* A library with one setting for the process, as the gate sees it. */
static _Atomic int setting = 7;
static int setting_get(void) { return setting; }
static void setting_set(int threads) { setting = threads; }
static at_cblas_gate gate;
static _Atomic int wrong;

static void *visitor(void *arg) {
  int wanted = *(const int *)arg;
  for (int i = 0; i < 20000; i++) {
    at_cblas_gate_enter(&gate, wanted);
    if (setting != wanted) wrong++;
    at_cblas_gate_leave(&gate);
  }
  return NULL;
}

static void test_gate_threads(void **unused) {
  (void)unused;
  static int wanted[] = {1, 1, 2, 7};
  pthread_t threads[AT_COUNT(wanted)];
  at_cblas_gate_init(&gate, setting_get, setting_set);
  for (size_t i = 0; i < AT_COUNT(wanted); i++) assert_int_equal(pthread_create(&threads[i], NULL, visitor, &wanted[i]), 0);
  for (size_t i = 0; i < AT_COUNT(wanted); i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  assert_int_equal(setting, 7);
}

static void test_gate_fork(void **unused) {
  (void)unused;
  at_cblas_gate_init(&gate, setting_get, setting_set);
  at_cblas_gate_enter(&gate, 3);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) { /* the parent's call is not running here */
    at_cblas_gate_after_fork(&gate);
    bool restored = setting == 7;
    at_cblas_gate_enter(&gate, 2);
    bool set = setting == 2;
    at_cblas_gate_leave(&gate);
    _exit(restored && set && setting == 7 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  at_cblas_gate_leave(&gate);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(setting, 7);
}

/* ---- threads and streams ---- */

typedef struct caller {
  fixture *f;
  const at_plan *plan;
  int failures;
} caller;

static void *call_often(void *arg) {
  caller *c = (caller *)arg;
  at_gemm_operands o = c->f->o;
  char *d = malloc(c->f->d_bytes), *first = malloc(c->f->d_bytes);
  attune_stream *stream = NULL;
  if (d == NULL || first == NULL || attune_stream_create(&stream, host()) != ATTUNE_OK) c->failures = 1000;
  o.d = first;
  for (int i = 0; i < 50 && c->failures == 0; i++) {
    attune_stream *where = i % 2 != 0 ? stream : attune_stream_default(host());
    if (c->plan->launch(c->plan, &o, where) != ATTUNE_OK || attune_stream_synchronize(where) != ATTUNE_OK) c->failures++;
    if (o.d == d && memcmp(d, first, c->f->d_bytes) != 0) c->failures++;
    o.d = d;
  }
  attune_stream_destroy(stream);
  free(d);
  free(first);
  return NULL;
}

static void test_one_plan_many_threads(void **unused) {
  (void)unused;
  static at_configuration list[MOST];
  at_gemm g = problem(ATTUNE_F32, ATTUNE_F32, 1, 96, 80, 70, 1, AT_C_NONE, 0);
  fixture f;
  fixture_make(&f, &g, 1.0, 0.0);
  int count = at_gemm_host_blocked.configurations(&g, host(), list, MOST);
  for (int i = 0; i < count; i++) {
    at_plan plan;
    assert_int_equal(plan_make(&plan, &at_gemm_host_blocked, &list[i], &g), ATTUNE_OK);
    caller callers[3];
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) {
      callers[t] = (caller){&f, &plan, 0};
      assert_int_equal(pthread_create(&threads[t], NULL, call_often, &callers[t]), 0);
    }
    for (int t = 0; t < 3; t++) {
      pthread_join(threads[t], NULL);
      assert_int_equal(callers[t].failures, 0);
    }
    at_gemm_host_blocked.destroy(&plan);
  }
  fixture_free(&f);
}

/* ---- halves ---- */

static void test_half_round_trip(void **unused) {
  (void)unused;
  for (uint32_t h = 0; h < 65536; h++) {
    float x = at_f16_to_f32((uint16_t)h), y = at_bf16_to_f32((uint16_t)h);
    uint16_t quiet16 = (uint16_t)(x != x ? h | 0x200u : h), quietb = (uint16_t)(y != y ? h | 0x40u : h);
    assert_int_equal(at_f32_to_f16(x), quiet16);
    assert_int_equal(at_f64_to_f16((double)x), quiet16);
    assert_int_equal(at_f32_to_bf16(y), quietb);
    assert_int_equal(at_f64_to_bf16((double)y), quietb);
  }
}

/* Between two neighbours: below the middle down, above it up, in the middle to even; the middle is exact in f64. */
static void test_half_rounding(void **unused) {
  (void)unused;
  for (uint32_t h = 0; h < 0x7c00u; h++) {
    double low = (double)at_f16_to_f32((uint16_t)h);
    double high = h == 0x7bffu ? 65536.0 : (double)at_f16_to_f32((uint16_t)(h + 1));
    double middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_f16(nextafter(middle, low)), h);
    assert_int_equal(at_f64_to_f16(nextafter(middle, high)), h + 1);
    assert_int_equal(at_f64_to_f16(middle), h % 2 == 0 ? h : h + 1);
    assert_int_equal(at_f64_to_f16(-middle), 0x8000u | (h % 2 == 0 ? h : h + 1));
  }
  for (uint32_t h = 0; h < 0x7f80u; h++) {
    double low = (double)at_bf16_to_f32((uint16_t)h);
    double high = h == 0x7f7fu ? 0x1p128 : (double)at_bf16_to_f32((uint16_t)(h + 1));
    double middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_bf16(nextafter(middle, low)), h);
    assert_int_equal(at_f64_to_bf16(nextafter(middle, high)), h + 1);
    assert_int_equal(at_f64_to_bf16(middle), h % 2 == 0 ? h : h + 1);
    if (h != 0) assert_int_equal(at_f32_to_bf16((float)middle), h % 2 == 0 ? h : h + 1);
  }
  assert_int_equal(at_f64_to_f16(1e300), 0x7c00);
  assert_int_equal(at_f64_to_f16(-1e-300), 0x8000);
  assert_int_equal(at_f64_to_bf16(1e300), 0x7f80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_half_round_trip),
      cmocka_unit_test(test_half_rounding),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_larger),
      cmocka_unit_test(test_not_finite),
      cmocka_unit_test(test_halves_round_once),
      cmocka_unit_test(test_same_bits_each_run),
      cmocka_unit_test(test_blocked_f64),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_unknown_configurations),
      cmocka_unit_test(test_cblas_side_by_side),
      cmocka_unit_test(test_gate_threads),
      cmocka_unit_test(test_gate_fork),
      cmocka_unit_test(test_one_plan_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
