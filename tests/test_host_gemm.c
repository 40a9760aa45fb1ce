/* SPDX-License-Identifier: Apache-2.0
 * test_host_gemm.c: the host's GEMM implementations, each configuration of each, against a naive loop in f64. */
#include "tests/check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attune/attune.h>

#include "ops/gemm/blocked_run.h"
#include "ops/gemm/host_blocked.h"
#include "ops/gemm/problem.h"
#include "tests/gemm_fixture.h"
#include "tuning/registry.h"

extern const at_implementation at_gemm_host_reference, at_gemm_host_blocked, at_gemm_host_cblas;

/* ---- plans without a tuner ---- */

static attune_device *host(void) {
  attune_device *device = NULL;
  assert_int_equal(attune_device_get(&device, "host"), ATTUNE_OK);
  return device;
}

static attune_status plan_make(at_plan *plan, const at_implementation *implementation,
                               const at_configuration *configuration, const at_gemm *g) {
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
  if (plan_make(&plan, implementation, configuration, &f->g) != ATTUNE_OK)
    fail_msg("%s: %s", what, attune_last_message());
  fixture_reset(f);
  assert_int_equal(plan.launch(&plan, &f->o, attune_stream_default(plan.device)), ATTUNE_OK);
  check(f, what);
  implementation->destroy(&plan);
}

#define MOST 512 /* more than a machine of many CPUs offers */

static void run_all(fixture *f, const at_implementation *implementation) {
  static at_configuration list[MOST];
  if (!implementation->supports(&f->g, host())) return;
  int count = implementation->configurations(&f->g, host(), list, MOST);
  assert_in_range(count, 1, MOST - 1);
  for (int i = 0; i < count; i++) run_one(f, implementation, &list[i]);
}

/* Every path, instruction set and odd block of host_blocked, beyond what it would offer, with one thread and one of the
 * splits in turn; with ATTUNE_TEST_ALL with every split: teams wait long for busy CPUs. */
static void run_blocked_odd(fixture *f) {
  static size_t turn;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  static const char *const kernels[] = {"portable", "avx2", "avx512"};
  static const char *const paths[] = {"path=direct,vectors=2", "path=panel,vectors=1,mc=20", "path=stream",
                                      "path=packed,vectors=1,mc=17,kc=5,nc=9",
                                      "path=packed,vectors=2,mc=64,kc=512,nc=16"};
  static const at_blocked_path path[] = {AT_PATH_DIRECT, AT_PATH_PANEL, AT_PATH_STREAM, AT_PATH_PACKED, AT_PATH_PACKED};
  static const char *const splits[] = {"threads=1", "threads=2,split=m", "threads=3,split=n", "threads=4,split=grid",
                                       "threads=2,split=batch"};
  for (size_t k = 0; k < AT_COUNT(kernels); k++) {
    if (at_blocked_isa_find(kernels[k]) == NULL) continue;
    for (size_t p = 0; p < AT_COUNT(paths); p++) {
      if (!at_blocked_can(&f->g, path[p])) continue;
      const size_t chosen = 1 + turn++ % (AT_COUNT(splits) - 1);
      for (size_t s = 0; s < AT_COUNT(splits); s++) {
        if (!all && s != 0 && s != chosen) continue;
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

static at_gemm problem(int dtype, int dtype_out, int trans, int64_t m, int64_t n, int64_t k, int64_t batch, int c,
                       int64_t pad) {
  at_gemm g = {.m = m,
               .n = n,
               .k = k,
               .batch = batch,
               .workspace_cap = 1,
               .dtype = (uint8_t)dtype,
               .dtype_out = (uint8_t)dtype_out,
               .trans_a = (uint8_t)(trans & 1),
               .trans_b = (uint8_t)(trans >> 1 & 1),
               .c = (uint8_t)c,
               .alignment = 2};
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

static const int dtypes[][2] = {{ATTUNE_F64, ATTUNE_F64},   {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F16, ATTUNE_F16},
                                {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

static void test_shapes(void **unused) {
  (void)unused;
  static const int64_t shapes[][4] = {{1, 1, 1, 1},    {3, 5, 7, 3},    {16, 16, 16, 2}, {17, 9, 33, 1},
                                      {48, 8, 40, 1},  {1, 70, 65, 1},  {70, 1, 65, 2},  {100, 3, 9, 1},
                                      {7, 120, 31, 1}, {65, 50, 130, 1}};
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
  put(f.a, 20 + 3 * g.lda, ATTUNE_F32, (double)NAN);      /* row 20 */
  put(f.b, 4 + 12 * g.ldb, ATTUNE_F32, (double)INFINITY); /* column 12 */
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

/* More sums than are kept apart at once: D is finished in several goes, and B's block is packed again for each. */
static void test_halves_in_chunks(void **unused) {
  (void)unused;
  static const char *const kernels[] = {"portable", "avx2", "avx512"};
  static const int blocks[] = {4, 16}; /* several blocks of k, and one */
  at_gemm g = problem(ATTUNE_BF16, ATTUNE_BF16, 0, 1100, 1000, 9, 1, AT_C_INPLACE, 0);
  fixture f;
  fixture_make(&f, &g, 1.0, 1.0);
  for (size_t i = 0; i < AT_COUNT(kernels); i++)
    for (size_t j = 0; j < AT_COUNT(blocks) && at_blocked_isa_find(kernels[i]) != NULL; j++) {
      at_configuration c;
      snprintf(c.text, sizeof c.text, "path=packed,kernel=%s,threads=1,vectors=2,mc=64,kc=%d,nc=2048", kernels[i],
               blocks[j]);
      run_one(&f, &at_gemm_host_blocked, &c);
    }
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
      assert_int_equal(at_blocked_f64(g.m, g.n, g.k, (double *)(void *)f.a, g.lda, g.trans_a != 0,
                                      (double *)(void *)f.b, g.ldb, g.trans_b != 0, (double *)(void *)f.d, g.ldd,
                                      1 + trans % 2),
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
  static const char *const blocked[] = {"",
                                        "path=packed",
                                        "path=direct,kernel=avx9000,threads=1,vectors=1",
                                        "path=stream,kernel=portable,threads=0",
                                        "path=direct,kernel=portable,threads=2,vectors=1",
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
    if (c->plan->launch(c->plan, &o, where) != ATTUNE_OK || attune_stream_synchronize(where) != ATTUNE_OK)
      c->failures++;
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_larger),
      cmocka_unit_test(test_not_finite),
      cmocka_unit_test(test_halves_round_once),
      cmocka_unit_test(test_halves_in_chunks),
      cmocka_unit_test(test_same_bits_each_run),
      cmocka_unit_test(test_blocked_f64),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_unknown_configurations),
      cmocka_unit_test(test_one_plan_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
