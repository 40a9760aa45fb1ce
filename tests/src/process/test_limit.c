/* SPDX-License-Identifier: Apache-2.0
 * test_limit.c: what may take long for a large problem looks at the limit between its parts, and ends there: operands,
 * the trusted result, the comparison with it. */
#include "tests/support/check.h"

#include "ops/ops.h"
#include "src/process/limit.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/measure/operand_set.h"
#include "tuning/op/op.h"

static attune_device *device;
static at_random *numbers;
static int looks, ends_at; /* the look at which the limit is over; negative: at none */

attune_status __real_at_limit_look(void);
attune_status __wrap_at_limit_look(void);

attune_status __wrap_at_limit_look(void) {
  return looks++ == ends_at ? at_fail(ATTUNE_BUDGET_EXHAUSTED, "over") : __real_at_limit_look();
}

typedef struct subject {
  const at_op *op;
  uint64_t problem[AT_PROBLEM_BYTES / 8];
} subject;

static subject subject_of(int op, const char *text) {
  subject s = {.op = at_ops[op]};
  OK(s.op->problem->parse(text, s.problem));
  s.op->problem->fold(s.problem, device);
  return s;
}

static attune_status make_operands(const subject *s) {
  at_operand_set *set = NULL;
  const attune_status status =
      at_operand_set_create(&set, s->op, s->problem, attune_stream_default(device), numbers, 2, SIZE_MAX, false);
  at_operand_set_destroy(set);
  return status;
}

static attune_status verify(const subject *s) {
  at_numerical_check *v = NULL;
  at_plan *plan = NULL;
  at_configuration first = {""};
  double error = 0.0;
  const at_implementation *base = at_registry_default(s->op, s->problem, device);
  attune_status status = at_numerical_check_create(&v, s->op, s->problem, attune_stream_default(device), numbers);
  if (status == ATTUNE_OK) {
    assert_int_equal(base->configurations(base, s->problem, device, &first, 1), 1);
    OK(at_plan_create(&plan, s->op, base, &first, s->problem, device));
    status = at_numerical_check_run(v, plan, &error);
  }
  at_plan_destroy(plan);
  at_numerical_check_destroy(v);
  return status;
}

/* Looks of a whole step; each of them may be the last. */
static int looks_of(attune_status (*step)(const subject *s), const subject *s, int stride) {
  looks = 0;
  ends_at = -1;
  OK(step(s));
  const int all = looks;
  for (ends_at = 0; ends_at < all; ends_at += stride) {
    looks = 0;
    assert_int_equal(step(s), ATTUNE_BUDGET_EXHAUSTED);
    assert_int_equal(looks, ends_at + 1);
  }
  return all;
}

TEST(operands_are_made_in_parts) {
  const subject small = subject_of(AT_OP_GEMM, "gemm f32 nn 100x100x100 strict"),
                large = subject_of(AT_OP_GEMM, "gemm f32 nn 8000x8000x8 strict"); /* 256 MB each */
  const int few = looks_of(make_operands, &small, 1), many = looks_of(make_operands, &large, 5);
  if (many < few + 4) fail_msg("%d looks, %d of a small one", many, few);
}

TEST(a_product_is_verified_in_parts) {
  const subject small = subject_of(AT_OP_GEMM, "gemm f32 nn 100x100x100 strict"),
                large = subject_of(AT_OP_GEMM, "gemm f32 nn 700x2900x1200 strict"); /* 4.9 GFLOP */
  const int few = looks_of(verify, &small, 1), many = looks_of(verify, &large, 9);
  if (many < few + 1) fail_msg("%d looks, %d of a small one", many, few);
}

TEST(elements_are_compared_in_parts) {
  const subject small = subject_of(AT_OP_ELEMENTWISE, "elementwise 1000 strict out=f32 : f32 i0: exp(i0)"),
                large = subject_of(AT_OP_ELEMENTWISE, "elementwise 3000000 strict out=f32 : f32 i0: exp(i0)");
  const int few = looks_of(verify, &small, 1), many = looks_of(verify, &large, 5);
  if (many < few + 2) fail_msg("%d looks, %d of a small one", many, few);
}

/* The threads that compare a product look at the limit of the one that they do it for. */
TEST(a_limit_that_is_over_ends_a_comparison) {
  const subject s = subject_of(AT_OP_GEMM, "gemm f32 nn 1000x1000x3 strict");
  const at_op *op = s.op;
  at_operand_set *set = NULL;
  void *reference = NULL;
  attune_stream *stream = attune_stream_default(device);
  double error = 0.0;
  ends_at = -1;
  OK(at_operand_set_create(&set, op, s.problem, stream, numbers, 1, SIZE_MAX, true));
  OK(op->reference->create(&reference, s.problem, device, stream, set->pointers[0]));
  at_outputs outputs = {.bytes = {NULL}};
  for (int i = 0; i < set->buffer_count; i++)
    if (set->buffers[i].output) outputs.bytes[i] = set->pointers[0][i];
  const int64_t before = at_limit_set(at_now_ns() - 1);
  assert_int_equal(before, AT_NO_LIMIT);
  assert_int_equal(op->reference->compare(reference, set->usual, &outputs, &error), ATTUNE_BUDGET_EXHAUSTED);
  assert_true(at_limit_set(before) < at_now_ns());
  OK(op->reference->compare(reference, set->usual, &outputs, &error));
  op->reference->destroy(reference);
  at_operand_set_destroy(set);
}

TEST(what_does_not_fit_is_not_begun) {
  OK(at_limit_afford(1e18));
  const int64_t before = at_limit_set(at_now_ns() + 1000000000000);
  OK(at_limit_afford(1e9));
  FAILS_SAYING(at_limit_afford(2e12), ATTUNE_BUDGET_EXHAUSTED, "takes about 2000000 ms");
  assert_true(at_limit_left_ns() > 0.0 && at_limit_left_ns() <= 1e12);
  (void)at_limit_set(at_now_ns() - 1);
  assert_true(at_limit_left_ns() <= 0.0);
  (void)at_limit_set(before);
  assert_true(at_limit_left_ns() > 1e300);
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&numbers, 7) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  at_random_destroy(numbers);
  return failed;
}
