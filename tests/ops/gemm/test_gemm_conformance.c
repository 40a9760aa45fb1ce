/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_conformance.c: every implementation, several of its configurations, on every case of the list, against
 * plain loops. */
#include "tests/support/check.h"

#include "ops/gemm/host/libxsmm/libxsmm_library.h"
#include "src/base/backend.h"
#include "tests/ops/gemm/gemm_oracle.h"
#include "tuning/op/registry.h"

enum { MOST = 256, MOST_SEEN = 48 };

static attune_device *device;
static attune_stream *made; /* a created stream: asynchronous */

static struct {
  const at_implementation *implementation;
  int cases, runs;
} seen[MOST_SEEN];

/* Runs one configuration; case by case on the inline and on the asynchronous stream. */
static void run(oracle *o, const at_implementation *implementation, const at_configuration *configuration,
                const at_gemm *g, bool swap) {
  char who[256];
  snprintf(who, sizeof who, "%s %s", implementation->name, configuration->text);
  at_plan *plan = NULL;
  const attune_status status = at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device);
  if (status != ATTUNE_OK) fail_msg("%s, %s: %s", o->c.name, who, attune_last_message());
  attune_gemm_operands operands = oracle_operands(o);
  if (swap) {
    const void *a = operands.a;
    operands.a = operands.b;
    operands.b = a;
  }
  attune_stream *stream = o->c.seed % 3 ? attune_stream_default(device) : made;
  oracle_reset(o);
  oracle_forbid(o);
  OK(plan->launch(plan, &operands, stream));
  OK(attune_stream_synchronize(stream));
  oracle_check(o, who);
  at_plan_destroy(plan);
}

/* First and last configuration, and two that wander with the case's number, so that all get their turn. */
static int run_configurations(oracle *o, const at_implementation *implementation, const at_gemm *g, bool swap,
                              int index) {
  static at_configuration configurations[MOST];
  const int count = implementation->configurations(implementation, g, device, configurations, MOST);
  if (count < 1 || count > MOST) fail_msg("%s, %s: %d configurations", o->c.name, implementation->name, count);
  const int picks[] = {0, count - 1, index % count, (index / 7 + count / 2) % count};
  int runs = 0;
  for (size_t i = 0; i < AT_COUNT(picks); i++) {
    bool again = false;
    for (size_t j = 0; j < i; j++) again = again || picks[j] == picks[i];
    if (again) continue;
    run(o, implementation, &configurations[picks[i]], g, swap);
    runs++;
  }
  return runs;
}

TEST(each_implementation_does_each_case) {
  assert_in_range(at_gemm_op.implementation_count, 1, MOST_SEEN);
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c;
    at_gemm_case_at(index, &c);
    const attune_gemm_problem *p = &c.problem;
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch < 0 || c.alpha == 0.0)
      continue; /* never get as far as a plan */
    oracle o;
    oracle_open(&o, &c);
    at_gemm g;
    bool swap = false;
    OK(at_gemm_normalise(p, (at_gemm_use){.c = c.c, .alignment = (uint8_t)c.alignment}, &g, &swap));
    int supporting = 0;
    for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
      const at_implementation *implementation = at_gemm_op.implementations[i];
      seen[i].implementation = implementation;
      if (strcmp(implementation->backend, "host") != 0 || !implementation->supports(implementation, &g, device))
        continue;
      seen[i].runs += run_configurations(&o, implementation, &g, swap, index);
      seen[i].cases++;
      supporting++;
    }
    if (!supporting) fail_msg("%s: no implementation does it", c.name);
    oracle_close(&o);
  }
}

/* The plain fallback does all that any other does, and none was left out. */
TEST(each_implementation_had_its_turn) {
  int most = 0, reference = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    if (strcmp(seen[i].implementation->backend, "host") != 0) continue;
    if (strstr(seen[i].implementation->name, "scaled")) continue; /* test_gemm_scaled.c's */
    print_message("%s: %d cases, %d runs\n", seen[i].implementation->name, seen[i].cases, seen[i].runs);
    if (seen[i].cases == 0 && strcmp(seen[i].implementation->name, "host_libxsmm") == 0 && !at_libxsmm_here()) continue;
    if (strcmp(seen[i].implementation->name, "host_unfused") == 0 ||
        strcmp(seen[i].implementation->name, "host_each") == 0)
      continue; /* no case has an epilogue or pointers: test_conformance */
    if (seen[i].cases == 0) fail_msg("%s was never run", seen[i].implementation->name);
    if (seen[i].cases > most) most = seen[i].cases;
    if (strcmp(seen[i].implementation->name, "host_reference") == 0) reference = seen[i].cases;
  }
  assert_true(reference > 0);
  assert_int_equal(reference, most);
}

