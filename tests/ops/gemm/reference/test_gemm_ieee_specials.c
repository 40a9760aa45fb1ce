/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_ieee_specials.c: NaN, infinities, denormals and zeros on the host: every implementation, configuration and
 * instruction set on random shapes loses nothing; a CBLAS that does is refused, by verification and beforehand.
 * ATTUNE_TEST_PROBLEMS: how many problems (80). */
#include "tests/support/check.h"

#include <math.h>

#include "ops/gemm/host/cblas/cblas_library.h"
#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/registry.h"

enum { MOST = 256 };
enum { COLUMNS = 102, PLAIN = 111, TURNED = 112 }; /* of the CBLAS */

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int problems = 80;

static uint64_t next(uint64_t *state) { /* xorshift64 */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state >> 11;
}

static int64_t below(uint64_t *state, int64_t n) {
  return (int64_t)(next(state) % (uint64_t)n);
}

/* Small and odd, vectors among them; one in sixteen is larger than a block of every kernel. */
static int64_t size_of(uint64_t *state) {
  const int64_t dice = below(state, 16);
  return dice < 3 ? 1 : dice < 15 ? 1 + below(state, 40) : 41 + below(state, 200);
}

static void problem_of(int index, char out[AT_PROBLEM_CHARS]) {
  static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", "f16:f32", "bf16:f32", "f64", "f32"};
  static const char *const uses[] = {"", " beta=inplace", " beta"};
  uint64_t state = 88172645463325252u + (uint64_t)index * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 4; i++) next(&state);
  const char *dtype = dtypes[index % 8];
  const int transposes = (int)below(&state, 4), use = (int)below(&state, 3);
  const int64_t m = size_of(&state), n = size_of(&state), k = size_of(&state), batch = below(&state, 5) ? 1 : 3;
  size_t at = 0;
  assert_true(at_append(out, AT_PROBLEM_CHARS, &at, "gemm %s %c%c %lldx%lldx%lld", dtype, transposes & 1 ? 't' : 'n',
                        transposes & 2 ? 't' : 'n', (long long)m, (long long)n, (long long)k));
  const int64_t more = below(&state, 3) ? 0 : 1 + below(&state, 9); /* between the columns */
  if (batch > 1) at_append(out, AT_PROBLEM_CHARS, &at, "x%lld", (long long)batch);
  at_append(out, AT_PROBLEM_CHARS, &at, " strict%s", uses[use]);
  if (more)
    at_append(out, AT_PROBLEM_CHARS, &at, " lda=%lld ldb=%lld ldd=%lld", (long long)((transposes & 1 ? k : m) + more),
              (long long)((transposes & 2 ? n : k) + more), (long long)(m + more));
}

static int plans;

/* One plan must lose no special value. */
static void sweep_plan(at_numerical_check *check, const char *text, const at_gemm *g,
                       const at_implementation *implementation, const at_configuration *configuration) {
  at_plan *plan = NULL;
  uint32_t lost = 0;
  char rules[400];
  OK(at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device));
  if (at_numerical_check_lost(check, plan, &lost) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
  at_plan_destroy(plan);
  plans++;
  if (!lost) return;
  at_numerical_check_rules(check, lost, rules, sizeof rules);
  fail_msg("%s: %s %s %s", text, implementation->name, configuration->text, rules);
}

/* host_blocked's configuration with another instruction set's kernels; false: it has none such. */
static bool with_kernel(at_configuration *out, const at_configuration *configuration, const char *kernel,
                        const at_gemm *g, const at_implementation *implementation) {
  const char *at = strstr(configuration->text, ",kernel="), *rest = at ? strchr(at + 1, ',') : NULL;
  if (!rest) return false;
  snprintf(out->text, sizeof out->text, "%.*s,kernel=%s%s", (int)(at - configuration->text), configuration->text,
           kernel, rest);
  at_plan *plan = NULL;
  const bool can = strcmp(out->text, configuration->text) != 0 &&
                   at_plan_create(&plan, &at_gemm_op, implementation, out, g, device) == ATTUNE_OK;
  at_plan_destroy(plan);
  return can;
}

