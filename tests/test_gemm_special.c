/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_special.c: NaN, infinities, denormals and zeros on the host: every implementation and configuration on
 * random shapes, and what each loses. attune's own kernels lose nothing; no winner loses what the default keeps.
 * ATTUNE_TEST_OPERATIONS: how many problems (200). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/cblas_library.h"
#include "ops/gemm/problem.h"
#include "src/backend.h"
#include "tuning/registry.h"
#include "tuning/search.h"
#include "tuning/verify.h"

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    const attune_status ok_status = (call);                                                                            \
    if (ok_status != ATTUNE_OK) fail_msg("%s: %s: %s", #call, attune_status_string(ok_status), attune_last_message()); \
  } while (0)

enum { MOST = 256, MOST_SEEN = 64 };

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int problems = 200;

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
  if (batch > 1) at_append(out, AT_PROBLEM_CHARS, &at, "x%lld", (long long)batch);
  at_append(out, AT_PROBLEM_CHARS, &at, " strict%s", uses[use]);
}

/* What was lost, by whom: for the list. */
static struct {
  char who[AT_CONFIGURATION_CHARS], first[AT_PROBLEM_CHARS];
  uint32_t lost;
  int times;
} losses[MOST_SEEN];

static void note_loss(const char *who, const char *problem, uint32_t lost) {
  for (int i = 0; i < MOST_SEEN; i++) {
    if (losses[i].times && strcmp(losses[i].who, who) != 0) continue;
    at_copy_text(losses[i].who, sizeof losses[i].who, who);
    if (!losses[i].times++) at_copy_text(losses[i].first, sizeof losses[i].first, problem);
    losses[i].lost |= lost;
    return;
  }
}

static int plans;

/* Everything that the host has for one problem. */
static void sweep_problem(const char *text) {
  static at_configuration configurations[MOST];
  at_gemm g;
  at_verifier *verifier = NULL;
  char rules[400];
  OK(at_gemm_parse(text, &g));
  OK(at_verifier_create(&verifier, &at_gemm_op, &g, stream, data));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *implementation = at_gemm_op.implementations[i];
    if (strcmp(implementation->backend, "host") != 0 || !implementation->supports(&g, device)) continue;
    const int count = implementation->configurations(&g, device, configurations, MOST);
    for (int j = 0; j < count; j++) {
      at_plan *plan = NULL;
      uint32_t lost = 0;
      OK(at_plan_create(&plan, &at_gemm_op, implementation, &configurations[j], &g, device));
      if (at_verifier_lost(verifier, plan, &lost) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
      at_plan_destroy(plan);
      plans++;
      if (!lost) continue;
      at_verifier_rules(verifier, lost, rules, sizeof rules);
      if (strcmp(implementation->name, "host_cblas") != 0)
        fail_msg("%s: %s %s %s", text, implementation->name, configurations[j].text, rules);
      char who[AT_CONFIGURATION_CHARS];
      at_copy_text(who, sizeof who, configurations[j].text);
      *strchr(who, ',') = '\0';
      note_loss(who, text, lost);
    }
  }
  at_verifier_destroy(verifier);
}

static void own_kernels_lose_nothing(void **state) {
  (void)state;
  char text[AT_PROBLEM_CHARS], rules[400];
  for (int i = 0; i < problems; i++) {
    problem_of(i, text);
    sweep_problem(text);
  }
  print_message("%d problems, %d plans\n", problems, plans);
  for (int i = 0; i < MOST_SEEN && losses[i].times; i++) {
    rules[0] = '\0';
    size_t at = 0;
    for (int bit = 0; bit < 32; bit++)
      if (losses[i].lost >> bit & 1)
        at_append(rules, sizeof rules, &at, "%s%s", at ? ", " : "", at_gemm_op.special_name(bit));
    print_message("%s: %d plans, first %s: %s\n", losses[i].who, losses[i].times, losses[i].first, rules);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(own_kernels_lose_nothing),
  };
  const char *operations = argc > 1 ? argv[1] : getenv("ATTUNE_TEST_OPERATIONS");
  if (operations) problems = atoi(operations);
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  at_random_destroy(data);
  return failed;
}
