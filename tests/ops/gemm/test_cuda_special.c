/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_special.c: NaN, infinities, denormals and zeros on a GPU: what cuBLAS's default loses, what the algorithms
 * of cuBLASLt and the padded copies lose, as a list; a winner loses nothing that the default keeps. Exits 77 where
 * there is no GPU. ATTUNE_TEST_PROBLEMS: how many random problems (60). */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/registry.h"
#include "tuning/tuner/winner.h"

enum { MOST = 256, TRIED = 6, MOST_LINES = 128, RULES = 32 };
static const double SWEEP_NS = 40e9; /* then no further problem is begun */

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int problems = 60;

static const char *const KINDS[] = {"f64", "f32", "f32", "f16", "bf16", "f16:f32", "bf16:f32", "c64", "c128"};
static const char *const ACCURACY[] = {"strict",     "strict", "reduced", "reduced",   "strict",
                                       "equivalent", "strict", "strict",  "equivalent"};

/* Special values lost by each kind of plan, by dtype and contract: the list at the end. */
static struct {
  char who[96], first[AT_PROBLEM_CHARS + AT_CONFIGURATION_CHARS];
  int plans, lossy, times[RULES];
  int beyond; /* plans that lose what the default keeps: refused as winners */
} lines[MOST_LINES];

static void count_plan(const char *kind, const at_implementation *implementation, const at_configuration *configuration,
                       const char *problem, uint32_t lost, uint32_t base_lost) {
  char who[96];
  snprintf(who, sizeof who, "%s %s", kind, implementation->name);
  for (int i = 0; i < MOST_LINES; i++) {
    if (lines[i].plans && strcmp(lines[i].who, who) != 0) continue;
    at_copy_text(lines[i].who, sizeof lines[i].who, who);
    lines[i].plans++;
    lines[i].beyond += (lost & ~base_lost) != 0;
    if (lost && !lines[i].lossy++)
      snprintf(lines[i].first, sizeof lines[i].first, "%s, %s", problem, configuration->text);
    for (int bit = 0; bit < RULES; bit++) lines[i].times[bit] += (int)(lost >> bit & 1u);
    return;
  }
}

static void print_list(void) {
  for (int i = 0; i < MOST_LINES && lines[i].plans; i++) {
    print_message("%-28s %4d plans, %4d lose something, %4d more than the default\n", lines[i].who, lines[i].plans,
                  lines[i].lossy, lines[i].beyond);
    for (int bit = 0; bit < RULES; bit++)
      if (lines[i].times[bit]) print_message("    %5d x %s\n", lines[i].times[bit], at_gemm_op.specials->name(bit));
    if (lines[i].lossy) print_message("    first: %s\n", lines[i].first);
  }
}

static uint64_t next(uint64_t *state) { /* xorshift64 */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state >> 11;
}

static int64_t size_of(uint64_t *state) {
  static const int64_t sizes[] = {1, 8, 16, 64, 72, 128, 256, 512, 1000, 1024};
  const uint64_t dice = next(state) % 16;
  return dice < 6 ? 1 + (int64_t)(next(state) % 300) : sizes[dice - 6];
}

/* Sizes with and without fast kernels, long k for split-K, vectors, batches, misaligned operands. */
static void problem_of(int index, char kind[32], char out[AT_PROBLEM_CHARS]) {
  static const char *const uses[] = {"", " beta=inplace", " beta"};
  uint64_t state = 88172645463325252u + (uint64_t)index * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 4; i++) next(&state);
  const size_t which = (size_t)index % AT_COUNT(KINDS);
  const int transposes = (int)(next(&state) % 4), batch = next(&state) % 5 ? 1 : 3;
  const int64_t m = size_of(&state), n = size_of(&state), k = next(&state) % 4 ? size_of(&state) : 4096;
  size_t at = 0;
  snprintf(kind, 32, "%s %s", KINDS[which], ACCURACY[which]);
  at_append(out, AT_PROBLEM_CHARS, &at, "gemm %s %c%c %lldx%lldx%lld", KINDS[which], transposes & 1 ? 't' : 'n',
            transposes & 2 ? 't' : 'n', (long long)m, (long long)n, (long long)k);
  if (batch > 1) at_append(out, AT_PROBLEM_CHARS, &at, "x%d", batch);
  at_append(out, AT_PROBLEM_CHARS, &at, " %s%s%s", ACCURACY[which], uses[next(&state) % 3],
            next(&state) % 4 ? "" : " align=8");
}