/* Everything that the host has for one problem. */
static void sweep_problem(const char *text) {
  static at_configuration configurations[MOST];
  static const char *const kernels[] = {"avx2", "portable"};
  at_gemm g;
  at_numerical_check *check = NULL;
  OK(at_gemm_parse(text, &g));
  OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *implementation = at_gemm_op.implementations[i];
    if (strcmp(implementation->backend, "host") != 0 || !implementation->supports(implementation, &g, device)) continue;
    const int count = implementation->configurations(implementation, &g, device, configurations, MOST);
    for (int j = 0; j < count; j++) {
      at_configuration other;
      sweep_plan(check, text, &g, implementation, &configurations[j]);
      for (size_t k = 0; k < AT_COUNT(kernels); k++)
        if (with_kernel(&other, &configurations[j], kernels[k], &g, implementation))
          sweep_plan(check, text, &g, implementation, &other);
    }
  }
  at_numerical_check_destroy(check);
}

TEST(nothing_is_lost) {
  char text[AT_PROBLEM_CHARS];
  for (int i = 0; i < problems; i++) {
    problem_of(i, text);
    sweep_problem(text);
  }
  print_message("%d problems, %d plans\n", problems, plans);
}

/* ---- CBLAS libraries as they are ---- */

/* The library's own dgemm, asked for by number: "library=0". */
static attune_status raw_launch(const at_plan *plan, const void *operands, attune_stream *on) {
  const at_gemm *g = at_gemm_of(plan->problem);
  const at_gemm_operands *o = operands;
  int64_t library = 0;
  (void)on;
  at_configuration_get(&plan->configuration, "library", &library);
  at_cblas_at((int)library)
      ->dgemm(102, g->trans_a ? 112 : 111, g->trans_b ? 112 : 111, (int)g->m, (int)g->n, (int)g->k, o->alpha, o->a,
              (int)g->lda, o->b, (int)g->ldb, o->beta, o->d, (int)g->ldd);
  return ATTUNE_OK;
}

static bool raw_supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)problem, (void)on;
  return true;
}

static attune_status raw_prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}

static const at_implementation raw = {.name = "raw",
                                      .version = 1,
                                      .backend = "host",
                                      .supports = raw_supports,
                                      .prepare = raw_prepare,
                                      .launch = raw_launch};

static attune_status verify_raw(const char *text, int library) {
  at_gemm g;
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  at_configuration configuration = {""};
  double error = 0.0;
  snprintf(configuration.text, sizeof configuration.text, "library=%lld", (long long)library);
  OK(at_gemm_parse(text, &g));
  OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
  OK(at_plan_create(&plan, &at_gemm_op, &raw, &configuration, &g, device));
  const attune_status status = at_numerical_check_run(check, plan, &error);
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
  return status;
}

static const struct {
  const char *problem, *lost; /* by BLIS 0.9 */
} LOST[] = {{"gemm f64 nt 1x300x300 strict", "loses NaN of B"},
            {"gemm f64 nn 206x1x29 strict", "loses NaN of A"},
            {"gemm f64 nt 13x29x37 strict", "loses NaN of B"},
            {"gemm f64 nn 24x24x24 strict beta=inplace", "loses NaN of beta"},
            {"gemm f64 nn 300x310x320 strict beta=inplace", "loses NaN of beta"}};

/* Calls the library as a program does. Returns how many NaN it loses: of some places of a NaN in B of `nt` and in A of
 * `nn`, those that leave no NaN in C; with beta = NaN, the elements of C that are not NaN. BLIS has kernels for each
 * kind of processor: not all lose it. */
