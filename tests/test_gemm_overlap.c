/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_overlap.c: a D that lies in what is read is told apart from one that lies beside it or in its gaps; builds with
 * assertions stop at it. */
#include "tests/check.h"

#include <attune/attune.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/gemm/overlap.h"

static float memory[4096];

/* 8 x 8 x 8 with columns 16 apart, two matrices of each, 200 apart. */
static at_gemm problem_of(at_gemm_c c) {
  return (at_gemm){.m = 8,
                   .n = 8,
                   .k = 8,
                   .batch = 2,
                   .lda = 16,
                   .ldb = 16,
                   .ldc = 16,
                   .ldd = 16,
                   .stride_a = 200,
                   .stride_b = 200,
                   .stride_c = 200,
                   .stride_d = 200,
                   .workspace_cap = 1,
                   .dtype = ATTUNE_F32,
                   .dtype_out = ATTUNE_F32,
                   .c = (uint8_t)c,
                   .alignment = 4};
}

static bool apart(at_gemm_c c, size_t a, size_t b, size_t c_at, size_t d) {
  const at_gemm g = problem_of(c);
  const at_gemm_operands o = {
      .alpha = 1.0, .beta = 1.0, .a = memory + a, .b = memory + b, .c = memory + c_at, .d = memory + d};
  return at_gemm_apart(&g, &o);
}

static void what_lies_apart(void **state) {
  (void)state;
  assert_true(apart(AT_C_NONE, 0, 0, 0, 400));
  assert_true(apart(AT_C_NONE, 400, 500, 0, 0));
  assert_true(apart(AT_C_NONE, 0, 1000, 0, 8)); /* in the gaps of A */
  assert_true(apart(AT_C_NONE, 8, 1000, 0, 0));
  assert_true(apart(AT_C_NONE, 0, 1000, 0, 120)); /* the last column ends there */
  assert_true(apart(AT_C_INPLACE, 0, 0, 400, 400));
  assert_true(apart(AT_C_SEPARATE, 0, 0, 800, 400));
}

static void what_overlaps(void **state) {
  (void)state;
  assert_false(apart(AT_C_NONE, 0, 1000, 0, 7));
  assert_false(apart(AT_C_NONE, 7, 1000, 0, 0));
  assert_false(apart(AT_C_NONE, 0, 1000, 0, 112)); /* the last column */
  assert_false(apart(AT_C_NONE, 1000, 0, 0, 200)); /* the second matrix of B */
  assert_false(apart(AT_C_NONE, 1000, 203, 0, 0));
  assert_false(apart(AT_C_SEPARATE, 1000, 1000, 0, 16));
  const at_gemm g = problem_of(AT_C_NONE);
  const at_gemm_operands within = {.alpha = 1.0, .a = memory, .b = memory + 1000, .d = (char *)memory + 2};
  assert_false(at_gemm_apart(&g, &within));
}

/* Ends the process where the library is built with assertions, else says nothing: the result is the program's. */
static int run_overlapping(void) {
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  attune_plan *plan = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + 1000, .d = memory + 2000};
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  options.database = "";
  p.m = p.n = p.k = 8;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK ||
      attune_gemm_plan_create(&plan, tuner, attune_stream_default(host), &p, &o) != ATTUNE_OK)
    return 1;
  o.d = memory + 1008;
  const attune_status status = attune_gemm_plan_run(plan, attune_stream_default(host), &o);
  attune_plan_destroy(plan);
  attune_tuner_destroy(tuner);
  return status == ATTUNE_OK ? 0 : 2;
}

static void builds_with_assertions_stop(void **state) {
  (void)state;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(3);
    _exit(run_overlapping());
  }
  assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_lies_apart),
      cmocka_unit_test(what_overlaps),
      cmocka_unit_test(builds_with_assertions_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
