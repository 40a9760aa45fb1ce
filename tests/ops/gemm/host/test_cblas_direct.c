/* SPDX-License-Identifier: Apache-2.0
 * test_cblas_direct.c: the vendor's own call, which is the host's default: gemv where a program would call that, right
 * wherever vectors lie, and closed where attune's own calls are. bench_outside measures what is claimed beside it. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "ops/gemm/host/cblas/cblas_direct.h"
#include "ops/gemm/host/cblas/cblas_library.h"
#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"
#include "tuning/store/decision.h"

extern const at_implementation at_gemm_host_cblas;

static attune_device *host;

FIXTURE(open_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

/* ---- gemv ---- */

static at_gemm problem_of(const char *text) {
  at_gemm g;
  memset(&g, 0, sizeof g);
  OK(at_gemm_op.problem->parse(text, &g));
  return g;
}

/* The vendor's default, and the first configuration of host_cblas. */
static bool first_is_gemv(const char *text) {
  const at_gemm g = problem_of(text);
  at_configuration list[64];
  char call[16] = "";
  const int count = at_gemm_host_cblas.configurations(&at_gemm_host_cblas, &g, host, list, 64);
  assert_true(count > 0);
  (void)at_configuration_get_text(&list[0], "call", call, sizeof call);
  return strcmp(call, "gemv") == 0;
}

TEST(gemv_is_the_call_of_vectors) {
  if (at_cblas_count() == 0) skip();
  assert_true(first_is_gemv("gemm f64 nn 9x1x7 strict"));
  assert_true(first_is_gemv("gemm f32 tt 1x9x7 strict"));
  assert_true(first_is_gemv("gemm f64 nt 1x1x7 strict"));
  assert_false(first_is_gemv("gemm f64 nn 9x2x7 strict"));
  const at_gemm g = problem_of("gemm f64 nn 9x2x7 strict");
  at_configuration c = {""};
  at_plan *plan = NULL;
  snprintf(c.text, sizeof c.text, "library=%s,threads=1,call=gemv", at_cblas_at(0)->id);
  FAILS_SAYING(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_cblas, &c, &g, host), ATTUNE_NOT_FOUND, "call is gemv");
  const at_gemm vector = problem_of("gemm f64 nn 9x1x7 strict");
  snprintf(c.text, sizeof c.text, "library=%s,threads=1,call=spmv", at_cblas_at(0)->id);
  assert_int_equal(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_cblas, &c, &vector, host), ATTUNE_NOT_FOUND);
}

/* The default's name in reports has its threads, and gemv if a program would call gemv. */
TEST(the_name_says_what_is_called) {
  if (at_cblas_count() == 0) skip();
  static const struct {
    const char *problem;
    bool gemv;
  } rows[] = {{"gemm f64 nn 9x1x7 strict", true},
              {"gemm f32 tt 1x9x7 strict", true},
              {"gemm f64 nn 9x1x7 strict beta=inplace", true},
              {"gemm f64 nn 9x2x7 strict", false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const at_gemm g = problem_of(rows[i].problem);
    at_configuration list[64];
    at_plan *plan = NULL;
    char name[sizeof((attune_decision *)NULL)->default_implementation];
    assert_true(at_gemm_host_cblas.configurations(&at_gemm_host_cblas, &g, host, list, 64) > 0);
    OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_cblas, &list[0], &g, host));
    at_gemm_host_cblas.bare_name(plan, name, sizeof name);
    if (strncmp(name, "host_cblas threads=", 19) != 0 || (strstr(name, " call=gemv") != NULL) != rows[i].gemv)
      fail_msg("%s: %s", rows[i].problem, name);
    assert_int_equal(at_gemm_host_cblas.bare_threads(plan), atoi(name + strlen("host_cblas threads=")));
    at_plan_destroy(plan);
  }
}

static double *numbers(size_t count, double first) {
  double *x = malloc(count * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < count; i++) x[i] = first + (double)((i * 37) % 101) / 101.0;
  return x;
}

static void usual_scalars(const at_gemm *g, double out[AT_MAX_SCALARS]) {
  at_scalar scalars[AT_MAX_SCALARS];
  const int count = at_gemm_op.operands->scalars(g, scalars);
  for (int i = 0; i < count; i++) out[i] = scalars[i].usual;
}

