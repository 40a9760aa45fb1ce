/* SPDX-License-Identifier: Apache-2.0
 * test_host_gemm.c: the host's GEMM implementations, each configuration of each and more than they offer, against plain
 * loops. */
#include "tests/support/check.h"

#include <math.h>
#include <pthread.h>

#include <attune/attune.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/host_blocked.h"
#include "ops/gemm/problem/problem.h"
#include "tests/ops/gemm/gemm_oracle.h"
#include "tuning/op/registry.h"

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
  plan->problem = (const uint64_t *)(const void *)g;
  return implementation->prepare(plan);
}

/* One case of the host: the oracle has its memory and the right answer. */
typedef struct product {
  oracle o;
  at_gemm g;
  at_gemm_operands operands;
} product;

/* Bits of `trans`: A or B is transposed; and conjugated, too. */
enum { TRANS_A = 1, TRANS_B = 2, CONJUGATE_A = 4, CONJUGATE_B = 8 };

/* A case as the list of cases has them, of sizes that it has not. Where `pad` is 0, matrices are packed and a batch has
 * one B; else it has one C, if that is apart from D, and complex scalars have imaginary parts. */
static void product_open(product *p, const int dtypes[2], int trans, const int64_t sizes[4], int c, int64_t pad,
                         double alpha, double beta) {
  at_gemm_case one = {.problem = ATTUNE_GEMM_PROBLEM_INIT, .alpha = alpha, .beta = beta, .c = (at_gemm_c)c, .seed = 2};
  attune_gemm_problem *q = &one.problem;
  q->dtype = (attune_dtype)dtypes[0];
  q->dtype_out = (attune_dtype)dtypes[1];
  q->trans_a = !(trans & TRANS_A) ? ATTUNE_N : trans & CONJUGATE_A ? ATTUNE_C : ATTUNE_T;
  q->trans_b = !(trans & TRANS_B) ? ATTUNE_N : trans & CONJUGATE_B ? ATTUNE_C : ATTUNE_T;
  if (at_gemm_complex(q->dtype) && pad) {
    one.alpha_imag = 0.5;
    one.beta_imag = beta != 0.0 ? 0.75 : 0.0;
  }
  q->m = sizes[0], q->n = sizes[1], q->k = sizes[2], q->batch = sizes[3];
  q->lda = (q->trans_a ? q->k : q->m) + pad;
  q->ldb = (q->trans_b ? q->n : q->k) + 2 * pad;
  q->ldd = q->m + 3 * pad;
  q->ldc = c == AT_C_INPLACE ? q->ldd : q->m + pad;
  if (q->batch > 1) {
    q->stride_a = q->lda * (q->trans_a ? q->m : q->k) + pad;
    q->stride_b = pad ? q->ldb * (q->trans_b ? q->k : q->n) + pad : ATTUNE_BROADCAST;
    q->stride_d = q->ldd * q->n + pad;
    q->stride_c = c == AT_C_INPLACE ? q->stride_d : c == AT_C_SEPARATE && pad ? ATTUNE_BROADCAST : 0;
  }
  one.alignment =
      (int)attune_dtype_size(attune_dtype_size(q->dtype_out) > attune_dtype_size(q->dtype) ? q->dtype_out : q->dtype);
  snprintf(one.name, sizeof one.name, "%s:%s %c%c %dx%dx%d", attune_dtype_name(q->dtype),
           attune_dtype_name(q->dtype_out), "ntc"[q->trans_a], "ntc"[q->trans_b], (int)q -> m, (int)q -> n,
           (int)q -> k);
  oracle_open(&p->o, &one);
  bool swap = false;
  OK(at_gemm_normalise(q, (at_gemm_use){.c = one.c, .alignment = (uint8_t)one.alignment}, &p->g, &swap));
  p->operands = oracle_operands(&p->o);
}

static void product_close(product *p) {
  oracle_close(&p->o);
}

/* ThreadSanitizer takes fifty times as long, and looks at threads, not at sums: it gets some of the runs. */
#ifdef __SANITIZE_THREAD__
enum { EVERY = 4 };
#else
enum { EVERY = 1 };
#endif

static bool is_run(void) {
  static unsigned turn;
  return turn++ % EVERY == 0;
}

static void run_one(product *p, const at_implementation *implementation, const at_configuration *configuration) {
  at_plan plan;
  char what[256];
  snprintf(what, sizeof what, "%s %s", implementation->name, configuration->text);
  if (plan_make(&plan, implementation, configuration, &p->g) != ATTUNE_OK)
    fail_msg("%s: %s", what, attune_last_message());
  oracle_reset(&p->o);
  oracle_forbid(&p->o);
  OK(plan.launch(&plan, &p->operands, attune_stream_default(plan.device)));
  oracle_check(&p->o, what);
  if (implementation->destroy) implementation->destroy(&plan);
}

