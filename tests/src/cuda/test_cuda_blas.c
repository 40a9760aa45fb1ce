/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_blas.c: the GEMM implementations of cuBLAS and cuBLASLt, every algorithm of theirs on many kinds of
 * problems, and the scaling of C. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <pthread.h>

#include "ops/gemm/cublas/cublaslt.h"
#include "tests/support/cuda_gemm.h"
#include "tests/support/gpu.h"

#define LIST 64
#define THREADS 4

extern const at_implementation at_gemm_cublas, at_gemm_cublaslt;

static attune_device *device;
static attune_stream *stream;

static const shape shapes[] = {
    {ATTUNE_F32, .m = 64, .n = 64, .k = 64, .alpha = 1},
    {ATTUNE_F32, .m = 128, .n = 16, .k = 1024, .alpha = 1},
    {ATTUNE_F32, .tb = 1, .m = 48, .n = 48, .k = 4096, .alpha = 1},
    {ATTUNE_F32, .ta = 1, .m = 33, .n = 65, .k = 17, .gap = 3, .c = AT_C_INPLACE, .alpha = -1.5, .beta = 0.5},
    {ATTUNE_F32, .m = 96, .n = 40, .k = 72, .batch = 5, .share_b = true, .alpha = 1},
    {ATTUNE_F32, .m = 64, .n = 64, .k = 64, .accuracy = ATTUNE_REDUCED, .alpha = 1},
    {ATTUNE_F64, .m = 64, .n = 72, .k = 80, .alpha = 1},
    {ATTUNE_F64, .tb = 1, .m = 31, .n = 17, .k = 513, .gap = 1, .c = AT_C_SEPARATE, .alpha = 1, .beta = -2},
    {ATTUNE_F64, .m = 16, .n = 16, .k = 16, .batch = 7, .share_a = true, .alpha = 2},
    {ATTUNE_F16, .m = 128, .n = 128, .k = 128, .alpha = 1},
    {ATTUNE_F16, .ta = 1, .m = 64, .n = 8, .k = 512, .c = AT_C_SEPARATE, .alpha = 1, .beta = 1},
    {ATTUNE_F16, .dtype_out = ATTUNE_F32, .m = 64, .n = 96, .k = 256, .alpha = 1},
    {ATTUNE_F16, .m = 32, .n = 32, .k = 32, .batch = 64, .alpha = 1},
    {ATTUNE_BF16, .ta = 1, .m = 256, .n = 1, .k = 512, .alpha = 1},
    {ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 8192, .alpha = 1},
    {ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 8192, .accuracy = ATTUNE_REDUCED, .alpha = 1},
    {ATTUNE_BF16, .m = 99, .n = 101, .k = 103, .alpha = 1},
    {ATTUNE_BF16, .m = 128, .n = 64, .k = 64, .shift = 1, .alpha = 1},
    {ATTUNE_BF16, .m = 128, .n = 64, .k = 64, .shift = 4, .gap = 8, .c = AT_C_INPLACE, .alpha = 1, .beta = 0.5},
    {ATTUNE_BF16, .dtype_out = ATTUNE_F32, .ta = 1, .m = 64, .n = 64, .k = 64, .batch = 3, .step = 8,
     .c = AT_C_SEPARATE, .share_c = true, .alpha = 1, .beta = 1},
    {ATTUNE_BF16, .m = 64, .n = 64, .k = 64, .batch = 16, .step = 5, .c = AT_C_SEPARATE, .alpha = 0.5, .beta = 0},
};

/* Runs one configuration and returns the error; -1 when it is a miss. */
static double run_one(gemm_case *t, const at_implementation *implementation, const at_configuration *configuration) {
  at_plan *plan = NULL;
  attune_status status = at_plan_create(&plan, &at_gemm_op, implementation, configuration, &t->g, device);
  if (status == ATTUNE_NOT_FOUND) return -1.0;
  OK(status);
  assert_true(plan->workspace_bytes <= t->g.workspace_cap);
  assert_true(reset_output(t));
  status = plan->launch(plan, &t->operands, stream);
  double error = status == ATTUNE_OK ? output_error(t) : INFINITY;
  if (status != ATTUNE_OK)
    print_message("%s \"%s\": %s\n", implementation->name, configuration->text, attune_last_message());
  at_plan_destroy(plan);
  return error;
}

static void assert_good(gemm_case *t, const at_implementation *implementation, const at_configuration *configuration) {
  double error = run_one(t, implementation, configuration);
  const at_gemm *g = &t->g;
  if (error >= 0.0 && error <= 1.0) return;
  fail_msg("%s \"%s\" on %s %lldx%lldx%lld batch %lld: error %g of what is allowed", implementation->name,
           configuration->text, attune_dtype_name((attune_dtype)g->dtype), (long long)g->m, (long long)g->n,
           (long long)g->k, (long long)g->batch, error);
}

