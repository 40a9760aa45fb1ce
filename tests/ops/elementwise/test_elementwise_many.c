/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_many.c: a program that makes new expressions for ever does not grow: once the tables are full, each
 * call of an expression that was never there before, and each plan of one, leaves the memory in use as it was. Public
 * calls only. ATTUNE_TEST_MANY: how many expressions (12000; at least 8000, since the tables take some 5000). */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <malloc.h>

enum { ELEMENTS = 64, LEAST = 8000, USUAL = 12000, PLAN_EVERY = 8, AN_EXPRESSION = 32 /* bytes that one may leave */ };

static attune_tuner *tuner;
static attune_stream *stream;
static float a[ELEMENTS], b[ELEMENTS], out[ELEMENTS];

static size_t bytes_in_use(void) {
  const struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

/* Never the same one twice: constants, functions and the number of operations change. */
static void run_expression(int number) {
  static const char *const functions[] = {"relu", "exp", "tanh", "sigmoid"};
  char text[256];
  snprintf(text, sizeof text, "%s(a * %d.5 + b) - %d * b", functions[number % 4], number, number + 1);
  const attune_tensor inputs[] = {{.name = "a", .data = a, .dtype = ATTUNE_F32, .dims = 1, .sizes = {ELEMENTS}},
                                  {.name = "b", .data = b, .dtype = ATTUNE_F32, .dims = 1, .sizes = {ELEMENTS}}};
  const attune_tensor output = {.data = out, .dtype = ATTUNE_F32, .dims = 1, .sizes = {ELEMENTS}};
  const attune_elementwise_operands operands = {
      .outputs = &output, .output_count = 1, .inputs = inputs, .input_count = 2};
  if (number % PLAN_EVERY == 0) {
    attune_plan *plan = NULL;
    OK(attune_elementwise_plan_create(&plan, tuner, stream, text, &operands));
    OK(attune_elementwise_plan_run(plan, stream, &operands));
    attune_plan_destroy(plan);
  } else {
    OK(attune_elementwise(tuner, stream, text, &operands));
  }
  if (number % 4 == 0) assert_true(out[1] == -(float)(number + 1) * b[1]); /* relu of a number below 0 */
}

static int expression_count(void) {
  const char *asked = getenv("ATTUNE_TEST_MANY");
  const int count = asked ? atoi(asked) : USUAL;
  return count < LEAST ? LEAST : count;
}

TEST(memory_stays_flat) {
  const int count = expression_count(), full = count - count / 4;
  for (int i = 0; i < full; i++) run_expression(i);
  const size_t before = bytes_in_use();
  for (int i = full; i < count; i++) run_expression(i);
  const size_t after = bytes_in_use(), most = (size_t)(count - full) * AN_EXPRESSION;
  if (after > before + most)
    fail_msg("%d expressions left %zu bytes; should be at most %zu", count - full, after - before, most);
  print_message("%d expressions: %zu bytes in use after %d, %zu after all\n", count, before, full, after);
}

/* Entries evicted from the tables are made again, and still right. */
TEST(first_ones_still_run) {
  for (int i = 0; i < 64; i++) run_expression(i);
}

int main(void) {
  attune_device *device = NULL;
  attune_tuner_options options = {.database = ":memory:", .mode = ATTUNE_MODE_CACHED};
  for (int i = 0; i < ELEMENTS; i++) a[i] = -2.0f, b[i] = 0.5f;
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