#define MOST 512 /* more than a machine of many CPUs offers */

static void run_all(product *p, const at_implementation *implementation) {
  static at_configuration list[MOST];
  if (!implementation->supports(implementation, &p->g, host())) return;
  int count = implementation->configurations(implementation, &p->g, host(), list, MOST);
  assert_in_range(count, 1, MOST - 1);
  for (int i = 0; i < count; i++)
    if (is_run()) run_one(p, implementation, &list[i]);
}

/* Every path, instruction set and odd block of host_blocked, beyond what it would offer, with one thread and one of the
 * splits in turn; with ATTUNE_TEST_ALL with every split: teams wait long for busy CPUs. */
static void run_blocked_odd(product *p) {
  static size_t turn;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  static const char *const kernels[] = {"portable", "avx2", "avx512"};
  static const char *const paths[][2] = {{"direct", ",vectors=2"},
                                         {"panel", ",vectors=1,mc=20"},
                                         {"stream", ""},
                                         {"packed", ",vectors=1,mc=17,kc=5,nc=9"},
                                         {"packed", ",vectors=2,mc=64,kc=512,nc=16"}};
  static const at_blocked_path path[] = {AT_PATH_DIRECT, AT_PATH_PANEL, AT_PATH_STREAM, AT_PATH_PACKED, AT_PATH_PACKED};
  static const char *const splits[] = {"threads=1", "threads=2,split=m", "threads=3,split=n", "threads=4,split=grid",
                                       "threads=2,split=batch"};
  for (size_t k = 0; k < AT_COUNT(kernels); k++) {
    if (at_blocked_isa_find(kernels[k]) == NULL) continue;
    for (size_t way = 0; way < AT_COUNT(paths); way++) {
      if (!at_blocked_can(&p->g, path[way])) continue;
      const size_t chosen = 1 + turn++ % (AT_COUNT(splits) - 1);
      for (size_t s = 0; s < AT_COUNT(splits); s++) {
        if ((!all && s != 0 && s != chosen) || !is_run()) continue;
        at_configuration c;
        snprintf(c.text, sizeof c.text, "path=%s,kernel=%s,%s%s", paths[way][0], kernels[k], splits[s], paths[way][1]);
        run_one(p, &at_gemm_host_blocked, &c);
      }
    }
  }
}

static void try_product(const int dtypes[2], int trans, const int64_t sizes[4], int c, int64_t pad, double alpha,
                        double beta) {
  product p;
  product_open(&p, dtypes, trans, sizes, c, pad, alpha, beta);
  run_all(&p, &at_gemm_host_reference);
  run_all(&p, &at_gemm_host_blocked);
  run_all(&p, &at_gemm_host_cblas);
  run_blocked_odd(&p);
  product_close(&p);
}

/* ---- tests ---- */

static const int f32[2] = {ATTUNE_F32, ATTUNE_F32}, f64[2] = {ATTUNE_F64, ATTUNE_F64},
                 f16[2] = {ATTUNE_F16, ATTUNE_F16}, bf16[2] = {ATTUNE_BF16, ATTUNE_BF16};