/* Text to algorithm to text is the identity, and no two of a list are the same. */
static void assert_restores(const gemm_case *t, const at_configuration *list, int count) {
  at_lt_problem problem;
  OK(at_lt_open(&problem, &t->g, 0, device));
  for (int i = 0; i < count; i++) {
    at_lt_algorithm wanted, found;
    cublasLtMatmulAlgo_t made;
    cublasLtMatmulHeuristicResult_t result;
    at_configuration again;
    assert_true(at_tunables_parse(&at_lt_tunables, &wanted, &list[i]));
    assert_null(at_lt_check(&problem, &wanted, &made, &result));
    at_lt_describe(&found, &made);
    assert_true(at_tunables_format(&at_lt_tunables, &again, &found));
    assert_string_equal(again.text, list[i].text);
    for (int j = 0; j < i; j++) assert_string_not_equal(list[i].text, list[j].text);
  }
  at_lt_close(&problem);
}

TEST(every_algorithm_is_right) {
  static at_configuration list[LIST], around[LIST];
  at_configuration none = {{0}};
  int listed = 0, widened = 0;
  for (size_t i = 0; i < AT_COUNT(shapes); i++) {
    gemm_case t;
    assert_true(make_case(&t, &shapes[i], stream));
    assert_good(&t, &at_gemm_cublas, &none);
    assert_true(at_gemm_cublaslt.supports(&at_gemm_cublaslt, &t.g, device));
    int count = at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &t.g, device, list, LIST);
    assert_in_range(count, 1, LIST);
    assert_restores(&t, list, count);
    int more = at_gemm_cublaslt.neighbours(&at_gemm_cublaslt, &t.g, device, &list[0], around, LIST);
    assert_restores(&t, around, more);
    for (int j = 0; j < count; j++) assert_good(&t, &at_gemm_cublaslt, &list[j]);
    for (int j = 0; j < more; j++) {
      assert_string_not_equal(around[j].text, list[0].text);
      assert_good(&t, &at_gemm_cublaslt, &around[j]);
    }
    print_message("shape %zu: %d ranked, %d around \"%s\"\n", i, count, more, list[0].text);
    listed += count;
    widened += more;
    free_case(&t);
  }
  print_message("%d ranked and %d neighbouring algorithms run\n", listed, widened);
  assert_true(widened > 0);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void assert_miss(const at_gemm *g, const char *text) {
  at_plan *plan = NULL;
  at_configuration configuration = {{0}};
  assert_true(at_copy_text(configuration.text, sizeof configuration.text, text));
  assert_int_equal(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublaslt, &configuration, g, device), ATTUNE_NOT_FOUND);
  assert_null(plan);
}

TEST(foreign_configurations_are_misses) {
  at_gemm g;
  at_plan *plan = NULL;
  at_configuration first, other = {"tile=1"};
  set_problem(&g, &shapes[14]);
  assert_int_equal(at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &g, device, &first, 1), 1);
  char longer[AT_CONFIGURATION_CHARS + 8];
  snprintf(longer, sizeof longer, "%.160s,x=1", first.text);
  assert_miss(&g, "");
  assert_miss(&g, "nonsense");
  assert_miss(&g, longer);
  assert_miss(&g, "id=-1,tile=0,stages=0,splitk=1,reduction=0,swizzle=0,custom=0,inner=0,cluster=0");
  assert_miss(&g, "id=99999,tile=0,stages=0,splitk=1,reduction=0,swizzle=0,custom=0,inner=0,cluster=0");
  assert_miss(&g, "id=0,tile=4000000000,stages=0,splitk=1,reduction=0,swizzle=0,custom=0,inner=0,cluster=0");
  assert_miss(&g, "id=0,tile=0,stages=0,splitk=1,reduction=0,swizzle=0,custom=0,inner=0,cluster=70000");
  assert_int_equal(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublas, &other, &g, device), ATTUNE_NOT_FOUND);
}

