/* SPDX-License-Identifier: Apache-2.0
 * test_host_small.c: every tile of host_small, real and complex, by every size up to beyond the largest tile, against
 * plain loops: whole numbers, so that results are exact; what lies around D stays; NaN and infinity come through; C is
 * not read when beta is 0; batches alone and in threads, the same bits; products so large that the next one is asked
 * for ahead. */
#include "tests/support/check.h"

#include <math.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/host_reference.h"
#include "src/base/backend.h"
#include "src/host/threads.h"
#include "tuning/op/registry.h"

extern const at_implementation at_gemm_host_small;

enum { MOST = 1 << 16, GUARD = 64 };
static attune_device *device;
static double a[MOST], b[MOST], c[MOST], d[MOST], want[MOST];
static long runs;

static const attune_dtype types[] = {[AT_SMALL_F32] = ATTUNE_F32,
                                     [AT_SMALL_F64] = ATTUNE_F64,
                                     [AT_SMALL_C64] = ATTUNE_C64,
                                     [AT_SMALL_C128] = ATTUNE_C128};

static bool is_wide(int type) {
  return at_gemm_part(types[type]) == ATTUNE_F64;
}
static int parts_of(int type) {
  return at_gemm_complex(types[type]) ? 2 : 1;
}

static void put(void *p, size_t i, bool f64, double x) {
  if (f64)
    ((double *)p)[i] = x;
  else
    ((float *)p)[i] = (float)x;
}

static uint64_t seed = 1;
static unsigned draw(unsigned count) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % count;
}

static void fill(int type, double special) {
  const bool f64 = is_wide(type);
  for (size_t i = 0; i < MOST; i++) {
    put(a, i, f64, (double)draw(9) - 4.0);
    put(b, i, f64, (double)draw(9) - 4.0);
    put(c, i, f64, (double)draw(9) - 4.0);
  }
  if (special != 0.0) {
    put(a, draw(64), f64, special);
    put(b, draw(64), f64, special);
  }
}

static at_gemm problem_of(int m, int n, int k, int type) {
  at_gemm g = {.m = m, .n = n, .k = k, .batch = 1 + draw(3), .workspace_cap = 1, .alignment = 8};
  g.dtype = g.dtype_out = (uint8_t)types[type];
  g.trans_a = (uint8_t)draw((unsigned)parts_of(type) + 1);
  g.trans_b = (uint8_t)draw((unsigned)parts_of(type) + 1);
  g.c = (uint8_t)draw(3);
  g.lda = at_gemm_rows_a(&g) + draw(3);
  g.ldb = at_gemm_rows_b(&g) + draw(3);
  g.ldd = m + (int)draw(3);
  if (g.c != AT_C_NONE) g.ldc = g.c == AT_C_INPLACE ? g.ldd : m + (int)draw(3);
  if (g.batch > 1) {
    g.stride_a = draw(4) ? g.lda * at_gemm_cols_a(&g) + draw(5) : 0;
    g.stride_b = draw(4) ? g.ldb * at_gemm_cols_b(&g) + draw(5) : 0;
    g.stride_d = g.ldd * n + draw(5);
    if (g.c != AT_C_NONE) g.stride_c = g.c == AT_C_INPLACE ? g.stride_d : g.ldc * n + draw(5);
  }
  return g;
}

static bool same(double x, double y) {
  return x == y || (isnan(x) && isnan(y));
}

