/* SPDX-License-Identifier: Apache-2.0
 * raw_function.h: functions in CUDA C as expressions of kernels, for tests without a device. */
#ifndef AT_TESTS_RAW_FUNCTION_H
#define AT_TESTS_RAW_FUNCTION_H

#include "ops/elementwise/ir/user_function.h"
#include "ops/elementwise/language/user_function_expression.h"

/* With inputs of these dtypes, and `scalars` scalars that are f64. */
static inline attune_status raw_expression(at_expression **out, const char *source, const char *name,
                                           const attune_dtype *inputs, int input_count, int scalars, int outputs) {
  at_operand_name tensors[AT_EXPRESSION_INPUTS] = {{{0}, 0, 0}}, numbers[AT_EXPRESSION_SCALARS] = {{{0}, 0, 0}};
  at_user_function *raw = NULL;
  for (int i = 0; i < input_count; i++)
    tensors[i] = (at_operand_name){.name = {'x', (char)('a' + i)}, .dtype = (uint8_t)inputs[i]};
  for (int i = 0; i < scalars; i++) numbers[i] = (at_operand_name){.name = {'y', (char)('a' + i)}, .dtype = ATTUNE_F64};
  const at_signature signature = {tensors, numbers, input_count, scalars};
  attune_status status = at_user_function_get(&raw, source, name);
  if (status == ATTUNE_OK) status = at_user_function_expression_create(out, raw, &signature, outputs);
  at_user_function_release(raw);
  return status;
}

#endif