static const int dtypes[][2] = {{ATTUNE_F64, ATTUNE_F64},   {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F16, ATTUNE_F16},
                                {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

/* Under AddressSanitizer a read of what lies beside a matrix is found, for all tests below. */
TEST(test_guards_are_forbidden) {
#ifdef ORACLE_ADDRESS_SANITIZER
  static const int64_t sizes[4] = {3, 5, 7, 1};
  product p;
  product_open(&p, f32, 0, sizes, AT_C_SEPARATE, 1, 1.0, 1.0);
  oracle_forbid(&p.o);
  for (int i = 0; i < ORACLE_BLOCKS; i++) {
    char *start = oracle_pointer(&p.o, i);
    const size_t bytes = oracle_extent(&p.o.matrix[i]) * sizeof(float);
    assert_null(__asan_region_is_poisoned(start, bytes));
    assert_true(__asan_address_is_poisoned(start + bytes) && __asan_address_is_poisoned(start - 16));
  }
  oracle_allow(&p.o);
  assert_null(__asan_region_is_poisoned(p.o.block[ORACLE_D].raw, p.o.block[ORACLE_D].bytes));
  product_close(&p);
#endif
}

TEST(test_shapes) {
  static const int64_t shapes[][4] = {{1, 1, 1, 1},    {3, 5, 7, 3},    {16, 16, 16, 2}, {17, 9, 33, 1},
                                      {48, 8, 40, 1},  {1, 70, 65, 1},  {70, 1, 65, 2},  {100, 3, 9, 1},
                                      {7, 120, 31, 1}, {65, 50, 130, 1}};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (size_t s = 0; s < AT_COUNT(shapes); s++)
      for (int trans = 0; trans < 4; trans++) {
        const int c = (int)(s + (size_t)trans) % 3;
        try_product(dtypes[d], trans, shapes[s], c, (int64_t)(s % 2) * 3, 1.25, c == AT_C_NONE ? 0.0 : -0.5);
      }
}

TEST(test_complex_shapes) {
  static const int complex_types[][2] = {{ATTUNE_C128, ATTUNE_C128}, {ATTUNE_C64, ATTUNE_C64}};
  static const int64_t shapes[][4] = {{1, 1, 1, 1},   {3, 5, 7, 3},   {16, 16, 16, 2}, {17, 9, 33, 1},
                                      {1, 70, 65, 1}, {70, 1, 65, 2}, {37, 50, 130, 1}};
  for (size_t d = 0; d < AT_COUNT(complex_types); d++)
    for (size_t s = 0; s < AT_COUNT(shapes); s++)
      for (int trans = 0; trans < 16; trans++) {
        if ((trans & CONJUGATE_A && !(trans & TRANS_A)) || (trans & CONJUGATE_B && !(trans & TRANS_B))) continue;
        const int c = (int)(s + (size_t)trans) % 3;
        try_product(complex_types[d], trans, shapes[s], c, (trans + (int)s) / 2 % 2 * 3, trans % 5 ? 1.25 : 1.0,
                    c == AT_C_NONE ? 0.0 : -0.5);
      }
}

TEST(test_larger) {
#ifdef __SANITIZE_THREAD__ /* threads share the work in the same way, whatever lies along its rows */
  const int step = 3;
#else
  const int step = 1;
#endif
  for (int trans = 0; trans < 4; trans += step) {
    static const int64_t sizes[4] = {131, 117, 801, 1};
    try_product(f32, trans, sizes, AT_C_INPLACE, trans % 2, 1.0, 1.0);
    try_product(bf16, trans, sizes, AT_C_SEPARATE, trans % 2, 1.0, 1.0);
  }
}

/* Puts x into an operand, and into the copy that it is compared with after the call. */
static void plant(product *p, int which, int64_t row, int64_t column, double x) {
  const oracle_matrix *matrix = &p->o.matrix[which];
  const size_t at = oracle_at(matrix, 0, row, column);
  oracle_store(p->o.block[which].raw + p->o.block[which].first, matrix->dtype, at, x);
  oracle_store(p->o.block[which].before + p->o.block[which].first, matrix->dtype, at, x);
}

/* The oracle's C holds NaN under beta = 0, which does not spread; NaN and infinity in A and B do, into the right
 * elements only. */
TEST(test_not_finite) {
  static const int64_t sizes[4] = {21, 13, 35, 1};
  product p;
  product_open(&p, f32, 0, sizes, AT_C_SEPARATE, 2, 1.0, 0.0);
  plant(&p, ORACLE_A, 20, 3, (double)NAN);
  plant(&p, ORACLE_B, 4, 12, (double)INFINITY);
  oracle_expect_again(&p.o);
  for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) {
    assert_int_equal(isnan(p.o.expected[i]) != 0, i % sizes[0] == 20);
    assert_int_equal(isinf(p.o.expected[i]) != 0, i % sizes[0] != 20 && i / sizes[0] == 12);
  }
  run_all(&p, &at_gemm_host_reference);
  run_all(&p, &at_gemm_host_blocked);
  run_all(&p, &at_gemm_host_cblas);
  product_close(&p);
}

/* Sums of halves are rounded once: 2048 + 1 + 1 ... needs more bits than f16 has on the way. */
TEST(test_halves_round_once) {
  static const int64_t sizes[4] = {9, 5, 2000, 1};
  product p;
  product_open(&p, f16, 0, sizes, AT_C_NONE, 0, 1.0, 0.0);
  for (int64_t k = 0; k < sizes[2]; k++) {
    for (int64_t i = 0; i < sizes[0]; i++) plant(&p, ORACLE_A, i, k, k == 0 ? 2048.0 : 0.5);
    for (int64_t j = 0; j < sizes[1]; j++) plant(&p, ORACLE_B, k, j, 1.0);
  }
  for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) {
    p.o.expected[i] = 3048.0; /* 2048 + 1999/2 = 3047.5, to even in steps of 2 */
    p.o.allowed[i] = 0.0;
  }
  run_all(&p, &at_gemm_host_reference);
  run_all(&p, &at_gemm_host_blocked);
  run_blocked_odd(&p);
  product_close(&p);
}