/* D is in the middle of memory that must stay as it is. */
static void run(const at_gemm *g, const char *configuration) {
  static const double alphas[] = {1.0, 1.0, -2.0}, betas[] = {0.0, 1.0, 1.0, -2.0};
  const bool f64 = at_gemm_part(g->dtype) == ATTUNE_F64;
  const size_t size = attune_dtype_size((attune_dtype)g->dtype), parts = at_gemm_complex(g->dtype) ? 2 : 1;
  at_plan *plan = NULL;
  at_configuration text;
  at_copy_text(text.text, sizeof text.text, configuration);
  if (at_plan_create(&plan, &at_gemm_op, &at_gemm_host_small, &text, g, device) != ATTUNE_OK)
    fail_msg("%s: %s", configuration, attune_last_message());
  attune_gemm_operands o = {.alpha = alphas[draw(3)], .a = a, .b = b, .d = (char *)d + GUARD * size};
  if (g->c != AT_C_NONE) {
    o.beta = betas[draw(4)];
    o.c = g->c == AT_C_INPLACE ? o.d : c;
  }
  if (parts == 2 && draw(3) == 0) {
    o.alpha_imag = (double)draw(3) - 1.0;
    if (o.c && o.beta != 0.0) o.beta_imag = (double)draw(3) - 1.0;
  }
  const size_t end = parts * (2 * GUARD + (size_t)(g->stride_d * (g->batch - 1) + g->ldd * g->n));
  for (size_t i = 0; i < end; i++)
    put(d, i, f64, o.beta == 0.0 && g->c == AT_C_INPLACE ? (double)NAN : (double)(i % 7));
  memcpy(want, d, end * size / parts);
  attune_gemm_operands plain = o;
  plain.d = (char *)want + GUARD * size;
  if (g->c == AT_C_INPLACE) plain.c = plain.d;
  for (int64_t batch = 0; batch < g->batch; batch++) at_gemm_plain(g, &plain, batch, 0, g->m, 0, g->n);
  assert_int_equal(plan->launch(plan, &o, attune_stream_default(device)), ATTUNE_OK);
  for (size_t i = 0; i < end; i++) {
    const double x = f64 ? d[i] : (double)((float *)d)[i], y = f64 ? want[i] : (double)((float *)want)[i];
    if (!same(x, y))
      fail_msg("%s, %s %dx%dx%d x %d %c%c c %d alpha %g %g beta %g %g: number %zu is %g, not %g", configuration,
               attune_dtype_name((attune_dtype)g->dtype), (int)g->m, (int)g->n, (int)g->k, (int)g->batch,
               "ntc"[g->trans_a], "ntc"[g->trans_b], g -> c, o.alpha, o.alpha_imag, o.beta, o.beta_imag, i, x, y);
  }
  at_plan_destroy(plan);
  runs++;
}

/* A batch says its threads. */
static void tile_text(char text[64], const at_gemm *g, const char *kernel, int vectors, int columns) {
  const int length = snprintf(text, 64, "kernel=%s,vectors=%d,columns=%d", kernel, vectors, columns);
  if (g->batch > 1) snprintf(text + length, 64 - (size_t)length, ",threads=%u", 1 + draw(3));
}

/* Every kernel, number of vectors and number of columns, with and without an end within a vector. */
TEST(each_tile) {
  static const char *const names[] = {"avx512", "avx2", "portable"};
  static const double specials[] = {0.0, 0.0, (double)NAN, (double)INFINITY};
  for (size_t i = 0; i < AT_COUNT(names); i++)
    for (int type = 0; type < AT_SMALL_TYPES; type++) {
      const at_blocked_isa *isa = at_blocked_isa_find(names[i]);
      if (!isa) continue;
      const at_small_ops *ops = isa->small[type];
      for (int vectors = 1; vectors <= AT_SMALL_VECTORS; vectors++)
        for (int columns = 1; columns <= ops->columns[vectors - 1]; columns++)
          for (int part = 0; part < 4; part++) {
            char text[64];
            const int height = vectors * ops->lanes, less = part % 2 ? 1 + (int)draw((unsigned)ops->lanes) : 0;
            const int m = (part < 2 ? height - less : 2 * height - less) / parts_of(type),
                      n = part < 2 ? columns : 2 * columns - (columns > 1);
            if (m < 1 || m > 64) continue;
            if (columns % 4 == 1 && part == 0) fill(type, specials[draw(4)]);
            const at_gemm g = problem_of(m, n, 1 + (int)draw(40), type);
            tile_text(text, &g, names[i], vectors, columns);
            run(&g, text);
          }
    }
  assert_true(runs > 100);
}

/* One product of one vector of rows has kernels of its own: each width in one tile and in several, each end of the
 * vector. */