/* A winner of a reduced contract must not lower a strict one: it is refused there, or it is strict. */
TEST(a_stored_row_cannot_lower_accuracy) {
  static at_configuration list[LIST];
  static const shape pairs[] = {
      {ATTUNE_F32, .m = 128, .n = 128, .k = 256, .alpha = 1},
      {ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 16384, .alpha = 1},
  };
  for (size_t i = 0; i < AT_COUNT(pairs); i++) {
    gemm_case t;
    assert_true(make_case(&t, &pairs[i], stream));
    at_gemm reduced = t.g;
    reduced.accuracy = ATTUNE_REDUCED;
    int count = at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &reduced, device, list, LIST), refused = 0;
    assert_true(count > 0);
    for (int j = 0; j < count; j++) {
      double error = run_one(&t, &at_gemm_cublaslt, &list[j]);
      assert_true(error <= 1.0);
      refused += error < 0.0;
    }
    print_message("%d of %d reduced configurations refused\n", refused, count);
    free_case(&t);
  }
  at_gemm g;
  set_problem(&g, &pairs[1]);
  at_lt_algorithm algorithm;
  assert_int_equal(at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &g, device, list, 1), 1);
  assert_true(at_tunables_parse(&at_lt_tunables, &algorithm, &list[0]));
  algorithm.value[AT_LT_SPLITK] = 2;
  algorithm.value[AT_LT_REDUCTION] = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  assert_true(at_tunables_format(&at_lt_tunables, &list[0], &algorithm));
  assert_miss(&g, list[0].text);
  assert_non_null(strstr(attune_last_message(), "less accurate"));
}

TEST(the_workspace_cap_holds) {
  static at_configuration list[LIST];
  at_configuration none = {{0}};
  gemm_case t;
  assert_true(make_case(&t, &shapes[14], stream));
  t.g.workspace_cap = 1;
  int count = at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &t.g, device, list, LIST);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) assert_good(&t, &at_gemm_cublaslt, &list[i]);
  assert_good(&t, &at_gemm_cublas, &none);
  t.g.workspace_cap = ATTUNE_WORKSPACE_DEFAULT;
  assert_good(&t, &at_gemm_cublas, &none);
  free_case(&t);
}

static void replay(gemm_case *t, const at_implementation *implementation, const at_configuration *configuration) {
  at_plan *plan = NULL;
  at_graph *graph = NULL;
  OK(at_plan_create(&plan, &at_gemm_op, implementation, configuration, &t->g, device));
  OK(at_cuda_backend.graph->capture_begin(stream));
  OK(plan->launch(plan, &t->operands, stream));
  OK(at_cuda_backend.graph->capture_end(stream, &graph));
  for (int i = 0; i < 3; i++) {
    assert_true(reset_output(t));
    OK(at_cuda_backend.graph->launch(graph, stream));
    assert_true(output_error(t) <= 1.0);
  }
  at_cuda_backend.graph->destroy(graph);
  at_plan_destroy(plan);
}

TEST(graphs_replay) {
  at_configuration none = {{0}}, first;
  static const size_t picks[] = {1, 7, 10, 14, 19};
  for (size_t i = 0; i < AT_COUNT(picks); i++) {
    gemm_case t;
    assert_true(make_case(&t, &shapes[picks[i]], stream));
    assert_int_equal(at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &t.g, device, &first, 1), 1);
    replay(&t, &at_gemm_cublas, &none);
    replay(&t, &at_gemm_cublaslt, &first);
    free_case(&t);
  }
}

static void repeat(gemm_case *t, const at_configuration *configuration) {
  at_plan *plan = NULL;
  unsigned char *first = malloc(t->d.bytes), *again = malloc(t->d.bytes);
  assert_true(first && again);
  OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublaslt, configuration, &t->g, device));
  for (int i = 0; i < 20; i++) {
    assert_true(reset_output(t));
    OK(plan->launch(plan, &t->operands, stream));
    OK(attune_copy(stream, i ? again : first, t->d.device, t->d.bytes));
    OK(attune_stream_synchronize(stream));
    if (i && memcmp(first, again, t->d.bytes) != 0) fail_msg("\"%s\" differs in run %d", configuration->text, i);
  }
  at_plan_destroy(plan);
  free(first);
  free(again);
}

/* Split-K in each reduction scheme too: the parts are added in one order. */
TEST(deterministic_runs_repeat_bitwise) {
  static at_configuration list[LIST], around[LIST];
  static const size_t picks[] = {2, 6, 9, 14, 15};
  for (size_t i = 0; i < AT_COUNT(picks); i++) {
    gemm_case t;
    assert_true(make_case(&t, &shapes[picks[i]], stream));
    t.g.deterministic = 1;
    int count = at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &t.g, device, list, LIST);
    int more = at_gemm_cublaslt.neighbours(&at_gemm_cublaslt, &t.g, device, &list[0], around, LIST);
    for (int j = 0; j < count; j++) repeat(&t, &list[j]);
    for (int j = 0; j < more; j++) repeat(&t, &around[j]);
    free_case(&t);
  }
}

typedef struct runner {
  const at_plan *plan;
  double worst;
} runner;