static int lost_directly(const at_cblas *library, const char *problem) {
  at_gemm g;
  int lost = 0;
  OK(at_gemm_parse(problem, &g));
  const int m = (int)g.m, n = (int)g.n, k = (int)g.k, size_a = m * k, size_b = n * k, size_c = m * n;
  const bool of_b = g.trans_b, of_beta = strstr(problem, "beta") != NULL;
  double *a = calloc((size_t)size_a, sizeof *a), *b = calloc((size_t)size_b, sizeof *b);
  double *c = calloc((size_t)size_c, sizeof *c);
  for (int turn = 0; turn < (of_beta ? 1 : 128); turn++) {
    const int at = (int)(((unsigned)turn * 7919u) % (unsigned)(of_b ? size_b : size_a));
    for (int i = 0; i < size_a; i++) a[i] = 1.0;
    for (int i = 0; i < size_b; i++) b[i] = 1.0;
    if (!of_beta) (of_b ? b : a)[at] = (double)NAN;
    library->dgemm(COLUMNS, PLAIN, of_b ? TURNED : PLAIN, m, n, k, 1.0, a, m, b, of_b ? n : k,
                   of_beta ? (double)NAN : 0.0, c, m);
    const int line = at % (of_b ? n : m);
    for (int i = 0; of_beta && i < size_c; i++) lost += !isnan(c[i]);
    lost += !of_beta && !isnan(of_b ? c[line * m] : c[line]);
  }
  free(a);
  free(b);
  free(c);
  return lost;
}

/* Verification alone refuses what loses NaN; it lets the other libraries pass. */
TEST(a_library_that_loses_nan_is_refused) {
  int refused = 0;
  for (int library = 0; library < at_cblas_count(); library++)
    for (size_t i = 0; i < AT_COUNT(LOST); i++) {
      const attune_status status = verify_raw(LOST[i].problem, library);
      const char *id = at_cblas_at(library)->id;
      const bool blis = strcmp(id, "blis-0.9.0") == 0;
      if (blis && status == ATTUNE_OK) {
        if (lost_directly(at_cblas_at(library), LOST[i].problem) > 0) fail_msg("%s, %s: accepted", id, LOST[i].problem);
      } else if (blis) {
        if (status != ATTUNE_BAD_DATA || !strstr(attune_last_message(), LOST[i].lost))
          fail_msg("%s, %s: %s", id, LOST[i].problem, status == ATTUNE_OK ? "accepted" : attune_last_message());
        refused++;
      } else if (status != ATTUNE_OK) {
        fail_msg("%s, %s: %s", id, LOST[i].problem, attune_last_message());
      }
    }
  print_message("%d libraries, %d refusals\n", at_cblas_count(), refused);
}

/* It is not even offered there, and a winner stored long ago is a miss; large products it may do. */
TEST(it_is_known_beforehand) {
  static at_configuration configurations[MOST];
  const at_implementation *cblas = at_registry_find(&at_gemm_op, "host_cblas", device);
  for (int library = 0; library < at_cblas_count(); library++) {
    const at_cblas *known = at_cblas_at(library);
    if (!known->loses_specials) continue;
    at_configuration stored = {""};
    at_gemm g;
    at_configuration_put_text(&stored, "library", known->id);
    at_configuration_put_text(&stored, "threads", "1");
    for (size_t i = 0; i < AT_COUNT(LOST); i++) {
      at_plan *plan = NULL;
      OK(at_gemm_parse(LOST[i].problem, &g));
      FAILS_SAYING(at_plan_create(&plan, &at_gemm_op, cblas, &stored, &g, device), ATTUNE_NOT_FOUND, "lose NaN");
      const int count = cblas->configurations(cblas, &g, device, configurations, MOST);
      for (int j = 0; j < count; j++) assert_null(strstr(configurations[j].text, known->id));
    }
    static const char large[] = "gemm f64 tt 513x530x515 strict";
    OK(at_gemm_parse(large, &g));
    at_numerical_check *check = NULL;
    OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
    sweep_plan(check, large, &g, cblas, &stored);
    at_numerical_check_destroy(check);
  }
}

int main(int argc, char **argv) {
  const char *operations = argc > 1 ? argv[1] : getenv("ATTUNE_TEST_PROBLEMS");
  if (operations) problems = atoi(operations);
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  return failed;
}