/* Through the public call, edges included: a size of 0 writes nothing, k = 0 and alpha = 0 leave beta C. */
TEST(the_public_call_does_each_case) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}));
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c;
    at_gemm_case_at(index, &c);
    oracle o;
    oracle_open(&o, &c);
    const attune_gemm_operands operands = oracle_operands(&o);
    attune_stream *stream = index % 2 ? made : attune_stream_default(device);
    const attune_status status = attune_gemm(tuner, stream, &c.problem, &operands);
    if (status != ATTUNE_OK) fail_msg("%s: %s", c.name, attune_last_message());
    OK(attune_stream_synchronize(stream));
    oracle_check(&o, "attune_gemm");
    oracle_close(&o);
  }
  attune_tuner_destroy(tuner);
}

/* The list has what it promises: each dtype with each other property. */
TEST(the_list_is_complete) {
  struct {
    int kind[8], transposes[9], layout[2], c[3], alpha[3], beta[3], alignment[129], data[AT_DATA_KINDS], batch[2],
        ld[2], strided[2], broadcast[2], edge[4];
  } n;
  memset(&n, 0, sizeof n);
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c, again;
    at_gemm_case_at(index, &c);
    at_gemm_case_at(index, &again);
    assert_memory_equal(&c, &again, sizeof c);
    const attune_gemm_problem *p = &c.problem;
    const bool is_complex = at_gemm_complex(p->dtype), wider = p->dtype_out == ATTUNE_F32 && p->dtype >= ATTUNE_F16;
    n.kind[is_complex ? p->dtype - ATTUNE_C64 + 6 : wider ? p->dtype + 1 : p->dtype - 1]++;
    if (is_complex) n.transposes[p->trans_a * 3 + p->trans_b]++;
    n.layout[p->layout]++;
    n.c[c.c]++;
    n.alpha[c.alpha == 0.0 ? 0 : c.alpha == 1.0 ? 1 : 2]++;
    n.beta[c.beta == 0.0 ? 0 : c.beta == 1.0 ? 1 : 2]++;
    n.alignment[c.alignment]++;
    n.data[c.data]++;
    n.batch[p->batch > 1]++;
    n.ld[p->lda != 0]++;
    n.strided[p->stride_d > 0]++;
    n.broadcast[p->stride_a == ATTUNE_BROADCAST || p->stride_b == ATTUNE_BROADCAST]++;
    n.edge[p->m == 0 ? 0 : p->n == 0 ? 1 : p->k == 0 ? 2 : 3]++;
  }
  for (int i = 0; i < 8; i++) assert_true(n.kind[i] > 20);
  for (int i = 0; i < 9; i++) assert_true(n.transposes[i] > 10);
  for (int i = 0; i < 4; i++) assert_true(n.edge[i] > 20);
  for (int i = 0; i < 3; i++) assert_true(n.c[i] > 20 && n.alpha[i] > 20 && n.beta[i] > 20);
  for (int i = 0; i < 2; i++)
    assert_true(n.layout[i] > 20 && n.batch[i] > 20 && n.ld[i] > 20 && n.strided[i] > 20 && n.broadcast[i] > 20);
  for (int i = 2; i <= 128; i *= 2) assert_true(n.alignment[i] > 10);
  for (int i = 0; i < AT_DATA_KINDS; i++) assert_true(n.data[i] > 20);
}

/* The oracle's own conversions: exact there and back for all halves, to nearest even between them. */
TEST(the_oracle_converts_halves) {
  for (unsigned word = 0; word < 0x10000; word++)
    for (int format = 0; format < 2; format++) {
      const int mantissa = format ? 7 : 10, bias = format ? 127 : 15;
      const double value = oracle_half_value(word, mantissa, bias);
      if (!isnan(value)) assert_int_equal(oracle_half_word(value, mantissa, bias), word);
    }
  assert_int_equal(oracle_half_word(1.0 + 0x1p-11, 10, 15), 0x3c00);
  assert_int_equal(oracle_half_word(1.0 + 0x1.8p-10, 10, 15), 0x3c02);
  assert_int_equal(oracle_half_word(65519.0, 10, 15), 0x7bff);
  assert_int_equal(oracle_half_word(65520.0, 10, 15), 0x7c00);
  assert_int_equal(oracle_half_word(0x1p-25, 10, 15), 0);
  assert_int_equal(oracle_half_word(0x1.8p-25, 10, 15), 1);
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_stream_create(&made, device) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(made);
  return failed;
}
