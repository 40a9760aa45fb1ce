/* SPDX-License-Identifier: Apache-2.0
 * user_function_expression.h: a function of the program's own as an expression, whose outputs are AT_NODE_RAW. Its
 * canonical text has the operands in the function's order, the number of outputs and the hash: "f32 i0, f64 s0: cuda 1
 * 6f1c...". */
#ifndef AT_ELEMENTWISE_USER_FUNCTION_EXPRESSION_H
#define AT_ELEMENTWISE_USER_FUNCTION_EXPRESSION_H

#include "ops/elementwise/ir/expression.h"

/* Nodes are the inputs, the scalars, the inputs in the type of the arguments, and the outputs. */

/* Operands by their dtypes alone, in the function's order. Holds `raw`. Errors: INVALID_ARGUMENT (no operand; dtypes
 * that have no common one), OUT_OF_MEMORY. */
attune_status at_user_function_expression_create(at_expression **out, struct at_user_function *raw,
                                                 const at_signature *operands, int outputs);

/* What stands behind the operands and their colon in a canonical text. *out has no function if it is not in use. */
bool at_user_function_expression_is(const char *body);
attune_status at_user_function_expression_parse(at_expression **out, const char *body, const at_signature *operands);

#endif
