/* SPDX-License-Identifier: Apache-2.0
 * test_conformance.c: every operation, by its own cases: texts, keys, buffers, the reference against the oracle, and
 * every implementation of the host. What they owe their streams is in test_conformance_stream.c. */
#include "tests/ops/conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "tests/support/toy/toy_op.h"
#include "tests/support/toy/wide_op.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/contract.h"
#include "tuning/tuner/tuner.h"

enum { CASES = 48, CONFIGURATIONS = 3, MOST = 256 };

static attune_device *device;
static attune_stream *stream;
static at_random *data;

/* Calls `test` for cases of each operation, evenly chosen. */
static void each_case(void (*test)(const at_op_test *op_test, const void *problem, const char *text)) {
  for (int i = 0; i < at_op_count; i++) assert_true(conform_cases(at_op_test_at(i), device, CASES, test) > 3);
  assert_true(conform_cases(&toy_op_test, device, CASES, test) > 3);
  assert_true(conform_cases(&wide_op_test, device, CASES, test) > 3);
}

/* ---- texts, keys, buffers ---- */

static void describe(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  uint64_t read[AT_PROBLEM_BYTES / 8], copy[AT_PROBLEM_BYTES / 8];
  char family[AT_FAMILY_CHARS], small[8];
  at_key key;
  at_buffer buffers[AT_MAX_BUFFERS];
  at_scalar scalars[AT_MAX_SCALARS];
  int count = 0, outputs = 0;
  memset(read, 0xA5, sizeof read);
  OK(op->problem->parse(text, read));
  const size_t bytes = at_problem_bytes(op, problem);
  if (at_problem_bytes(op, read) != bytes || memcmp(read, problem, bytes) != 0)
    fail_msg("%s is read as another problem", text);
  for (size_t i = bytes; i < sizeof read; i++) /* nothing is written behind it */
    assert_int_equal(((const unsigned char *)read)[i], 0xA5);
  assert_int_equal(strcspn(text, " "), strlen(op->name));
  assert_int_equal(strncmp(text, op->name, strlen(op->name)), 0);
  FAILS(op->problem->format(problem, small, sizeof small), ATTUNE_INVALID_ARGUMENT);
  OK(op->problem->family(problem, family, sizeof family));
  assert_true(op->problem->distance(problem, read) == 0.0 && op->problem->flops(problem) > 0.0 &&
              op->problem->bytes(problem) > 0.0);
  memcpy(copy, problem, bytes);
  op->problem->fold(copy, device);
  assert_memory_equal(copy, problem, bytes); /* folded twice is folded */
  at_key_make(&key, op, problem, device);
  assert_true(at_key_tail_is_zero(&key));
  OK(op->operands->buffers(problem, buffers, &count));
  assert_in_range(count, 1, AT_MAX_BUFFERS);
  for (int i = 0; i < count; i++) {
    assert_true(buffers[i].bytes > 0 && (buffers[i].input || buffers[i].output));
    const size_t parts = buffers[i].dtype == ATTUNE_C64 || buffers[i].dtype == ATTUNE_C128 ? 2 : 1;
    assert_true(buffers[i].alignment % (attune_dtype_size(buffers[i].dtype) / parts) == 0);
    if (buffers[i].alignment >= (size_t)at_device_alignment(device) && buffers[i].alignment < AT_ALIGNMENT)
      fail_msg("%s: fold leaves alignment %zu, which is as good as %d here", text, buffers[i].alignment, AT_ALIGNMENT);
    outputs += buffers[i].output;
  }
  assert_true(outputs > 0);
  if (op->operands->scalars) assert_in_range(op->operands->scalars(problem, scalars), 0, AT_MAX_SCALARS);
}

TEST(problems_describe_themselves) {
  OK(at_ops_check(at_ops, at_op_count));
  for (int i = 0; i < at_op_count; i++) assert_int_equal(at_ops[i]->id, i);
  OK(at_op_check(&toy_op));
  OK(at_op_check(&wide_op));
  each_case(describe);
}

/* ---- the reference against the oracle ---- */

typedef struct scene {
  const at_op_test *op_test;
  const at_op *op;
  const void *problem;
  at_operand_set *set;
  void *reference;
  char *before[AT_MAX_BUFFERS]; /* of what is input and output */
  at_outputs outputs;
} scene;