static void *run_plan(void *argument) {
  runner *r = argument;
  attune_stream *own = NULL;
  gemm_case t;
  if (attune_stream_create(&own, device) != ATTUNE_OK || !make_case(&t, &shapes[14], own)) return NULL;
  r->worst = 0.0;
  for (int i = 0; i < 50; i++) {
    bool ran = reset_output(&t) && r->plan->launch(r->plan, &t.operands, own) == ATTUNE_OK;
    r->worst = fmax(r->worst, ran ? output_error(&t) : INFINITY);
  }
  free_case(&t);
  attune_stream_destroy(own);
  return NULL;
}

TEST(threads_share_a_plan) {
  at_configuration none = {{0}}, list[8];
  at_gemm g;
  set_problem(&g, &shapes[14]);
  int count = at_gemm_cublaslt.configurations(&at_gemm_cublaslt, &g, device, list, 8);
  assert_true(count > 0);
  for (int i = -1; i < count; i++) {
    at_plan *plan = NULL;
    OK(at_plan_create(&plan, &at_gemm_op, i < 0 ? &at_gemm_cublas : &at_gemm_cublaslt, i < 0 ? &none : &list[i], &g,
                      device));
    pthread_t threads[THREADS];
    runner runners[THREADS];
    for (int j = 0; j < THREADS; j++) {
      runners[j] = (runner){plan, INFINITY};
      assert_int_equal(pthread_create(&threads[j], NULL, run_plan, &runners[j]), 0);
    }
    for (int j = 0; j < THREADS; j++) pthread_join(threads[j], NULL);
    for (int j = 0; j < THREADS; j++) assert_true(runners[j].worst <= 1.0);
    at_plan_destroy(plan);
  }
}

TEST(c_is_scaled) {
  static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_C64, ATTUNE_C128};
  static const double betas[][2] = {{0.0},  {1.0},       {0.5},
                                    {-2.0}, {0.0, -2.0}, {1.0, 0.5}}; /* the latter of complex ones */
  static const shape kinds[] = {
      {.m = 33, .n = 17, .c = AT_C_INPLACE},
      {.m = 33, .n = 17, .gap = 3, .c = AT_C_SEPARATE},
      {.m = 64, .n = 8, .batch = 5, .c = AT_C_SEPARATE},
      {.m = 20, .n = 12, .batch = 3, .gap = 4, .step = 7, .c = AT_C_INPLACE},
      {.m = 20, .n = 12, .batch = 3, .gap = 4, .step = 48, .c = AT_C_SEPARATE},
      {.m = 20, .n = 12, .batch = 3, .share_c = true, .shift = 1, .c = AT_C_SEPARATE},
  };
  for (size_t i = 0; i < AT_COUNT(kinds) * AT_COUNT(dtypes) * AT_COUNT(betas); i++) {
    shape s = kinds[i / 36];
    s.dtype = dtypes[i / 6 % 6], s.beta = betas[i % 6][0], s.beta_imag = betas[i % 6][1], s.k = 4;
    if (s.beta_imag != 0.0 && !at_gemm_complex(s.dtype)) continue;
    gemm_case t;
    assert_true(make_case(&t, &s, stream));
    t.operands.a = t.operands.b = NULL;
    assert_true(reset_output(&t));
    OK(at_gemm_scale_cuda(stream, &t.g, &t.operands));
    double error = output_error(&t);
    if (!(error <= 1.0))
      fail_msg("kind %zu, %s, beta %g %g: error %g", i / 36, attune_dtype_name(s.dtype), s.beta, s.beta_imag, error);
    free_case(&t);
  }
}

/* A real beta multiplies the parts, each alone, as on the host. */
TEST(a_real_beta_spreads_no_infinity) {
  const float before[4] = {INFINITY, 1.0f, 3.0f, NAN};
  float after[4] = {0};
  void *d = NULL;
  at_gemm g;
  set_problem(&g, &(shape){ATTUNE_C64, .m = 2, .n = 1, .k = 1, .c = AT_C_INPLACE});
  OK(attune_alloc(&d, stream, sizeof before));
  OK(attune_copy(stream, d, before, sizeof before));
  OK(at_gemm_scale_cuda(stream, &g, &(at_gemm_operands){.beta = 2.0, .c = d, .d = d}));
  OK(attune_copy(stream, after, d, sizeof after));
  OK(attune_stream_synchronize(stream));
  assert_true(isinf(after[0]) && after[1] == 2.0f && after[2] == 6.0f && isnan(after[3]));
  OK(attune_free(d, stream));
}

TEST(huge_problems_are_left_to_the_default) {
  at_gemm g;
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 65536, .n = 64, .k = 32768});
  assert_false(at_gemm_cublaslt.supports(&at_gemm_cublaslt, &g, device));
  assert_true(at_gemm_cublas.supports(&at_gemm_cublas, &g, device));
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 32768, .n = 64, .k = 32767});
  assert_true(at_gemm_cublaslt.supports(&at_gemm_cublaslt, &g, device));
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
