/* SPDX-License-Identifier: Apache-2.0
 * op_test.h: what only tests ask of an operation, so that those of one kind serve all: problems, what is right, and its
 * public calls. tests/ops/NAME/ has the table of each operation. */
#ifndef AT_TEST_OP_TEST_H
#define AT_TEST_OP_TEST_H

#include "ops/ops.h"

typedef struct at_op_test {
  const at_op *op;
  /* What every implementation has to get right. case_at: problem `index` of case_count, the same one in every run;
   * false: a case that needs no implementation. */
  int (*case_count)(void);
  bool (*case_at)(int index, void *problem);
  /* The plainest way to compute a problem, on buffers in host memory, laid out as at_operand_type.buffers says. */
  void (*oracle)(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars);
  /* The public functions, attune_NAME, attune_NAME_plan_create and attune_NAME_plan_run, called as a program would, for
   * a normalised problem and the operands that bind makes. Each makes the public problem and operands from these,
   * calls, and returns what the function returned. */
  attune_status (*call)(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands);
  attune_status (*plan_create)(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                               const void *operands);
  attune_status (*plan_run)(const attune_plan *plan, attune_stream *stream, const void *operands);
} at_op_test;

#define AT_OPERATION(name, NAME) extern const at_op_test at_##name##_op_test;
#include "ops/operations.def"
#undef AT_OPERATION

/* Of operation `id`. */
static inline const at_op_test *at_op_test_at(int id) {
#define AT_OPERATION(name, NAME) [AT_OP_##NAME] = &at_##name##_op_test,
  static const at_op_test *const all[] = {
#include "ops/operations.def"
  };
#undef AT_OPERATION
  return all[id];
}

#endif