static void prepare_outputs(scene *s) {
  for (int i = 0; i < s->set->buffer_count; i++) {
    const at_buffer *buffer = &s->set->buffers[i];
    if (!buffer->output) continue;
    s->outputs.bytes[i] = s->set->pointers[0][i];
    s->outputs.poison[i] = 0x77;
    if (buffer->input)
      memcpy(s->set->pointers[0][i], s->before[i], buffer->bytes);
    else
      memset(s->set->pointers[0][i], 0x77, buffer->bytes);
  }
}

static double error_of(scene *s, const double *scalars) {
  double error = -1.0;
  OK(s->op->reference->compare(s->reference, scalars, &s->outputs, &error));
  return error;
}

/* Every output is looked at: a first element far off is an error, and so is one that was not written. */
static void spoil_each(scene *s, const double *scalars, const char *text) {
  for (int i = 0; i < s->set->buffer_count; i++) {
    const at_buffer *buffer = &s->set->buffers[i];
    const size_t size = attune_dtype_size(buffer->dtype);
    unsigned char *first = s->set->pointers[0][i], kept[16];
    if (!buffer->output) continue;
    memcpy(kept, first, size);
    first[size - 1] ^= 0x44; /* in the exponent, or a high byte */
    if (!(error_of(s, scalars) > 1.0)) fail_msg("%s: output %d is not compared", text, i);
    memcpy(first, kept, size);
    if (!(error_of(s, scalars) <= 1.0)) fail_msg("%s: output %d is not what it was", text, i);
    if (buffer->input) continue;
    memset(first, 0x77, buffer->bytes);
    if (!(error_of(s, scalars) > 1.0)) fail_msg("%s: an unwritten output %d passes", text, i);
    prepare_outputs(s); /* those that are inputs too */
    s->op_test->oracle(s->problem, s->set->pointers[0], scalars);
  }
}

static void refer(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  scene s = {.op_test = op_test, .op = op, .problem = problem};
  double other[AT_MAX_SCALARS];
  OK(at_operand_set_create(&s.set, op, problem, stream, data, 1, SIZE_MAX, true));
  for (int i = 0; i < s.set->buffer_count; i++)
    if (s.set->buffers[i].output) {
      s.before[i] = malloc(s.set->buffers[i].bytes);
      assert_non_null(s.before[i]);
      memcpy(s.before[i], s.set->pointers[0][i], s.set->buffers[i].bytes);
    }
  OK(op->reference->create(&s.reference, problem, device, stream, s.set->pointers[0]));
  for (int i = 0; i < s.set->scalar_count; i++) other[i] = at_random_number(data, i, s.set->scalars[i].range);
  for (int turn = 0; turn < 2; turn++) {
    const double *scalars = turn ? other : s.set->usual;
    prepare_outputs(&s);
    op_test->oracle(problem, s.set->pointers[0], scalars);
    const double error = error_of(&s, scalars);
    if (!(error <= 1.0)) fail_msg("%s: the oracle's result has an error of %g", text, error);
    spoil_each(&s, scalars, text);
  }
  op->reference->destroy(s.reference);
  for (int i = 0; i < AT_MAX_BUFFERS; i++) free(s.before[i]);
  at_operand_set_destroy(s.set);
}

TEST(references_agree_with_oracles) {
  each_case(refer);
}

/* ---- implementations ---- */

static int checked;

static void verify(at_numerical_check *check, const at_op *op, const at_implementation *implementation,
                   const void *problem, const char *text) {
  static at_configuration room[MOST];
  const int count = implementation->configurations(implementation, problem, device, room, MOST);
  assert_in_range(count, 1, MOST);
  for (int i = 0; i < count && (conform_all() || i < CONFIGURATIONS); i++) {
    at_plan *plan = NULL;
    double error = 0.0;
    OK(at_plan_create(&plan, op, implementation, &room[i], problem, device));
    if (at_numerical_check_run(check, plan, &error) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
    at_plan_destroy(plan);
    checked++;
  }
}

static void implement(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  at_numerical_check *check = NULL;
  OK(at_numerical_check_create(&check, op, problem, stream, data));
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, "host") == 0 && implementation->supports(implementation, problem, device))
      verify(check, op, implementation, problem, text);
  }
  at_numerical_check_destroy(check);
}

TEST(implementations_are_right) {
  static const char *const spins[] = {"ns=1,a=1", "ns=1,a=2", NULL};
  toy_spins = wide_spins = spins;
  each_case(implement);
  assert_true(checked > 100);
}

int main(void) {
  at_copy_text(toy_base, sizeof toy_base, "ns=1");
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  return failed;
}
