/* SPDX-License-Identifier: Apache-2.0
 * expression.c: the end of an expression. */
#include "ops/elementwise/ir/expression.h"

#include <stdlib.h>

#include "ops/elementwise/ir/user_function.h"

void at_expression_destroy(at_expression *expression) {
  if (!expression) return;
  at_user_function_release(expression->function);
  at_expression_destroy(expression->plain);
  free(expression->nodes);
  free(expression->text);
  free(expression);
}