TEST(single_products) {
  static const char *const names[] = {"avx512", "avx2", "portable"};
  for (size_t i = 0; i < AT_COUNT(names); i++)
    for (int type = 0; type < AT_SMALL_TYPES; type++) {
      const at_blocked_isa *isa = at_blocked_isa_find(names[i]);
      if (!isa) continue;
      const at_small_ops *ops = isa->small[type];
      fill(type, i ? 0.0 : (double)NAN);
      for (int columns = 1; columns <= ops->columns[0]; columns++)
        for (int tiles = 1; tiles <= 3; tiles++) {
          char text[64];
          const int lanes = ops->lanes / parts_of(type), m = 1 + (int)draw((unsigned)lanes),
                    n = columns * tiles - (int)draw((unsigned)columns);
          at_gemm g = problem_of(columns % 4 ? m : lanes, n, 1 + (int)draw(20), type);
          g.batch = 1;
          g.stride_a = g.stride_b = g.stride_c = g.stride_d = 0;
          g.trans_a = 0;
          g.lda = g.m + (int)draw(3);
          snprintf(text, sizeof text, "kernel=%s,vectors=1,columns=%d", names[i], columns);
          run(&g, text);
          g.trans_b = 0; /* as many elements from column to column as the tile has columns */
          g.ldb = columns;
          g.k = 1 + (int)draw((unsigned)columns);
          run(&g, text);
        }
    }
}

/* A lower last panel has tiles of a width of its own: none, one and several rows of it, without and with a rest. */
TEST(lower_last_panels) {
  for (int i = 0; i < 60; i++) {
    const int type = (int)draw(AT_SMALL_TYPES);
    at_configuration offered[32];
    fill(type, 0.0);
    const at_gemm g = problem_of(33 + (int)draw(32), 1 + (int)draw(64), 1 + (int)draw(20), type);
    const int count = at_gemm_host_small.configurations(&at_gemm_host_small, &g, device, offered, 32);
    for (int j = 0; j < count; j++) run(&g, offered[j].text);
  }
}

/* Batches of up to 11, more and fewer than threads; every third one so large that the next product is asked for
 * ahead. */
TEST(batches) {
  static const char *const names[] = {"avx512", "avx2", "portable"};
  for (int i = 0; i < 120; i++) {
    const char *const name = names[i % 3];
    const at_blocked_isa *isa = at_blocked_isa_find(name);
    const int type = (int)draw(AT_SMALL_TYPES);
    if (!isa) continue;
    const at_small_ops *ops = isa->small[type];
    const bool large = i % 9 < 3;
    const unsigned least = large ? parts_of(type) == 1 && is_wide(type) ? 44 : 60 : 1, most = large ? 64 : 24;
    int sizes[3];
    for (int j = 0; j < 3; j++) sizes[j] = (int)(least + draw(most - least + 1));
    at_gemm g = problem_of(sizes[0], sizes[1], sizes[2], type);
    g.batch = 2 + (large ? draw(4) : draw(10));
    if (!g.stride_a && draw(2)) g.stride_a = g.lda * at_gemm_cols_a(&g);
    if (!g.stride_b && draw(2)) g.stride_b = g.ldb * at_gemm_cols_b(&g);
    if (!g.stride_d) g.stride_d = g.ldd * g.n;
    if (g.c != AT_C_NONE) g.stride_c = g.c == AT_C_INPLACE ? g.stride_d : g.ldc * g.n;
    char text[64];
    const int vectors = 1 + (int)draw(AT_SMALL_VECTORS);
    snprintf(text, sizeof text, "kernel=%s,vectors=%d,columns=%u,threads=%u", name, vectors,
             1 + draw((unsigned)ops->columns[vectors - 1]), 1 + draw(4));
    fill(type, i % 5 ? 0.0 : (double)NAN);
    run(&g, text);
  }
}

static bool alone(const at_configuration *one) {
  const char *threads = strstr(one->text, ",threads=");
  return threads && strcmp(threads, ",threads=1") == 0;
}