/* False: this plan does not run here, or is wrong on ordinary data already. */
static bool lost_by(at_numerical_check *check, const at_gemm *g, const at_implementation *implementation,
                    const at_configuration *configuration, uint32_t *lost) {
  at_plan *plan = NULL;
  if (at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device) != ATTUNE_OK) return false;
  const attune_status status = at_numerical_check_lost(check, plan, lost);
  at_plan_destroy(plan);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA) fail_msg("%s: %s", configuration->text, attune_last_message());
  return status == ATTUNE_OK;
}

static void sweep_problem(const char *kind, const char *text) {
  static at_configuration configurations[MOST];
  at_gemm g;
  at_numerical_check *check = NULL;
  uint32_t base_lost = 0;
  OK(at_gemm_parse(text, &g));
  OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
  const at_implementation *base = at_registry_default(&at_gemm_op, &g, device);
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *implementation = at_gemm_op.implementations[i];
    if (strcmp(implementation->backend, "cuda") != 0 || !implementation->supports(implementation, &g, device)) continue;
    const int count = implementation->configurations(implementation, &g, device, configurations, MOST);
    const int step = count > TRIED ? count / TRIED : 1; /* the best guesses, and some of the others */
    for (int j = 0; j < count; j += j + 1 < TRIED / 2 ? 1 : step) {
      uint32_t lost = 0;
      if (!lost_by(check, &g, implementation, &configurations[j], &lost)) continue;
      if (implementation == base) base_lost |= lost;
      count_plan(kind, implementation, &configurations[j], text, lost, base_lost);
    }
  }
  at_numerical_check_destroy(check);
}

TEST(what_is_lost_by_whom) {
  const int64_t start = at_now_ns();
  int done = 0;
  for (; done < problems && (double)(at_now_ns() - start) < SWEEP_NS; done++) {
    char kind[32], text[AT_PROBLEM_CHARS];
    problem_of(done, kind, text);
    sweep_problem(kind, text);
  }
  print_message("%d of %d problems, %.1f s\n", done, problems, (double)(at_now_ns() - start) * 1e-9);
  print_list();
  assert_true(done > 0 && lines[0].plans > 0);
}

/* Tuned as by a program: a winner that is not the default keeps all that the default keeps. */
TEST(winners_keep_what_the_default_keeps) {
  static const char *const texts[] = {"gemm f64 nn 256x256x256 strict beta",     "gemm f32 nn 64x64x4096 strict",
                                      "gemm f32 tn 512x1x1024 strict",           "gemm f32 nn 512x512x512 reduced",
                                      "gemm f16 tn 128x16x4096 strict",          "gemm f16 tn 512x512x512 reduced beta",
                                      "gemm bf16 tn 1024x8x1024 strict",         "gemm bf16 nn 255x255x255 strict",
                                      "gemm bf16:f32 nt 320x320x64 strict beta", "gemm f16:f32 tn 64x64x2048 strict",
                                      "gemm bf16 tn 64x64x64x16 strict",         "gemm c64 nc 24x24x24x64 strict beta",
                                      "gemm c128 tn 256x256x256 equivalent"};
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}));
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_gemm g;
    at_numerical_check *check = NULL;
    attune_decision decision;
    at_configuration configuration, first = {""};
    uint32_t lost = 0, base_lost = 0;
    char rules[400];
    OK(at_gemm_parse(texts[i], &g));
    OK(attune_tune(tuner, device, texts[i], &(attune_tune_options){.budget_ms = 400.0}, &decision));
    const at_implementation *winner = at_registry_find(&at_gemm_op, decision.implementation, device),
                            *base = at_registry_default(&at_gemm_op, &g, device);
    assert_non_null(winner);
    at_copy_text(configuration.text, sizeof configuration.text, decision.configuration);
    assert_int_equal(base->configurations(base, &g, device, &first, 1), 1);
    OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
    if (!lost_by(check, &g, base, &first, &base_lost)) print_message("%s: the default is out of tolerance\n", texts[i]);
    if (!lost_by(check, &g, winner, &configuration, &lost)) fail_msg("%s: %s", texts[i], attune_last_message());
    at_numerical_check_rules(check, base_lost, rules, sizeof rules);
    print_message("%s: %s %s%s%s; rejected %d\n", texts[i], decision.implementation, decision.configuration,
                  *rules ? "; the default " : "", rules, decision.rejected);
    at_numerical_check_rules(check, lost & ~base_lost, rules, sizeof rules);
    if (winner != base && *rules)
      fail_msg("%s: the winner %s %s %s", texts[i], winner->name, configuration.text, rules);
    at_numerical_check_destroy(check);
  }
  attune_tuner_destroy(tuner);
}

int main(int argc, char **argv) {
  const char *operations = argc > 1 ? argv[1] : getenv("ATTUNE_TEST_PROBLEMS");
  if (operations) problems = atoi(operations);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (at_random_create(&data, 3) != ATTUNE_OK || attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  at_random_destroy(data);
  return failed;
}