/* The bare call, and the plan with call=gemv, give op(A) op(B) for every way in which vectors can lie. */
TEST(bare_calls_are_right) {
  if (at_cblas_count() == 0) skip();
  static const char *const texts[] = {
      "gemm f64 nn 9x1x7 strict",  "gemm f64 tn 9x1x7 strict",      "gemm f64 nt 9x1x7 strict",
      "gemm f64 tt 9x1x7 strict",  "gemm f64 nn 1x9x7 strict",      "gemm f64 tn 1x9x7 strict",
      "gemm f64 nt 1x9x7 strict",  "gemm f64 tt 1x9x7 strict",      "gemm f64 nn 1x1x7 strict",
      "gemm f64 nn 5x6x7 strict",  "gemm f64 tt 9x1x7 strict beta", "gemm f64 nt 1x9x7 strict beta=inplace",
      "gemm f64 tn 1x9x7x3 strict"};
  for (size_t t = 0; t < AT_COUNT(texts); t++) {
    const at_gemm g = problem_of(texts[t]);
    at_buffer buffers[AT_MAX_BUFFERS];
    double usual[AT_MAX_SCALARS];
    int count = 0;
    usual_scalars(&g, usual);
    void *pointers[AT_MAX_BUFFERS] = {NULL};
    uint64_t operands[AT_OPERANDS_BYTES / 8];
    OK(at_gemm_op.operands->buffers(&g, buffers, &count));
    for (int way = 0; way < 2; way++) {
      for (int i = 0; i < count; i++) pointers[i] = numbers(buffers[i].bytes / 8, 0.25 * (i + 1));
      at_gemm_op.operands->bind(&g, pointers, usual, operands);
      at_configuration list[64];
      at_plan *plan = NULL;
      assert_true(at_gemm_host_cblas.configurations(&at_gemm_host_cblas, &g, host, list, 64) > 0);
      OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_cblas, &list[0], &g, host));
      void *reference = NULL;
      double error = 1e9;
      attune_stream *stream = attune_stream_default(host);
      const at_outputs outputs = {.bytes[AT_GEMM_D] = pointers[AT_GEMM_D]};
      OK(at_gemm_op.reference->create(&reference, &g, host, stream, pointers));
      const at_bare_calls calls = {(const char *)operands, sizeof operands, 1, 5, 6};
      OK(way ? at_gemm_host_cblas.bare(plan, &calls) : plan->launch(plan, operands, stream));
      OK(at_gemm_op.reference->compare(reference, usual, &outputs, &error));
      if (!(error <= 1.0)) fail_msg("%s, way %d: error %g", texts[t], way, error);
      at_gemm_op.reference->destroy(reference);
      at_plan_destroy(plan);
      for (int i = 0; i < count; i++) free(pointers[i]);
    }
  }
}

/* Direct calls keep the promises for forks and the end of the process, as attune's own calls do. The last test: no call
 * enters that library any more. */
TEST(bare_calls_stop_at_the_gate) {
  if (at_cblas_count() == 0) skip();
  const at_gemm g = problem_of("gemm f64 nn 5x6x7 strict");
  uint64_t operands[AT_OPERANDS_BYTES / 8];
  void *pointers[AT_MAX_BUFFERS] = {numbers(35, 1.0), numbers(42, 2.0), numbers(30, -1.0)};
  double *d = pointers[2], usual[AT_MAX_SCALARS];
  usual_scalars(&g, usual);
  at_configuration list[64];
  at_plan *plan = NULL;
  char id[64];
  at_gemm_op.operands->bind(&g, pointers, usual, operands);
  assert_true(at_gemm_host_cblas.configurations(&at_gemm_host_cblas, &g, host, list, 64) > 0);
  OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_host_cblas, &list[0], &g, host));
  assert_true(at_configuration_get_text(&list[0], "library", id, sizeof id));
  at_cblas_thread_setting_end(&at_cblas_find(id)->gate);
  const at_bare_calls calls = {(const char *)operands, sizeof operands, 1, 0, 4};
  assert_int_equal(at_gemm_host_cblas.bare(plan, &calls), ATTUNE_DEVICE_ERROR);
  assert_true(d[0] == -1.0);
  at_plan_destroy(plan);
  for (int i = 0; i < 3; i++) free(pointers[i]);
}

int main(void) {
  return RUN_TESTS(open_host, NULL);
}
