/* SPDX-License-Identifier: Apache-2.0
 * public_call.h: the public call for a normalised problem: what a program would write that comes to it. */
#ifndef AT_ELEMENTWISE_PUBLIC_CALL_H
#define AT_ELEMENTWISE_PUBLIC_CALL_H

#include "ops/elementwise/ir/user_function.h"
#include "ops/elementwise/problem/problem.h"

/* A program's call: its expression, and its operands, which point into the struct. */
typedef struct at_written_call {
  attune_elementwise_operands operands;
  attune_tensor tensors[AT_TENSORS];
  attune_scalar scalars[AT_EXPRESSION_SCALARS];
  int64_t strides[AT_TENSORS][AT_DIMS];
  attune_generator *generator;
  const char *expression;
  at_user_function *function; /* of a problem in CUDA C, whose source some call or plan has; else NULL */
} at_written_call;

/* The expression is the problem's, which outlives the call. finish: after a failure too. */
attune_status at_write_call(at_written_call *out, const at_elementwise *p, const at_elementwise_operands *o);
void at_written_call_finish(at_written_call *w);

/* The problem outlives them. */
extern const at_prepared_calls at_elementwise_prepared_calls;

#endif