/* More sums than are kept apart at once: D is finished in several goes, and B's block is packed again for each. */
TEST(test_halves_in_chunks) {
  static const char *const kernels[] = {"portable", "avx2", "avx512"};
  static const int blocks[] = {4, 16}; /* several blocks of k, and one */
  static const int64_t sizes[4] = {1100, 1000, 9, 1};
  product p;
  product_open(&p, bf16, 0, sizes, AT_C_INPLACE, 0, 1.0, 1.0);
  for (size_t i = 0; i < AT_COUNT(kernels); i++)
    for (size_t j = 0; j < AT_COUNT(blocks) && at_blocked_isa_find(kernels[i]) != NULL; j++) {
      at_configuration c;
      snprintf(c.text, sizeof c.text, "path=packed,kernel=%s,threads=1,vectors=2,mc=64,kc=%d,nc=2048", kernels[i],
               blocks[j]);
      run_one(&p, &at_gemm_host_blocked, &c);
    }
  product_close(&p);
}

/* As run_one, but D's bytes are kept in *bits: oracle_check destroys them. */
static void run_for_bits(product *p, const at_configuration *configuration, unsigned char *bits) {
  at_plan plan;
  OK(plan_make(&plan, &at_gemm_host_blocked, configuration, &p->g));
  oracle_reset(&p->o);
  OK(plan.launch(&plan, &p->operands, attune_stream_default(plan.device)));
  memcpy(bits, p->o.block[ORACLE_D].raw, p->o.block[ORACLE_D].bytes);
  oracle_check(&p->o, configuration->text);
  at_gemm_host_blocked.destroy(&plan);
}

TEST(test_same_bits_each_run) {
  static const int64_t sizes[4] = {200, 150, 900, 1};
  product p;
  product_open(&p, f32, 1, sizes, AT_C_NONE, 0, 1.0, 0.0);
  static at_configuration list[MOST];
  const int count = at_gemm_host_blocked.configurations(&at_gemm_host_blocked, &p.g, host(), list, MOST);
  const size_t bytes = p.o.block[ORACLE_D].bytes;
  unsigned char *first = malloc(bytes), *again = malloc(bytes);
  assert_true(first && again);
  for (int i = 0; i < count; i++)
    for (int repeat = 0; repeat < 5; repeat++) {
      run_for_bits(&p, &list[i], repeat ? again : first);
      if (repeat) assert_memory_equal(first, again, bytes);
    }
  free(first);
  free(again);
  product_close(&p);
}

TEST(test_blocked_f64) {
  static const int64_t shapes[][4] = {{1, 1, 1, 1}, {5, 1, 300, 1}, {1, 40, 30, 1}, {129, 65, 400, 1}};
  for (size_t s = 0; s < AT_COUNT(shapes); s++)
    for (int trans = 0; trans < 4; trans++) {
      product p;
      product_open(&p, f64, trans, shapes[s], AT_C_NONE, 1, 1.0, 0.0);
      const at_gemm *g = &p.g;
      oracle_reset(&p.o);
      oracle_forbid(&p.o);
      OK(at_blocked_f64(g->m, g->n, g->k, p.operands.a, g->lda, g->trans_a != 0, p.operands.b, g->ldb, g->trans_b != 0,
                        p.operands.d, g->ldd, 1 + trans % 2));
      oracle_check(&p.o, "at_blocked_f64");
      product_close(&p);
    }
  FAILS(at_blocked_f64(0, 1, 1, NULL, 1, false, NULL, 1, false, NULL, 1, 1), ATTUNE_INVALID_ARGUMENT);
}

TEST(test_scale) {
  static const int64_t sizes[4] = {13, 7, 1, 2};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (int c = 0; c < 3; c++)
      for (int zero = 0; zero < 2; zero++) {
        product p;
        product_open(&p, dtypes[d], 0, sizes, c, 2, 0.0, c == AT_C_NONE || zero ? 0.0 : 0.75);
        oracle_reset(&p.o);
        oracle_forbid(&p.o);
        OK(at_gemm_scale_host(attune_stream_default(host()), &p.g, &p.operands));
        oracle_check(&p.o, "scale");
        product_close(&p);
      }
}