/* A space stays small, however many CPUs there are, and has each number of threads that is worthwhile. */
TEST(what_it_offers) {
  at_configuration offered[64];
  at_gemm g = problem_of(64, 64, 64, AT_SMALL_F64);
  g.batch = 1;
  int count = at_gemm_host_small.configurations(&at_gemm_host_small, &g, device, offered, 64);
  assert_in_range(count, 1, 6);
  for (int i = 0; i < count; i++) assert_null(strstr(offered[i].text, "threads="));
  g.batch = 1000;
  count = at_gemm_host_small.configurations(&at_gemm_host_small, &g, device, offered, 64);
  char most[32];
  snprintf(most, sizeof most, "threads=%d", at_cpu_count());
  assert_non_null(strstr(offered[0].text, most));
  int found = 0;
  for (int i = 0; i < count; i++) found += alone(&offered[i]);
  assert_in_range(found, 1, 6);
  g.m = g.n = g.k = 2; /* too little for a second thread */
  g.batch = 10;
  g.lda = g.ldb = g.ldd = 2;
  count = at_gemm_host_small.configurations(&at_gemm_host_small, &g, device, offered, 64);
  assert_in_range(count, 1, 6);
  for (int i = 0; i < count; i++) assert_true(alone(&offered[i]));
}

/* For each size: one of the configurations on offer, drawn, is accepted and gives right results. */
TEST(each_size) {
  for (int m = 1; m <= 64; m += 1 + m / 12)
    for (int n = 1; n <= 64; n += 1 + n / 12) {
      at_configuration offered[32];
      const int type = (int)draw(AT_SMALL_TYPES);
      fill(type, draw(8) ? 0.0 : (double)NAN);
      const at_gemm g = problem_of(m, n, 1 + (int)draw(64), type);
      assert_true(at_gemm_host_small.supports(&at_gemm_host_small, &g, device));
      const int count = at_gemm_host_small.configurations(&at_gemm_host_small, &g, device, offered, 32);
      assert_in_range(count, 1, 31);
      run(&g, offered[draw((unsigned)count)].text);
    }
}

TEST(what_it_leaves_to_others) {
  at_gemm g = problem_of(8, 8, 8, AT_SMALL_F64);
  assert_true(at_gemm_host_small.supports(&at_gemm_host_small, &g, device));
  g.m = 65;
  assert_false(at_gemm_host_small.supports(&at_gemm_host_small, &g, device));
  g = problem_of(8, 8, 257, AT_SMALL_F64);
  assert_false(at_gemm_host_small.supports(&at_gemm_host_small, &g, device));
  g = problem_of(8, 8, 8, AT_SMALL_F64);
  g.dtype = g.dtype_out = ATTUNE_F16;
  assert_false(at_gemm_host_small.supports(&at_gemm_host_small, &g, device));
  g = problem_of(8, 8, 8, AT_SMALL_F64);
  static const char *const wrong[] = {"",
                                      "kernel=none,vectors=1,columns=1",
                                      "kernel=portable,vectors=0,columns=1",
                                      "kernel=portable,vectors=5,columns=1",
                                      "kernel=portable,vectors=1,columns=0",
                                      "kernel=portable,vectors=1,columns=17",
                                      "kernel=portable,vectors=1",
                                      "kernel=portable,vectors=1,columns=1,threads=0",
                                      "kernel=portable,vectors=1,columns=1,threads=4097",
                                      "kernel=portable,vectors=1,columns=1"};
  g.batch = 2; /* which says its threads */
  g.stride_d = g.ldd * g.n;
  for (size_t i = 0; i < AT_COUNT(wrong); i++) {
    at_plan *plan = NULL;
    at_configuration text;
    at_copy_text(text.text, sizeof text.text, wrong[i]);
    assert_int_equal(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_small, &text, &g, device), ATTUNE_NOT_FOUND);
  }
}

FIXTURE(open_host) {
  return attune_device_get(&device, "host") == ATTUNE_OK ? 0 : -1;
}

int main(void) {
  return RUN_TESTS(open_host, NULL);
}