TEST(test_unknown_configurations) {
  static const char *const blocked[] = {"",
                                        "path=packed",
                                        "path=direct,kernel=avx9000,threads=1,vectors=1",
                                        "path=stream,kernel=portable,threads=0",
                                        "path=direct,kernel=portable,threads=2,vectors=1",
                                        "path=direct,kernel=portable,threads=1,vectors=99",
                                        "path=packed,kernel=portable,threads=1,vectors=1,mc=0,kc=1,nc=1",
                                        "path=direct,kernel=portable,threads=1,vectors=1,ways=2",
                                        "path=direct,vectors=1,kernel=portable,threads=1",
                                        "path=direct,kernel=portable,threads=1,vectors=1,mc=64",
                                        "path=stream,kernel=portable,threads=1"}; /* m and n are not thin */
  static const char *const cblas[] = {"", "library=openblas-0.0.1,threads=1", "library=none", "threads=1"};
  static const int64_t cube[4] = {64, 64, 64, 1}, small[4] = {8, 8, 8, 1};
  product p, half;
  product_open(&p, f32, 0, cube, AT_C_NONE, 0, 1.0, 0.0);
  product_open(&half, f16, 0, small, AT_C_NONE, 0, 1.0, 0.0);
  at_plan plan;
  at_configuration c;
  for (size_t i = 0; i < AT_COUNT(blocked); i++) {
    snprintf(c.text, sizeof c.text, "%s", blocked[i]);
    assert_int_equal(plan_make(&plan, &at_gemm_host_blocked, &c, &p.g), ATTUNE_NOT_FOUND);
  }
  for (size_t i = 0; i < AT_COUNT(cblas); i++) {
    snprintf(c.text, sizeof c.text, "%s", cblas[i]);
    assert_int_equal(plan_make(&plan, &at_gemm_host_cblas, &c, &p.g), ATTUNE_NOT_FOUND);
  }
  snprintf(c.text, sizeof c.text, "tile=1");
  assert_int_equal(plan_make(&plan, &at_gemm_host_reference, &c, &p.g), ATTUNE_NOT_FOUND);
  assert_false(at_gemm_host_cblas.supports(&at_gemm_host_cblas, &half.g, host()));
  product_close(&half);
  product_close(&p);
}

/* ---- threads and streams ---- */

typedef struct caller {
  const product *p;
  const at_plan *plan;
  int failures;
} caller;

/* Into memory of its own, on two streams in turn: the bits are always those of the first run. */
static void *call_often(void *arg) {
  caller *c = (caller *)arg;
  at_gemm_operands operands = c->p->operands;
  const size_t bytes = (size_t)(c->p->g.ldd * c->p->g.n) * sizeof(float);
  char *d = malloc(bytes), *first = malloc(bytes);
  attune_stream *stream = NULL;
  if (d == NULL || first == NULL || attune_stream_create(&stream, host()) != ATTUNE_OK) c->failures = 1000;
  operands.d = first;
  for (int i = 0; i < 50 && c->failures == 0; i++) {
    attune_stream *where = i % 2 != 0 ? stream : attune_stream_default(host());
    if (c->plan->launch(c->plan, &operands, where) != ATTUNE_OK || attune_stream_synchronize(where) != ATTUNE_OK)
      c->failures++;
    if (operands.d == d && memcmp(d, first, bytes) != 0) c->failures++;
    operands.d = d;
  }
  attune_stream_destroy(stream);
  free(d);
  free(first);
  return NULL;
}

TEST(test_one_plan_many_threads) {
  static at_configuration list[MOST];
  static const int64_t sizes[4] = {96, 80, 70, 1};
  product p;
  product_open(&p, f32, 1, sizes, AT_C_NONE, 0, 1.0, 0.0);
  const int count = at_gemm_host_blocked.configurations(&at_gemm_host_blocked, &p.g, host(), list, MOST);
  for (int i = 0; i < count; i++) {
    at_plan plan;
    OK(plan_make(&plan, &at_gemm_host_blocked, &list[i], &p.g));
    caller callers[3];
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) {
      callers[t] = (caller){&p, &plan, 0};
      assert_int_equal(pthread_create(&threads[t], NULL, call_often, &callers[t]), 0);
    }
    for (int t = 0; t < 3; t++) {
      pthread_join(threads[t], NULL);
      assert_int_equal(callers[t].failures, 0);
    }
    at_gemm_host_blocked.destroy(&plan);
  }
  product_close(&p);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
